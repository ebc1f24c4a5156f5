// Refuses instead of repairing: a measured cost or a plan cut short by the clock cannot be made reproducible afterwards.

#include "driver/reproducible.h"

#include <fmt/format.h>

namespace heddle::driver {
namespace {

// Below this a gap is rounding of the bound's arithmetic.
constexpr double kProvenGapPercent = 1e-6;

}  // namespace

absl::Status CheckNothingLeftOut(const std::vector<std::string>& notes) {
  if (notes.empty()) return absl::OkStatus();
  return ir::UserError("E-USAGE-040", "with --reproducible every device of the target has to be there: " + notes[0],
                       "name the devices to use with --devices");
}

absl::Status CheckPlanReproducible(const PartitionModel& model, const ir::partition::Result& result) {
  for (size_t g = 0; g < model.costs.size(); ++g) {
    for (size_t d = 0; d < model.costs[g].size(); ++d) {
      if (model.costs[g][d].provenance != ir::Provenance::kMeasured || model.costs[g][d].time_us <= 0) continue;
      return ir::UserError("E-USAGE-041",
                           fmt::format("with --reproducible no cost may be measured, and those of device '{}' are", model.problem.devices[d].name),
                           "use a target whose devices have \"timing\": \"modelled\" (docs/targets.md)");
    }
  }
  if (result.gap_percent > kProvenGapPercent) {
    return ir::UserError("E-USAGE-042",
                         fmt::format("with --reproducible the plan has to be proven optimal; the time limit left a gap of {:.3g} %, and a faster "
                                     "machine could find another plan", result.gap_percent),
                         "give the partitioner more time with --time-limit, or choose fewer devices with --devices");
  }
  return absl::OkStatus();
}

void DropWallClock(report::Report& report) {
  report.partition.solve_seconds = 0;
  if (!report.accelerator) return;
  report.accelerator->simulated_cycles_per_second = 0;
  report.accelerator->estimated_cycles_per_second = 0;
}

}  // namespace heddle::driver
