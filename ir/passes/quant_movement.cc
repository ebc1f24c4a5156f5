// Quantisers and dequantisers change places with nodes that only move elements, so that these run on bytes and matchers see
// quantised values next to the nodes that compute. Both directions are exact: (de)quantising acts on each element alone and
// never turns an order around, which covers maxima too.

#include <algorithm>
#include <set>

#include "ir/passes/pass.h"
#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

bool OnlyFirstOutputUsed(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (!graph.value(node.outputs[i]).uses.empty() || graph.IsOutput(node.outputs[i])) return false;
  }
  return true;
}

std::vector<std::string> OutputNames(const Graph& graph, const Node& node, const std::string& suffix) {
  std::vector<std::string> names;
  for (ValueId output : node.outputs) names.push_back(graph.value(output).name + suffix);
  return names;
}

// Adds a copy of the movement node on other inputs; kNoNode where the op refuses.
NodeId CopyMovement(Graph& graph, NodeId id, const std::vector<ValueId>& inputs, const std::string& suffix,
                    const Quantisation& quantisation) {
  const std::string op = graph.node(id).op, name = graph.node(id).name;
  const Attributes attributes = graph.node(id).attributes;
  const NodeId copy = graph.AddNode(op, name, inputs, OutputNames(graph, graph.node(id), suffix), attributes);
  if (!InferNodeTypes(graph, copy).ok()) {
    graph.RemoveNode(copy);
    return kNoNode;
  }
  MergeSources(graph, copy, {id});
  for (ValueId output : graph.node(copy).outputs) {
    ValueType type = graph.type(output);
    type.quantisation = quantisation;
    graph.set_type(output, std::move(type));
  }
  return copy;
}

ValueId AddFill(Graph& graph, const std::string& name, int64_t value) {
  return graph.AddConstant(name + "_fill", Tensor::Of<int8_t>({}, {static_cast<int8_t>(value)}));
}

// The fill value of a float movement node; 0 where it has none.
std::optional<double> FloatFill(const Graph& graph, const Node& node) {
  const int index = MovementFillInput(node);
  if (index < 0 || index >= static_cast<int>(node.inputs.size()) || node.inputs[static_cast<size_t>(index)] == kNoValue) return 0.0;
  return ConstantScalar(graph, node.inputs[static_cast<size_t>(index)]);
}

// Puts the quantised fill value in place, where the node takes one. False where it has no exact integer.
bool SetFill(Graph& graph, const Node& node, float scale, int64_t zero, bool exact, std::vector<ValueId>& inputs) {
  const int index = MovementFillInput(node);
  if (index < 0) return true;
  const auto fill = FloatFill(graph, node);
  if (!fill) return false;
  const int64_t quantised = QuantiseValue(static_cast<float>(*fill), scale, zero, ElementType::kInt8);
  if (exact && static_cast<float>(quantised - zero) * scale != static_cast<float>(*fill)) return false;
  while (static_cast<int>(inputs.size()) <= index) inputs.push_back(kNoValue);
  inputs[static_cast<size_t>(index)] = AddFill(graph, node.name, quantised);
  return true;
}

// move(dequantise(x)) becomes dequantise(move(x)).
bool SinkDequantiser(Graph& graph, NodeId id) {
  const auto data = MovementInputs(graph, graph.node(id));
  if (!data) return false;
  std::vector<ValueId> inputs = graph.node(id).inputs;
  std::optional<QuantisedInput> first;
  for (int i : *data) {
    const auto x = MatchDequantised(graph, inputs[static_cast<size_t>(i)]);
    if (!x || (first && (x->scale != first->scale || x->zero != first->zero))) return false;
    if (!first) first = x;
    inputs[static_cast<size_t>(i)] = x->integer;
  }
  if (!first || !SetFill(graph, graph.node(id), first->scale, first->zero, /*exact=*/true, inputs)) return false;
  const NodeId moved = CopyMovement(graph, id, inputs, ".i8", Quantisation{{first->scale}, {first->zero}, -1});
  if (moved == kNoNode) return false;
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (graph.value(outputs[i]).uses.empty() && !graph.IsOutput(outputs[i])) continue;
    std::vector<ValueId> parameters = graph.node(first->dequantiser).inputs;
    parameters[0] = graph.node(moved).outputs[i];
    const std::string name = graph.value(outputs[i]).name;
    const auto real = AddTypedNode(graph, "DequantizeLinear", graph.node(id).name + "_dequantise", parameters, name + ".real");
    if (!real.ok()) return false;
    MergeSources(graph, graph.ProducerOf(*real), {first->dequantiser});
    ReplaceValue(graph, outputs[i], *real, /*keep_name=*/true);
  }
  RemoveIfDead(graph, id);
  return true;
}

// transpose(dequantise(w)) of weights with a scale for each index of an axis: the axis moves along.
bool SinkPerAxisDequantiser(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != "Transpose") return false;
  const auto w = MatchDequantisedConstant(graph, node.inputs[0], ElementType::kInt8);
  const std::vector<int64_t> perm = IntsOr(node, "perm", {});
  const auto place = w ? std::find(perm.begin(), perm.end(), w->axis) : perm.end();
  if (!w || w->axis < 0 || place == perm.end()) return false;
  std::vector<ValueId> parameters = graph.node(w->dequantiser).inputs;
  const std::string name = node.name, output_name = graph.value(node.outputs[0]).name;
  const auto moved = AddTypedNode(graph, "Transpose", name, {w->integer}, output_name + ".i8", {{"perm", perm}});
  if (!moved.ok()) return false;
  parameters[0] = *moved;
  const auto real = AddTypedNode(graph, "DequantizeLinear", name + "_dequantise", parameters, output_name + ".real",
                                 {{"axis", static_cast<int64_t>(place - perm.begin())}});
  if (!real.ok()) return false;
  MergeSources(graph, graph.ProducerOf(*moved), {id});
  MergeSources(graph, graph.ProducerOf(*real), {w->dequantiser});
  ReplaceValue(graph, graph.node(id).outputs[0], *real, /*keep_name=*/true);
  RemoveIfDead(graph, id);
  return true;
}

// quantise(move(x)) becomes move(quantise(x)).
bool HoistQuantiser(Graph& graph, NodeId id) {
  const auto q = MatchQuantiser(graph, id);
  if (!q || !HasSingleUse(graph, q->input)) return false;
  const NodeId movement = graph.ProducerOf(q->input);
  if (movement == kNoNode) return false;
  const auto data = MovementInputs(graph, graph.node(movement));
  if (!data || !OnlyFirstOutputUsed(graph, graph.node(movement)) || graph.node(movement).op == "Split") return false;
  std::vector<ValueId> inputs = graph.node(movement).inputs;
  if (!SetFill(graph, graph.node(movement), q->scale, q->zero, /*exact=*/false, inputs)) return false;
  for (int i : *data) {
    std::vector<ValueId> parameters = graph.node(id).inputs;
    parameters[0] = inputs[static_cast<size_t>(i)];
    const std::string name = graph.value(parameters[0]).name + ".i8";
    const auto quantised = AddTypedNode(graph, "QuantizeLinear", graph.node(id).name, parameters, name);
    if (!quantised.ok()) return false;
    MergeSources(graph, graph.ProducerOf(*quantised), {id});
    inputs[static_cast<size_t>(i)] = *quantised;
  }
  const NodeId moved = CopyMovement(graph, movement, inputs, ".i8", Quantisation{{q->scale}, {q->zero}, -1});
  if (moved == kNoNode) return false;
  ReplaceValue(graph, q->output, graph.node(moved).outputs[0], /*keep_name=*/true);
  RemoveIfDead(graph, id);
  return true;
}

}  // namespace

std::optional<std::vector<int>> MovementInputs(const Graph& graph, const Node& node) {
  static const std::set<std::string, std::less<>> kFirstInput = {
      "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "GatherElements", "GatherND", "Expand", "Tile",
      "Split", "DepthToSpace", "SpaceToDepth", "Identity", "MaxPool", "GlobalMaxPool", "ReduceMax", "Pad", "Resize"};
  if (node.op == "Concat") {
    std::vector<int> all;
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) all.push_back(i);
    return all;
  }
  if (!kFirstInput.contains(node.op) || node.inputs.empty()) return std::nullopt;
  if (node.op == "MaxPool" && !OnlyFirstOutputUsed(graph, node)) return std::nullopt;
  if (node.op == "Resize" && StringOr(node, "mode", "nearest") != "nearest") return std::nullopt;
  if (node.op == "Resize" && StringOr(node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return std::nullopt;
  return std::vector<int>{0};
}

int MovementFillInput(const Node& node) {
  return node.op == "Pad" && StringOr(node, "mode", "constant") == "constant" ? 2 : -1;
}

absl::Status MoveQuantisersThroughMovement(Graph& graph) {
  // Each step moves one quantiser past one node towards inputs, or one dequantiser towards outputs: it ends.
  bool changed = true;
  while (changed) {
    changed = false;
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
    for (NodeId id : order) {
      if (graph.alive(id) && (SinkDequantiser(graph, id) || SinkPerAxisDequantiser(graph, id))) changed = true;
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (graph.alive(*it) && HoistQuantiser(graph, *it)) changed = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace heddle::ir
