// From nodes of the graph IR to compute definitions: what every compiling device does first with a region.
#ifndef HEDDLE_IR_LOOPS_LOWER_GROUP_H_
#define HEDDLE_IR_LOOPS_LOWER_GROUP_H_

#include <absl/status/statusor.h>

#include <vector>

#include "ir/graph.h"
#include "ir/loops/tensor_expr.h"

namespace heddle::ir::loops {

// One fusion group: fused stages, in order, and what they read and write.
struct LoweredGroup {
  std::vector<TensorExpr> stages;
  std::vector<Param> params;         // inputs and constants in order of first use, then outputs
  std::vector<ValueId> param_values;  // the graph value that params[i] holds
};

// The living nodes of a region as groups (Node::fusion_group; -1 stands alone), each group's nodes in topological order and the
// groups so that producers precede readers. A group through which no order exists (a path leaves it and returns) is split
// into single nodes.
absl::StatusOr<std::vector<std::vector<NodeId>>> FusionGroups(const Graph& graph);

// Lowers the nodes (in topological order, types inferred) by Op::Lower and fuses their stages. Outputs are the values
// that nodes outside or the graph's outputs need. Inputs that no stage reads are not parameters.
//   E-OP-090 where an op has no definition in loops.
absl::StatusOr<LoweredGroup> LowerGroup(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_LOWER_GROUP_H_
