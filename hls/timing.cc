// The fast model: one pass over the program in its order. That order satisfies every token (CheckTokens), so each
// instruction's start is the latest of: its unit being free, its fetch, and the ends of the instructions whose tokens it takes.
//
// Cycles of a compute instruction follow the sequencer's rule: one step a cycle, one more for operand b, drains at least
// drain_cycles() apart, and a constant for filling and draining the pipeline. Transfers: latency once, then beats at the rate
// that bus, memory and bursts in flight allow.

#include "hls/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int kUnits = 3;
constexpr int64_t kComputePipelineCycles = 16;  // decode to first step, last step to last result written
constexpr int64_t kTransferOverheadCycles = 6;  // decode, first address, completion
constexpr int64_t kStartCycles = 4;             // start bit to first fetch

double BytesPerCycle(const AcceleratorParams& params, const MemoryModel& memory, int outstanding) {
  const double bus = std::min<double>(params.beat_bytes(), memory.bytes_per_cycle);
  const double burst_bytes = static_cast<double>(params.burst_beats) * params.beat_bytes();
  // A burst's place is free again a latency after its last beat was asked for.
  const double in_flight = outstanding * burst_bytes / (memory.latency_cycles + burst_bytes / bus);
  return std::min(bus, in_flight);
}

int UnitOf(const Instruction& instruction) { return static_cast<int>(instruction.header.opcode) - 1; }

// Time at which instructions reach their unit's queue, at the rate of the memory and held up by full queues.
class Fetch {
 public:
  Fetch(const AcceleratorParams& params, const MemoryModel& memory)
      : cycles_(kInstructionBytes / BytesPerCycle(params, memory, params.outstanding_reads)),
        ready_(kStartCycles + memory.latency_cycles),
        depth_{static_cast<size_t>(params.load_queue), static_cast<size_t>(params.compute_queue), static_cast<size_t>(params.store_queue)} {}

  int64_t Arrival(int unit) {
    ready_ += cycles_;
    if (starts_[unit].size() >= depth_[unit]) {
      ready_ = std::max(ready_, static_cast<double>(starts_[unit].front()));
      starts_[unit].pop_front();
    }
    return static_cast<int64_t>(std::ceil(ready_));
  }
  void Started(int unit, int64_t cycle) { starts_[unit].push_back(cycle); }

 private:
  double cycles_;
  double ready_;
  std::array<size_t, kUnits> depth_;
  std::array<std::deque<int64_t>, kUnits> starts_;  // of instructions that may still stand in the queue
};

}  // namespace

int64_t ComputeCycles(const AcceleratorParams& params, const ComputeFields& c) {
  const int64_t drain = c.hold_accumulation ? 0 : params.drain_cycles();
  const int64_t b = c.use_b;
  int64_t row = 0;
  if (c.window) {
    const int64_t pixels = (c.x_steps - 1 - c.first_emit) / c.emit_stride + 1;
    row = std::max<int64_t>(c.first_emit + 1 + b, drain) + (pixels - 1) * std::max<int64_t>(c.emit_stride + b, drain);
  } else {
    const int64_t steps = int64_t{c.kernel_rows} * c.kernel_columns * c.passes;
    row = c.x_steps * std::max(steps + b, drain);
  }
  return c.blocks * (c.out_rows * row) + kComputePipelineCycles;
}

int64_t TransferCycles(const AcceleratorParams& params, const MemoryModel& memory, const Instruction& instruction) {
  const TransferFields& t = instruction.transfer;
  if (t.planes == 0 || t.rows == 0 || t.bytes == 0) return kTransferOverheadCycles;
  const bool load = instruction.header.opcode == Opcode::kLoad;
  const int64_t beats = (t.bytes + params.beat_bytes() - 1) / params.beat_bytes() * t.rows * t.planes;
  const double rate = BytesPerCycle(params, memory, load ? params.outstanding_reads : params.outstanding_writes);
  return kTransferOverheadCycles + memory.latency_cycles + static_cast<int64_t>(std::ceil(static_cast<double>(beats * params.beat_bytes()) / rate));
}

absl::StatusOr<ProgramTiming> EstimateProgram(const AcceleratorParams& params, const MemoryModel& memory,
                                              const std::vector<Instruction>& program) {
  ProgramTiming timing;
  Fetch fetch(params, memory);
  std::deque<int64_t> tokens[kUnits][kUnits];  // [from][to]: times at which they are given
  int64_t free[kUnits] = {};
  int64_t* const busy[kUnits] = {&timing.busy_load_cycles, &timing.busy_compute_cycles, &timing.busy_store_cycles};
  for (const Instruction& instruction : program) {
    timing.dram_bytes_read += kInstructionBytes;
    if (instruction.header.opcode == Opcode::kEnd) break;
    const HeaderFields& h = instruction.header;
    const int unit = UnitOf(instruction);
    const uint32_t waits[kUnits] = {h.wait_load, h.wait_compute, h.wait_store};
    const uint32_t signals[kUnits] = {h.signal_load, h.signal_compute, h.signal_store};
    const int64_t fetched = fetch.Arrival(unit);
    int64_t start = std::max(free[unit], fetched);
    int64_t* cause = unit == 1 && fetched > free[1] ? &timing.compute_waits_fetch_cycles : nullptr;
    for (int from = 0; from < kUnits; ++from) {
      for (uint32_t k = 0; k < waits[from]; ++k) {
        if (tokens[from][unit].empty()) {
          return ir::UserError("E-PROGRAM-006", fmt::format("\"{}\" waits for a token that nothing gives", Disassemble(instruction)));
        }
        if (tokens[from][unit].front() > start) {
          start = tokens[from][unit].front();
          if (unit == 1) cause = from == 0 ? &timing.compute_waits_load_cycles : &timing.compute_waits_store_cycles;
        }
        tokens[from][unit].pop_front();
      }
    }
    if (cause) *cause += start - free[unit];
    fetch.Started(unit, start);
    const bool compute = instruction.header.opcode == Opcode::kCompute;
    const int64_t cycles = compute ? ComputeCycles(params, instruction.compute) : TransferCycles(params, memory, instruction);
    const int64_t end = start + cycles;
    if (!compute) {
      const TransferFields& t = instruction.transfer;
      (instruction.header.opcode == Opcode::kLoad ? timing.dram_bytes_read : timing.dram_bytes_written) += int64_t{t.bytes} * t.rows * t.planes;
    }
    for (int to = 0; to < kUnits; ++to) tokens[unit][to].insert(tokens[unit][to].end(), signals[to], end);
    free[unit] = end;
    *busy[unit] += cycles;
    timing.instructions.push_back({start, end});
    timing.total_cycles = std::max(timing.total_cycles, end);
  }
  return timing;
}

}  // namespace heddle::hls
