// The two throughput problems: devices in a pipeline, and devices with any items.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_THROUGHPUT_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_THROUGHPUT_H_

#include <optional>
#include <string>

#include "ir/partition/placement/deadline.h"
#include "ir/partition/placement/placement_graph.h"

namespace heddle::ir::partition {

struct BoundedPlacement {
  std::optional<Placement> device_of;
  double cost_us = 0;
  double lower_bound_us = 0;  // infinite where no plan exists
  std::string solver;
};

BoundedPlacement SolvePipeline(const PlacementGraph& graph, const Deadline& deadline);
BoundedPlacement SolveAnyThroughput(const PlacementGraph& graph, const Deadline& deadline);
BoundedPlacement SolvePlacementLatency(const PlacementGraph& graph, const Deadline& deadline);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_THROUGHPUT_H_
