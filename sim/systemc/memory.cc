// One process decides whose beats are on the bus next, when a burst becomes ready or the bus becomes free; answers and ends of
// write data wait in payload event queues. So the work of a burst does not depend on its length.

#include "memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heddle::sim::systemc {

using tlm::tlm_generic_payload;
using tlm::tlm_phase;

namespace {
constexpr int kRead = 0, kWrite = 1;
}  // namespace

Memory::Memory(sc_core::sc_module_name name, const Clock& clock, const MemoryConfig& config, uint64_t bytes)
    : sc_module(name),
      reads("reads"),
      writes("writes"),
      clock_(clock),
      config_(config),
      bytes_(bytes),
      banks_(static_cast<size_t>(std::max(1, config.banks))),
      write_data_ends_("write_data_ends"),
      answers_("answers"),
      random_(config.seed * 0x9E3779B97F4A7C15ull + 1) {
  reads.register_nb_transport_fw(this, &Memory::Forward, kRead);
  writes.register_nb_transport_fw(this, &Memory::Forward, kWrite);
  reads.register_b_transport(this, &Memory::Blocking, kRead);
  writes.register_b_transport(this, &Memory::Blocking, kWrite);
  reads.register_transport_dbg(this, &Memory::Debug, kRead);
  writes.register_transport_dbg(this, &Memory::Debug, kWrite);
  SC_HAS_PROCESS(Memory);
  SC_METHOD(Serve);
  sensitive << work_;
  dont_initialize();
  SC_METHOD(EndWriteData);
  sensitive << write_data_ends_.get_event();
  dont_initialize();
  SC_METHOD(Answer);
  sensitive << answers_.get_event();
  dont_initialize();
}

bool Memory::Stall() {
  if (config_.stall_probability <= 0) return false;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<double>(random_ >> 11) * 0x1p-53 < config_.stall_probability;
}

bool Memory::Inside(const tlm_generic_payload& payload) {
  if (payload.get_address() <= bytes_.size() && payload.get_data_length() <= bytes_.size() - payload.get_address()) return true;
  if (error_.empty()) error_ = "the burst at " + std::to_string(payload.get_address()) + " lies outside the memory";
  return false;
}

void Memory::BeginProgram() {
  begin_cycle_ = clock_.Now();
  for (Bank& bank : banks_) bank = {};
}

int64_t Memory::AfterRefresh(int64_t cycle) const {
  const int64_t interval = config_.refresh_interval_cycles, since = cycle - begin_cycle_;
  if (interval <= 0 || since < interval || since % interval >= config_.refresh_cycles) return cycle;
  return cycle + config_.refresh_cycles - since % interval;
}

int64_t Memory::ReadyCycle(uint64_t address, int64_t now) {
  const uint64_t row_number = address / static_cast<uint64_t>(std::max(1, config_.row_bytes));
  Bank& bank = banks_[row_number % banks_.size()];
  const auto row = static_cast<int64_t>(row_number / banks_.size());
  const int64_t refreshes = config_.refresh_interval_cycles > 0 ? (now - begin_cycle_) / config_.refresh_interval_cycles : 0;
  if (bank.row == row && bank.refreshes == refreshes) return now + config_.latency_cycles;
  const int64_t opens = std::max(now, bank.opens_cycle);
  bank = {row, opens + config_.row_cycle_cycles, refreshes};
  return opens + config_.row_miss_cycles + config_.latency_cycles;
}

void Memory::MoveBeats(int64_t from, BurstTiming& timing) {
  const double share = config_.beat_bytes / config_.bytes_per_cycle;  // of the common bandwidth, cycles a beat
  const bool even = config_.stall_probability <= 0 && config_.refresh_interval_cycles <= 0;
  timing.spacing_cycles = std::max(1.0, share);
  // A burst that follows another at once begins where that one's share of the bandwidth ends, within a cycle.
  timing.start_cycle = bus_free_ > static_cast<double>(from) - 1 ? std::min(bus_free_, static_cast<double>(from)) : static_cast<double>(from);
  timing.beat_cycles.clear();
  if (even) {
    timing.data_begin_cycle = timing.BeatCycle(0);
    timing.data_end_cycle = timing.BeatCycle(timing.beats - 1);
    bus_free_ = timing.start_cycle + timing.beats * share;
    return;
  }
  double cycle = timing.start_cycle;
  for (int i = 0; i < timing.beats; ++i) {
    const auto due = static_cast<int64_t>(std::ceil(cycle - 1e-6));
    int64_t at = AfterRefresh(due);
    while (Stall()) ++at;
    timing.beat_cycles.push_back(at);
    cycle = (at > due ? static_cast<double>(at) : cycle) + timing.spacing_cycles;
  }
  timing.data_begin_cycle = timing.beat_cycles.front();
  timing.data_end_cycle = timing.beat_cycles.back();
  bus_free_ = cycle;
}

tlm::tlm_sync_enum Memory::Forward(int channel, tlm_generic_payload& payload, tlm_phase& phase, sc_core::sc_time&) {
  if (phase == tlm::END_RESP) return tlm::TLM_COMPLETED;
  const int64_t now = clock_.Now();
  Waiting waiting{&payload, 0, false};
  payload.acquire();
  if (channel == kWrite) {
    waiting.ready_cycle = ReadyCycle(payload.get_address(), now);
    write_queue_.push_back(waiting);
    work_.notify(sc_core::SC_ZERO_TIME);
    return tlm::TLM_ACCEPTED;
  }
  while (!read_ends_.empty() && read_ends_.front() < now) read_ends_.pop_front();
  waiting.accepted = read_queue_.size() + read_ends_.size() < static_cast<size_t>(config_.max_reads) && !Stall();
  waiting.ready_cycle = ReadyCycle(payload.get_address(), now);
  read_queue_.push_back(waiting);
  work_.notify(clock_.Cycles(waiting.ready_cycle - now));
  if (!waiting.accepted) {
    work_.notify(clock_.Cycles(1));
    return tlm::TLM_ACCEPTED;
  }
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

// A read that found the memory full, or a stall: its latency counts from now.
void Memory::AcceptNextRead() {
  const int64_t now = clock_.Now();
  while (!read_ends_.empty() && read_ends_.front() < now) read_ends_.pop_front();
  for (Waiting& waiting : read_queue_) {
    if (waiting.accepted) continue;
    if (read_queue_.size() - 1 + read_ends_.size() >= static_cast<size_t>(config_.max_reads) || Stall()) return;
    waiting.accepted = true;
    waiting.ready_cycle = ReadyCycle(waiting.payload->get_address(), now);
    tlm_phase phase = tlm::END_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    reads->nb_transport_bw(*waiting.payload, phase, delay);
    return;
  }
}

void Memory::ServeRead(int64_t now) {
  tlm_generic_payload& payload = *read_queue_.front().payload;
  read_queue_.pop_front();
  BurstTiming& timing = BurstPool::TimingOf(payload);
  MoveBeats(now, timing);
  read_free_cycle_ = timing.data_end_cycle + 1;
  read_ends_.push_back(timing.data_end_cycle);
  const bool inside = Inside(payload);
  if (inside) std::memcpy(payload.get_data_ptr(), &bytes_[payload.get_address()], payload.get_data_length());
  payload.set_response_status(inside ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  bytes_read_ += int64_t{timing.beats} * config_.beat_bytes;
  tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  reads->nb_transport_bw(payload, phase, delay);
  payload.release();
}

void Memory::ServeWrite(int64_t now) {
  tlm_generic_payload& payload = *write_queue_.front().payload;
  const int64_t ready_cycle = write_queue_.front().ready_cycle;
  write_queue_.pop_front();
  BurstTiming& timing = BurstPool::TimingOf(payload);
  // An initiator that gathered the data has had them on its way since data_begin_cycle: they flowed while the bus was free.
  const int64_t began = std::min(now, std::max({timing.data_begin_cycle, BusFreeCycle(), write_free_cycle_}));
  MoveBeats(began, timing);
  timing.data_end_cycle = std::max(timing.data_end_cycle, now);
  write_free_cycle_ = timing.data_end_cycle + 1;
  const bool inside = Inside(payload);
  if (inside) std::memcpy(&bytes_[payload.get_address()], payload.get_data_ptr(), payload.get_data_length());
  payload.set_response_status(inside ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
  bytes_written_ += payload.get_data_length();
  write_data_ends_.notify(payload, clock_.Cycles(timing.data_end_cycle - now));
  const int64_t answer_cycle = std::max(ready_cycle, timing.data_end_cycle + std::max(1, config_.latency_cycles));
  answers_.notify(payload, clock_.Cycles(answer_cycle - now));
}

void Memory::Serve() {
  AcceptNextRead();
  const int64_t now = clock_.Now();
  int64_t next = INT64_MAX;
  for (bool again = true; again;) {
    again = false;
    next = INT64_MAX;
    if (!read_queue_.empty() && read_queue_.front().accepted) {
      const int64_t at = std::max({read_queue_.front().ready_cycle, read_free_cycle_, BusFreeCycle()});
      if (at <= now) {
        ServeRead(now);
        again = true;
        continue;
      }
      next = std::min(next, at);
    }
    if (!write_queue_.empty()) {
      const int64_t at = std::max(write_free_cycle_, BusFreeCycle());
      if (at <= now) {
        ServeWrite(now);
        again = true;
        continue;
      }
      next = std::min(next, at);
    }
  }
  for (const Waiting& waiting : read_queue_) {
    if (!waiting.accepted) next = std::min(next, now + 1);
  }
  if (next != INT64_MAX) work_.notify(clock_.Cycles(std::max<int64_t>(1, next - now)));
}

void Memory::EndWriteData() {
  while (tlm_generic_payload* payload = write_data_ends_.get_next_transaction()) {
    tlm_phase phase = tlm::END_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    writes->nb_transport_bw(*payload, phase, delay);
  }
}

void Memory::Answer() {
  while (tlm_generic_payload* payload = answers_.get_next_transaction()) {
    tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    writes->nb_transport_bw(*payload, phase, delay);
    payload->release();
  }
}

void Memory::Blocking(int, tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (!Debug(0, payload) && payload.get_data_length() > 0) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return;
  }
  const double cycles = config_.latency_cycles + std::ceil(payload.get_data_length() / config_.bytes_per_cycle);
  delay += clock_.Cycles(static_cast<int64_t>(cycles));
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

unsigned Memory::Debug(int, tlm_generic_payload& payload) {
  if (!Inside(payload)) return 0;
  uint8_t* at = bytes_.data() + payload.get_address();
  if (payload.is_read()) std::memcpy(payload.get_data_ptr(), at, payload.get_data_length());
  if (payload.is_write()) std::memcpy(at, payload.get_data_ptr(), payload.get_data_length());
  return payload.get_data_length();
}

}  // namespace heddle::sim::systemc
