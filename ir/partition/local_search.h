// A good placement quickly: the warm start and upper bound of the exact solvers.
#ifndef HEDDLE_IR_PARTITION_LOCAL_SEARCH_H_
#define HEDDLE_IR_PARTITION_LOCAL_SEARCH_H_

#include <optional>

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct Heuristic {
  Assignment device_of;
  Evaluation evaluation;
};

// Absent where no feasible plan was found (which does not prove that there is none).
std::optional<Heuristic> LocalSearch(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters);

// Moves whole regions and single clusters as long as the Score improves. The plan must be feasible.
void Improve(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters, Heuristic& plan);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_LOCAL_SEARCH_H_
