// Each unit of docs/accelerator.md is a process. The constants are register stages of the hardware along the way of an
// instruction (hls/accelerator/fetch.cc, transfer.cc, unit_front.cc); everything that depends on the memory or on
// another unit is an event here and not a formula.

#include "sim/systemc/fast_accelerator.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hls/registers.h"
#include "hls/timing.h"

namespace heddle::sim::systemc {
namespace {

constexpr int64_t kStartCycles = 1;      // start bit to the fetch unit's asking
constexpr int64_t kAddressCycles = 2;    // a unit's wish, its turn, the address on the bus
constexpr int64_t kCompleteCycles = 1;   // last beat to a whole instruction
constexpr int64_t kQueueCycles = 2;      // held instruction to the head of its queue
constexpr int64_t kLoadEndCycles = 2;    // last beat to the tokens
constexpr int64_t kStoreFirstCycles = 5; // start to the first beat on the bus: set-up, address, bank, queue
constexpr int64_t kStoreEndCycles = 2;   // last response to the tokens
constexpr const char* kUnitNames[] = {"load", "compute", "store"};

int UnitOf(const hls::Instruction& instruction) { return static_cast<int>(instruction.header.opcode) - 1; }

}  // namespace

FastAccelerator::FastAccelerator(sc_core::sc_module_name name, const hls::AcceleratorParams& params, const Clock& clock)
    : Accelerator(name), params_(params), clock_(clock), model_(params), fetch_port_("fetch"), load_port_("load"), store_port_("store") {
  int index = 0;
  for (Master* master : masters()) master->register_nb_transport_bw(static_cast<Accelerator*>(this), &Accelerator::Response, index++);
  fronts_[kLoad].depth = static_cast<size_t>(params.load_queue);
  fronts_[kCompute].depth = static_cast<size_t>(params.compute_queue);
  fronts_[kStore].depth = static_cast<size_t>(params.store_queue);
  SC_HAS_PROCESS(FastAccelerator);
  SC_THREAD(FetchThread);
  SC_THREAD(DispatchThread);
  SC_THREAD(LoadAskThread);
  SC_THREAD(LoadDataThread);
  SC_THREAD(ComputeThread);
  SC_THREAD(StoreThread);
  SC_THREAD(DoneThread);
}

// --- The bus ---

Burst* FastAccelerator::Prepare(tlm::tlm_command command, uint64_t address, size_t bytes) {
  const int beats = static_cast<int>((bytes + static_cast<size_t>(params_.beat_bytes()) - 1) / static_cast<size_t>(params_.beat_bytes()));
  return pool_.Take(command, base_ + address, bytes, beats);
}

Burst* FastAccelerator::Send(Master& port, Burst* burst) {
  burst->timing.data_begin_cycle = clock_.Now();
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  port->nb_transport_fw(burst->payload, phase, delay);
  return burst;
}

tlm::tlm_sync_enum FastAccelerator::Response(int, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time&) {
  Burst& burst = BurstPool::BurstOf(payload);
  burst.changed.notify(sc_core::SC_ZERO_TIME);
  burst.requested = true;
  if (phase == tlm::END_REQ) return tlm::TLM_ACCEPTED;
  burst.answered = true;
  if (payload.is_response_error()) failed_ = true;
  if (payload.is_write()) {
    --writes_in_flight_;
    write_event_.notify(sc_core::SC_ZERO_TIME);
  }
  return tlm::TLM_COMPLETED;
}

template <typename F>
void FastAccelerator::ForEachBurst(const hls::TransferFields& t, F f) {
  int64_t at = 0;
  const int64_t longest = int64_t{params_.burst_beats} * params_.beat_bytes();
  for (int64_t plane = 0; plane < t.planes; ++plane) {
    for (int64_t row = 0; row < t.rows; ++row) {
      const auto begin = static_cast<uint32_t>(t.dram_address + plane * t.dram_plane_step + row * t.dram_row_step);
      for (int64_t done = 0; done < t.bytes;) {
        const int64_t address = begin + done;
        const int64_t size = std::min({t.bytes - done, longest, 4096 - address % 4096});
        f(static_cast<uint64_t>(address), at + done, static_cast<size_t>(size));
        done += size;
      }
      at += t.bytes;
    }
  }
}

hls::Instruction FastAccelerator::Compact(const hls::Instruction& instruction) const {
  hls::Instruction compact = instruction;
  hls::HeaderFields header;
  header.opcode = instruction.header.opcode;
  compact.header = header;
  compact.transfer.dram_address = 0;
  compact.transfer.dram_row_step = static_cast<decltype(compact.transfer.dram_row_step)>(instruction.transfer.bytes);
  compact.transfer.dram_plane_step = static_cast<decltype(compact.transfer.dram_plane_step)>(instruction.transfer.bytes * instruction.transfer.rows);
  return compact;
}

void FastAccelerator::Execute(const hls::Instruction& instruction, std::vector<uint8_t>& dram) {
  hls::Instruction alone = instruction;
  alone.header = {};
  alone.header.opcode = instruction.header.opcode;
  const absl::Status status = model_.Run({alone}, dram);
  if (!status.ok()) Fail(std::string(status.message()));
}

// --- Fetch ---

std::optional<hls::Instruction> FastAccelerator::FetchInstruction(uint64_t address) {
  std::vector<Burst*> bursts;
  const int64_t longest = int64_t{params_.burst_beats} * params_.beat_bytes();
  for (int64_t done = 0; done < hls::kInstructionBytes; done += longest) {
    while (reads_in_flight_ >= params_.outstanding_reads) wait(slot_event_);
    ++reads_in_flight_;
    WaitCycles(bursts.empty() ? kAddressCycles : 1);
    const auto size = static_cast<size_t>(std::min<int64_t>(longest, hls::kInstructionBytes - done));
    bursts.push_back(Send(fetch_port_, Prepare(tlm::TLM_READ_COMMAND, address + static_cast<uint64_t>(done), size)));
  }
  hls::EncodedInstruction words{};
  size_t at = 0;
  for (Burst* burst : bursts) {
    while (!burst->answered) wait(burst->changed);
    WaitUntil(burst->timing.data_end_cycle);
    --reads_in_flight_;
    slot_event_.notify(sc_core::SC_ZERO_TIME);
    for (size_t i = 0; i < burst->data.size(); ++i, ++at) words[at / 4] |= static_cast<uint32_t>(burst->data[i]) << 8 * (at % 4);
    burst->payload.release();
  }
  WaitCycles(kCompleteCycles);
  const auto instruction = hls::Decode(words);
  if (!instruction.ok() || failed_) return std::nullopt;
  return *instruction;
}

void FastAccelerator::FetchThread() {
  for (;;) {
    wait(start_event_);
    WaitCycles(kStartCycles);
    for (uint64_t address = program_;; address += hls::kInstructionBytes) {
      const std::optional<hls::Instruction> instruction = FetchInstruction(address);
      failed_ = failed_ || !instruction;
      if (!instruction || instruction->header.opcode == hls::Opcode::kEnd) break;
      while (held_) wait(dispatched_event_);
      held_ = instruction;
      held_event_.notify(sc_core::SC_ZERO_TIME);
    }
    fetching_ = false;
    idle_event_.notify(sc_core::SC_ZERO_TIME);
  }
}

void FastAccelerator::DispatchThread() {
  for (;;) {
    while (!held_) wait(held_event_);
    Front& front = fronts_[UnitOf(*held_)];
    WaitCycles(kQueueCycles - 1);
    const int64_t since = clock_.Now();
    while (front.queue.size() >= front.depth) wait(front.popped);
    counters_["fetch_wait_queue"] += clock_.Now() - since;
    front.queue.push_back(*held_);
    held_.reset();
    dispatched_event_.notify(sc_core::SC_ZERO_TIME);
    front.changed.notify(clock_.Cycles(1));
  }
}

// --- Units ---

hls::Instruction FastAccelerator::Next(Unit unit) {
  Front& front = fronts_[unit];
  const std::string name = kUnitNames[unit];
  const int64_t empty_since = clock_.Now();
  while (front.queue.empty()) wait(front.changed);
  // Idle time before the program began or between programs is nobody's wait.
  const int64_t from = std::max(empty_since, start_cycle_);
  if (unit == kCompute && busy_) counters_["compute_empty"] += std::max<int64_t>(0, clock_.Now() - from);
  const hls::HeaderFields& header = front.queue.front().header;
  const uint32_t waits[kUnits] = {header.wait_load, header.wait_compute, header.wait_store};
  const int64_t token_since = clock_.Now();
  while (front.tokens[0] < waits[0] || front.tokens[1] < waits[1] || front.tokens[2] < waits[2]) wait(front.changed);
  counters_[name + "_wait_token"] += clock_.Now() - token_since;
  for (int from_unit = 0; from_unit < kUnits; ++from_unit) front.tokens[from_unit] -= waits[from_unit];
  hls::Instruction instruction = front.queue.front();
  front.queue.pop_front();
  front.popped.notify(sc_core::SC_ZERO_TIME);
  front.active = true;
  return instruction;
}

void FastAccelerator::Finish(Unit unit, const hls::Instruction& instruction, int64_t start_cycle) {
  const hls::HeaderFields& header = instruction.header;
  const uint32_t signals[kUnits] = {header.signal_load, header.signal_compute, header.signal_store};
  for (int to = 0; to < kUnits; ++to) {
    if (!signals[to]) continue;
    fronts_[to].tokens[unit] += signals[to];
    fronts_[to].changed.notify(sc_core::SC_ZERO_TIME);
  }
  const int64_t now = clock_.Now();
  counters_[std::string(kUnitNames[unit]) + "_busy"] += now - start_cycle;
  const int tag = static_cast<int>(unit == kCompute ? instruction.compute.tag : instruction.transfer.tag);
  events_.push_back({unit, tag, static_cast<uint64_t>(start_cycle), static_cast<uint64_t>(now)});
  idle_event_.notify(sc_core::SC_ZERO_TIME);
}

void FastAccelerator::LoadAskThread() {
  for (;;) {
    auto job = std::make_unique<LoadJob>();
    job->instruction = Next(kLoad);
    job->start_cycle = clock_.Now();
    load_jobs_.push_back(job.get());
    load_job_event_.notify(clock_.Cycles(1));
    WaitCycles(kAddressCycles);
    ForEachBurst(job->instruction.transfer, [&](uint64_t address, int64_t, size_t bytes) {
      while (reads_in_flight_ >= params_.outstanding_reads) wait(slot_event_);
      ++reads_in_flight_;
      job->bursts.push_back(Send(load_port_, Prepare(tlm::TLM_READ_COMMAND, address, bytes)));
      load_burst_event_.notify(sc_core::SC_ZERO_TIME);
      WaitCycles(1);
    });
    job->all_asked = true;
    load_burst_event_.notify(sc_core::SC_ZERO_TIME);
    while (!job->taken) wait(load_taken_event_);
    (void)job.release();  // the data side owns it now
  }
}

void FastAccelerator::LoadDataThread() {
  for (;;) {
    while (load_jobs_.empty()) wait(load_job_event_);
    std::unique_ptr<LoadJob> job;
    LoadJob* const current = load_jobs_.front();
    load_jobs_.pop_front();
    current->taken = true;
    load_taken_event_.notify(sc_core::SC_ZERO_TIME);
    std::vector<uint8_t> data;
    int64_t beats = 0;
    while (!current->all_asked || !current->bursts.empty()) {
      if (current->bursts.empty()) {
        wait(load_burst_event_);
        continue;
      }
      Burst* burst = current->bursts.front();
      current->bursts.pop_front();
      while (!burst->answered) wait(burst->changed);
      WaitUntil(burst->timing.data_end_cycle);
      --reads_in_flight_;
      slot_event_.notify(sc_core::SC_ZERO_TIME);
      data.insert(data.end(), burst->data.begin(), burst->data.end());
      beats += burst->timing.beats;
      burst->payload.release();
    }
    job.reset(current);
    WaitCycles(kLoadEndCycles);
    Execute(Compact(job->instruction), data);
    counters_["load_beats"] += beats;
    fronts_[kLoad].active = !load_jobs_.empty();
    Finish(kLoad, job->instruction, job->start_cycle);
  }
}

void FastAccelerator::ComputeThread() {
  std::vector<uint8_t> no_dram;
  for (;;) {
    const hls::Instruction instruction = Next(kCompute);
    const int64_t start = clock_.Now();
    WaitCycles(hls::ComputeCycles(params_, instruction.compute));
    Execute(instruction, no_dram);
    fronts_[kCompute].active = false;
    Finish(kCompute, instruction, start);
  }
}

void FastAccelerator::StoreThread() {
  for (;;) {
    const hls::Instruction instruction = Next(kStore);
    const int64_t start = clock_.Now();
    const hls::TransferFields& t = instruction.transfer;
    std::vector<uint8_t> data(static_cast<size_t>(int64_t{t.bytes} * t.rows * t.planes));
    Execute(Compact(instruction), data);
    WaitCycles(kStoreFirstCycles);
    std::vector<Burst*> bursts;
    ForEachBurst(t, [&](uint64_t address, int64_t offset, size_t bytes) {
      while (writes_in_flight_ >= params_.outstanding_writes) wait(write_event_);
      ++writes_in_flight_;
      Burst* burst = Prepare(tlm::TLM_WRITE_COMMAND, address, bytes);
      std::copy_n(data.begin() + offset, bytes, burst->data.begin());
      Send(store_port_, burst);
      bursts.push_back(burst);
      counters_["store_beats"] += burst->timing.beats;
      while (!burst->requested) wait(burst->changed);
      WaitCycles(1);
    });
    const int64_t sent = clock_.Now();
    while (writes_in_flight_ > 0) wait(write_event_);
    counters_["store_wait_response"] += clock_.Now() - sent;
    for (Burst* burst : bursts) burst->payload.release();
    WaitCycles(kStoreEndCycles);
    fronts_[kStore].active = false;
    Finish(kStore, instruction, start);
  }
}

// --- Control ---

bool FastAccelerator::Idle() const {
  if (fetching_ || held_ || !load_jobs_.empty()) return false;
  return std::none_of(std::begin(fronts_), std::end(fronts_), [](const Front& front) { return front.active || !front.queue.empty(); });
}

void FastAccelerator::DoneThread() {
  for (;;) {
    wait(idle_event_);
    if (!busy_ || !Idle()) continue;
    WaitCycles(1);
    run_cycles_ = clock_.Now() - start_cycle_;
    busy_ = false;
    done_ = true;
    irq.write(interrupt_enabled_);
  }
}

void FastAccelerator::StartProgram() {
  counters_.clear();
  events_.clear();
  busy_ = fetching_ = true;
  done_ = failed_ = false;
  for (Front& front : fronts_) std::fill(std::begin(front.tokens), std::end(front.tokens), 0u);
  start_cycle_ = clock_.Now();
  start_event_.notify(sc_core::SC_ZERO_TIME);
}

std::string FastAccelerator::Waiting() const {
  std::string text;
  for (int unit = 0; unit < kUnits; ++unit) {
    const Front& front = fronts_[unit];
    text += std::string(unit ? "; " : "") + kUnitNames[unit];
    if (front.active) text += " is at work";
    else if (front.queue.empty()) text += " has no instruction";
    else text += " waits for the tokens of \"" + hls::Disassemble(front.queue.front()) + "\", has " + std::to_string(front.tokens[0]) + " from load, " +
                 std::to_string(front.tokens[1]) + " from compute, " + std::to_string(front.tokens[2]) + " from store";
  }
  return text;
}

namespace {
const std::vector<std::string>& ReadableRegisters() {
  static const auto& names = *new std::vector<std::string>{"id", "control", "status", "base_low", "base_high", "program", "lanes", "waiting", "cycles_low", "cycles_high"};
  return names;
}
}  // namespace

bool FastAccelerator::HasRegister(uint32_t offset) const {
  return std::any_of(ReadableRegisters().begin(), ReadableRegisters().end(), [&](const std::string& name) { return hls::RegisterOffset(name) == offset; });
}

uint32_t FastAccelerator::ReadRegister(const std::string& name) const {
  const uint64_t cycles = static_cast<uint64_t>(busy_ ? clock_.Now() - start_cycle_ : run_cycles_);
  if (name == "id") return hls::kAcceleratorId;
  if (name == "control") return interrupt_enabled_ ? hls::kControlInterruptEnable : 0;
  if (name == "status") return (busy_ ? hls::kStatusBusy : 0) | (done_ ? hls::kStatusDone : 0) | (failed_ ? hls::kStatusError : 0);
  if (name == "base_low") return static_cast<uint32_t>(base_);
  if (name == "base_high") return static_cast<uint32_t>(base_ >> 32);
  if (name == "program") return program_;
  if (name == "cycles_low") return static_cast<uint32_t>(cycles);
  if (name == "cycles_high") return static_cast<uint32_t>(cycles >> 32);
  if (name == "lanes") {
    return static_cast<uint32_t>(params_.contraction_lanes | params_.output_lanes << 8 | params_.requantise_lanes << 16) |
           static_cast<uint32_t>(params_.beat_bytes()) << 24;
  }
  uint32_t waiting = 0;
  for (int unit = 0; unit < kUnits; ++unit) {
    waiting |= (!fronts_[unit].active && !fronts_[unit].queue.empty() ? 1u : 0u) << unit | (fronts_[unit].active ? 1u : 0u) << (8 + unit);
  }
  return waiting;
}

void FastAccelerator::RegisterAccess(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  delay += clock_.Cycles(2);
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
  uint8_t* data = payload.get_data_ptr();
  const auto offset = static_cast<uint32_t>(payload.get_address());
  if (payload.get_data_length() != 4) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  if (payload.is_read()) {
    uint32_t value = 0;
    for (const std::string& name : ReadableRegisters()) {
      if (hls::RegisterOffset(name) == offset) value = ReadRegister(name);
    }
    for (int i = 0; i < 4; ++i) data[i] = static_cast<uint8_t>(value >> 8 * i);
    return;
  }
  const uint32_t value = data[0] | data[1] << 8 | data[2] << 16 | static_cast<uint32_t>(data[3]) << 24;
  if (offset == hls::RegisterOffset("base_low")) base_ = (base_ & ~uint64_t{0xffffffff}) | value;
  if (offset == hls::RegisterOffset("base_high")) base_ = (base_ & 0xffffffff) | uint64_t{value} << 32;
  if (offset == hls::RegisterOffset("program")) program_ = value;
  if (offset == hls::RegisterOffset("status") && (value & hls::kStatusDone)) {
    done_ = false;
    irq.write(false);
  }
  if (offset == hls::RegisterOffset("control")) {
    interrupt_enabled_ = value & hls::kControlInterruptEnable;
    if ((value & hls::kControlStart) && !busy_) StartProgram();
  }
}

std::unique_ptr<Accelerator> MakeAccelerator(const Script& script, const Clock& clock) {
  const auto params = hls::ParamsFromJson(nlohmann::json::parse(script.params, nullptr, false));
  if (!params.ok()) {
    std::fprintf(stderr, "parameters: %s\n", std::string(params.status().message()).c_str());
    std::exit(3);
  }
  return std::make_unique<FastAccelerator>("accelerator", *params, clock);
}

}  // namespace heddle::sim::systemc
