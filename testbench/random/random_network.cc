// Networks grow layer by layer from a list of values of equal rank; a layer that does not fit the values at hand is
// drawn again.

#include "testbench/random/random_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/check.h"
#include "ir/op.h"
#include "ir/requantise.h"

namespace heddle::testbench {
namespace {

using ir::ElementType;
using ir::Graph;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;
using Ints = std::vector<int64_t>;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed * 2654435761u + 12345) {}
  // Uniform in [low, high].
  int64_t Int(int64_t low, int64_t high) { return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1)); }
  double Real() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  bool Chance(double p) { return Real() < p; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) { return *(values.begin() + Int(0, static_cast<int64_t>(values.size()) - 1)); }

 private:
  std::mt19937_64 random_;
};

// What both kinds of network share: a graph, the values made so far, geometry of windows.
class Builder {
 public:
  explicit Builder(uint64_t seed) : draw_(seed), graph_(fmt::format("random_{}", seed)) {}

 protected:
  struct Window {
    int64_t kernel_h, kernel_w;
    Ints strides, pads, dilations;
  };

  Window DrawWindow(const Shape& x, bool dilate) {
    Window window;
    window.kernel_h = std::min<int64_t>(draw_.OneOf<int64_t>({1, 1, 2, 3, 3, 3, 5}), x[2]);
    window.kernel_w = draw_.Chance(0.8) ? std::min(window.kernel_h, x[3]) : std::min<int64_t>(draw_.OneOf<int64_t>({1, 2, 3, 4}), x[3]);
    window.strides = {draw_.OneOf<int64_t>({1, 1, 1, 2, 3}), draw_.OneOf<int64_t>({1, 1, 1, 2})};
    window.dilations = {1, 1};
    if (dilate && draw_.Chance(0.15)) window.dilations = {draw_.Int(1, 2), draw_.Int(1, 2)};
    for (int d = 0; d < 2; ++d) {
      const int64_t kernel = d ? window.kernel_w : window.kernel_h;
      if ((kernel - 1) * window.dilations[static_cast<size_t>(d)] + 1 > x[static_cast<size_t>(2 + d)]) window.dilations[static_cast<size_t>(d)] = 1;
    }
    window.pads = {draw_.Int(0, window.kernel_h / 2), draw_.Int(0, window.kernel_w / 2), draw_.Int(0, window.kernel_h / 2), draw_.Int(0, window.kernel_w / 2)};
    return window;
  }

  Tensor RandomI8(const Shape& shape, int64_t low, int64_t high) {
    Tensor tensor(ElementType::kInt8, shape);
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set_int(i, draw_.Int(low, high));
    return tensor;
  }

  Tensor RandomF32(const Shape& shape, double magnitude) {
    Tensor tensor(ElementType::kFloat32, shape);
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set_double(i, (2 * draw_.Real() - 1) * magnitude);
    return tensor;
  }

  ValueId Add(const std::string& op, std::vector<ValueId> inputs, ir::Attributes attributes) {
    const std::string name = fmt::format("{}_{}", op, count_++);
    const ir::NodeId node = graph_.AddNode(op, name, std::move(inputs), {name + "_out"}, std::move(attributes));
    const absl::Status status = ir::InferNodeTypes(graph_, node);
    HEDDLE_CHECK(status.ok(), std::string(status.message()));
    return graph_.node(node).outputs[0];
  }

  Shape ShapeOf(ValueId id) const { return graph_.type(id).static_shape(); }
  ValueId Any() { return values_[static_cast<size_t>(draw_.Int(std::max<int64_t>(0, static_cast<int64_t>(values_.size()) - 3), static_cast<int64_t>(values_.size()) - 1))]; }
  ValueId SameShape(ValueId other) {
    for (int i = 0; i < 8; ++i) {
      const ValueId candidate = values_[static_cast<size_t>(draw_.Int(0, static_cast<int64_t>(values_.size()) - 1))];
      if (ShapeOf(candidate) == ShapeOf(other)) return candidate;
    }
    return other;
  }

  Draw draw_;
  Graph graph_;
  std::vector<ValueId> values_;  // rank 4
  int count_ = 0;
};

class IntegerBuilder : public Builder {
 public:
  using Builder::Builder;

  Graph Build() {
    const Shape shape = {1, draw_.OneOf<int64_t>({1, 3, 4, 8, 16, 17}), draw_.Int(1, 14), draw_.Int(1, 14)};
    const ValueId input = graph_.AddInput("input", {ElementType::kFloat32, shape});
    const ValueId scale = graph_.AddConstant("scale", Tensor::Of<float>({}, {0.0625f}));
    const ValueId zero = graph_.AddConstant("zero", Tensor::Of<int8_t>({}, {static_cast<int8_t>(draw_.Int(-20, 20))}));
    values_.push_back(Add("QuantizeLinear", {input, scale, zero}, {}));
    const int64_t layers = draw_.Int(2, 8);
    for (int64_t i = 0; i < layers; ++i) values_.push_back(Layer());
    ValueId last = values_.back();
    if (draw_.Chance(0.4)) last = FullyConnected(last);
    graph_.MarkOutput(Add("DequantizeLinear", {last, scale, zero}, {}));
    graph_.Compact();
    return std::move(graph_);
  }

 private:
  ValueId Layer() {
    const ValueId x = Any();
    switch (draw_.Int(0, 11)) {
      case 0: case 1: case 2: return Conv(x, 1);
      case 3: case 4: return Conv(x, ShapeOf(x)[1]);
      case 5: return Conv(x, ShapeOf(x)[1] % 2 == 0 ? 2 : 1);
      case 6: case 7: return Residual(x);
      case 8: return AveragePool(x);
      case 9: return MaxPool(x);
      case 10: return draw_.Chance(0.5) ? Lookup(x) : Multiply(x);
      default: return draw_.Chance(0.5) ? Add("Concat", {x, SameShape(x)}, {{"axis", int64_t{1}}}) : Lookup(x);
    }
  }

  void Clamp(ir::Attributes& attributes) {
    const int64_t zero = draw_.Int(-100, 100);
    attributes["y_zero_point"] = zero;
    attributes["clamp_low"] = draw_.Chance(0.5) ? zero : int64_t{-128};
    attributes["clamp_high"] = draw_.Chance(0.8) ? int64_t{127} : std::max<int64_t>(zero, draw_.Int(zero, 127));
  }

  // Scales that bring sums of about `terms` products back to the range of int8.
  void Scale(ir::Attributes& attributes, int64_t terms, int64_t channels, double product = 4096) {
    Ints multiplier, shift;
    for (int64_t i = 0; i < channels; ++i) {
      const ir::FixedPointScale scale = ir::FixedPointScaleOf((0.3 + draw_.Real()) * 64.0 / (product * std::sqrt(static_cast<double>(terms))));
      multiplier.push_back(scale.multiplier);
      shift.push_back(scale.shift);
    }
    attributes["multiplier"] = multiplier;
    attributes["shift"] = shift;
    attributes["rounding"] = std::string(draw_.Chance(0.6) ? "half_even" : "doubling_high_mul");
  }

  ValueId Conv(ValueId x, int64_t group) {
    const Shape shape = ShapeOf(x);
    const Window window = DrawWindow(shape, true);
    const int64_t per_group = group == 1 ? draw_.OneOf<int64_t>({1, 3, 8, 16, 20, 33}) : group == shape[1] && draw_.Chance(0.8) ? 1 : draw_.Int(1, 4);
    const int64_t channels = per_group * group;
    const int64_t terms = shape[1] / group * window.kernel_h * window.kernel_w;
    const ValueId w = graph_.AddConstant("w", RandomI8({channels, shape[1] / group, window.kernel_h, window.kernel_w}, -127, 127));
    Tensor bias(ElementType::kInt32, {channels});
    for (int64_t i = 0; i < channels; ++i) bias.set_int(i, draw_.Int(-20000, 20000));
    ir::Attributes attributes = {{"strides", window.strides}, {"pads", window.pads}, {"dilations", window.dilations}, {"group", group},
                                 {"x_zero_point", draw_.Int(-30, 30)}, {"w_zero_point", Ints{0}}};
    Scale(attributes, terms, channels);
    Clamp(attributes);
    return Add("QConv", {x, w, graph_.AddConstant("bias", std::move(bias))}, std::move(attributes));
  }

  ValueId Residual(ValueId x) {
    ir::Attributes attributes = {{"a_zero_point", draw_.Int(-50, 50)}, {"b_zero_point", draw_.Int(-50, 50)},
                                 {"a_multiplier", draw_.Int(1 << 15, (1 << 20) - 1)}, {"b_multiplier", draw_.Int(1 << 15, (1 << 20) - 1)}, {"shift", draw_.Int(18, 20)}};
    Clamp(attributes);
    return Add("QAdd", {x, SameShape(x)}, std::move(attributes));
  }

  ValueId Multiply(ValueId x) {
    ir::Attributes attributes = {{"a_zero_point", draw_.Int(-50, 50)}, {"b_zero_point", draw_.Int(-50, 50)}};
    Scale(attributes, 1, 1);
    for (const char* key : {"multiplier", "shift"}) {
      const int64_t only = std::get<Ints>(attributes[key])[0];
      attributes[key] = only;
    }
    Clamp(attributes);
    return Add("QMul", {x, SameShape(x)}, std::move(attributes));
  }

  ValueId AveragePool(ValueId x) {
    const Shape shape = ShapeOf(x);
    Window window = DrawWindow(shape, false);
    if (draw_.Chance(0.4)) window = {shape[2], shape[3], {1, 1}, {0, 0, 0, 0}, {1, 1}};
    const int64_t count = window.kernel_h * window.kernel_w;
    ir::Attributes attributes = {{"kernel_shape", Ints{window.kernel_h, window.kernel_w}}, {"strides", window.strides}, {"pads", window.pads},
                                 {"dilations", window.dilations}, {"count_include_pad", int64_t{1}}, {"counts", Ints{count}}, {"x_zero_point", draw_.Int(-30, 30)}};
    Scale(attributes, 1, 1, 64.0 * static_cast<double>(count));
    Clamp(attributes);
    return Add("QAveragePool", {x}, std::move(attributes));
  }

  ValueId MaxPool(ValueId x) {
    const Window window = DrawWindow(ShapeOf(x), false);
    return Add("MaxPool", {x}, {{"kernel_shape", Ints{window.kernel_h, window.kernel_w}}, {"strides", window.strides}, {"pads", window.pads}});
  }

  ValueId Lookup(ValueId x) {
    return Add("QLut", {x}, {{"table", std::make_shared<const Tensor>(RandomI8({256}, -128, 127))}});
  }

  ValueId FullyConnected(ValueId x) {
    const Shape shape = ShapeOf(x);
    const int64_t terms = shape[1] * shape[2] * shape[3], outputs = draw_.Int(1, 40);
    const ValueId flat = Add("Flatten", {x}, {{"axis", int64_t{1}}});
    const ValueId w = graph_.AddConstant("w", RandomI8({terms, outputs}, -127, 127));
    ir::Attributes attributes = {{"a_zero_point", draw_.Int(-30, 30)}, {"b_zero_point", Ints{0}}};
    Scale(attributes, terms, draw_.Chance(0.5) ? 1 : outputs);
    Clamp(attributes);
    return Add("QMatMul", {flat, w}, std::move(attributes));
  }
};

class FloatBuilder : public Builder {
 public:
  using Builder::Builder;

  Graph Build() {
    const Shape shape = {1, draw_.OneOf<int64_t>({1, 3, 4, 8, 17}), draw_.Int(1, 14), draw_.Int(1, 14)};
    values_.push_back(graph_.AddInput("input", {ElementType::kFloat32, shape}));
    const int64_t layers = draw_.Int(2, 8);
    for (int64_t i = 0; i < layers; ++i) values_.push_back(Layer());
    ValueId last = values_.back();
    if (draw_.Chance(0.5)) last = Classifier(last);
    graph_.MarkOutput(last);
    graph_.Compact();
    return std::move(graph_);
  }

 private:
  ValueId Layer() {
    const ValueId x = Any();
    switch (draw_.Int(0, 9)) {
      case 0: case 1: return Conv(x, 1);
      case 2: return Conv(x, ShapeOf(x)[1]);
      case 3: return Add(draw_.OneOf<const char*>({"Relu", "Sigmoid", "Tanh"}), {x}, {});
      case 4: return Add(draw_.OneOf<const char*>({"Add", "Mul", "Sub"}), {x, SameShape(x)}, {});
      case 5: return Pool(x);
      case 6: return BatchNorm(x);
      case 7: return Add("Concat", {x, SameShape(x)}, {{"axis", int64_t{1}}});
      case 8: return Add("Transpose", {x}, {{"perm", Ints{0, 1, 3, 2}}});
      default: return Add("Softmax", {x}, {{"axis", draw_.Int(1, 3)}});
    }
  }

  ValueId Conv(ValueId x, int64_t group) {
    const Shape shape = ShapeOf(x);
    const Window window = DrawWindow(shape, true);
    const int64_t channels = group == 1 ? draw_.OneOf<int64_t>({1, 3, 8, 16, 33}) : group;
    const double terms = static_cast<double>(shape[1] / group * window.kernel_h * window.kernel_w);
    const ValueId w = graph_.AddConstant("w", RandomF32({channels, shape[1] / group, window.kernel_h, window.kernel_w}, 1.5 / std::sqrt(terms)));
    const ValueId bias = graph_.AddConstant("bias", RandomF32({channels}, 0.5));
    const ValueId y = Add("Conv", {x, w, bias}, {{"strides", window.strides}, {"pads", window.pads}, {"dilations", window.dilations},
                                               {"group", group}, {"kernel_shape", Ints{window.kernel_h, window.kernel_w}}});
    return draw_.Chance(0.6) ? Add("Relu", {y}, {}) : y;
  }

  ValueId Pool(ValueId x) {
    if (draw_.Chance(0.2)) return Add("GlobalAveragePool", {x}, {});
    const Window window = DrawWindow(ShapeOf(x), false);
    return Add(draw_.OneOf<const char*>({"MaxPool", "AveragePool"}), {x},
               {{"kernel_shape", Ints{window.kernel_h, window.kernel_w}}, {"strides", window.strides}, {"pads", window.pads}});
  }

  ValueId BatchNorm(ValueId x) {
    const int64_t channels = ShapeOf(x)[1];
    Tensor variance = RandomF32({channels}, 0.4);
    for (int64_t i = 0; i < channels; ++i) variance.set_double(i, 0.5 + std::abs(variance.at_double(i)));
    return Add("BatchNormalization", {x, graph_.AddConstant("scale", RandomF32({channels}, 1)), graph_.AddConstant("shift", RandomF32({channels}, 1)),
                                      graph_.AddConstant("mean", RandomF32({channels}, 0.5)), graph_.AddConstant("variance", std::move(variance))}, {});
  }

  ValueId Classifier(ValueId x) {
    const Shape shape = ShapeOf(x);
    const int64_t terms = shape[1] * shape[2] * shape[3], outputs = draw_.Int(1, 40);
    const ValueId flat = Add("Flatten", {x}, {{"axis", int64_t{1}}});
    const ValueId w = graph_.AddConstant("w", RandomF32({terms, outputs}, 1.5 / std::sqrt(static_cast<double>(terms))));
    const ValueId y = Add("Gemm", {flat, w}, {});
    return draw_.Chance(0.5) ? Add("Softmax", {y}, {{"axis", int64_t{1}}}) : y;
  }
};

}  // namespace

Graph RandomIntegerNetwork(uint64_t seed) { return IntegerBuilder(seed).Build(); }

Graph RandomFloatNetwork(uint64_t seed) { return FloatBuilder(seed).Build(); }

std::vector<Tensor> RandomInputs(const Graph& graph, uint64_t seed) {
  Draw draw(seed ^ 0x5bd1e995);
  std::vector<Tensor> inputs;
  for (ValueId id : graph.inputs()) {
    Tensor tensor(graph.type(id).element, graph.type(id).static_shape());
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set_double(i, 16 * draw.Real() - 8);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

hls::AcceleratorParams RandomParams(uint64_t seed) {
  Draw draw(seed + 77);
  hls::AcceleratorParams params;
  do {
    params.contraction_lanes = 4 * static_cast<int>(draw.Int(1, 8));
    params.output_lanes = draw.OneOf({4, 8, 16, 32});
    params.requantise_lanes = params.output_lanes >> draw.Int(0, 2);
    params.activation_bytes = 65536 << draw.Int(0, 1);
    params.weight_words = 512 << draw.Int(0, 2);
    params.parameter_blocks = draw.OneOf({32, 64, 128});
    params.axi_data_bits = draw.OneOf({32, 64, 128, 256});
    params.burst_beats = draw.OneOf({4, 8, 16, 32});
    params.outstanding_reads = draw.OneOf({1, 2, 4, 8});
    params.outstanding_writes = draw.OneOf({1, 2, 4});
    params.load_queue = draw.OneOf({2, 4, 8});
    params.compute_queue = draw.OneOf({2, 4, 8});
    params.store_queue = draw.OneOf({2, 4});
    params.depthwise = draw.Chance(0.8);
    params.pooling = draw.Chance(0.8);
    params.elementwise = draw.Chance(0.8);
    params.lookup = draw.Chance(0.8);
  } while (!hls::CheckParams(params).ok());
  return params;
}

}  // namespace heddle::testbench
