// The least latency of one sample along the ideals of an order: exact as long as no label is given up.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_LATENCY_PROGRAMME_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_LATENCY_PROGRAMME_H_

#include <vector>

#include "ir/partition/placement/deadline.h"
#include "ir/partition/placement/ideals.h"
#include "ir/partition/placement/items.h"
#include "ir/partition/placement/placement_graph.h"

namespace heddle::ir::partition {

struct LatencyAnswer {
  bool found = false;
  double latency_us = 0;
  std::vector<int> device_of;  // by item: an accelerator, or graph.accelerators for the CPU
  // Every plan has at least this latency, or at least `upper_us` where that is smaller.
  double lower_bound_us = 0;
};

// Lower bounds on the time from a node's start or end to the end of everything after it, path by path. A block that
// does not hold the items of the path must end on the way.
struct Tails {
  // By node, then by reader as in PlacementNode::successors: the result is there, and the reader is in no block that has
  // begun.
  std::vector<std::vector<double>> outside_us;
  double all_us = 0;             // of the whole graph
};
Tails ComputeTails(const PlacementGraph& graph, const ItemGraph& items);

// Looks for a plan with a latency below `upper_us`. Keeps at most `width` labels at each ideal; those given up limit the
// proven bound.
LatencyAnswer BestLatency(const PlacementGraph& graph, const ItemGraph& items, const Ideals& ideals, double upper_us,
                          int width, const Deadline& deadline);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_LATENCY_PROGRAMME_H_
