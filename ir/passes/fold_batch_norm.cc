// fold-batch-norm: BatchNormalization at inference is y = x * s + t for each channel, s = scale / sqrt(var + epsilon),
// t = bias - mean * s. Behind a convolution or a Gemm with constant weights it disappears into weights and bias; elsewhere it
// becomes a Mul and an Add, which fuse with their neighbours.

#include <cmath>

#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

struct ChannelAffine {
  std::vector<double> scale, shift;
};

std::optional<ChannelAffine> AffineOf(const Graph& graph, const Node& node) {
  if (node.op != "BatchNormalization" || node.inputs.size() != 5 || IntOr(node, "training_mode", 0) != 0) return std::nullopt;
  const Tensor* constants[4];
  for (size_t i = 0; i < 4; ++i) {
    constants[i] = graph.ConstantOrNull(node.inputs[i + 1]);
    if (!constants[i] || constants[i]->type() != ElementType::kFloat32) return std::nullopt;
    if (constants[i]->elements() != constants[0]->elements()) return std::nullopt;
  }
  const double epsilon = node.Has("epsilon") ? node.Float("epsilon") : 1e-5;
  ChannelAffine affine;
  for (int64_t c = 0; c < constants[0]->elements(); ++c) {
    const double scale = constants[0]->at_double(c) / std::sqrt(constants[3]->at_double(c) + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(constants[1]->at_double(c) - constants[2]->at_double(c) * scale);
  }
  return affine;
}

// Index of the output channel of flat weight element `i`.
struct WeightLayout {
  int64_t inner = 1;     // elements inside one step of the channel's axis
  int64_t channels = 1;
  int64_t ChannelOf(int64_t i) const { return i / inner % channels; }
};

std::optional<WeightLayout> LayoutOf(const Node& producer, const Shape& weights) {
  if (producer.op == "Conv") return WeightLayout{ElementCount(weights) / weights[0], weights[0]};
  if (producer.op == "ConvTranspose" && IntOr(producer, "group", 1) == 1) {
    return WeightLayout{ElementCount(weights) / weights[0] / weights[1], weights[1]};
  }
  // Gemm's alpha and beta would have to be folded as well; with both 1 it is a plain matrix product.
  if (producer.op == "Gemm" && (!producer.Has("alpha") || producer.Float("alpha") == 1.0) &&
      (!producer.Has("beta") || producer.Float("beta") == 1.0)) {
    return IntOr(producer, "transB", 0) ? WeightLayout{weights[1], weights[0]} : WeightLayout{1, weights[1]};
  }
  return std::nullopt;
}

bool FoldIntoProducer(Graph& graph, NodeId id, const ChannelAffine& affine) {
  const ValueId x = graph.node(id).inputs[0];
  const NodeId producer_id = graph.ProducerOf(x);
  if (producer_id == kNoNode || !HasSingleUse(graph, x)) return false;
  const Node& producer = graph.node(producer_id);
  if (producer.inputs.size() < 2) return false;
  const Tensor* weights = graph.ConstantOrNull(producer.inputs[1]);
  if (!weights || weights->type() != ElementType::kFloat32 || weights->elements() == 0) return false;
  const auto layout = LayoutOf(producer, weights->shape());
  if (!layout || layout->channels != static_cast<int64_t>(affine.scale.size())) return false;
  const bool has_bias = producer.inputs.size() > 2 && producer.inputs[2] != kNoValue;
  const Tensor* bias = has_bias ? graph.ConstantOrNull(producer.inputs[2]) : nullptr;
  if (has_bias && (!bias || bias->type() != ElementType::kFloat32 || bias->elements() != layout->channels)) return false;

  Tensor new_weights = *weights;
  for (int64_t i = 0; i < new_weights.elements(); ++i) {
    new_weights.set_double(i, weights->at_double(i) * affine.scale[static_cast<size_t>(layout->ChannelOf(i))]);
  }
  Tensor new_bias(ElementType::kFloat32, {layout->channels});
  for (int64_t c = 0; c < layout->channels; ++c) {
    const auto channel = static_cast<size_t>(c);
    new_bias.set_double(c, (bias ? bias->at_double(c) : 0) * affine.scale[channel] + affine.shift[channel]);
  }
  const std::string name = producer.name;
  const ValueId w = graph.AddConstant(name + "_folded_weight", std::move(new_weights));
  const ValueId b = graph.AddConstant(name + "_folded_bias", std::move(new_bias));
  graph.SetInput(producer_id, 1, w);
  if (graph.node(producer_id).inputs.size() > 2) {
    graph.SetInput(producer_id, 2, b);
  } else {
    graph.AppendInput(producer_id, b);
  }
  MergeSources(graph, producer_id, {producer_id, id});
  ReplaceValue(graph, graph.node(id).outputs[0], x, /*keep_name=*/true);
  RemoveIfDead(graph, id);
  return true;
}

absl::Status BecomeAffine(Graph& graph, NodeId id, const ChannelAffine& affine) {
  const std::string name = graph.node(id).name;
  const ValueId x = graph.node(id).inputs[0], y = graph.node(id).outputs[0];
  Shape shape(graph.type(x).shape.size() - 1, 1);
  shape[0] = static_cast<int64_t>(affine.scale.size());
  Tensor scale(ElementType::kFloat32, shape), shift(ElementType::kFloat32, shape);
  for (size_t c = 0; c < affine.scale.size(); ++c) {
    scale.set_double(static_cast<int64_t>(c), affine.scale[c]);
    shift.set_double(static_cast<int64_t>(c), affine.shift[c]);
  }
  const ValueId s = graph.AddConstant(name + "_scale", std::move(scale)), t = graph.AddConstant(name + "_shift", std::move(shift));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId scaled, AddTypedNode(graph, "Mul", name + "_mul", {x, s}, name + "_scaled"));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId shifted, AddTypedNode(graph, "Add", name + "_add", {scaled, t}, name + "_shifted"));
  MergeSources(graph, graph.ProducerOf(scaled), {id});
  MergeSources(graph, graph.ProducerOf(shifted), {id});
  ReplaceValue(graph, y, shifted, /*keep_name=*/true);
  RemoveIfDead(graph, id);
  return absl::OkStatus();
}

absl::Status Run(Graph& graph, const PassOptionValues&) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!graph.alive(id)) continue;
    const auto affine = AffineOf(graph, graph.node(id));
    if (!affine || graph.type(graph.node(id).inputs[0]).shape.size() < 2) continue;
    if (!FoldIntoProducer(graph, id, *affine)) HEDDLE_RETURN_IF_ERROR(BecomeAffine(graph, id, *affine));
  }
  return absl::OkStatus();
}

}  // namespace

Pass FoldBatchNormPass() {
  return {"fold-batch-norm", "folds batch normalisation into the weights before it, or makes it a multiplication and an addition",
          {}, Run};
}

}  // namespace heddle::ir
