// The order of execution with the least launch overhead for a given assignment; overlap of devices is not looked at.
#ifndef HEDDLE_IR_PARTITION_LAUNCH_ORDER_H_
#define HEDDLE_IR_PARTITION_LAUNCH_ORDER_H_

#include <optional>
#include <vector>

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct Run {
  int device = 0;
  std::vector<int> nodes;
};

struct LaunchOrder {
  std::vector<Run> runs;
  // The sum of Device::launch_us over the runs; for kEnergy of launch_uj; for kThroughput the largest load
  // of a device, nodes and launches.
  double cost_us = 0;
  // False: too many interleavings (three or more devices), a good order instead of the best, and an infinite cost_us
  // where none was found within the limits of regions.
  bool exact = true;
};

// A node on device kAnywhere runs as soon as it can and breaks no run; the order of the others is then the best for
// the reachability among them alone (used to find small conflicts).
inline constexpr int kAnywhere = -1;

// Least cost_us, then fewest runs; absent where no order keeps to max_regions.
// `max_states` bounds the search where three or more devices are in use.
std::optional<LaunchOrder> BestLaunchOrder(const Problem& problem, const Adjacency& adjacency,
                                           const Assignment& device_of, int max_states = 4000);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_LAUNCH_ORDER_H_
