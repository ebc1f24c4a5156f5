// Two normal forms that the matchers rely on: only QuantizeLinear and DequantizeLinear stand for quantisation, and 8-bit
// tensors are signed.

#include <algorithm>

#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// ---- QLinear operators

// DequantizeLinear of input `x` with scale and zero point inputs of `node`; per axis where the scale has several entries.
absl::StatusOr<ValueId> Dequantise(Graph& graph, NodeId node, int x, int scale, int zero, int axis) {
  const Node& n = graph.node(node);
  const std::string name = graph.value(n.inputs[static_cast<size_t>(x)]).name;
  const ValueId scale_id = n.inputs[static_cast<size_t>(scale)];
  ValueId zero_id = n.inputs[static_cast<size_t>(zero)];
  const int64_t count = graph.type(scale_id).elements();
  if (zero_id != kNoValue && graph.type(zero_id).elements() == 1 && count > 1) {
    const Tensor* one = graph.ConstantOrNull(zero_id);
    if (!one) return absl::NotFoundError("the zero point is no constant");
    Tensor repeated(one->type(), {count});
    for (int64_t i = 0; i < count; ++i) repeated.set_int(i, one->at_int(0));
    zero_id = graph.AddConstant(name + "_zero_point", std::move(repeated));
  }
  Attributes attributes;
  if (count > 1) attributes["axis"] = int64_t{axis};
  return AddTypedNode(graph, "DequantizeLinear", graph.node(node).name + "_dequantise",
                      {graph.node(node).inputs[static_cast<size_t>(x)], scale_id, zero_id}, name + "_real", std::move(attributes));
}

absl::StatusOr<ValueId> DequantiseBias(Graph& graph, NodeId node) {
  const Node& n = graph.node(node);
  const Tensor* x_scale = graph.ConstantOrNull(n.inputs[1]);
  const Tensor* w_scale = graph.ConstantOrNull(n.inputs[4]);
  if (!x_scale || !w_scale) return absl::NotFoundError("scales are no constants");
  Tensor scale(ElementType::kFloat32, w_scale->elements() == 1 ? Shape{} : Shape{w_scale->elements()});
  for (int64_t i = 0; i < scale.elements(); ++i) scale.set_double(i, x_scale->at_double(0) * w_scale->at_double(i));
  const ValueId bias = n.inputs[8];
  const std::string name = n.name;
  const ValueId scale_id = graph.AddConstant(name + "_bias_scale", std::move(scale));
  return AddTypedNode(graph, "DequantizeLinear", name + "_dequantise", {bias, scale_id}, name + "_bias_real", {{"axis", int64_t{0}}});
}

// Replaces the QLinear node by `op` on reals with a quantiser behind it.
absl::Status ReplaceByFloatOp(Graph& graph, NodeId id, const std::string& op, const std::vector<ValueId>& reals, ValueId y_scale,
                              ValueId y_zero) {
  const std::string name = graph.node(id).name;
  const Attributes attributes = graph.node(id).attributes;
  HEDDLE_ASSIGN_OR_RETURN(const ValueId y, AddTypedNode(graph, op, name, reals, name + "_real", attributes));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId q, AddTypedNode(graph, "QuantizeLinear", name + "_quantise", {y, y_scale, y_zero}, name));
  MergeSources(graph, graph.ProducerOf(y), {id});
  MergeSources(graph, graph.ProducerOf(q), {id});
  ReplaceValue(graph, graph.node(id).outputs[0], q, /*keep_name=*/true);
  const NodeId fresh = graph.ProducerOf(y);
  RemoveIfDead(graph, id);
  graph.RenameNode(fresh, name);
  return absl::OkStatus();
}

absl::Status ExpandOne(Graph& graph, NodeId id) {
  const std::vector<ValueId> inputs = graph.node(id).inputs;
  const bool is_conv = graph.node(id).op == "QLinearConv";
  HEDDLE_ASSIGN_OR_RETURN(const ValueId a, Dequantise(graph, id, 0, 1, 2, 0));
  const int w_axis = is_conv ? 0 : static_cast<int>(graph.type(inputs[3]).shape.size()) - 1;
  HEDDLE_ASSIGN_OR_RETURN(const ValueId b, Dequantise(graph, id, 3, 4, 5, w_axis));
  std::vector<ValueId> reals = {a, b};
  if (is_conv && inputs.size() > 8 && inputs[8] != kNoValue) {
    HEDDLE_ASSIGN_OR_RETURN(const ValueId bias, DequantiseBias(graph, id));
    reals.push_back(bias);
  }
  return ReplaceByFloatOp(graph, id, is_conv ? "Conv" : "MatMul", reals, inputs[6], inputs[7]);
}

// ---- Unsigned to signed

// `value` (u8 or i8) as the other type: a constant, the other side of an existing SignFlip, or a new node.
absl::StatusOr<ValueId> Flipped(Graph& graph, ValueId value) {
  const std::string name = graph.value(value).name + ".i8";
  if (const Tensor* constant = graph.ConstantOrNull(value)) {
    const bool to_signed = constant->type() == ElementType::kUint8;
    Tensor flipped(to_signed ? ElementType::kInt8 : ElementType::kUint8, constant->shape());
    for (int64_t i = 0; i < flipped.bytes(); ++i) flipped.data()[i] = constant->data()[i] ^ std::byte{0x80};
    return graph.AddConstant(name, std::move(flipped));
  }
  const NodeId producer = graph.ProducerOf(value);
  if (producer != kNoNode && graph.node(producer).op == "SignFlip") return graph.node(producer).inputs[0];
  for (const Use& use : graph.value(value).uses) {
    if (graph.node(use.node).op == "SignFlip") return graph.node(use.node).outputs[0];
  }
  return AddTypedNode(graph, "SignFlip", graph.value(value).name + "_sign", {value}, name);
}

// The zero point of a u8 quantiser as an i8 constant of the same shape.
absl::StatusOr<ValueId> SignedZeroPoint(Graph& graph, const Node& node) {
  if (node.inputs.size() > 2 && node.inputs[2] != kNoValue) return Flipped(graph, node.inputs[2]);
  const Shape shape = graph.type(node.inputs[1]).static_shape();
  Tensor zero(ElementType::kInt8, shape);
  for (int64_t i = 0; i < zero.elements(); ++i) zero.set_int(i, -128);
  return graph.AddConstant(node.name + "_zero_point", std::move(zero));
}

absl::Status SignQuantiser(Graph& graph, NodeId id) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueId zero, SignedZeroPoint(graph, graph.node(id)));
  const std::vector<ValueId> inputs = graph.node(id).inputs;
  const std::string name = graph.node(id).name;
  const ValueId old = graph.node(id).outputs[0];
  const std::string old_name = graph.value(old).name;
  HEDDLE_ASSIGN_OR_RETURN(const ValueId q, AddTypedNode(graph, "QuantizeLinear", name, {inputs[0], inputs[1], zero},
                                                        old_name + ".i8", graph.node(id).attributes));
  MergeSources(graph, graph.ProducerOf(q), {id});
  HEDDLE_ASSIGN_OR_RETURN(const ValueId flipped, AddTypedNode(graph, "SignFlip", name + "_sign", {q}, old_name + ".u8"));
  ReplaceValue(graph, old, flipped, /*keep_name=*/true);
  RemoveIfDead(graph, id);
  return absl::OkStatus();
}

absl::Status SignDequantiser(Graph& graph, NodeId id) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueId zero, SignedZeroPoint(graph, graph.node(id)));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId x, Flipped(graph, graph.node(id).inputs[0]));
  graph.SetInput(id, 0, x);
  if (graph.node(id).inputs.size() > 2) {
    graph.SetInput(id, 2, zero);
  } else {
    graph.AppendInput(id, zero);
  }
  return absl::OkStatus();
}

// A movement node between u8 tensors, at least one of which came from a SignFlip, runs on i8 instead.
absl::Status SignMovement(Graph& graph, NodeId id) {
  const auto data = MovementInputs(graph, graph.node(id));
  const Node& node = graph.node(id);
  if (!data || node.outputs.size() != 1 || graph.type(node.outputs[0]).element != ElementType::kUint8) return absl::OkStatus();
  std::vector<ValueId> inputs = node.inputs;
  const bool from_signed = std::any_of(data->begin(), data->end(), [&](int i) {
    const NodeId producer = graph.ProducerOf(inputs[static_cast<size_t>(i)]);
    return producer != kNoNode && graph.node(producer).op == "SignFlip";
  });
  if (!from_signed) return absl::OkStatus();
  for (int i : *data) {
    HEDDLE_ASSIGN_OR_RETURN(inputs[static_cast<size_t>(i)], Flipped(graph, inputs[static_cast<size_t>(i)]));
  }
  if (const int fill = MovementFillInput(node); fill >= 0) {
    while (static_cast<int>(inputs.size()) <= fill) inputs.push_back(kNoValue);
    ValueId& slot = inputs[static_cast<size_t>(fill)];
    if (slot == kNoValue) slot = graph.AddConstant(node.name + "_fill", Tensor::Of<uint8_t>({}, {0}));
    HEDDLE_ASSIGN_OR_RETURN(slot, Flipped(graph, slot));
  }
  const std::string op = node.op, name = node.name;
  const ValueId old = node.outputs[0];
  const std::string old_name = graph.value(old).name;
  const auto moved = AddTypedNode(graph, op, name, inputs, old_name + ".i8", graph.node(id).attributes);
  if (!moved.ok()) return absl::OkStatus();
  MergeSources(graph, graph.ProducerOf(*moved), {id});
  HEDDLE_ASSIGN_OR_RETURN(const ValueId flipped, AddTypedNode(graph, "SignFlip", name + "_sign", {*moved}, old_name + ".u8"));
  ReplaceValue(graph, old, flipped, /*keep_name=*/true);
  RemoveIfDead(graph, id);
  return absl::OkStatus();
}

bool IsConstantOrAbsent(const Graph& graph, const Node& node, size_t input) {
  return node.inputs.size() <= input || node.inputs[input] == kNoValue || graph.IsConstant(node.inputs[input]);
}

}  // namespace

absl::Status ExpandQLinearOps(Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.op != "QLinearConv" && node.op != "QLinearMatMul") continue;
    bool constant_parameters = true;
    for (size_t i : {1, 2, 4, 5, 6, 7}) constant_parameters = constant_parameters && IsConstantOrAbsent(graph, node, i);
    if (!constant_parameters) continue;
    // A form that does not expand keeps its own operator; what was added for it is dead and goes later.
    (void)ExpandOne(graph, id);
  }
  return absl::OkStatus();
}

absl::Status MakeSigned(Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!graph.alive(id)) continue;
    const Node& node = graph.node(id);
    if (node.op == "QuantizeLinear" && graph.type(node.outputs[0]).element == ElementType::kUint8 &&
        IsConstantOrAbsent(graph, node, 2)) {
      HEDDLE_RETURN_IF_ERROR(SignQuantiser(graph, id));
    } else if (node.op == "DequantizeLinear" && graph.type(node.inputs[0]).element == ElementType::kUint8 &&
               IsConstantOrAbsent(graph, node, 2)) {
      HEDDLE_RETURN_IF_ERROR(SignDequantiser(graph, id));
    } else {
      HEDDLE_RETURN_IF_ERROR(SignMovement(graph, id));
    }
  }
  return absl::OkStatus();
}

}  // namespace heddle::ir
