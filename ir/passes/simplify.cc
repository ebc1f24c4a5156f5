// simplify: local rewrites that are exact for every element type. Nodes that change nothing go; chains of shape changes and
// of transposes become one; an explicit Pad joins the window operator that reads it where padding by that value is what the
// operator's own pads mean.

#include <algorithm>
#include <set>

#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

bool IsReshapeLike(const Node& node) {
  static const std::set<std::string, std::less<>> kOps = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  return kOps.contains(node.op);
}

Shape InputShape(const Graph& graph, const Node& node, size_t i = 0) { return graph.type(node.inputs[i]).static_shape(); }
Shape OutputShape(const Graph& graph, const Node& node) { return graph.type(node.outputs[0]).static_shape(); }

bool SameTypeAndShape(const Graph& graph, ValueId a, ValueId b) {
  return graph.type(a).element == graph.type(b).element && graph.type(a).shape == graph.type(b).shape;
}

bool AllZero(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; });
}

// A node whose first output is its first input, element for element.
bool IsIdentity(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs.empty()) return false;
  if (!SameTypeAndShape(graph, node.inputs[0], node.outputs[0])) return false;
  if (node.op == "Identity" || node.op == "Cast" || IsReshapeLike(node)) return true;
  if (node.op == "Dropout") {
    // Inference: the mask, where someone reads it, needs the node; training_mode must be absent or false.
    if (node.outputs.size() > 1 && (!graph.value(node.outputs[1]).uses.empty() || graph.IsOutput(node.outputs[1]))) return false;
    return node.inputs.size() < 3 || node.inputs[2] == kNoValue || ConstantScalar(graph, node.inputs[2]) == 0.0;
  }
  if (node.op == "Concat") return node.inputs.size() == 1;
  if (node.op == "Transpose") {
    const std::vector<int64_t> perm = IntsOr(node, "perm", {});
    return !perm.empty() && std::is_sorted(perm.begin(), perm.end());
  }
  if (node.op == "Pad" && node.inputs.size() > 1) {
    const auto pads = ConstantInts(graph, node.inputs[1]);
    return pads && AllZero(*pads);
  }
  return false;
}

bool RemoveIdentity(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!IsIdentity(graph, node)) return false;
  const NodeId producer = graph.ProducerOf(node.inputs[0]);
  if (!ReplaceValue(graph, node.outputs[0], node.inputs[0])) return false;
  if (producer != kNoNode) MergeSources(graph, producer, {producer, id});
  RemoveIfDead(graph, id);
  return true;
}

// Replaces the node by `op` on `input`; the output keeps its name.
bool ReplaceBy(Graph& graph, NodeId id, const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes,
               NodeId absorbed) {
  const std::string name = graph.node(id).name;
  const ValueId old = graph.node(id).outputs[0];
  const auto quantisation = graph.type(old).quantisation;
  auto added = AddTypedNode(graph, op, name, inputs, graph.value(old).name, std::move(attributes));
  if (!added.ok()) return false;
  const NodeId fresh = graph.ProducerOf(*added);
  if (!SameTypeAndShape(graph, old, *added) || !ReplaceValue(graph, old, *added, /*keep_name=*/true)) {
    RemoveIfDead(graph, fresh);
    return false;
  }
  ValueType type = graph.type(*added);
  type.quantisation = quantisation;
  graph.set_type(*added, std::move(type));
  MergeSources(graph, fresh, {absorbed, id});
  RemoveIfDead(graph, id);
  graph.RenameNode(fresh, name);
  return true;
}

bool MergeReshapes(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!IsReshapeLike(node)) return false;
  const NodeId first = graph.ProducerOf(node.inputs[0]);
  if (first == kNoNode || !IsReshapeLike(graph.node(first))) return false;
  const Shape shape = OutputShape(graph, node);
  if (std::count(shape.begin(), shape.end(), 0) != 0) return false;  // 0 means "copy" to Reshape
  const ValueId source = graph.node(first).inputs[0];
  const ValueId target = graph.AddConstant(node.name + "_shape", Tensor::Of<int64_t>({static_cast<int64_t>(shape.size())}, shape));
  if (ReplaceBy(graph, id, "Reshape", {source, target}, {}, first)) return true;
  if (graph.value_alive(target)) graph.RemoveValue(target);
  return false;
}

bool MergeTransposes(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != "Transpose") return false;
  const NodeId first = graph.ProducerOf(node.inputs[0]);
  if (first == kNoNode || graph.node(first).op != "Transpose") return false;
  const size_t rank = InputShape(graph, node).size();
  std::vector<int64_t> reversed;
  for (size_t d = 0; d < rank; ++d) reversed.push_back(static_cast<int64_t>(rank - 1 - d));
  const std::vector<int64_t> inner = IntsOr(graph.node(first), "perm", reversed), outer = IntsOr(node, "perm", reversed);
  if (inner.size() != rank || outer.size() != rank) return false;
  std::vector<int64_t> perm;
  for (int64_t d : outer) perm.push_back(inner[static_cast<size_t>(d)]);
  return ReplaceBy(graph, id, "Transpose", {graph.node(first).inputs[0]}, {{"perm", perm}}, first);
}

// ---- Pad into the window operator behind it.

struct PadInfo {
  std::vector<int64_t> begin, end;  // of the spatial dimensions
  double value = 0;
};

std::optional<PadInfo> SpatialPad(const Graph& graph, const Node& pad) {
  if (pad.op != "Pad" || StringOr(pad, "mode", "constant") != "constant" || pad.inputs.size() < 2) return std::nullopt;
  if (pad.inputs.size() > 3 && pad.inputs[3] != kNoValue) return std::nullopt;  // axes given
  const auto pads = ConstantInts(graph, pad.inputs[1]);
  const size_t rank = InputShape(graph, pad).size();
  if (!pads || pads->size() != 2 * rank || rank < 3) return std::nullopt;
  PadInfo info;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t begin = (*pads)[d], end = (*pads)[d + rank];
    if (begin < 0 || end < 0 || (d < 2 && (begin != 0 || end != 0))) return std::nullopt;
    if (d < 2) continue;
    info.begin.push_back(begin);
    info.end.push_back(end);
  }
  if (pad.inputs.size() > 2 && pad.inputs[2] != kNoValue) {
    const auto value = ConstantScalar(graph, pad.inputs[2]);
    if (!value) return std::nullopt;
    info.value = *value;
  }
  return info;
}

// The value that the operator's own pads stand for, or nullopt where a Pad cannot join it.
std::optional<double> OwnPadValue(const Node& node, bool has_pads) {
  const std::string auto_pad = StringOr(node, "auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return std::nullopt;
  if (node.op == "Conv") return 0.0;
  if (node.op == "QConv") return static_cast<double>(IntOr(node, "x_zero_point", 0));
  // Averages: the padded elements were counted, so they must be counted still, and no others.
  const bool counted = IntOr(node, "count_include_pad", 0) != 0;
  if ((node.op == "AveragePool" || node.op == "QAveragePool") && (counted || !has_pads) && IntOr(node, "ceil_mode", 0) == 0) {
    return node.op == "AveragePool" ? 0.0 : static_cast<double>(IntOr(node, "x_zero_point", 0));
  }
  return std::nullopt;
}

bool MergePad(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != "Conv" && node.op != "QConv" && node.op != "AveragePool" && node.op != "QAveragePool") return false;
  const NodeId pad = graph.ProducerOf(node.inputs[0]);
  if (pad == kNoNode) return false;
  const auto info = SpatialPad(graph, graph.node(pad));
  if (!info) return false;
  const size_t rank = info->begin.size();
  std::vector<int64_t> pads = IntsOr(node, "pads", std::vector<int64_t>(2 * rank, 0));
  if (pads.size() != 2 * rank) return false;
  const auto own_value = OwnPadValue(node, !AllZero(pads));
  if (!own_value || *own_value != info->value) return false;
  for (size_t d = 0; d < rank; ++d) {
    pads[d] += info->begin[d];
    pads[d + rank] += info->end[d];
  }
  Attributes attributes = node.attributes;
  attributes["pads"] = pads;
  attributes.erase("auto_pad");
  if (node.op == "AveragePool" || node.op == "QAveragePool") attributes["count_include_pad"] = int64_t{1};
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = graph.node(pad).inputs[0];
  return ReplaceBy(graph, id, node.op, inputs, std::move(attributes), pad);
}

absl::Status Run(Graph& graph, const PassOptionValues&) {
  bool changed = true;
  while (changed) {
    changed = false;
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
    for (NodeId id : order) {
      if (!graph.alive(id)) continue;
      changed = RemoveIdentity(graph, id) || MergeReshapes(graph, id) || MergeTransposes(graph, id) || MergePad(graph, id) || changed;
    }
  }
  return absl::OkStatus();
}

}  // namespace

Pass SimplifyPass() {
  return {"simplify", "removes nodes that change nothing, merges reshapes, transposes and pads into their neighbours", {}, Run};
}

}  // namespace heddle::ir
