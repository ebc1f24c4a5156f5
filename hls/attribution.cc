// Causes from the fast model's kinds, and knobs by running the fast model once for each.

#include "hls/attribution.h"

#include <fmt/format.h>

#include <algorithm>

#include "hls/timing.h"
#include "ir/status.h"

namespace heddle::hls {

std::map<std::string, int64_t> CyclesByCause(const CycleKinds& kinds, int64_t macs, const AcceleratorParams& params) {
  const int64_t columns = kinds.column_steps / params.output_lanes;
  const int64_t multiplying = std::min(columns, macs / params.peak_macs_per_cycle());
  return {{"multiplying", multiplying},
          {"idle_contraction_lanes", columns - multiplying},
          {"idle_output_lanes", kinds.multiply_steps - columns},
          {"other_steps", kinds.other_steps},
          {"operand_b", kinds.operand_b_cycles},
          {"waiting_for_drain", kinds.wait_drain_cycles},
          {"waiting_for_bank", kinds.wait_bank_cycles},
          {"waiting_for_load", kinds.wait_load_cycles},
          {"waiting_for_store", kinds.wait_store_cycles},
          {"waiting_for_fetch", kinds.wait_fetch_cycles},
          {"fill_and_drain", kinds.fill_drain_cycles},
          {"finishing", kinds.finish_cycles}};
}

absl::StatusOr<std::vector<Knob>> TryKnobs(const CompiledProgram& program) {
  struct Trial {
    std::string change;
    AcceleratorParams params;
    MemoryModel memory;
  };
  const AcceleratorParams& p = program.params;
  std::vector<Trial> trials(5, {"", p, program.memory});
  trials[0].change = fmt::format("{} requantise lanes instead of {}", p.output_lanes, p.requantise_lanes);
  trials[0].params.requantise_lanes = p.output_lanes;
  trials[1].change = fmt::format("{} bytes a cycle from the main memory instead of {}", 2 * program.memory.bytes_per_cycle, program.memory.bytes_per_cycle);
  trials[1].memory.bytes_per_cycle *= 2;
  trials[2].change = fmt::format("a bus of {} bits and {} bytes a cycle from the main memory instead of {} and {}", 2 * p.axi_data_bits,
                                 2 * program.memory.bytes_per_cycle, p.axi_data_bits, program.memory.bytes_per_cycle);
  trials[2].params.axi_data_bits *= 2;
  trials[2].memory.bytes_per_cycle *= 2;
  trials[3].change = fmt::format("{} cycles of memory latency instead of {}", program.memory.latency_cycles / 2, program.memory.latency_cycles);
  trials[3].memory.latency_cycles /= 2;
  trials[4].change = fmt::format("{} bursts in flight instead of {}", 2 * p.outstanding_reads, p.outstanding_reads);
  trials[4].params.outstanding_reads *= 2;
  trials[4].params.outstanding_writes *= 2;
  EstimateOptions options;
  options.program_address = program.run_address;
  std::vector<Knob> knobs;
  for (const Trial& trial : trials) {
    if (!CheckParams(trial.params).ok()) continue;
    HEDDLE_ASSIGN_OR_RETURN(const ProgramTiming timing, EstimateProgram(trial.params, trial.memory, program.run, options));
    if (timing.total_cycles < program.cycles_estimated) knobs.push_back({trial.change, program.cycles_estimated - timing.total_cycles});
  }
  std::stable_sort(knobs.begin(), knobs.end(), [](const Knob& a, const Knob& b) { return a.saved_cycles > b.saved_cycles; });
  return knobs;
}

}  // namespace heddle::hls
