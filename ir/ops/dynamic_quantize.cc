// DynamicQuantizeLinear: 8-bit quantisation with parameters computed from the tensor itself.

#include <algorithm>
#include <cmath>

#include "ir/ops/all_ops.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

constexpr ElementType kF32 = ElementType::kFloat32;
constexpr ElementType kU8 = ElementType::kUint8;
constexpr ElementType kI64 = ElementType::kInt64;

class DynamicQuantizeLinear : public Op {
 public:
  std::string_view name() const override { return "DynamicQuantizeLinear"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x f32 of any shape. Outputs y u8, y_scale f32 and y_zero_point u8 (scalars): y_scale = (max(0, max x) - min(0, min "
           "x)) / 255 (1 where that is 0), y_zero_point = saturate(rint(-min / y_scale)), y = saturate(rint(x / y_scale) + "
           "y_zero_point). ONNX DynamicQuantizeLinear.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {}, 3));
    return CheckInputType(c, 0, kF32);
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(kU8, c.input_shape(0)), ValueType(kF32, Shape{}), ValueType(kU8, Shape{})};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext&, std::span<const Tensor* const> in) const override {
    float low = 0, high = 0;
    for (float x : in[0]->as<float>()) {
      low = std::min(low, x);
      high = std::max(high, x);
    }
    const float range = (high - low) / 255.0f;
    const float scale = range == 0 ? 1.0f : range;
    const int64_t zero = QuantiseValue(0.0f - low, scale, 0, kU8);
    Tensor y(kU8, in[0]->shape());
    for (int64_t i = 0; i < y.elements(); ++i) {
      y.set_int(i, QuantiseValue(in[0]->as<float>()[static_cast<size_t>(i)], scale, zero, kU8));
    }
    return std::vector<Tensor>{std::move(y), Tensor::Of<float>({}, {scale}), Tensor::Of<uint8_t>({}, {static_cast<uint8_t>(zero)})};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const Shape shape = c.input_shape(0);
    const loops::Buffer low = l.Temporary("low", kF32, {}), high = l.Temporary("high", kF32, {});
    // Outputs that nobody reads have no buffer of their own need; they are computed all the same.
    const loops::Buffer scale = l.num_outputs() > 1 ? l.output(1) : l.Temporary("scale", kF32, {});
    const loops::Buffer zero = l.num_outputs() > 2 ? l.output(2) : l.Temporary("zero", kU8, {});
    auto element = [&](const loops::Indices&, const loops::Indices& r) { return l.input(0).At(r); };
    const loops::Expr none = loops::Constant(kF32, 0.0);
    auto lesser = [](loops::Expr a, loops::Expr b) { return loops::Min(a, b); };
    auto greater = [](loops::Expr a, loops::Expr b) { return loops::Max(a, b); };
    l.Add(loops::ReduceCustom(low, shape, none, lesser, element));
    l.Add(loops::ReduceCustom(high, shape, none, greater, element));
    l.Add(loops::Compute(scale, [&](const loops::Indices&) {
      const loops::Expr range = (high() - low()) / 255.0f;
      return loops::Select(loops::Equal(range, none), loops::Constant(kF32, 1.0), range);
    }));
    auto quantised = [](const loops::Expr& ratio, const loops::Expr& offset) {
      const loops::Expr y = loops::Cast(kI64, loops::SaturatingCast(ElementType::kInt32, loops::Rint(ratio))) + offset;
      return loops::Cast(kU8, loops::Clamp(y, loops::IntConstant(kI64, 0), loops::IntConstant(kI64, 255)));
    };
    l.Add(loops::Compute(zero, [&](const loops::Indices&) { return quantised((none - low()) / scale(), loops::IntConstant(kI64, 0)); }));
    l.Add(loops::Compute(l.output(0), [&](const loops::Indices& i) {
      return quantised(l.input(0).At(i) / scale(), loops::Cast(kI64, zero()));
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    Graph graph("sample");
    Shape shape;
    for (int64_t d = RandomInt(random, 1, 3); d > 0; --d) shape.push_back(RandomInt(random, 1, 6));
    Tensor x(kF32, shape);
    const float low = static_cast<float>(RandomInt(random, -8, 0)), high = static_cast<float>(RandomInt(random, 0, 8));
    for (float& value : x.as<float>()) value = std::uniform_real_distribution<float>(low, high)(random);
    const ValueId input = graph.AddInput("x", ValueType(kF32, shape));
    const NodeId node = graph.AddNode("DynamicQuantizeLinear", "dynamic", {input}, {"y", "y_scale", "y_zero_point"});
    return FinishCase(std::move(graph), node, {std::move(x)});
  }
};

}  // namespace

void AddDynamicQuantize(OpList& ops) { ops.push_back(std::make_unique<DynamicQuantizeLinear>()); }

}  // namespace heddle::ir
