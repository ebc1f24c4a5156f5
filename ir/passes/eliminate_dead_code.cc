// eliminate-dead-code: nodes and constants that no graph output needs. Graph inputs stay: they are the model's interface.

#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

absl::Status Run(Graph& graph, const PassOptionValues&) {
  HEDDLE_RETURN_IF_ERROR(graph.TopologicalOrder().status());
  RemoveDeadCode(graph);
  return absl::OkStatus();
}

}  // namespace

Pass EliminateDeadCodePass() {
  return {"eliminate-dead-code", "removes nodes and constants that no output needs", {}, Run};
}

}  // namespace heddle::ir
