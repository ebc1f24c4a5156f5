// Latency with overlap: the best schedule on devices and links, by dynamic programming over partial schedules. Throughput of
// small graphs, in the same way over partial loads.
#ifndef HEDDLE_IR_PARTITION_SCHEDULE_PROGRAMME_H_
#define HEDDLE_IR_PARTITION_SCHEDULE_PROGRAMME_H_

#include <optional>

#include "ir/partition/integer_programme.h"
#include "ir/partition/local_search.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// The plan of least latency or (kThroughput) period, of those the one of least busy time. `start` is a known plan, if there is one. Capacities,
// limits of regions and groups are kept. Ends at a proof or after about `time_limit_seconds`; the bound holds anyway.
Bounded SolveBySchedules(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                         const std::optional<Heuristic>& start, double time_limit_seconds);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_SCHEDULE_PROGRAMME_H_
