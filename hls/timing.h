// The fast timing model: walks a program unit by unit with tokens, queues and the memory's latency and bandwidth, without
// data. One instruction is one event, so its speed does not depend on the length of the layers.
#ifndef HEDDLE_HLS_TIMING_H_
#define HEDDLE_HLS_TIMING_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "hls/isa.h"
#include "hls/memory_model.h"
#include "hls/params.h"

namespace heddle::hls {

struct InstructionTiming {
  int64_t start_cycles = 0;  // accepted by its unit, tokens taken
  int64_t end_cycles = 0;    // finished, tokens given
};

struct ProgramTiming {
  int64_t total_cycles = 0;                     // from the start bit to the last unit done
  std::vector<InstructionTiming> instructions;  // one per instruction, END excluded
  int64_t busy_load_cycles = 0, busy_compute_cycles = 0, busy_store_cycles = 0;
  // Cycles in which the compute unit had nothing to do, by what it waited for.
  int64_t compute_waits_load_cycles = 0, compute_waits_store_cycles = 0, compute_waits_fetch_cycles = 0;
  int64_t dram_bytes_read = 0, dram_bytes_written = 0;
};

// Cycles of one instruction alone: a compute instruction from start to last result written.
int64_t ComputeCycles(const AcceleratorParams& params, const ComputeFields& fields);
int64_t TransferCycles(const AcceleratorParams& params, const MemoryModel& memory, const Instruction& instruction);

// E-PROGRAM-006 where the program deadlocks.
absl::StatusOr<ProgramTiming> EstimateProgram(const AcceleratorParams& params, const MemoryModel& memory,
                                              const std::vector<Instruction>& program);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_TIMING_H_
