// Roles follow from a node, its constants and its neighbours alone; plan.cc decides with them what is rounded.

#include "ir/quantise/roles.h"

#include <algorithm>

#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir::quantise {
namespace {

const Node* ProducerNode(const Graph& graph, ValueId value) {
  const NodeId id = graph.ProducerOf(value);
  return id == kNoNode ? nullptr : &graph.node(id);
}

bool IsOneElement(const Graph& graph, ValueId value) {
  return IsFloatConstant(graph, value) && graph.ConstantOrNull(value)->elements() == 1;
}

// A clamp whose bounds are known: what legalisation takes into the op before it.
bool IsClamp(const Graph& graph, const Node& node) {
  if (node.op == "Relu") return true;
  if (node.op != "Clip") return false;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue && !ConstantScalar(graph, node.inputs[i])) return false;
  }
  return true;
}

bool IsLayer(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2) return false;
  const ValueId a = node.inputs[0], b = node.inputs[1];
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
  if (has_bias && !IsFloatConstant(graph, node.inputs[2])) return false;
  if (node.op == "Conv") return IsActivation(graph, a) && IsFloatConstant(graph, b);
  if (node.op == "Gemm" && node.Has("alpha") && !(node.Float("alpha") > 0)) return false;
  if (node.op != "Gemm" && node.op != "MatMul") return false;
  const bool operands = (IsActivation(graph, a) && (IsActivation(graph, b) || IsFloatConstant(graph, b))) ||
                        (IsFloatConstant(graph, a) && IsActivation(graph, b));
  return operands && graph.type(a).shape.size() >= 2 && graph.type(b).shape.size() >= 2;
}

// The Add behind a MatMul with constant weights that is its bias: one value for each output channel.
const Node* BiasAddOf(const Graph& graph, const Node& node) {
  if (node.op != "MatMul" || !HasSingleUse(graph, node.outputs[0])) return nullptr;
  const Node& add = graph.node(SoleUser(graph, node.outputs[0]));
  if (add.op != "Add" || add.inputs[0] == add.inputs[1]) return nullptr;
  const ValueId bias = add.inputs[add.inputs[0] == node.outputs[0] ? 1 : 0];
  if (!IsFloatConstant(graph, bias)) return nullptr;
  const Shape shape = graph.type(bias).static_shape(), y = graph.type(node.outputs[0]).static_shape();
  const bool is_channels =
      ElementCount(shape) == 1 || (!shape.empty() && shape.back() == y.back() && ElementCount(shape) == shape.back());
  return is_channels && graph.type(add.outputs[0]).shape == graph.type(node.outputs[0]).shape ? &add : nullptr;
}

// Reads d in mean(d²), or kNoValue.
ValueId SquaredMeanOf(const Graph& graph, const Node* mean, std::set<NodeId>& nodes) {
  if (!mean || mean->op != "ReduceMean") return kNoValue;
  const Node* square = ProducerNode(graph, mean->inputs[0]);
  if (!square) return kNoValue;
  const bool is_square = (square->op == "Mul" && square->inputs[0] == square->inputs[1]) ||
                         (square->op == "Pow" && ConstantScalar(graph, square->inputs[1]) == 2.0);
  if (!is_square) return kNoValue;
  nodes.insert({mean->id, square->id});
  return square->inputs[0];
}

// The readers of 1 / sqrt(…): the division, or the reciprocal and its product; then scale and shift by constants.
void AddNormalisedReaders(const Graph& graph, ValueId value, int depth, std::set<NodeId>& nodes) {
  if (depth == 0) return;
  for (const Use& use : graph.value(value).uses) {
    const Node& node = graph.node(use.node);
    const bool scales =
        (node.op == "Mul" || node.op == "Add") && IsFloatConstant(graph, node.inputs[use.input == 0 ? 1 : 0]);
    const bool divides = depth == 4 && (node.op == "Div" || node.op == "Mul" || node.op == "Reciprocal");
    if (!scales && !divides) continue;
    nodes.insert(node.id);
    AddNormalisedReaders(graph, node.outputs[0], node.op == "Reciprocal" ? depth : depth - 1, nodes);
  }
}

}  // namespace

bool IsActivation(const Graph& graph, ValueId value) {
  return value != kNoValue && !graph.IsConstant(value) && graph.type(value).element == ElementType::kFloat32 &&
         graph.type(value).elements() > 0;
}

bool IsFloatConstant(const Graph& graph, ValueId value) {
  const Tensor* constant = graph.ConstantOrNull(value);
  return constant && constant->type() == ElementType::kFloat32 && constant->elements() > 0;
}

std::vector<ValueId> Activations(const Graph& graph, const Node& node) {
  std::vector<ValueId> values;
  for (ValueId input : node.inputs) {
    if (IsActivation(graph, input)) values.push_back(input);
  }
  return values;
}

std::set<NodeId> NormalisationNodes(const Graph& graph) {
  std::set<NodeId> all;
  for (NodeId id : graph.NodeIds()) {
    if (graph.node(id).op != "Sqrt") continue;
    std::set<NodeId> nodes = {id};
    const Node* inner = ProducerNode(graph, graph.node(id).inputs[0]);
    // + epsilon
    if (inner && (inner->op == "Add" || inner->op == "Max" || inner->op == "Clip")) {
      nodes.insert(inner->id);
      const bool first = IsActivation(graph, inner->inputs[0]);
      inner = ProducerNode(graph, inner->inputs[first ? 0 : 1]);
    }
    const ValueId centred = SquaredMeanOf(graph, inner, nodes);
    if (centred == kNoValue) continue;
    const Node* difference = ProducerNode(graph, centred);
    if (difference && difference->op == "Sub") {
      nodes.insert(difference->id);
      const Node* mean = ProducerNode(graph, difference->inputs[1]);
      if (mean && mean->op == "ReduceMean") nodes.insert(mean->id);
    }
    AddNormalisedReaders(graph, graph.node(id).outputs[0], 4, nodes);
    all.merge(nodes);
  }
  return all;
}

std::vector<ValueId> SourcesOf(const Graph& graph, const std::vector<NodeId>& order, const std::set<NodeId>& keep_float,
                               const std::set<ValueId>& rounded) {
  std::vector<ValueId> source(static_cast<size_t>(graph.num_value_slots()));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<ValueId>(i);
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (!IsElementwise(node) || keep_float.contains(id) || !IsActivation(graph, node.outputs[0])) continue;
    std::set<ValueId> origins;
    bool is_function = true;
    for (ValueId input : node.inputs) {
      if (input == kNoValue || IsOneElement(graph, input)) continue;
      is_function =
          is_function && IsActivation(graph, input) && graph.type(input).shape == graph.type(node.outputs[0]).shape;
      origins.insert(rounded.contains(input) ? input : source[static_cast<size_t>(input)]);
    }
    if (is_function && origins.size() == 1) source[static_cast<size_t>(node.outputs[0])] = *origins.begin();
  }
  return source;
}

std::vector<Role> RolesOf(const Graph& graph, const std::set<NodeId>& keep_float,
                          const std::vector<ValueId>& source_of) {
  std::vector<Role> roles(static_cast<size_t>(graph.num_node_slots()), Role::kFloat);
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const bool float_result =
        std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return IsActivation(graph, v); });
    if (keep_float.contains(id) || !float_result || node.outputs.empty()) continue;
    Role& role = roles[static_cast<size_t>(id)];
    const bool two_operands =
        node.inputs.size() == 2 && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
          return IsActivation(graph, v) || IsFloatConstant(graph, v);
        });
    if (source_of[static_cast<size_t>(node.outputs[0])] != node.outputs[0]) {
      role = Role::kFunction;
    } else if (IsLayer(graph, node)) {
      role = Role::kLayer;
    } else if ((node.op == "AveragePool" || node.op == "GlobalAveragePool") && IsActivation(graph, node.inputs[0])) {
      role = Role::kPool;
    } else if (((node.op == "Add" || node.op == "Sub" || node.op == "Mul") && two_operands) ||
               (node.op == "ReduceMean" && IsActivation(graph, node.inputs[0]))) {
      role = Role::kJoin;
    } else if (node.op == "Softmax" && IsActivation(graph, node.inputs[0])) {
      role = Role::kSoftmax;
    } else if (MovementInputs(graph, node) && IsActivation(graph, node.inputs[0])) {
      role = Role::kMovement;
    }
  }
  return roles;
}

std::optional<WeightedLayer> WeightedLayerOf(const Graph& graph, const Node& node) {
  if (!IsFloatConstant(graph, node.inputs[1]) || !IsActivation(graph, node.inputs[0])) return std::nullopt;
  WeightedLayer layer;
  layer.node = node.id;
  const int64_t rank = static_cast<int64_t>(graph.type(node.inputs[1]).shape.size());
  if (node.op == "Conv") layer.axis = 0;
  if (node.op == "Gemm") layer.axis = IntOr(node, "transB", 0) ? 0 : 1;
  if (node.op == "MatMul" && rank == 2) layer.axis = 1;
  const auto take_bias = [&](const Node& reader, size_t input) {
    const int64_t channels = layer.axis < 0
                                 ? graph.type(node.outputs[0]).static_shape().back()
                                 : graph.type(node.inputs[1]).static_shape()[static_cast<size_t>(layer.axis)];
    if (graph.type(reader.inputs[input]).elements() != channels) return;
    layer.bias = reader.inputs[input];
    layer.bias_node = reader.id;
    layer.bias_input = static_cast<int>(input);
  };
  if (node.op != "MatMul" && node.inputs.size() > 2 && node.inputs[2] != kNoValue) take_bias(node, 2);
  if (const Node* add = BiasAddOf(graph, node)) take_bias(*add, add->inputs[0] == node.outputs[0] ? 1 : 0);
  return layer;
}

ValueId ResultOf(const Graph& graph, const Node& node, const std::set<NodeId>& keep_float) {
  ValueId result = node.outputs[0];
  if (const Node* add = BiasAddOf(graph, node); add && !keep_float.contains(add->id)) result = add->outputs[0];
  while (HasSingleUse(graph, result)) {
    const Node& reader = graph.node(SoleUser(graph, result));
    if (!IsClamp(graph, reader) || keep_float.contains(reader.id) || reader.inputs[0] != result) break;
    result = reader.outputs[0];
  }
  return result;
}

}  // namespace heddle::ir::quantise
