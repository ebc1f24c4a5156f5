// The best plan for a placement graph, with a proven lower bound.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_SOLVE_PLACEMENT_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_SOLVE_PLACEMENT_H_

#include <absl/status/statusor.h>

#include <string>

#include "ir/partition/placement/placement_graph.h"

namespace heddle::ir::partition {

enum class PlacementObjective { kThroughput, kLatency };

struct PlacementOptions {
  PlacementObjective objective = PlacementObjective::kThroughput;
  bool contiguous = true;  // throughput: devices form a pipeline; latency plans are contiguous by definition
  double time_limit_seconds = 60;
};

struct PlacementResult {
  Placement device_of;
  double cost_us = 0;
  double lower_bound_us = 0;
  double gap_percent = 0;  // (cost - bound) / cost x 100; 0 is a proof of optimality
  std::string solver;
  double solve_seconds = 0;
};

// E-PARTITION-004 where no plan keeps to the limits or none was found within the time limit (the message says which).
absl::StatusOr<PlacementResult> SolvePlacement(const PlacementGraph& graph, const PlacementOptions& options);

// "accelerator2", "cpu0"; "cpu" where cores are not told apart.
std::string PlacementDeviceName(const PlacementGraph& graph, PlacementObjective objective, int device);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_SOLVE_PLACEMENT_H_
