// Throughput on narrow graphs: good plans and a strong bound by prices on the devices' and links' time.
#ifndef HEDDLE_IR_PARTITION_BALANCE_LOADS_H_
#define HEDDLE_IR_PARTITION_BALANCE_LOADS_H_

#include <optional>

#include "ir/partition/integer_programme.h"
#include "ir/partition/local_search.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// For kThroughput without capacities. `start` is a known plan. Absent where the dynamic programme gives up on the graph.
std::optional<Bounded> BalanceLoads(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                                    const Heuristic& start, double time_limit_seconds, int max_states);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_BALANCE_LOADS_H_
