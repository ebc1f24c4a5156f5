// Exact placement in the general case (capacities, region limits, wide graphs) as a 0-1 integer programme; kSerial and
// kThroughput.
#ifndef HEDDLE_IR_PARTITION_INTEGER_PROGRAMME_H_
#define HEDDLE_IR_PARTITION_INTEGER_PROGRAMME_H_

#include <optional>

#include "ir/partition/local_search.h"
#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct Bounded {
  bool infeasible = false;  // proven: no placement keeps to the limits
  std::optional<Heuristic> best;
  double lower_bound = 0;  // in the objective's unit
};

// `start` is the warm start, if one is known. Ends at a proof or after about `time_limit_seconds`.
Bounded SolveByIntegerProgramme(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                                const std::optional<Heuristic>& start, double time_limit_seconds);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_INTEGER_PROGRAMME_H_
