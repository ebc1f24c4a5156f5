// The tests' oracle for placement graphs: every assignment, every term of the objective written out. Shares nothing with
// the solvers but the graph.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_BRUTE_FORCE_PLACEMENT_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_BRUTE_FORCE_PLACEMENT_H_

#include <optional>

#include "ir/partition/placement/placement_graph.h"

namespace heddle::ir::partition {

enum class OracleObjective { kPipeline, kAny, kLatency };

// Cost of one placement; absent where it breaks a limit.
std::optional<double> OracleCost(const PlacementGraph& graph, OracleObjective objective, const Placement& placement);

// Least cost over all placements (devices of a kind are alike: only the first use in order is tried).
std::optional<double> OracleBest(const PlacementGraph& graph, OracleObjective objective);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_BRUTE_FORCE_PLACEMENT_H_
