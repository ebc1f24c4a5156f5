// Reads and writes share one data bus through a credit of bytes that grows every cycle; bursts are served in the order
// of their addresses, each not before its latency has passed, so that the latencies of bursts in flight overlap.

#include "axi_memory.h"

#include <algorithm>

namespace heddle::sim {

AxiMemory::AxiMemory(const MemoryConfig& config, uint64_t bytes)
    : config_(config),
      bytes_(bytes),
      open_row_(static_cast<size_t>(std::max(1, config.banks)), -1),
      read_data_(static_cast<size_t>(config.beat_bytes)),
      random_(config.seed * 0x9E3779B97F4A7C15ull + 1) {
  Drive();
}

bool AxiMemory::Stall() {
  if (config_.stall_probability <= 0) return false;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<double>(random_ >> 11) * 0x1p-53 < config_.stall_probability;
}

bool AxiMemory::Refreshing() const {
  if (config_.refresh_interval_cycles <= 0) return false;
  return cycle_ % static_cast<uint64_t>(config_.refresh_interval_cycles) < static_cast<uint64_t>(config_.refresh_cycles);
}

AxiMemory::Burst AxiMemory::Accept(uint64_t address, uint8_t length) {
  Burst burst{address, length + 1, cycle_ + static_cast<uint64_t>(config_.latency_cycles), false};
  const uint64_t size = static_cast<uint64_t>(burst.beats) * static_cast<uint64_t>(config_.beat_bytes);
  if (address % static_cast<uint64_t>(config_.beat_bytes) != 0) Fail("burst address " + std::to_string(address) + " is not aligned to a beat");
  if (address / 4096 != (address + size - 1) / 4096) Fail("the burst at " + std::to_string(address) + " crosses a 4 KiB border");
  if (address > bytes_.size() || size > bytes_.size() - address) {
    burst.bad = true;
    Fail("the burst at " + std::to_string(address) + " lies outside the memory");
  }
  const uint64_t row_number = address / static_cast<uint64_t>(std::max(1, config_.row_bytes));
  const size_t bank = row_number % open_row_.size();
  const auto row = static_cast<int64_t>(row_number / open_row_.size());
  if (open_row_[bank] != row) {
    open_row_[bank] = row;
    ++row_misses_;
    burst.ready_cycle += static_cast<uint64_t>(config_.row_miss_cycles);
  }
  return burst;
}

void AxiMemory::AcceptAddresses(const AxiFromMaster& in) {
  if (in.arvalid && outputs_.arready) reads_.push_back(Accept(in.araddr, in.arlen));
  if (in.awvalid && outputs_.awready) writes_.push_back(Accept(in.awaddr, in.awlen));
}

void AxiMemory::TakeWriteBeat(const AxiFromMaster& in) {
  if (!in.wvalid || !outputs_.wready) return;
  if (writes_.empty()) {
    Fail("write data before its address");
    return;
  }
  Burst& burst = writes_.front();
  if (!burst.bad) {
    for (int i = 0; i < config_.beat_bytes; ++i) {
      if (in.wstrb >> i & 1) bytes_[burst.address + static_cast<uint64_t>(i)] = in.wdata[i];
    }
  }
  bytes_written_ += static_cast<uint64_t>(__builtin_popcountll(in.wstrb));
  burst.address += static_cast<uint64_t>(config_.beat_bytes);
  credit_bytes_ -= config_.beat_bytes;
  --burst.beats;
  if (in.wlast != (burst.beats == 0)) Fail("wlast does not match the burst's length");
  if (burst.beats == 0) {
    responses_.emplace_back(std::max(burst.ready_cycle, cycle_ + static_cast<uint64_t>(config_.latency_cycles)), burst.bad);
    writes_.pop_front();
  }
}

void AxiMemory::Clock(const AxiFromMaster& in) {
  if (outputs_.rvalid && in.rready) {
    Burst& burst = reads_.front();
    bytes_read_ += static_cast<uint64_t>(config_.beat_bytes);
    burst.address += static_cast<uint64_t>(config_.beat_bytes);
    credit_bytes_ -= config_.beat_bytes;
    if (--burst.beats == 0) reads_.pop_front();
    outputs_.rvalid = false;
  }
  if (outputs_.bvalid && in.bready) {
    responses_.pop_front();
    outputs_.bvalid = false;
  }
  TakeWriteBeat(in);
  AcceptAddresses(in);
  ++cycle_;
  // Unused bandwidth is not saved up: at most two beats may be owed.
  credit_bytes_ = std::min(credit_bytes_ + config_.bytes_per_cycle, std::max(2.0 * config_.beat_bytes, config_.bytes_per_cycle));
  Drive();
}

void AxiMemory::DriveRead() {
  if (outputs_.rvalid) return;  // a beat that was offered stays
  if (reads_.empty() || reads_.front().ready_cycle > cycle_ || credit_bytes_ < config_.beat_bytes || Refreshing() || Stall()) return;
  const Burst& burst = reads_.front();
  if (burst.bad) {
    std::fill(read_data_.begin(), read_data_.end(), uint8_t{0xdd});
  } else {
    std::memcpy(read_data_.data(), &bytes_[burst.address], read_data_.size());
  }
  outputs_.rvalid = true;
  outputs_.rlast = burst.beats == 1;
  outputs_.rresp = burst.bad ? 2 : 0;
  outputs_.rdata = read_data_.data();
}

void AxiMemory::Drive() {
  DriveRead();
  const double owed_bytes = (outputs_.rvalid ? 2.0 : 1.0) * config_.beat_bytes;  // a read beat on offer goes first
  outputs_.arready = reads_.size() < static_cast<size_t>(config_.max_reads) && !Stall();
  outputs_.awready = writes_.size() < static_cast<size_t>(config_.max_writes) && !Stall();
  outputs_.wready = !writes_.empty() && credit_bytes_ >= owed_bytes && !Refreshing() && !Stall();
  if (!outputs_.bvalid && !responses_.empty() && responses_.front().first <= cycle_ && !Stall()) {
    outputs_.bvalid = true;
    outputs_.bresp = responses_.front().second ? 2 : 0;
  }
}

}  // namespace heddle::sim
