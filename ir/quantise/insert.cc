// Writes the plan into a copy of the graph: constants first, while their layers still read the float tensors they are
// named by, then a quantiser and a dequantiser behind every tensor of a class.

#include "ir/quantise/insert.h"

#include <algorithm>
#include <cmath>

#include "ir/passes/rewrite.h"

namespace heddle::ir::quantise {
namespace {

// Largest bias in steps: leaves room for the sum of products in 32 bits.
constexpr double kMostBiasSteps = 1 << 30;

class Inserter {
 public:
  Inserter(const Graph& graph, const Plan& plan, const Histograms& histograms, const CalibrationOptions& options)
      : float_graph_(graph), plan_(plan), options_(options) {
    result_.graph = graph;
    for (const ParameterClass& entry : plan.classes) {
      Histogram merged;
      for (ValueId source : entry.sources) merged.Merge(histograms.at(source));
      ranges_.push_back(entry.is_softmax ? Range{0, 255.0 / 256} : RangeOf(merged, options));
      merged_.push_back(std::move(merged));
    }
    ClipMasks();
    for (const Range& range : ranges_) parameters_.push_back(ParametersOf(range));
  }

  absl::Status Go() {
    for (const WeightedLayer& layer : plan_.layers) HEDDLE_RETURN_IF_ERROR(QuantiseWeights(layer));
    for (const auto& [node, input] : plan_.constants) HEDDLE_RETURN_IF_ERROR(QuantiseConstant(node, input));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, float_graph_.TopologicalOrder());
    for (ValueId input : float_graph_.inputs()) {
      if (plan_.Quantised(input)) HEDDLE_RETURN_IF_ERROR(QuantiseActivation(input));
    }
    for (NodeId id : order) {
      for (ValueId value : float_graph_.node(id).outputs) {
        if (plan_.Quantised(value)) HEDDLE_RETURN_IF_ERROR(QuantiseActivation(value));
      }
    }
    RemoveDeadCode(graph());
    graph().Compact();
    return InferGraphTypes(graph());
  }

  Quantised Take() { return std::move(result_); }

 private:
  Graph& graph() { return result_.graph; }
  const Parameters& ParametersOfValue(ValueId value) const {
    return parameters_[static_cast<size_t>(plan_.class_of[static_cast<size_t>(value)])];
  }

  const Range& RangeOfValue(ValueId value) const {
    return ranges_[static_cast<size_t>(plan_.class_of[static_cast<size_t>(value)])];
  }

  // The lowest value of a mask that makes a difference: with it the sum is at its own range's low end whatever the
  // other operand is.
  std::optional<double> LowestThatCounts(ValueId mask) const {
    const auto it = plan_.masks.find(mask);
    if (it == plan_.masks.end()) return std::nullopt;
    double lowest = 0;
    for (const MaskUse& use : it->second) {
      const Tensor* constant = float_graph_.ConstantOrNull(use.other);
      double high = 0;
      if (constant) {
        for (const float value : constant->as<float>()) high = std::max<double>(high, value);
      } else {
        high = RangeOfValue(use.other).high;
      }
      const NodeId add = use.add;
      lowest = std::min(lowest, RangeOfValue(float_graph_.node(add).outputs[0]).low - high);
    }
    return lowest;
  }

  void ClipMasks() {
    std::vector<Range> clipped = ranges_;
    for (const auto& [value, uses] : plan_.masks) {
      const auto lowest = float_graph_.IsConstant(value) ? std::nullopt : LowestThatCounts(value);
      if (!lowest) continue;
      Range& range = clipped[static_cast<size_t>(plan_.class_of[static_cast<size_t>(value)])];
      range.low = std::max(range.low, *lowest);
    }
    ranges_ = std::move(clipped);
  }

  absl::Status CheckFinite(const Node& node, const Tensor& tensor) const {
    for (const float value : tensor.as<float>()) {
      if (std::isfinite(value)) continue;
      return UserError(
          "E-QUANT-004",
          fmt::format("node '{}' ({}): a weight is {}, expected finite numbers", node.name, node.op, value),
          "train or export the model again");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> AddDequantiser(const std::string& name, Tensor integers, Tensor scale, int64_t axis) {
    Tensor zero(integers.type(), scale.shape());
    const ValueId q = graph().AddConstant(name + "_quantised", std::move(integers));
    const ValueId s = graph().AddConstant(name + "_scale", std::move(scale)),
                  z = graph().AddConstant(name + "_zero_point", std::move(zero));
    Attributes attributes;
    if (axis >= 0) attributes["axis"] = axis;
    return AddTypedNode(graph(), "DequantizeLinear", name + "_dequantise", {q, s, z}, name + "_dequantised",
                        std::move(attributes));
  }

  absl::Status QuantiseWeights(const WeightedLayer& layer) {
    const Node node = graph().node(layer.node);
    const Tensor weights = *graph().ConstantOrNull(node.inputs[1]);
    HEDDLE_RETURN_IF_ERROR(CheckFinite(node, weights));
    const Tensor* bias = graph().ConstantOrNull(layer.bias);
    if (bias) HEDDLE_RETURN_IF_ERROR(CheckFinite(node, *bias));
    const int64_t channels = layer.axis < 0 ? 1 : weights.shape()[static_cast<size_t>(layer.axis)];
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(layer.axis) + 1; layer.axis >= 0 && d < weights.shape().size(); ++d)
      inner *= weights.shape()[d];
    const auto channel_of = [&](int64_t i) { return layer.axis < 0 ? 0 : i / inner % channels; };
    const float x_scale = ParametersOfValue(node.inputs[0]).scale;
    const std::vector<float> scales = WeightScales(weights, channels, channel_of, bias, x_scale);
    Tensor integers(ElementType::kInt8, weights.shape());
    const std::span<const float> real = weights.as<float>();
    for (int64_t i = 0; i < weights.elements(); ++i) {
      const float steps = std::nearbyint(real[static_cast<size_t>(i)] / scales[static_cast<size_t>(channel_of(i))]);
      integers.as<int8_t>()[static_cast<size_t>(i)] = static_cast<int8_t>(std::clamp(steps, -127.0f, 127.0f));
    }
    ++result_.layers;
    result_.weight_bytes += integers.bytes() + (bias ? 4 * bias->elements() : 0);
    result_.float_weight_bytes += weights.bytes() + (bias ? bias->bytes() : 0);
    if (bias) HEDDLE_RETURN_IF_ERROR(QuantiseBias(layer, *bias, scales, x_scale));
    const Shape scale_shape = layer.axis < 0 ? Shape{} : Shape{channels};
    HEDDLE_ASSIGN_OR_RETURN(
        const ValueId real_again,
        AddDequantiser(node.name + "_weight", std::move(integers), Tensor::Of<float>(scale_shape, scales), layer.axis));
    graph().SetInput(layer.node, 1, real_again);
    return absl::OkStatus();
  }

  template <typename ChannelOf>
  std::vector<float> WeightScales(const Tensor& weights, int64_t channels, ChannelOf channel_of, const Tensor* bias,
                                  float x_scale) const {
    std::vector<std::vector<float>> rows(static_cast<size_t>(channels));
    for (int64_t i = 0; i < weights.elements(); ++i)
      rows[static_cast<size_t>(channel_of(i))].push_back(weights.as<float>()[static_cast<size_t>(i)]);
    std::vector<float> scales;
    for (const auto& row : rows) scales.push_back(WeightScale(row, options_.method));
    for (int64_t i = 0; bias && i < bias->elements(); ++i) {
      float& scale = scales[channels == 1 ? 0 : static_cast<size_t>(i)];
      const double smallest =
          std::abs(static_cast<double>(bias->as<float>()[static_cast<size_t>(i)])) / (kMostBiasSteps * x_scale);
      scale = std::max(scale, static_cast<float>(smallest));
    }
    return scales;
  }

  absl::Status QuantiseBias(const WeightedLayer& layer, const Tensor& bias, const std::vector<float>& w_scales,
                            float x_scale) {
    const int64_t channels = bias.elements();
    Tensor integers(ElementType::kInt32, {channels});
    Tensor scale(ElementType::kFloat32, w_scales.size() == 1 ? Shape{} : Shape{channels});
    for (int64_t i = 0; i < scale.elements(); ++i)
      scale.as<float>()[static_cast<size_t>(i)] = x_scale * w_scales[static_cast<size_t>(i)];
    for (int64_t i = 0; i < channels; ++i) {
      const double unit = scale.as<float>()[scale.elements() == 1 ? 0 : static_cast<size_t>(i)];
      integers.as<int32_t>()[static_cast<size_t>(i)] =
          static_cast<int32_t>(std::nearbyint(bias.as<float>()[static_cast<size_t>(i)] / unit));
    }
    const int64_t axis = scale.rank() == 0 ? -1 : 0;
    HEDDLE_ASSIGN_OR_RETURN(const ValueId real, AddDequantiser(graph().node(layer.node).name + "_bias",
                                                               std::move(integers), std::move(scale), axis));
    graph().SetInput(layer.bias_node, layer.bias_input, real);
    return absl::OkStatus();
  }

  // An operand that is a constant: int8 with one scale, and the zero point that its range asks for.
  absl::Status QuantiseConstant(NodeId id, int input) {
    const Node node = graph().node(id);
    Tensor tensor = *graph().ConstantOrNull(node.inputs[static_cast<size_t>(input)]);
    if (const auto lowest = LowestThatCounts(float_graph_.node(id).inputs[static_cast<size_t>(input)])) {
      for (float& value : tensor.as<float>()) value = value < *lowest ? static_cast<float>(*lowest) : value;
    }
    HEDDLE_RETURN_IF_ERROR(CheckFinite(node, tensor));
    Histogram histogram;
    histogram.Add(tensor.as<float>());
    const Parameters p = ParametersOf(RangeOf(histogram, {Method::kMinMax, 100}));
    Tensor integers(ElementType::kInt8, tensor.shape());
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double steps = std::nearbyint(static_cast<double>(tensor.as<float>()[static_cast<size_t>(i)]) / p.scale);
      integers.set_int(i, std::clamp(static_cast<int64_t>(steps) + p.zero_point, int64_t{-128}, int64_t{127}));
    }
    const std::string name = fmt::format("{}_operand{}", node.name, input);
    const ValueId q = graph().AddConstant(name + "_quantised", std::move(integers));
    HEDDLE_ASSIGN_OR_RETURN(const ValueId real,
                            AddTypedNode(graph(), "DequantizeLinear", name + "_dequantise",
                                         {q, AddScale(name, p), AddZeroPoint(name, p)}, name + "_dequantised"));
    graph().SetInput(id, input, real);
    return absl::OkStatus();
  }

  ValueId AddScale(const std::string& name, const Parameters& p) {
    return graph().AddConstant(name + "_scale", Tensor::Of<float>({}, {p.scale}));
  }
  ValueId AddZeroPoint(const std::string& name, const Parameters& p) {
    return graph().AddConstant(name + "_zero_point", Tensor::Of<int8_t>({}, {static_cast<int8_t>(p.zero_point)}));
  }

  absl::Status QuantiseActivation(ValueId value) {
    const std::string name = float_graph_.value(value).name;
    const Parameters& p = ParametersOfValue(value);
    const ValueId scale = AddScale(name, p), zero = AddZeroPoint(name, p);
    HEDDLE_ASSIGN_OR_RETURN(const ValueId q, AddTypedNode(graph(), "QuantizeLinear", name + "_quantise",
                                                          {value, scale, zero}, name + "_quantised"));
    HEDDLE_ASSIGN_OR_RETURN(const ValueId d, AddTypedNode(graph(), "DequantizeLinear", name + "_dequantise",
                                                          {q, scale, zero}, name + "_dequantised"));
    const NodeId quantiser = graph().ProducerOf(q);
    const bool is_output = graph().IsOutput(value);
    graph().ReplaceAllUses(value, d);
    graph().SetInput(quantiser, 0, value);
    if (is_output) {
      // The model's own name stays with the model's output.
      graph().RenameValue(value, name + "_real");
      graph().RenameValue(d, name);
    }
    Note(value, graph().value(q).name);
    return absl::OkStatus();
  }

  void Note(ValueId value, const std::string& integers) {
    const auto index = static_cast<size_t>(plan_.class_of[static_cast<size_t>(value)]);
    const ParameterClass& entry = plan_.classes[index];
    const NodeId producer = float_graph_.ProducerOf(value);
    QuantisedTensor tensor;
    tensor.value = float_graph_.value(value).name;
    tensor.integers = integers;
    tensor.node = producer == kNoNode ? "" : float_graph_.node(producer).name;
    tensor.op = producer == kNoNode ? "input" : float_graph_.node(producer).op;
    tensor.parameters = parameters_[index];
    tensor.range = ranges_[index];
    tensor.low = merged_[index].low();
    tensor.high = merged_[index].high();
    tensor.clipped_share = ClippedShare(merged_[index].Bins(), tensor.parameters);
    tensor.moved = std::find(entry.sources.begin(), entry.sources.end(), value) == entry.sources.end();
    if (const auto it = plan_.softmax_axis.find(value); it != plan_.softmax_axis.end())
      tensor.softmax_axis = it->second;
    result_.tensors.push_back(std::move(tensor));
  }

  const Graph& float_graph_;
  const Plan& plan_;
  const CalibrationOptions& options_;
  std::vector<Range> ranges_;  // by class, as the two below
  std::vector<Parameters> parameters_;
  std::vector<Histogram> merged_;
  Quantised result_;
};

}  // namespace

absl::StatusOr<Quantised> Quantise(const Graph& graph, const Plan& plan, const Histograms& histograms,
                                   const CalibrationOptions& options) {
  Inserter inserter(graph, plan, histograms, options);
  HEDDLE_RETURN_IF_ERROR(inserter.Go());
  return inserter.Take();
}

}  // namespace heddle::ir::quantise
