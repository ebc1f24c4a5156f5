// The fast timing model: a program's cycles, exactly those of the RTL (without random back-pressure), without data.
//
// It holds the registers that decide when something happens (hls/timing_transfer.h, hls/timing_compute.h) and the memory
// that the RTL simulation has too (hls/memory/memory_timing.h), goes cycle by cycle where units meet, and crosses in one step
// every stretch in which nothing can: a compute instruction alone costs the same however long it runs.
#ifndef HEDDLE_HLS_TIMING_H_
#define HEDDLE_HLS_TIMING_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hls/isa.h"
#include "hls/memory_model.h"
#include "hls/params.h"

namespace heddle::hls {

struct InstructionTiming {
  int64_t start_cycles = 0;  // accepted by its unit, tokens taken
  int64_t end_cycles = 0;    // finished, tokens given
};

// Where cycles go, as the compute unit sees them. Every cycle of a program is counted once: those between two compute
// instructions belong to the second, those after the last to it.
struct CycleKinds {
  int64_t multiply_steps = 0;     // steps that multiply (reduce dot, depthwise)
  int64_t other_steps = 0;        // steps that do not (max, load)
  int64_t operand_b_cycles = 0;   // reads of operand b
  int64_t wait_drain_cycles = 0;  // a finished pixel waits for the drain
  int64_t wait_bank_cycles = 0;   // a step waits for a bank that load or store has
  int64_t fill_drain_cycles = 0;  // start of an instruction, and from its last step to its last result
  int64_t wait_load_cycles = 0;   // waits for tokens of the load unit
  int64_t wait_store_cycles = 0;  // of the store unit
  int64_t wait_fetch_cycles = 0;  // no instruction is there
  int64_t finish_cycles = 0;      // after the last compute instruction
  // Output columns in use, summed over multiply_steps: multiply_steps * output_lanes where none is idle.
  int64_t column_steps = 0;

  int64_t total_cycles() const {
    return multiply_steps + other_steps + operand_b_cycles + wait_drain_cycles + wait_bank_cycles + fill_drain_cycles + wait_load_cycles +
           wait_store_cycles + wait_fetch_cycles + finish_cycles;
  }
  CycleKinds& operator+=(const CycleKinds& other);
  bool operator==(const CycleKinds&) const = default;
};

struct ProgramTiming {
  int64_t total_cycles = 0;                     // from the start bit to the last unit done: the RTL's counter `cycles`
  std::vector<InstructionTiming> instructions;  // one per instruction, END excluded
  std::vector<CycleKinds> tags;                 // by the compute instructions' tag; they add up to total_cycles
  // The RTL's counters of the same names.
  int64_t load_busy_cycles = 0, compute_busy_cycles = 0, store_busy_cycles = 0;
  int64_t load_wait_bank_cycles = 0, store_wait_bank_cycles = 0;
  int64_t dram_bytes_read = 0, dram_bytes_written = 0;
  int64_t row_misses = 0;  // of the main memory
};

// Cycles of one compute instruction alone, from its start to its last result written.
int64_t ComputeCycles(const AcceleratorParams& params, const ComputeFields& fields);

struct EstimateOptions {
  int64_t program_address = 0;           // where the program lies in DRAM; only the memory's rows care
  std::vector<std::string> layer_names;  // by tag, for messages
  bool every_cycle = false;              // for tests: no stretch is crossed in one step; the same result, slower
};

// E-PROGRAM-006 where the program stops before its end, with what each unit waits for.
absl::StatusOr<ProgramTiming> EstimateProgram(const AcceleratorParams& params, const MemoryModel& memory,
                                              const std::vector<Instruction>& program, const EstimateOptions& options = {});

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_TIMING_H_
