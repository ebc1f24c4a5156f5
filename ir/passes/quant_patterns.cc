// Matching and emission shared by the matchers of legalise_quantisation.

#include "ir/passes/quant_patterns.h"

#include <algorithm>
#include <cmath>

#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

bool ArePositive(const std::vector<float>& scales) {
  return std::all_of(scales.begin(), scales.end(), [](float s) { return std::isfinite(s) && s > 0; });
}

// The bounds of a clamp-like node whose data input is input 0, or nullopt. Bounds that are absent are infinite.
struct Bounds {
  double low = -INFINITY, high = INFINITY;
};

std::optional<Bounds> ClampBounds(const Graph& graph, const Node& node) {
  if (node.op == "Relu") return Bounds{0, INFINITY};
  if (node.op != "Clip") return std::nullopt;
  Bounds bounds;
  double* ends[] = {&bounds.low, &bounds.high};
  for (size_t i = 1; i < node.inputs.size() && i < 3; ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const auto value = ConstantScalar(graph, node.inputs[i]);
    if (!value || std::isnan(*value)) return std::nullopt;
    *ends[i - 1] = *value;
  }
  return bounds;
}

int64_t QuantisedBound(double bound, const OutputQuantiser& q) {
  if (bound == -INFINITY) return -128;
  if (bound == INFINITY) return 127;
  return QuantiseValue(static_cast<float>(bound), q.scale, q.zero, ElementType::kInt8);
}

}  // namespace

std::optional<QuantisedInput> MatchDequantised(const Graph& graph, ValueId value) {
  const NodeId producer = graph.ProducerOf(value);
  if (producer == kNoNode || graph.node(producer).op != "DequantizeLinear") return std::nullopt;
  const Node& node = graph.node(producer);
  if (graph.type(node.inputs[0]).element != ElementType::kInt8) return std::nullopt;
  const auto q = ConstantQuantisation(NodeContext(graph, node));
  if (!q || q->scale.size() != 1 || !ArePositive(q->scale)) return std::nullopt;
  return QuantisedInput{node.inputs[0], q->scale[0], q->zero_point[0], producer};
}

std::optional<QuantisedConstant> MatchDequantisedConstant(const Graph& graph, ValueId value, ElementType type) {
  const NodeId producer = graph.ProducerOf(value);
  if (producer == kNoNode || graph.node(producer).op != "DequantizeLinear") return std::nullopt;
  const Node& node = graph.node(producer);
  const Tensor* tensor = graph.ConstantOrNull(node.inputs[0]);
  if (!tensor || tensor->type() != type) return std::nullopt;
  const auto q = ConstantQuantisation(NodeContext(graph, node));
  if (!q || !ArePositive(q->scale)) return std::nullopt;
  return QuantisedConstant{node.inputs[0], tensor, q->scale, q->zero_point, q->axis, producer};
}

std::optional<OutputQuantiser> MatchQuantiser(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != "QuantizeLinear" || graph.type(node.outputs[0]).element != ElementType::kInt8) return std::nullopt;
  if (graph.type(node.inputs[0]).element != ElementType::kFloat32) return std::nullopt;
  const auto q = ConstantQuantisation(NodeContext(graph, node));
  if (!q || q->scale.size() != 1 || !ArePositive(q->scale)) return std::nullopt;
  return OutputQuantiser{id, node.inputs[0], node.outputs[0], q->scale[0], q->zero_point[0]};
}

ClampedValue PeelClamps(const Graph& graph, const OutputQuantiser& q) {
  ClampedValue result{q.input, -128, 127, {}};
  while (HasSingleUse(graph, result.value)) {
    const NodeId producer = graph.ProducerOf(result.value);
    if (producer == kNoNode) break;
    const auto bounds = ClampBounds(graph, graph.node(producer));
    if (!bounds) break;
    // ONNX Clip with min > max gives max: both ends are then max.
    const int64_t inner_high = QuantisedBound(bounds->high, q);
    const int64_t inner_low = std::min(QuantisedBound(bounds->low, q), inner_high);
    // clamp to [inner] first, then to the range found so far.
    const int64_t low = std::clamp(inner_low, result.low, result.high), high = std::clamp(inner_high, result.low, result.high);
    result.low = low;
    result.high = high;
    result.clamps.push_back(producer);
    result.value = graph.node(producer).inputs[0];
  }
  return result;
}

bool Emit(Graph& graph, const OutputQuantiser& q, Replacement r) {
  const std::string output_name = graph.value(q.output).name;
  auto added = AddTypedNode(graph, r.op, r.name, r.inputs, output_name, std::move(r.attributes));
  if (!added.ok()) return false;
  ValueType type = graph.type(*added);
  if (type.shape != graph.type(q.output).shape) {
    RemoveIfDead(graph, graph.ProducerOf(*added));
    return false;
  }
  type.quantisation = Quantisation{{q.scale}, {q.zero}, -1};
  graph.set_type(*added, std::move(type));
  const NodeId fresh = graph.ProducerOf(*added);
  r.absorbed.push_back(q.node);
  MergeSources(graph, fresh, r.absorbed);
  ReplaceValue(graph, q.output, *added, /*keep_name=*/true);
  RemoveIfDead(graph, q.node);
  if (graph.node(fresh).name != r.name) graph.RenameNode(fresh, r.name);
  return true;
}

std::optional<Requantiser> RequantiserFor(const std::vector<double>& sum_scale, const OutputQuantiser& q,
                                          const ClampedValue& clamped) {
  Requantiser r;
  r.rounding = Rounding::kHalfEven;
  r.y_zero_point = static_cast<int32_t>(q.zero);
  r.clamp_low = static_cast<int32_t>(clamped.low);
  r.clamp_high = static_cast<int32_t>(clamped.high);
  for (double scale : sum_scale) {
    const double real = scale / static_cast<double>(q.scale);
    if (!std::isfinite(real) || real < 0 || real >= (1 << 30)) return std::nullopt;
    r.scales.push_back(FixedPointScaleOf(real));
  }
  return r;
}

std::optional<ValueId> BiasFor(Graph& graph, ValueId value, const std::vector<double>& sum_scale, int64_t channels, double factor,
                               const std::string& name) {
  const auto integers = MatchDequantisedConstant(graph, value, ElementType::kInt32);
  const Tensor* source = integers ? integers->tensor : graph.ConstantOrNull(value);
  if (!source || (!integers && source->type() != ElementType::kFloat32)) return std::nullopt;
  if (source->elements() != 1 && source->elements() != channels) return std::nullopt;
  Tensor bias(ElementType::kInt32, {channels});
  for (int64_t c = 0; c < channels; ++c) {
    const double unit = sum_scale[sum_scale.size() == 1 ? 0 : static_cast<size_t>(c)];
    const int64_t at = source->elements() == 1 ? 0 : c;
    double in_units = factor;
    if (integers) {
      const size_t s = integers->scale.size() == 1 ? 0 : static_cast<size_t>(at);
      const double ratio = integers->scale[s] / unit;
      in_units *= static_cast<double>(source->at_int(at) - integers->zero[s]);
      // The scales' product was rounded to float32: not a difference in meaning.
      if (std::abs(ratio - 1) > 1e-6) in_units *= ratio;
    } else {
      in_units *= source->at_double(at) / unit;
    }
    if (!(std::abs(in_units) < 2147483647.0)) return std::nullopt;
    bias.set_int(c, static_cast<int64_t>(std::nearbyint(in_units)));
  }
  if (integers && factor == 1 && bias == *source) return integers->integer;
  return graph.AddConstant(name + "_bias", std::move(bias));
}

}  // namespace heddle::ir
