// legalise-quantisation: reads quantise/dequantise patterns and QLinear operators off the graph and replaces each by an exact
// integer op (ir/ops/README.md). Real scales become integer multipliers and shifts here, once, so that every device computes
// the same integers afterwards. A pattern that does not match keeps its float operators between explicit quantisers: slower,
// never wrong.
//
// Against the float computation of the same layer on equal inputs an integer op differs by at most one step, and only next
// to a tie: the multiplier has 31 bits, the float computation 24.

#include "ir/passes/pass.h"
#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// The parameters that dequantisers state, noted in the types of what they read: for reports and for later passes.
void AnnotateTypes(Graph& graph) {
  for (NodeId id : graph.NodeIds()) {
    const auto x = graph.node(id).op == "DequantizeLinear" ? MatchDequantised(graph, graph.node(id).outputs[0]) : std::nullopt;
    if (!x || graph.type(x->integer).quantisation) continue;
    ValueType type = graph.type(x->integer);
    type.quantisation = Quantisation{{x->scale}, {x->zero}, -1};
    graph.set_type(x->integer, std::move(type));
  }
}

absl::Status FoldConstants(Graph& graph) {
  const Pass pass = FoldConstantsPass();
  PassOptionValues options;
  for (const PassOption& option : pass.options) options[std::string(option.name)] = option.default_value;
  return pass.run(graph, options);
}

absl::Status MatchAll(Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!graph.alive(id)) continue;
    const auto quantiser = MatchQuantiser(graph, id);
    if (!quantiser) continue;
    // Lookups first: they are exact for whatever they match.
    (void)(MatchLookup(graph, *quantiser) || MatchConvolution(graph, *quantiser) || MatchMatrixProduct(graph, *quantiser) ||
           MatchBinary(graph, *quantiser) || MatchAverage(graph, *quantiser) || MatchSoftmax(graph, *quantiser));
  }
  return absl::OkStatus();
}

absl::Status Run(Graph& graph, const PassOptionValues&) {
  HEDDLE_RETURN_IF_ERROR(ExpandQLinearOps(graph));
  HEDDLE_RETURN_IF_ERROR(MakeSigned(graph));
  RemoveDeadCode(graph);
  HEDDLE_RETURN_IF_ERROR(MoveQuantisersThroughMovement(graph));
  RemoveDeadCode(graph);
  // Weights that were reshaped or quantised in the graph are constants now; equal quantisers become one.
  HEDDLE_RETURN_IF_ERROR(FoldConstants(graph));
  HEDDLE_RETURN_IF_ERROR(EliminateCommonSubexpressionsPass().run(graph, {}));
  AnnotateTypes(graph);
  HEDDLE_RETURN_IF_ERROR(MatchAll(graph));
  RemoveDeadCode(graph);
  HEDDLE_RETURN_IF_ERROR(MergeClampLookups(graph));
  RemoveDeadCode(graph);
  return absl::OkStatus();
}

}  // namespace

Pass LegaliseQuantisationPass() {
  return {"legalise-quantisation", "turns quantise/dequantise patterns and QLinear operators into exact integer ops", {}, Run};
}

}  // namespace heddle::ir
