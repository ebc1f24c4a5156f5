// infer-shapes: types for every value, producers first. Shapes that a model computes (Shape, Gather, Concat into Reshape)
// are folded on the way, because the nodes that read them need their values.

#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

absl::Status Run(Graph& graph, const PassOptionValues& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!graph.alive(id)) continue;
    HEDDLE_RETURN_IF_ERROR(InferNodeTypes(graph, id));
    const Node& node = graph.node(id);
    if (node.op == "DequantizeLinear") continue;
    FoldNode(graph, id, options.at("max-bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

Pass InferShapesPass() {
  return {"infer-shapes", "types and shapes of every value; folds small constants that shapes depend on",
          {{"max-bytes", "largest result that is folded on the way", 8192}}, Run};
}

}  // namespace heddle::ir
