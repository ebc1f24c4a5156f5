// Moves items between devices until the busiest device is as little busy as a search can make it.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_BALANCE_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_BALANCE_H_

#include <vector>

#include "ir/partition/placement/deadline.h"
#include "ir/partition/placement/items.h"
#include "ir/partition/placement/pipeline_programme.h"

namespace heddle::ir::partition {

// Largest load of an assignment of items to devices.
double MaxLoadUs(const ItemGraph& graph, const Fleet& fleet, const std::vector<int>& device_of);

// Simulated annealing over the items in `movable`, from `device_of` (-1 among the movable: not placed yet). Ends at
// `goal_us`, at the deadline, or after `steps`. Keeps capacities and supports where the start does. Deterministic by
// `seed` as long as the deadline does not cut it short.
std::vector<int> BalanceLoads(const ItemGraph& graph, const Fleet& fleet, std::vector<int> device_of,
                              const std::vector<int>& movable, double goal_us, int64_t steps, unsigned seed,
                              const Deadline& deadline);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_BALANCE_H_
