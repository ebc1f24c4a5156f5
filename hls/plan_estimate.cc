// One event an instruction: start is the latest of its unit being free, its fetch and the tokens it takes; its length a formula.
// Bank conflicts and the memory's rows are left out, so that a whole plan is judged in a millisecond or so.
// The program that comes out is timed by the fast model (hls/timing.h).

#include "hls/plan_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "hls/timing.h"
#include "ir/check.h"

namespace heddle::hls {
namespace {

constexpr int kUnits = 3;
constexpr int64_t kAskCycles = 2;      // start to the first address on the bus
constexpr int64_t kLoadEndCycles = 2;  // last beat to the tokens
constexpr int64_t kStoreStages = 8;    // start to the first data beat, last response to the tokens
constexpr int64_t kStartCycles = 2;    // start bit to the first fetch
constexpr int64_t kFetchCycles = 3;    // asking, and moving the instruction on

double BytesPerCycle(const AcceleratorParams& params, const MemoryModel& memory, int outstanding) {
  const double bus = std::min<double>(params.beat_bytes(), memory.bytes_per_cycle);
  const double burst_bytes = static_cast<double>(params.burst_beats) * params.beat_bytes();
  // A burst's place is free again a latency after its last beat was asked for.
  const double in_flight = outstanding * burst_bytes / (memory.latency_cycles + burst_bytes / bus);
  return std::min(bus, in_flight);
}

int UnitOf(const Instruction& instruction) { return static_cast<int>(instruction.header.opcode) - 1; }

// Time at which instructions reach their unit's queue. One is asked for when the one before has been moved on, which waits
// for room in that one's queue.
class Fetch {
 public:
  Fetch(const AcceleratorParams& params, const MemoryModel& memory)
      : latency_(memory.latency_cycles),
        beats_cycles_(static_cast<int64_t>(std::ceil(kInstructionBytes / BytesPerCycle(params, memory, params.outstanding_reads)))),
        queue_cycles_(static_cast<int64_t>((params.outstanding_reads - 0.5) * params.burst_beats * params.beat_bytes() /
                                           std::min<double>(params.beat_bytes(), memory.bytes_per_cycle))),
        depth_{static_cast<size_t>(params.load_queue), static_cast<size_t>(params.compute_queue), static_cast<size_t>(params.store_queue)} {}

  // `loading_until`: end of the data that loads have asked for so far. Responses come in order, so an instruction waits behind the
  // bursts of loads that are in flight when it is asked for.
  int64_t Arrival(int unit, int64_t loading_until) {
    const int64_t at_once = asked_ + latency_;
    const int64_t behind = std::min(asked_ + queue_cycles_, loading_until);
    const int64_t moved = std::max(std::max(at_once, behind) + beats_cycles_ + kFetchCycles, dispatched_ + 1);
    asked_ = moved;
    dispatched_ = moved + 1;
    if (starts_[unit].size() >= depth_[unit]) {
      dispatched_ = std::max(dispatched_, starts_[unit].front());
      starts_[unit].pop_front();
    }
    return dispatched_ + 1;
  }
  void Started(int unit, int64_t cycle) { starts_[unit].push_back(cycle); }

 private:
  int64_t latency_;
  int64_t beats_cycles_;
  int64_t queue_cycles_;  // bursts in flight in front of a new one
  int64_t asked_ = kStartCycles;
  int64_t dispatched_ = 0;  // the instruction before left the fetch unit
  std::array<size_t, kUnits> depth_;
  std::array<std::deque<int64_t>, kUnits> starts_;  // of instructions that may still stand in the queue
};

// The load unit: addresses of the next instruction are asked for while this one's data arrive.
class LoadTimes {
 public:
  // Earliest start of the next load.
  int64_t free() const { return std::max(asks_end_, taken_); }
  int64_t data_end() const { return data_end_; }
  // A store takes the memory meanwhile.
  void Delay(int64_t cycles) { data_end_ += cycles; }
  // Start and end of a load of `beats_cycles` on the bus, its first data `latency` after the asking.
  int64_t End(int64_t start, int64_t latency, int64_t bursts, int64_t beats_cycles) {
    asks_end_ = start + 1 + bursts;
    taken_ = std::max(start + 1, data_end_ + kLoadEndCycles);
    data_end_ = std::max(start + kAskCycles + latency, taken_) + beats_cycles;
    return data_end_ + kLoadEndCycles;
  }

 private:
  int64_t asks_end_ = 0, taken_ = 0, data_end_ = 0;
};

int64_t Beats(const AcceleratorParams& params, const TransferFields& t) {
  return (t.bytes + params.beat_bytes() - 1) / params.beat_bytes() * t.rows * t.planes;
}

int64_t BeatCycles(const AcceleratorParams& params, const MemoryModel& memory, const Instruction& instruction) {
  const bool load = instruction.header.opcode == Opcode::kLoad;
  const double rate = BytesPerCycle(params, memory, load ? params.outstanding_reads : params.outstanding_writes);
  return static_cast<int64_t>(std::ceil(static_cast<double>(Beats(params, instruction.transfer) * params.beat_bytes()) / rate));
}

}  // namespace

int64_t QuickProgramCycles(const AcceleratorParams& params, const MemoryModel& memory, const std::vector<Instruction>& program) {
  Fetch fetch(params, memory);
  std::deque<int64_t> tokens[kUnits][kUnits];  // [from][to]: times at which they are given
  LoadTimes loads;
  int64_t free[kUnits] = {};
  int64_t total_cycles = 0;
  for (const Instruction& instruction : program) {
    if (instruction.header.opcode == Opcode::kEnd) break;
    const HeaderFields& h = instruction.header;
    const int unit = UnitOf(instruction);
    const uint32_t waits[kUnits] = {h.wait_load, h.wait_compute, h.wait_store};
    const uint32_t signals[kUnits] = {h.signal_load, h.signal_compute, h.signal_store};
    const int64_t fetched = fetch.Arrival(unit, loads.data_end());
    if (unit == 0) free[0] = loads.free();
    int64_t start = std::max(free[unit], fetched);
    for (int from = 0; from < kUnits; ++from) {
      for (uint32_t k = 0; k < waits[from]; ++k) {
        HEDDLE_CHECK(!tokens[from][unit].empty(), "a plan's program waits for a token that nothing gives");
        start = std::max(start, tokens[from][unit].front());
        tokens[from][unit].pop_front();
      }
    }
    fetch.Started(unit, start);
    int64_t end = start;
    if (instruction.header.opcode == Opcode::kCompute) {
      end += ComputeCycles(params, instruction.compute);
    } else if (unit == 0) {
      const int64_t bursts = (Beats(params, instruction.transfer) + params.burst_beats - 1) / params.burst_beats;
      end = loads.End(start, memory.latency_cycles, bursts, BeatCycles(params, memory, instruction));
    } else {
      end += kStoreStages + memory.latency_cycles + BeatCycles(params, memory, instruction);
      loads.Delay(BeatCycles(params, memory, instruction));
    }
    for (int to = 0; to < kUnits; ++to) tokens[unit][to].insert(tokens[unit][to].end(), signals[to], end);
    free[unit] = end;
    total_cycles = std::max(total_cycles, end);
  }
  return total_cycles;
}

}  // namespace heddle::hls
