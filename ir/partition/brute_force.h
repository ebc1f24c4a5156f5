// The oracle of the partitioner's tests: every assignment and every order of execution, sharing no code with the
// solvers.
#ifndef HEDDLE_IR_PARTITION_BRUTE_FORCE_H_
#define HEDDLE_IR_PARTITION_BRUTE_FORCE_H_

#include <optional>
#include <vector>

#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct BruteForceOptimum {
  double cost_us = 0;
  std::vector<int> device_of;
};

// The exact cost of one assignment (at most 12 nodes), absent where it is not feasible.
std::optional<double> BruteForceCostUs(const Problem& problem, const std::vector<int>& device_of);

// The cheapest of all assignments, absent where none is feasible.
std::optional<BruteForceOptimum> BruteForce(const Problem& problem);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_BRUTE_FORCE_H_
