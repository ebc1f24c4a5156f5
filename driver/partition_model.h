// From a graph, devices and links to the placement problem, and back to regions.
#ifndef HEDDLE_DRIVER_PARTITION_MODEL_H_
#define HEDDLE_DRIVER_PARTITION_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/target.h"
#include "ir/device.h"
#include "ir/graph.h"
#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::driver {

using DeviceList = std::vector<std::unique_ptr<ir::Device>>;

// The problem's nodes are the graph's fusion groups (a node without a group is one of its own), in topological order.
struct PartitionModel {
  ir::partition::Problem problem;
  std::vector<std::vector<ir::NodeId>> members;  // graph nodes of each problem node, in topological order
  // [graph node id][device]: why the device refuses the node; supported where it does not.
  std::vector<std::vector<ir::Support>> support;
  // [problem node][device]: cost with its source; time 0 where refused.
  std::vector<std::vector<ir::Cost>> costs;
  bool has_energy = false;  // the target gives every device's power
};

// Asks every device about every group. `objective`: latency, throughput or energy; E-TARGET-006 where energy is asked for
// and the target does not say what a device draws, E-USAGE-005 for another word. E-PARTITION-… where a node has no device
// at all: names all of them with reasons.
absl::StatusOr<PartitionModel> BuildPartitionModel(const ir::Graph& graph, const DeviceList& devices,
                                                   const Target& target, const std::string& objective,
                                                   const std::function<void(const std::string&)>& progress);

// A stretch of the plan: nodes that one device runs as one region, in the order of execution.
struct PlannedRegion {
  int device = 0;
  std::vector<ir::NodeId> nodes;
  double predicted_us = 0;
  double launch_us = 0;
};
std::vector<PlannedRegion> RegionsOf(const PartitionModel& model, const ir::partition::Result& result);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_PARTITION_MODEL_H_
