// Random placement problems for tests.
#ifndef HEDDLE_IR_PARTITION_RANDOM_PROBLEM_H_
#define HEDDLE_IR_PARTITION_RANDOM_PROBLEM_H_

#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct Shape {
  int max_nodes = 7;
  int devices = 2;
  bool launches = false;
  bool region_limits = false;
  bool capacities = false;  // and an area
  bool groups = false;
  bool energies = false;
  int readers_of_ten = 3;  // so many of ten pairs of nodes exchange a tensor
};

// The same for the same seed. Costs, energies and transfer times are multiples of 1/4, so that sums are exact and
// results can be compared without tolerance. Nodes stand in a topological order.
Problem RandomProblem(unsigned seed, const Shape& shape);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_RANDOM_PROBLEM_H_
