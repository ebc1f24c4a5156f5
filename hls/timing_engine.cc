// A cycle is decided from registers alone (Decide), then all registers change (Update…): the hardware's clock edge. Conditions
// are those of hls/accelerator/*.cc, unit by unit.

#include "hls/timing_engine.h"

#include <algorithm>

namespace heddle::hls {

TimingEngine::TimingEngine(const AcceleratorParams& params, const MemoryModel& memory, const std::vector<Instruction>& program,
                           const EstimateOptions& options)
    : params_(params),
      program_(program),
      options_(options),
      bank_map_(params),
      beat_bytes_(params.beat_bytes()),
      memory_(memory, params.beat_bytes()),
      compute_(params) {
  const int depths[kTimedUnits] = {params.load_queue, params.compute_queue, params.store_queue};
  for (int unit = 0; unit < kTimedUnits; ++unit) queues_[unit].depth = static_cast<size_t>(depths[unit]);
  int end = 0;
  int most_tag = 0;
  while (!IsEnd(end)) {
    const Instruction& instruction = At(end++);
    if (UnitOf(instruction) == 1) {
      last_compute_ = end - 1;
      most_tag = std::max(most_tag, static_cast<int>(instruction.compute.tag));
    }
  }
  timing_.instructions.resize(static_cast<size_t>(end));
  timing_.tags.resize(static_cast<size_t>(most_tag) + 1);
  while (!IsEnd(next_compute_) && UnitOf(At(next_compute_)) != 1) ++next_compute_;
  // The start bit: the fetch asks for the first instruction in cycle 0.
  fetch_.burst_beats = std::min<int64_t>(kInstructionBytes / beat_bytes_, params.burst_beats);
  fetch_.bursts = kInstructionBytes / beat_bytes_ / fetch_.burst_beats;
  fetch_.address = options.program_address;
  fetch_.asking = true;
  fetch_.bursts_left = fetch_.bursts;
  fetch_.beats_left = kInstructionBytes / beat_bytes_;
  memory_.Tick();
}

bool TimingEngine::AllIdle() const {
  return fetch_.done && !fetch_.holds && !load_.is_active() && !compute_active_ && !store_.active && queues_[0].items.empty() &&
         queues_[1].items.empty() && queues_[2].items.empty();
}

bool TimingEngine::Run() {
  while (!AllIdle()) {
    if (options_.every_cycle && compute_active_) compute_.AdvanceTo(cycle_);
    if (Cycle()) {
      if (const int64_t beats = options_.every_cycle ? 0 : SteadyBeats(); beats > 0) StreamBeats(beats);
      continue;
    }
    const int64_t to_memory = memory_.NextChange() - memory_.cycle();
    const int64_t to_compute = compute_active_ ? compute_end_ - cycle_ : MemoryTiming::kNever;
    int64_t cycles = std::min(to_memory, to_compute);
    if (cycles >= MemoryTiming::kNever / 2) return false;
    if (options_.every_cycle) cycles = 1;
    Account({}, cycles);
    memory_.Skip(cycles);
    cycle_ += cycles;
  }
  Account({}, 1);  // the cycle in which control sees it
  timing_.total_cycles = cycle_ + 1;
  timing_.row_misses = static_cast<int64_t>(memory_.row_misses());
  return true;
}

int64_t TimingEngine::SteadyBeats() const {
  const MemoryTiming::Outputs& m = memory_.outputs();
  if (!m.rvalid || m.bvalid || store_.active || !load_.write.active || port_.owners.empty() || port_.owners.front()) return 0;
  if (compute_active_ && At(load_.written).transfer.target == Target::kActivations) return 0;  // the two may meet at a bank
  const bool free = port_.owners.size() < static_cast<size_t>(params_.outstanding_reads) && (!port_.valid || m.arready);
  if ((port_.valid && m.arready) || (free && (fetch_.asking || load_.ask.active))) return 0;
  if (fetch_.holds ? queues_[UnitOf(At(fetch_.held))].can_push() : fetch_.complete) return 0;
  if ((!load_.waiting && !load_.ask.active && HeadReady(0)) || (!compute_active_ && HeadReady(1)) || HeadReady(2)) return 0;
  const int64_t beats = std::min(memory_.SteadyReads(), load_.write.beats_left - 1);
  return compute_active_ ? std::min(beats, compute_end_ - cycle_) : beats;
}

void TimingEngine::StreamBeats(int64_t beats) {
  Account({}, beats);
  patience_ = {};
  load_.write.Advance(beats);
  memory_.TakeReads(beats);
  cycle_ += beats;
}

int TimingEngine::LacksTokensOf(int unit) const {
  const HeaderFields& h = At(queues_[unit].items.front()).header;
  const int64_t waits[kTimedUnits] = {h.wait_load, h.wait_compute, h.wait_store};
  for (int from = 0; from < kTimedUnits; ++from) {
    if (from != unit && given_[from][unit] - taken_[from][unit] < waits[from]) return from;
  }
  return -1;
}

TimingEngine::Signals TimingEngine::Decide() {
  const MemoryTiming::Outputs& m = memory_.outputs();
  Signals s{};
  s.dispatched = fetch_.holds && queues_[UnitOf(At(fetch_.held))].can_push();
  s.moves = fetch_.complete && (!fetch_.holds || s.dispatched);
  s.starts[0] = !load_.waiting && !load_.ask.active && HeadReady(0);
  s.starts[1] = !compute_active_ && HeadReady(1);
  s.starts[2] = !store_.active && HeadReady(2);
  const bool free = port_.owners.size() < static_cast<size_t>(params_.outstanding_reads) && (!port_.valid || m.arready);
  s.fetch_takes = free && fetch_.asking;
  s.load_takes = free && !fetch_.asking && load_.ask.active;
  const bool data = m.rvalid && !port_.owners.empty();
  s.fetch_data = data && port_.owners.front();
  s.load_beat_there = data && !port_.owners.front() && load_.write.active;
  s.beat = s.load_beat_there;
  s.load_done = load_.holds && !load_.write.active;
  s.load_hands_over = load_.waiting && !load_.holds;
  s.push = store_.ask.active && store_.bursts.size() < kStoreBurstQueue && (!store_.valid || m.awready) &&
           store_.in_flight != params_.outstanding_writes;
  s.store_want = store_.data.active && !store_.bursts.empty() && store_.room != 0;
  s.store_go = s.store_want;
  s.sent = store_.queued > 0 && m.wready;
  s.store_finish = store_.active && !store_.setup && !store_.ask.active && !store_.data.active && store_.in_flight == 0;
  if (compute_active_ && cycle_ >= compute_end_) {
    compute_end_ = compute_.EndCycle();
    s.compute_finish = cycle_ >= compute_end_;
  }
  return s;
}

// The activation memory's ports: hls/accelerator/activation_memory.cc.
void TimingEngine::Arbitrate(Signals& s) {
  const bool load_valid = s.load_beat_there && At(load_.written).transfer.target == Target::kActivations;
  if (!load_valid && !s.store_want) {
    patience_ = {};
    return;
  }
  bool wants = false;
  if (compute_active_ && compute_.AdvanceTo(cycle_)) {
    wants = compute_.Wants();
    const bool overlap = wants && s.store_want && (compute_.Banks() & bank_map_.Run(store_.data.address, beat_bytes_));
    const bool granted = wants && !(overlap && patience_.store == kStorePatience) && patience_.load != kLoadPatience;
    s.store_go = s.store_want && !(overlap && granted);
    if (load_valid) {
      const int64_t rest = At(load_.written).transfer.bytes % beat_bytes_;
      const int64_t bytes = load_.write.CompletesRow(1) && rest ? rest : beat_bytes_;
      s.beat = !(compute_.WrittenBanks() & bank_map_.Run(load_.write.address, bytes));
    }
    if (wants && !granted) compute_.Block();
  }
  patience_.store = s.store_want && !s.store_go ? std::min(patience_.store + 1, kStorePatience) : 0;
  patience_.load = load_valid && !s.beat ? std::min(patience_.load + 1, kLoadPatience) : 0;
  timing_.store_wait_bank_cycles += s.store_want && !s.store_go;
  timing_.load_wait_bank_cycles += load_valid && !s.beat;
}

bool TimingEngine::Cycle() {
  const MemoryTiming::Outputs& m = memory_.outputs();
  Signals s = Decide();
  Arbitrate(s);
  const bool happens = s.dispatched || s.moves || s.starts[0] || s.starts[1] || s.starts[2] || s.fetch_takes || s.load_takes ||
                       (port_.valid && m.arready) || s.fetch_data || s.load_beat_there || s.load_done || s.load_hands_over || store_.setup ||
                       s.push || (store_.valid && m.awready) || s.store_want || store_.arrives || s.sent || m.bvalid || s.store_finish ||
                       s.compute_finish;
  if (!happens) return false;
  Account(s, 1);
  UpdateMemory(s);
  UpdateReadPort(s);
  UpdateTokens(s);
  UpdateLoad(s);
  UpdateStore(s);
  UpdateFetch(s);
  ++cycle_;
  return true;
}

void TimingEngine::UpdateMemory(const Signals& s) {
  const MemoryTiming::Outputs m = memory_.outputs();
  if (s.fetch_data || s.beat) {
    if (m.rlast) port_.owners.pop_front();
    memory_.TakeRead();
  }
  if (m.bvalid) memory_.TakeResponse();
  if (s.sent) memory_.TakeWrite();
  if (port_.valid && m.arready) {
    memory_.AcceptRead(port_.address, static_cast<int>(port_.beats));
    port_.valid = false;
  }
  store_.in_flight += (s.push ? 1 : 0) - (m.bvalid ? 1 : 0);
  if (store_.valid && m.awready) {
    memory_.AcceptWrite(store_.address, static_cast<int>(store_.beats));
    store_.valid = false;
  }
  memory_.Tick();
}

void TimingEngine::UpdateReadPort(const Signals& s) {
  if (!s.fetch_takes && !s.load_takes) return;
  port_.valid = true;
  port_.owners.push_back(s.fetch_takes ? 1 : 0);
  port_.beats = s.fetch_takes ? fetch_.burst_beats : load_.ask.Burst(params_.burst_beats);
  port_.address = static_cast<uint32_t>(s.fetch_takes ? fetch_.address : load_.ask.address);
  timing_.dram_bytes_read += port_.beats * beat_bytes_;
}

// Ends give tokens, starts take them.
void TimingEngine::Finish(int unit, int instruction) {
  const HeaderFields& h = At(instruction).header;
  const int64_t signals[kTimedUnits] = {h.signal_load, h.signal_compute, h.signal_store};
  for (int to = 0; to < kTimedUnits; ++to) given_[unit][to] += signals[to];
  timing_.instructions[static_cast<size_t>(instruction)].end_cycles = cycle_ + 1;
}

void TimingEngine::UpdateTokens(const Signals& s) {
  for (int unit = 0; unit < kTimedUnits; ++unit) {
    if (!s.starts[unit]) continue;
    const int instruction = queues_[unit].items.front();
    const HeaderFields& h = At(instruction).header;
    const int64_t waits[kTimedUnits] = {h.wait_load, h.wait_compute, h.wait_store};
    for (int from = 0; from < kTimedUnits; ++from) taken_[from][unit] += waits[from];
    timing_.instructions[static_cast<size_t>(instruction)].start_cycles = cycle_;
  }
  if (s.load_done) Finish(0, load_.written);
  if (s.compute_finish) {
    FinishCompute();
    Finish(1, compute_instruction_);
    compute_active_ = false;
  }
  if (s.store_finish) Finish(2, store_.instruction);
  if (s.starts[1]) {
    compute_instruction_ = queues_[1].items.front();
    queues_[1].items.pop_front();
    compute_active_ = true;
    compute_.Start(At(compute_instruction_).compute, cycle_);
    compute_end_ = compute_.EndCycle();
    do ++next_compute_;
    while (!IsEnd(next_compute_) && UnitOf(At(next_compute_)) != 1);
  }
}

void TimingEngine::UpdateLoad(const Signals& s) {
  if (s.load_hands_over) {
    load_.written = load_.asked;
    load_.holds = true;
    load_.write.Begin(At(load_.written).transfer, false, beat_bytes_);
    load_.waiting = false;
  } else if (s.load_done) {
    load_.holds = false;
  } else if (s.beat) {
    load_.write.Advance(1);
  }
  if (s.load_takes) load_.ask.Advance(port_.beats);
  if (s.starts[0]) {
    load_.asked = queues_[0].items.front();
    queues_[0].items.pop_front();
    load_.waiting = true;
    load_.ask.Begin(At(load_.asked).transfer, true, beat_bytes_);
  }
}

void TimingEngine::UpdateStore(const Signals& s) {
  if (s.push) {
    store_.valid = true;
    store_.beats = store_.ask.Burst(params_.burst_beats);
    store_.address = static_cast<uint32_t>(store_.ask.address);
    store_.ask.Advance(store_.beats);
  }
  store_.queued += (store_.arrives ? 1 : 0) - (s.sent ? 1 : 0);
  store_.room += (s.sent ? 1 : 0) - (s.store_go ? 1 : 0);
  store_.arrives = s.store_go;
  if (s.store_go) {
    store_.data.Advance(1);
    if (++store_.position == store_.bursts.front()) {
      store_.position = 0;
      store_.bursts.pop_front();
    }
  }
  if (s.push) store_.bursts.push_back(store_.beats);
  if (store_.setup) {
    store_.ask.Begin(At(store_.instruction).transfer, true, beat_bytes_);
    store_.data.Begin(At(store_.instruction).transfer, false, beat_bytes_);
  }
  if (s.store_finish) store_.active = false;
  store_.setup = s.starts[2];
  if (s.starts[2]) {
    store_.active = true;
    store_.instruction = queues_[2].items.front();
    queues_[2].items.pop_front();
    const TransferFields& t = At(store_.instruction).transfer;
    timing_.dram_bytes_written += int64_t{t.bytes} * t.rows * t.planes;
  }
}

void TimingEngine::UpdateFetch(const Signals& s) {
  if (s.dispatched) queues_[UnitOf(At(fetch_.held))].items.push_back(fetch_.held);
  const bool is_end = IsEnd(fetch_.next);
  const bool asks_next = s.moves && !is_end;
  if (s.fetch_takes) {
    fetch_.address += fetch_.burst_beats * beat_bytes_;
    if (--fetch_.bursts_left == 0) fetch_.asking = false;
  }
  if (s.fetch_data && --fetch_.beats_left == 0) {
    fetch_.complete = true;
  } else if (s.moves) {
    fetch_.complete = false;
  }
  if (asks_next) {
    fetch_.asking = true;
    fetch_.bursts_left = fetch_.bursts;
    fetch_.beats_left = kInstructionBytes / beat_bytes_;
    fetch_.held = fetch_.next++;
    fetch_.holds = true;
  } else if (s.dispatched) {
    fetch_.holds = false;
  }
  if (s.moves) fetch_.done = is_end;
}

CycleKinds& TimingEngine::KindsOf(int instruction) { return timing_.tags[instruction < 0 ? 0 : At(instruction).compute.tag]; }

// `cycles` cycles like this one.
void TimingEngine::Account(const Signals& s, int64_t cycles) {
  if (load_.is_active()) timing_.load_busy_cycles += cycles;
  if (store_.active) timing_.store_busy_cycles += cycles;
  if (compute_active_) {
    timing_.compute_busy_cycles += cycles;  // by kind when it ends
  } else if (s.starts[1]) {
    KindsOf(next_compute_).fill_drain_cycles += cycles;
  } else if (IsEnd(next_compute_)) {
    KindsOf(last_compute_).finish_cycles += cycles;
  } else if (queues_[1].items.empty()) {
    KindsOf(next_compute_).wait_fetch_cycles += cycles;
  } else {
    CycleKinds& kinds = KindsOf(next_compute_);
    (LacksTokensOf(1) == 0 ? kinds.wait_load_cycles : kinds.wait_store_cycles) += cycles;
  }
}

void TimingEngine::FinishCompute() {
  const ComputeFields& c = At(compute_instruction_).compute;
  CycleKinds& kinds = KindsOf(compute_instruction_);
  compute_.AdvanceTo(cycle_);
  const bool multiplies = c.reduce == Reduce::kDot || c.reduce == Reduce::kDepthwise;
  (multiplies ? kinds.multiply_steps : kinds.other_steps) += compute_.steps();
  if (multiplies) {
    const int64_t columns = (int64_t{c.blocks} - 1) * params_.output_lanes + c.last_block_channels;
    kinds.column_steps += compute_.steps() / c.blocks * columns;
  }
  kinds.operand_b_cycles += compute_.b_steps();
  kinds.wait_drain_cycles += compute_.drain_wait_cycles();
  kinds.wait_bank_cycles += compute_.bank_wait_cycles();
  const int64_t busy = cycle_ - timing_.instructions[static_cast<size_t>(compute_instruction_)].start_cycles;
  kinds.fill_drain_cycles += busy - compute_.steps() - compute_.b_steps() - compute_.drain_wait_cycles() - compute_.bank_wait_cycles();
}

}  // namespace heddle::hls
