// Picks the method for the objective and states its result with an honest gap.
#include "ir/partition/placement/solve_placement.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ir/check.h"
#include "ir/partition/placement/deadline.h"
#include "ir/partition/placement/evaluate_placement.h"
#include "ir/partition/placement/throughput.h"
#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

// Solvers add in different orders: what differs by less is equal.
constexpr double kEqual = 1e-7;

double CostOf(const PlacementGraph& graph, const PlacementOptions& options, const Placement& plan) {
  HEDDLE_CHECK(KeepsLimits(graph, plan), "a solver returned a placement that breaks a limit");
  if (options.objective == PlacementObjective::kThroughput) {
    HEDDLE_CHECK(!options.contiguous || IsPipeline(graph, plan), "a solver returned devices that are no pipeline");
    return MaxLoadUs(graph, plan);
  }
  const std::optional<double> latency_us = LatencyUs(graph, plan);
  HEDDLE_CHECK(latency_us, "a solver returned blocks that wait for each other");
  return *latency_us;
}

}  // namespace

absl::StatusOr<PlacementResult> SolvePlacement(const PlacementGraph& graph, const PlacementOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const Deadline deadline = Deadline::In(options.time_limit_seconds);
  BoundedPlacement found;
  if (options.objective == PlacementObjective::kLatency) {
    found = SolvePlacementLatency(graph, deadline);
  } else if (options.contiguous) {
    found = SolvePipeline(graph, deadline);
  } else {
    found = SolveAnyThroughput(graph, deadline);
  }
  if (!found.device_of) {
    return UserError("E-PARTITION-004",
                     std::isinf(found.lower_bound_us) ? "no placement keeps to the devices' limits"
                                                      : "no placement that keeps to the devices' limits was found in time",
                     "Allow more devices, more memory or more time (--time-limit).");
  }
  PlacementResult result;
  result.device_of = *std::move(found.device_of);
  result.cost_us = CostOf(graph, options, result.device_of);
  result.lower_bound_us = std::min(found.lower_bound_us, result.cost_us);
  if (result.cost_us - result.lower_bound_us <= kEqual * result.cost_us) result.lower_bound_us = result.cost_us;
  result.gap_percent = result.cost_us > 0 ? (result.cost_us - result.lower_bound_us) / result.cost_us * 100 : 0;
  result.solver = std::move(found.solver);
  result.solve_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::string PlacementDeviceName(const PlacementGraph& graph, PlacementObjective objective, int device) {
  if (device < graph.accelerators) return fmt::format("accelerator{}", device);
  return objective == PlacementObjective::kLatency ? "cpu" : fmt::format("cpu{}", device - graph.accelerators);
}

}  // namespace heddle::ir::partition
