// For every node and every other device: what the move would cost, and what would have to change for it to pay.
#ifndef HEDDLE_IR_PARTITION_ALTERNATIVES_H_
#define HEDDLE_IR_PARTITION_ALTERNATIVES_H_

#include <vector>

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// [node], one entry for each other device in the order of Problem::devices. Single moves: the other nodes (except those
// of the same group) stay where they are. `evaluation` is that of `device_of`. Without flips by links and texts.
std::vector<std::vector<Alternative>> SingleMoves(const Problem& problem, const Adjacency& adjacency,
                                                  const Clusters& clusters, const Assignment& device_of,
                                                  const Evaluation& evaluation);

// Writes Alternative::flips_if from the numbers.
void DescribeFlips(const Problem& problem, std::vector<std::vector<Alternative>>& alternatives);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_ALTERNATIVES_H_
