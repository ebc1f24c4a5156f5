// Exporters write a layer's bias, or a normalisation's scale and shift, as operators of their own. Quantised one by
// one, each rounds a tensor that nobody asked for.

#include "ir/quantise/prepare.h"

#include <algorithm>

#include "ir/passes/rewrite.h"
#include "ir/quantise/roles.h"

namespace heddle::ir::quantise {
namespace {

// x * factor or x + addend with a constant for each channel.
struct ChannelConstant {
  NodeId node = kNoNode;
  ValueId x = kNoValue;
  bool multiplies = false;
  std::vector<double> values;  // one for each channel
  bool by_channel = false;     // the constant has more than one element
};

// The constant's value for each extent of `axis` of a tensor of shape `x`, or nullopt where it varies along other axes.
std::optional<std::vector<double>> ValuesAlong(const Tensor& constant, const Shape& x, size_t axis) {
  const size_t rank = constant.shape().size();
  if (rank > x.size()) return std::nullopt;
  const auto channels = static_cast<size_t>(x[axis]);
  if (constant.elements() != 1) {
    const size_t missing = x.size() - rank;
    if (constant.elements() != x[axis] || axis < missing || constant.shape()[axis - missing] != x[axis])
      return std::nullopt;
  }
  std::vector<double> values(channels);
  for (size_t c = 0; c < channels; ++c)
    values[c] = constant.at_double(constant.elements() == 1 ? 0 : static_cast<int64_t>(c));
  return values;
}

// The node as a constant by channel of `axis` (counted from the end where negative) of its other operand.
std::optional<ChannelConstant> MatchChannelConstant(const Graph& graph, const Node& node, int axis) {
  const bool commutes = node.op == "Add" || node.op == "Mul";
  if ((!commutes && node.op != "Sub" && node.op != "Div") || node.inputs.size() != 2) return std::nullopt;
  size_t constant = 1;
  if (commutes && IsFloatConstant(graph, node.inputs[0])) constant = 0;
  if (!IsFloatConstant(graph, node.inputs[constant]) || !IsActivation(graph, node.inputs[1 - constant]))
    return std::nullopt;
  ChannelConstant match;
  match.node = node.id;
  match.x = node.inputs[1 - constant];
  match.multiplies = node.op == "Mul" || node.op == "Div";
  const Shape x = graph.type(match.x).static_shape();
  const int place = axis < 0 ? static_cast<int>(x.size()) + axis : axis;
  if (place < 0 || place >= static_cast<int>(x.size()) ||
      graph.type(node.outputs[0]).shape != graph.type(match.x).shape)
    return std::nullopt;
  const Tensor& tensor = *graph.ConstantOrNull(node.inputs[constant]);
  auto values = ValuesAlong(tensor, x, static_cast<size_t>(place));
  if (!values) return std::nullopt;
  for (double& value : *values) {
    if (node.op == "Sub") value = -value;
    if (node.op == "Div" && value == 0) return std::nullopt;
    if (node.op == "Div") value = 1 / value;
  }
  match.values = *std::move(values);
  match.by_channel = tensor.elements() != 1;
  return match;
}

bool IsPlainGemm(const Node& node) {
  return (!node.Has("alpha") || node.Float("alpha") == 1.0) && (!node.Has("beta") || node.Float("beta") == 1.0);
}

void SetBias(Graph& graph, NodeId layer, Tensor bias) {
  const ValueId constant = graph.AddConstant(graph.node(layer).name + "_folded_bias", std::move(bias));
  if (graph.node(layer).inputs.size() > 2) {
    graph.SetInput(layer, 2, constant);
  } else {
    graph.AppendInput(layer, constant);
  }
}

// Weights' elements times the factor of their channel.
Tensor Scaled(const Tensor& weights, const std::vector<double>& factors, size_t axis) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < weights.shape().size(); ++d) inner *= weights.shape()[d];
  Tensor scaled = weights;
  for (int64_t i = 0; i < scaled.elements(); ++i) {
    scaled.set_double(i, weights.at_double(i) * factors[static_cast<size_t>(i / inner % weights.shape()[axis])]);
  }
  return scaled;
}

bool FoldIntoLayer(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  for (ValueId input : node.inputs) {
    const NodeId producer = graph.ProducerOf(input);
    if (producer == kNoNode || !HasSingleUse(graph, input)) continue;
    const Node layer = graph.node(producer);
    if (layer.op != "Conv" && layer.op != "MatMul" && !(layer.op == "Gemm" && IsPlainGemm(layer))) continue;
    const auto weighted = layer.inputs.size() > 1 ? WeightedLayerOf(graph, layer) : std::nullopt;
    if (!weighted || weighted->axis < 0) continue;
    const auto match = MatchChannelConstant(graph, node, layer.op == "Conv" ? 1 : -1);
    if (!match || match->x != input || (layer.op == "MatMul" && !match->multiplies)) continue;
    const auto channels = static_cast<int64_t>(match->values.size());
    const bool has_bias = layer.inputs.size() > 2 && layer.inputs[2] != kNoValue;
    const Tensor* bias = has_bias ? graph.ConstantOrNull(layer.inputs[2]) : nullptr;
    if (has_bias && (!bias || bias->elements() != channels)) continue;
    Tensor new_bias(ElementType::kFloat32, {channels});
    for (int64_t c = 0; c < channels; ++c) {
      const double old = bias ? bias->at_double(c) : 0, value = match->values[static_cast<size_t>(c)];
      new_bias.set_double(c, match->multiplies ? old * value : old + value);
    }
    if (match->multiplies) {
      Tensor weights =
          Scaled(*graph.ConstantOrNull(layer.inputs[1]), match->values, static_cast<size_t>(weighted->axis));
      graph.SetInput(producer, 1, graph.AddConstant(layer.name + "_folded_weight", std::move(weights)));
    }
    if (has_bias || !match->multiplies) SetBias(graph, producer, std::move(new_bias));
    MergeSources(graph, producer, {producer, id});
    ReplaceValue(graph, node.outputs[0], input, /*keep_name=*/true);
    RemoveIfDead(graph, id);
    return true;
  }
  return false;
}

absl::StatusOr<bool> BecomeDepthwise(Graph& graph, NodeId id) {
  const Node node = graph.node(id);
  const auto factor = MatchChannelConstant(graph, node, 1);
  if (!factor || !factor->multiplies || !factor->by_channel) return false;
  const size_t rank = graph.type(factor->x).shape.size();
  if (rank < 3 || rank > 5) return false;
  const auto channels = static_cast<int64_t>(factor->values.size());
  Shape shape(rank, 1);
  shape[0] = channels;
  Tensor weights(ElementType::kFloat32, shape), bias(ElementType::kFloat32, {channels});
  for (int64_t c = 0; c < channels; ++c) weights.set_double(c, factor->values[static_cast<size_t>(c)]);
  std::vector<NodeId> parts = {id};
  ValueId result = node.outputs[0];
  if (HasSingleUse(graph, result)) {
    const auto addend = MatchChannelConstant(graph, graph.node(SoleUser(graph, result)), 1);
    if (addend && !addend->multiplies && addend->x == result) {
      for (int64_t c = 0; c < channels; ++c) bias.set_double(c, addend->values[static_cast<size_t>(c)]);
      parts.push_back(addend->node);
      result = graph.node(addend->node).outputs[0];
    }
  }
  const ValueId w = graph.AddConstant(node.name + "_weight", std::move(weights)),
                b = graph.AddConstant(node.name + "_bias", std::move(bias));
  const Attributes attributes = {{"group", channels}, {"kernel_shape", std::vector<int64_t>(rank - 2, 1)}};
  HEDDLE_ASSIGN_OR_RETURN(const ValueId y, AddTypedNode(graph, "Conv", node.name + "_channels", {factor->x, w, b},
                                                        node.name + "_channels", attributes));
  MergeSources(graph, graph.ProducerOf(y), parts);
  ReplaceValue(graph, result, y, /*keep_name=*/true);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (graph.alive(*part)) RemoveIfDead(graph, *part);
  }
  return true;
}

}  // namespace

absl::Status FoldChannelConstants(Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  const std::set<NodeId> normalisation = NormalisationNodes(graph);
  for (NodeId id : order) {
    if (graph.alive(id) && !normalisation.contains(id)) FoldIntoLayer(graph, id);
  }
  for (NodeId id : order) {
    if (!graph.alive(id) || normalisation.contains(id)) continue;
    HEDDLE_RETURN_IF_ERROR(BecomeDepthwise(graph, id).status());
  }
  RemoveDeadCode(graph);
  graph.Compact();
  return absl::OkStatus();
}

}  // namespace heddle::ir::quantise
