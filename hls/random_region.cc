// Random chains with branches: every operation that the engine takes, at sizes that do not divide by the lanes.

#include "hls/random_region.h"

#include <algorithm>
#include <memory>

#include "ir/check.h"
#include "ir/op.h"
#include "ir/ops/quant_common.h"

namespace heddle::hls {
namespace {

using ir::RandomInt;
using ir::ValueId;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), graph_("random_" + std::to_string(seed)) {}

  RandomRegion Make(int nodes) {
    AddInput({Int(0, 4) == 0 ? 2 : 1, Int(1, 40), Int(1, 14), Int(1, 14)});
    if (Coin()) AddInput(ShapeOf(values_[0]));
    for (int i = 0; i < nodes; ++i) AddAny();
    // Whatever nobody reads is an output.
    for (ValueId value : graph_.ValueIds()) {
      const bool unread = graph_.value(value).uses.empty() && graph_.ProducerOf(value) != ir::kNoNode;
      if (unread || (graph_.ProducerOf(value) != ir::kNoNode && Int(0, 9) == 0)) graph_.MarkOutput(value);
    }
    return {std::move(graph_), std::move(tensors_)};
  }

 private:
  int64_t Int(int64_t low, int64_t high) { return RandomInt(random_, low, high); }
  bool Coin() { return Int(0, 1) == 1; }
  ir::Shape ShapeOf(ValueId value) const { return graph_.type(value).static_shape(); }
  ValueId Pick() { return values_[static_cast<size_t>(Int(std::max<int64_t>(0, static_cast<int64_t>(values_.size()) - 3), static_cast<int64_t>(values_.size()) - 1))]; }
  int64_t Zero() { return Int(0, 2) == 0 ? 0 : Int(-128, 127); }

  void AddInput(const ir::Shape& shape) {
    values_.push_back(graph_.AddInput("x" + std::to_string(tensors_.size()), ir::ValueType(ir::ElementType::kInt8, shape)));
    tensors_.push_back(ir::RandomTensor(random_, ir::ElementType::kInt8, shape, -128, 127));
  }
  ValueId Constant(const ir::Shape& shape, ir::ElementType type, int64_t low, int64_t high) {
    return graph_.AddConstant("k", ir::RandomTensor(random_, type, shape, low, high));
  }
  ValueId Ints(const std::vector<int64_t>& values) {
    return graph_.AddConstant("i", ir::Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
  }
  ValueId Finish(const std::string& op, std::vector<ValueId> inputs, ir::Attributes attributes) {
    const ir::NodeId node = graph_.AddNode(op, op, std::move(inputs), {op + "_out"}, std::move(attributes));
    const absl::Status status = ir::InferNodeTypes(graph_, node);
    HEDDLE_CHECK(status.ok(), "random node: " + std::string(status.message()));
    values_.push_back(graph_.node(node).outputs[0]);
    return values_.back();
  }
  void Requantise(int64_t channels, int64_t magnitude, ir::Attributes& attributes, bool as_list = true, bool one_each = false) {
    ir::Requantiser r = ir::RandomRequantiser(random_, channels, magnitude);
    if (r.rounding == ir::Rounding::kDoublingHighMul) {
      for (ir::FixedPointScale& scale : r.scales) scale.shift = std::max(scale.shift, 31);
    }
    if (one_each) r.scales.resize(static_cast<size_t>(channels), r.scales[0]);
    ir::SetRequantiser(r, attributes, as_list);
  }

  void AddAny() {
    const ValueId x = Pick();
    if (ShapeOf(x).size() != 4) return AddElementwise(x);
    switch (Int(0, 12)) {
      case 0: case 1: case 2: return AddConv(x, false);
      case 3: case 4: return AddConv(x, true);
      case 5: return AddPool(x, true);
      case 6: return AddPool(x, false);
      case 7: return AddMatMul(x);
      case 8: return AddMovement(x);
      case 9: return AddActivationMatMul(x);
      default: return AddElementwise(x);
    }
  }

  void AddConv(ValueId x, bool depthwise) {
    const ir::Shape shape = ShapeOf(x);
    int64_t group = depthwise ? shape[1] : 1;
    if (!depthwise && Int(0, 3) == 0) {
      for (int64_t g : {2, 3, 4, 6, 8}) group = shape[1] % g == 0 && Coin() ? g : group;
    }
    const int64_t outputs = depthwise && Int(0, 3) != 0 ? shape[1] : group * Int(1, std::max<int64_t>(1, 48 / group));
    ir::Shape weights = {outputs, shape[1] / group};
    std::vector<int64_t> strides, dilations, begins, ends;
    for (int d = 0; d < 2; ++d) {
      const int64_t extent = shape[static_cast<size_t>(d) + 2], kernel = Coin() ? 3 : Int(1, 5);
      const int64_t dilation = Int(0, 4) == 0 ? 2 : 1, span = (kernel - 1) * dilation + 1;
      weights.push_back(kernel);
      dilations.push_back(dilation);
      strides.push_back(Int(0, 2) == 0 ? Int(1, 3) : 1);
      const int64_t missing = std::max<int64_t>(0, span - extent);
      begins.push_back((missing + 1) / 2 + (Coin() ? Int(0, span / 2) : 0));
      ends.push_back((missing + 1) / 2 + (Coin() ? Int(0, span / 2) : 0));
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    const int64_t products = ir::ElementCount(weights) / outputs;
    ir::Attributes attributes = {{"strides", strides}, {"pads", begins}, {"dilations", dilations}, {"group", group}, {"x_zero_point", Zero()}};
    std::vector<ValueId> inputs = {x, Constant(weights, ir::ElementType::kInt8, -128, 127)};
    if (Coin()) inputs.push_back(Constant({outputs}, ir::ElementType::kInt32, -100000, 100000));
    Requantise(outputs, 5000 * products, attributes);
    Finish("QConv", inputs, attributes);
  }

  void AddPool(ValueId x, bool max) {
    const ir::Shape shape = ShapeOf(x);
    std::vector<int64_t> kernel, strides, dilations, begins, ends;
    const bool global = Int(0, 3) == 0;
    for (int d = 0; d < 2; ++d) {
      const int64_t extent = shape[static_cast<size_t>(d) + 2];
      kernel.push_back(global ? extent : Int(1, std::min<int64_t>(4, extent)));
      dilations.push_back(1);
      strides.push_back(Int(1, 3));
      begins.push_back(global || Coin() ? 0 : Int(0, kernel.back() - 1));
      ends.push_back(global || Coin() ? 0 : Int(0, kernel.back() - 1));
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    ir::Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", begins}};
    if (max) {
      Finish("MaxPool", {x}, attributes);
      return;
    }
    const bool include = Coin();
    attributes["count_include_pad"] = int64_t{include};
    attributes["x_zero_point"] = Zero();
    std::vector<int64_t> counts = {1};
    for (size_t d = 0; d < 2; ++d) {
      const int64_t extent = shape[d + 2], before = begins[d], after = begins[d + 2];
      const int64_t outputs = (extent + before + after - kernel[d]) / strides[d] + 1;
      std::vector<int64_t> products;
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t start = o * strides[d] - before, end = start + kernel[d];
        const int64_t count = std::min(end, extent + (include ? after : 0)) - std::max(start, include ? -before : 0);
        for (int64_t other : counts) products.push_back(other * count);
      }
      std::sort(products.begin(), products.end());
      products.erase(std::unique(products.begin(), products.end()), products.end());
      counts = products;
    }
    attributes["counts"] = counts;
    Requantise(static_cast<int64_t>(counts.size()), 200 * kernel[0] * kernel[1], attributes, true, true);
    Finish("QAveragePool", {x}, attributes);
  }

  void AddMatMul(ValueId x) {
    const ir::Shape shape = ShapeOf(x);
    ValueId a = x;
    int64_t k = shape[1];
    if (Int(0, 2) == 0) {
      a = Finish("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
    } else {
      k = shape[1] * shape[2] * shape[3];
      a = Finish("Flatten", {x}, {{"axis", int64_t{1}}});
    }
    const int64_t n = Int(1, 40);
    ir::Attributes attributes = {{"a_zero_point", Zero()}};
    std::vector<ValueId> inputs = {a, Constant({k, n}, ir::ElementType::kInt8, -128, 127)};
    if (Coin()) inputs.push_back(Constant({n}, ir::ElementType::kInt32, -100000, 100000));
    Requantise(n, 5000 * k, attributes);
    Finish("QMatMul", inputs, attributes);
  }

  // x with itself or with another tensor of its shape, as matrices of pixels or of channels.
  void AddActivationMatMul(ValueId x) {
    ValueId other = x;
    for (ValueId value : values_) {
      if (ShapeOf(value) == ShapeOf(x) && Coin()) other = value;
    }
    const bool channels = Coin();  // contracted
    const std::vector<int64_t> rows = {0, 2, 3, 1}, columns = {0, 2, 1, 3};
    ValueId a = x, b = other;
    if (channels) {
      a = Finish("Transpose", {x}, {{"perm", rows}});
      b = Finish("Transpose", {other}, {{"perm", columns}});
    } else if (Coin()) {
      a = Finish("Transpose", {x}, {{"perm", columns}});
      b = Finish("Transpose", {other}, {{"perm", rows}});
    } else {
      b = Finish("Transpose", {other}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    }
    const int64_t k = ShapeOf(a).back(), n = ShapeOf(b).back();
    ir::Attributes attributes = {{"a_zero_point", Int(0, 3) == 0 ? -128 : Zero()}};
    std::vector<int64_t> zeros(Coin() ? 1 : static_cast<size_t>(n), 0);
    for (int64_t& zero : zeros) zero = Int(0, 5) == 0 ? -128 : Zero();
    attributes["b_zero_point"] = zeros;
    std::vector<ValueId> inputs = {a, b};
    if (Coin()) inputs.push_back(Constant({n}, ir::ElementType::kInt32, -100000, 100000));
    Requantise(n, 5000 * k, attributes);
    Finish("QMatMul", inputs, attributes);
  }

  void AddMovement(ValueId x) {
    const ir::Shape shape = ShapeOf(x);
    switch (Int(0, 3)) {
      case 0: {
        const std::vector<int64_t> pads = {0, 0, Int(0, 2), Int(0, 2), 0, 0, Int(0, 2), Int(0, 2)};
        Finish("Pad", {x, Ints(pads), Constant({}, ir::ElementType::kInt8, -128, 127)}, {{"mode", std::string("constant")}});
        return;
      }
      case 1: {
        const int64_t axis = Int(1, 3), extent = shape[static_cast<size_t>(axis)], start = Int(0, extent - 1);
        Finish("Slice", {x, Ints({start}), Ints({Int(start + 1, extent)}), Ints({axis})}, {});
        return;
      }
      default: {
        std::vector<ValueId> parts = {x};
        for (ValueId other : values_) {
          if (other != x && ShapeOf(other) == shape && parts.size() < 3) parts.push_back(other);
        }
        if (parts.size() == 1) parts.push_back(Lut(x));
        Finish("Concat", parts, {{"axis", Int(0, 3) == 0 ? Int(2, 3) : 1}});
      }
    }
  }

  ValueId Lut(ValueId x) {
    auto table = std::make_shared<const ir::Tensor>(ir::RandomTensor(random_, ir::ElementType::kInt8, {256}, -128, 127));
    return Finish("QLut", {x}, {{"table", table}});
  }

  void AddElementwise(ValueId x) {
    const ir::Shape shape = ShapeOf(x);
    if (Int(0, 3) == 0) {
      Lut(x);
      return;
    }
    ValueId other = ir::kNoValue;
    for (ValueId value : values_) {
      if (ShapeOf(value) == shape && (other == ir::kNoValue || Coin())) other = value;
    }
    if (Int(0, 3) == 0) {
      ir::Shape broadcast = shape;
      if (Coin() && shape.size() == 4) broadcast[2] = broadcast[3] = 1;
      other = Constant(broadcast, ir::ElementType::kInt8, -128, 127);
    }
    std::vector<ValueId> inputs = {x, other};
    if (Coin()) std::swap(inputs[0], inputs[1]);
    ir::Attributes attributes = {{"a_zero_point", Zero()}, {"b_zero_point", Zero()}};
    if (Int(0, 2) == 0) {
      Requantise(1, 16384, attributes, false);
      Finish("QMul", inputs, attributes);
      return;
    }
    attributes["a_multiplier"] = Int(0, (1 << 20) - 1);
    attributes["b_multiplier"] = Coin() ? Int(0, (1 << 20) - 1) : int64_t{1} << Int(0, 19);
    attributes["shift"] = Int(0, 3) == 0 ? Int(0, 40) : Int(17, 21);
    attributes["y_zero_point"] = Zero();
    attributes["clamp_low"] = Int(-128, -20);
    attributes["clamp_high"] = Int(20, 127);
    Finish("QAdd", inputs, attributes);
  }

  ir::Random random_;
  ir::Graph graph_;
  std::vector<ValueId> values_;
  std::vector<ir::Tensor> tensors_;
};

}  // namespace

RandomRegion MakeRandomRegion(uint64_t seed, int nodes) { return Generator(seed).Make(nodes); }

AcceleratorParams MakeRandomParams(uint64_t seed) {
  ir::Random random(seed * 7919 + 17);
  const auto pick = [&](std::initializer_list<int> values) { return *(values.begin() + RandomInt(random, 0, static_cast<int64_t>(values.size()) - 1)); };
  AcceleratorParams p;
  p.contraction_lanes = pick({4, 8, 12, 16, 16, 24, 32});
  p.output_lanes = pick({4, 8, 16, 16, 32});
  p.requantise_lanes = std::min(p.output_lanes, pick({1, 2, 4, 8, 16}));
  p.activation_bytes = pick({4096, 12288, 32768, 65536, 131072});
  p.weight_words = pick({40, 130, 512, 2048});
  p.parameter_blocks = pick({4, 16, 64});
  p.axi_data_bits = pick({32, 64, 64, 128, 256});
  p.burst_beats = pick({4, 16});
  p.lookup_tables = pick({1, 2, 4});
  p.depthwise = pick({0, 1, 1, 1}) == 1;
  const absl::Status status = CheckParams(p);
  HEDDLE_CHECK(status.ok(), "random parameters: " + std::string(status.message()));
  return p;
}

}  // namespace heddle::hls
