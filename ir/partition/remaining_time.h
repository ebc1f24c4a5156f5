// How long the rest of an inference takes at least, whatever the plan: the bounds of the schedule programme.
#ifndef HEDDLE_IR_PARTITION_REMAINING_TIME_H_
#define HEDDLE_IR_PARTITION_REMAINING_TIME_H_

#include <vector>

#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct RemainingTime {
  // [node][device]: from the node's start there to the end of everything that waits for it, along the longest path, each
  // of whose nodes runs where the path is shortest, transfers and launches of the path included; infinite where refused.
  std::vector<std::vector<double>> tail_us;
  std::vector<double> least_us;  // [node]: its cost on its cheapest device
  // Prices of the devices' time, summing to 1: whatever the plan, the busiest device has at least the priced sum of what
  // each has to do, and a node adds at least its least priced cost to that. Prices of several kinds, each good for another
  // part of the nodes: all alike, and the best for all nodes and for the last quarters of them.
  struct Prices {
    std::vector<double> of_device;
    std::vector<double> least_us;  // [node]: least priced cost
  };
  std::vector<Prices> prices;
};
RemainingTime BoundRemainingTime(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_REMAINING_TIME_H_
