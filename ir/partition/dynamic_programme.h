// Exact placement on any number of devices by dynamic programming over states of the serial execution.
#ifndef HEDDLE_IR_PARTITION_DYNAMIC_PROGRAMME_H_
#define HEDDLE_IR_PARTITION_DYNAMIC_PROGRAMME_H_

#include <optional>

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct Optimum {
  bool gave_up = false;   // more than max_states states; nothing else is set
  bool feasible = false;  // false: no placement keeps to the region limits
  Assignment device_of;
  double cost_us = 0;  // the exact optimum
};

// Capacities must be absent. Plans dearer than `upper_bound_us` are not looked at (pass infinity if none is known, or
// the cost of a known plan, which is then found again or bettered).
Optimum SolveByDynamicProgramme(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                                double upper_bound_us, int max_states);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_DYNAMIC_PROGRAMME_H_
