// What a plan for a placement graph costs, computed from the nodes alone.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_EVALUATE_PLACEMENT_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_EVALUATE_PLACEMENT_H_

#include <optional>
#include <vector>

#include "ir/partition/placement/placement_graph.h"

namespace heddle::ir::partition {

// Devices exist, nodes are supported, colours are together, accelerators hold their nodes.
bool KeepsLimits(const PlacementGraph& graph, const Placement& placement);

// Load of each device (accelerators, then cores).
std::vector<double> DeviceLoads(const PlacementGraph& graph, const Placement& placement);
double MaxLoadUs(const PlacementGraph& graph, const Placement& placement);

// Whether the devices can be put in a row so that no edge between forward nodes goes back.
bool IsPipeline(const PlacementGraph& graph, const Placement& placement);

// End of the latest node where each accelerator runs its nodes as one block; absent where blocks wait for each other.
std::optional<double> LatencyUs(const PlacementGraph& graph, const Placement& placement);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_EVALUATE_PLACEMENT_H_
