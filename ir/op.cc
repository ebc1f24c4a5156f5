// What all ops share: defaults, type inference over a graph, and error texts.

#include "ir/op.h"

#include <algorithm>
#include <cmath>

namespace heddle::ir {

absl::Status NodeError(std::string_view code, const Node& node, std::string_view message, std::string_view next_step) {
  return UserError(code, fmt::format("node '{}' ({}): {}", node.name, node.op, message), next_step);
}

absl::Status Op::Lower(const NodeContext& context, loops::OpLowering&) const {
  return NodeError("E-OP-090", context.node(), "the op has no definition in loops");
}

OpWork Op::Work(const NodeContext& context) const {
  OpWork work;
  for (int i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    (context.constant(i) ? work.weight_bytes : work.input_bytes) += context.input_type(i).bytes();
  }
  for (size_t i = 0; i < context.node().outputs.size(); ++i) {
    work.output_bytes += context.output_type(static_cast<int>(i)).bytes();
    work.other_ops += context.output_type(static_cast<int>(i)).elements();
  }
  return work;
}

double Op::ErrorBound(const NodeContext& context, double reference) const {
  if (kind(context) != OpKind::kFloat) return 0;
  return 1e-5 * std::abs(reference) + 1e-6;
}

double Op::SummationBound(const NodeContext&, std::span<const Tensor* const>) const { return 0; }

absl::Status InferNodeTypes(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const Op* op = FindOp(node.op);
  if (!op) return NodeError("E-IR-010", node, "unknown op");
  for (ValueId input : node.inputs) {
    if (input != kNoValue && !graph.type(input).is_static()) {
      return NodeError("E-IR-011", node, fmt::format("input {} has unknown dimensions", TypeText(graph.type(input))),
                       "give the model's input shapes with --shape NAME=1,3,224,224");
    }
  }
  const NodeContext context(graph, node);
  HEDDLE_RETURN_IF_ERROR(op->Verify(context));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ValueType> types, op->InferTypes(context));
  if (types.size() < node.outputs.size()) return NodeError("E-IR-012", node, "has more outputs than the op gives");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(int64_t count, CheckedElementCount(types[i].static_shape(), int64_t{1} << 33));
    (void)count;
    if (!types[i].quantisation) types[i].quantisation = graph.type(node.outputs[i]).quantisation;
    graph.set_type(node.outputs[i], std::move(types[i]));
  }
  return absl::OkStatus();
}

absl::Status InferGraphTypes(Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) HEDDLE_RETURN_IF_ERROR(InferNodeTypes(graph, id));
  return absl::OkStatus();
}

}  // namespace heddle::ir
