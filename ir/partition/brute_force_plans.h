// The oracle for latency, throughput and energy: every plan of a small problem, sharing no code with the solvers.
#ifndef HEDDLE_IR_PARTITION_BRUTE_FORCE_PLANS_H_
#define HEDDLE_IR_PARTITION_BRUTE_FORCE_PLANS_H_

#include <optional>
#include <vector>

#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// A region of a plan's sequence.
struct PlainRegion {
  int device = 0;
  std::vector<int> nodes;
};

// What a plan costs by the words of problem.h, in the objective's unit; absent where it is not allowed. At most 16 nodes.
std::optional<double> PlainCost(const Problem& problem, const std::vector<PlainRegion>& sequence);

// The cost of a plan that is cheaper than `cost`, absent where no plan is: all are looked at, but for those that have
// an unfinished part in common which already costs as much.
std::optional<double> CheaperThan(const Problem& problem, double cost);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_BRUTE_FORCE_PLANS_H_
