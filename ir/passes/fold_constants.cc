// fold-constants: nodes whose inputs are all constants become constants, by their reference kernels. Dequantised weights
// are kept until quantisation patterns have been read: folded, they would be floats four times their size.

#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

absl::Status Run(Graph& graph, const PassOptionValues& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!graph.alive(id)) continue;
    if (graph.node(id).op == "DequantizeLinear" && options.at("dequantize") == 0) continue;
    FoldNode(graph, id, options.at("max-bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

Pass FoldConstantsPass() {
  return {"fold-constants", "evaluates nodes whose inputs are all constants",
          {{"max-bytes", "largest result that is folded", int64_t{1} << 28},
           {"dequantize", "1: DequantizeLinear of constants too", 0}}, Run};
}

}  // namespace heddle::ir
