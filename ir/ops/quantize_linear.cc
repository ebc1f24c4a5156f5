// QuantizeLinear and DequantizeLinear: where floats become integers and back. Exact by IEEE float32 arithmetic: one
// division and one rounding, or one multiplication.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/all_ops.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

bool IsQuantisedType(ElementType type) {
  return type == ElementType::kInt8 || type == ElementType::kUint8 || type == ElementType::kInt16 || type == ElementType::kUint16;
}

// Index of the axis that per-axis scales run along; the number of elements inside one step of it.
struct ScaleLayout {
  int64_t axis = 0;
  int64_t inner = 1;
  int64_t count = 1;  // 1: per tensor
  int64_t IndexOf(int64_t element) const { return count == 1 ? 0 : element / inner % count; }
};

ScaleLayout LayoutOf(const NodeContext& c) {
  ScaleLayout layout;
  layout.count = c.input_type(1).elements();
  if (layout.count == 1) return layout;
  const Shape x = c.input_shape(0);
  const auto rank = static_cast<int64_t>(x.size());
  layout.axis = c.node().Int("axis", 1);
  if (layout.axis < 0) layout.axis += rank;
  layout.inner = ElementCount(Shape(x.begin() + layout.axis + 1, x.end()));
  return layout;
}

// Scale or zero point of the element at index i.
loops::Expr ParameterRead(const loops::Buffer& parameter, const ScaleLayout& layout, const loops::Indices& i) {
  if (layout.count > 1) return parameter(i[static_cast<size_t>(layout.axis)]);
  return parameter.At(loops::Indices(static_cast<size_t>(parameter.rank()), loops::Expr(0)));
}

absl::Status VerifyScale(const NodeContext& c) {
  const Node& node = c.node();
  HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 2, 3));
  HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 1, ElementType::kFloat32));
  const Shape scale = c.input_shape(1), x = c.input_shape(0);
  const auto rank = static_cast<int64_t>(x.size());
  if (c.has_input(2) && c.input_type(2).elements() != ElementCount(scale)) {
    return NodeError("E-OP-202", node, "scale and zero point have different shapes");
  }
  HEDDLE_RETURN_IF_ERROR(CheckAttribute<int64_t>(node, "axis", false));
  if (ElementCount(scale) == 1 && scale.size() <= 1) return absl::OkStatus();
  HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "axis", -rank, rank - 1));
  const int64_t axis = (node.Int("axis", 1) + rank) % std::max<int64_t>(rank, 1);
  if (rank == 0 || scale.size() != 1 || node.Int("axis", 1) >= rank || scale[0] != x[static_cast<size_t>(axis)]) {
    return NodeError("E-OP-202", node, fmt::format("scale {} is neither one value nor one for each index of axis {} of {}",
                                                   ShapeText(scale), axis, ShapeText(x)),
                     "blocked quantisation is not supported");
  }
  return absl::OkStatus();
}

class QuantizeLinear : public Op {
 public:
  std::string_view name() const override { return "QuantizeLinear"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x f32 or i32, scale f32 (one value, or [D] along the attribute axis, default 1), optional zero point of the "
           "output's type (i8, u8, i16, u16; default u8 0). y = saturate(rint(x / scale) + zero_point), float32 division, "
           "ties to even; NaN becomes the zero point. ONNX QuantizeLinear 13.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifyScale(c));
    const ElementType x = c.input_type(0).element;
    if (x != ElementType::kFloat32 && x != ElementType::kInt32) {
      return NodeError("E-OP-201", c.node(), "x must be f32 or i32, found " + TypeText(c.input_type(0)));
    }
    if (c.has_input(2) && !IsQuantisedType(c.input_type(2).element)) {
      return NodeError("E-OP-201", c.node(), "the zero point must be i8, u8, i16 or u16, found " + TypeText(c.input_type(2)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    ValueType type(c.has_input(2) ? c.input_type(2).element : ElementType::kUint8, c.input_shape(0));
    type.quantisation = ConstantQuantisation(c);
    return std::vector<ValueType>{type};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const ScaleLayout layout = LayoutOf(c);
    const auto scale = in[1]->as<float>();
    Tensor y(c.output_type().element, in[0]->shape());
    for (int64_t i = 0; i < y.elements(); ++i) {
      const int64_t s = layout.IndexOf(i);
      const int64_t zero = in.size() > 2 && in[2] ? in[2]->at_int(s) : 0;
      y.set_int(i, QuantiseValue(static_cast<float>(in[0]->at_double(i)), scale[static_cast<size_t>(s)], zero, y.type()));
    }
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const ElementType type = c.output_type().element;
    constexpr ElementType kI64 = ElementType::kInt64;
    const auto [low, high] = IntegerRange(type);
    const ScaleLayout layout = LayoutOf(c);
    l.Add(loops::Compute(l.output(), [&, low = low, high = high](const loops::Indices& i) {
      const loops::Expr ratio = loops::Cast(ElementType::kFloat32, l.input(0).At(i)) / ParameterRead(l.input(1), layout, i);
      // Saturating at 32 bits first changes nothing: the sum with the zero point saturates at 16 at most.
      loops::Expr y = loops::Cast(kI64, loops::SaturatingCast(ElementType::kInt32, loops::Rint(ratio)));
      if (l.has_input(2)) y = y + loops::Cast(kI64, ParameterRead(l.input(2), layout, i));
      return loops::Cast(type, loops::Clamp(y, loops::IntConstant(kI64, low), loops::IntConstant(kI64, high)));
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override;
};

class DequantizeLinear : public Op {
 public:
  std::string_view name() const override { return "DequantizeLinear"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x i8, u8, i16, u16 or i32, scale f32 (one value, or [D] along the attribute axis, default 1), optional zero point "
           "of x's type. y f32 = (x - zero_point) * scale, one float32 multiplication. ONNX DequantizeLinear 13.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifyScale(c));
    const ElementType x = c.input_type(0).element;
    if (!IsQuantisedType(x) && x != ElementType::kInt32) {
      return NodeError("E-OP-201", c.node(), "x must be i8, u8, i16, u16 or i32, found " + TypeText(c.input_type(0)));
    }
    return CheckInputType(c, 2, x);
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(ElementType::kFloat32, c.input_shape(0))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const ScaleLayout layout = LayoutOf(c);
    const auto scale = in[1]->as<float>();
    Tensor y(ElementType::kFloat32, in[0]->shape());
    auto out = y.as<float>();
    for (int64_t i = 0; i < y.elements(); ++i) {
      const int64_t s = layout.IndexOf(i);
      const int64_t zero = in.size() > 2 && in[2] ? in[2]->at_int(s) : 0;
      out[static_cast<size_t>(i)] = static_cast<float>(in[0]->at_int(i) - zero) * scale[static_cast<size_t>(s)];
    }
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const ScaleLayout layout = LayoutOf(c);
    // 16-bit differences fit 32 bits; an i32 with a zero point may need one bit more.
    const ElementType wide = c.input_type(0).element == ElementType::kInt32 ? ElementType::kInt64 : ElementType::kInt32;
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      loops::Expr x = loops::Cast(wide, l.input(0).At(i));
      if (l.has_input(2)) x = x - loops::Cast(wide, ParameterRead(l.input(2), layout, i));
      return loops::Cast(ElementType::kFloat32, x) * ParameterRead(l.input(1), layout, i);
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override;
};

// x of `type`, scale and perhaps zero point, appended to graph and inputs.
NodeId SampleNode(Random& random, Graph& graph, std::vector<Tensor>& tensors, const char* op, Tensor x, ElementType zero_type) {
  const Shape shape = x.shape();
  std::vector<ValueId> inputs = {graph.AddInput("x", ValueType(x.type(), shape))};
  tensors.push_back(std::move(x));
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = RandomInt(random, -rank, rank - 1);
  Attributes attributes;
  Shape scale_shape;
  if (RandomInt(random, 0, 1)) {
    scale_shape = {shape[static_cast<size_t>((axis + rank) % rank)]};
    attributes["axis"] = axis;
  }
  Tensor scale(ElementType::kFloat32, scale_shape);
  for (float& s : scale.as<float>()) {
    // Powers of two make exact ties.
    s = RandomInt(random, 0, 1) ? std::ldexp(1.0f, static_cast<int>(RandomInt(random, -6, 1)))
                                : std::uniform_real_distribution<float>(0.003f, 0.3f)(random);
  }
  inputs.push_back(graph.AddConstant("scale", std::move(scale)));
  const bool wide = zero_type == ElementType::kInt32;
  if (zero_type != ElementType::kUint8 || RandomInt(random, 0, 1)) {
    const bool is_signed = zero_type == ElementType::kInt8 || zero_type == ElementType::kInt16;
    inputs.push_back(graph.AddConstant("zero", wide ? Tensor(zero_type, scale_shape)
                                                    : RandomTensor(random, zero_type, scale_shape, is_signed ? -128 : 0,
                                                                   is_signed ? 127 : 255)));
  }
  return graph.AddNode(op, "sample", inputs, {"y"}, attributes);
}

Shape SampleShape(Random& random) {
  Shape shape;
  for (int64_t d = RandomInt(random, 1, 4); d > 0; --d) shape.push_back(RandomInt(random, 1, 6));
  return shape;
}

std::optional<RandomCase> QuantizeLinear::Sample(Random& random) const {
  static constexpr ElementType kTypes[] = {ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kUint16};
  Graph graph("sample");
  std::vector<Tensor> tensors;
  Tensor x(ElementType::kFloat32, SampleShape(random));
  for (float& value : x.as<float>()) {
    value = RandomInt(random, 0, 9) == 0 ? std::ldexp(RandomInt(random, 0, 1) ? 1.0f : -1.0f, 100)
                                         : static_cast<float>(RandomInt(random, -1000, 1000)) / 64.0f;
  }
  const NodeId node = SampleNode(random, graph, tensors, "QuantizeLinear", std::move(x), kTypes[RandomInt(random, 0, 3)]);
  return FinishCase(std::move(graph), node, std::move(tensors));
}

std::optional<RandomCase> DequantizeLinear::Sample(Random& random) const {
  static constexpr ElementType kTypes[] = {ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kUint16,
                                           ElementType::kInt32};
  static constexpr int64_t kLow[] = {-128, 0, -32768, 0, -2000000}, kHigh[] = {127, 255, 32767, 65535, 2000000};
  Graph graph("sample");
  std::vector<Tensor> tensors;
  const int64_t which = RandomInt(random, 0, 4);
  Tensor x = RandomTensor(random, kTypes[which], SampleShape(random), kLow[which], kHigh[which]);
  const NodeId node = SampleNode(random, graph, tensors, "DequantizeLinear", std::move(x), kTypes[which]);
  return FinishCase(std::move(graph), node, std::move(tensors));
}

}  // namespace

std::pair<int64_t, int64_t> IntegerRange(ElementType type) {
  switch (type) {
    case ElementType::kInt8: return {-128, 127};
    case ElementType::kUint8: return {0, 255};
    case ElementType::kInt16: return {-32768, 32767};
    case ElementType::kUint16: return {0, 65535};
    default: return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

int64_t QuantiseValue(float x, float scale, int64_t zero_point, ElementType type) {
  const auto [low, high] = IntegerRange(type);
  const float ratio = x / scale;
  if (std::isnan(ratio)) return std::clamp(zero_point, low, high);
  // Far outside every type's range the sum saturates anyway; the clamp keeps the conversion defined.
  const double rounded = std::nearbyint(std::clamp(static_cast<double>(ratio), -1e9, 1e9));
  return std::clamp(static_cast<int64_t>(rounded) + zero_point, low, high);
}

std::optional<Quantisation> ConstantQuantisation(const NodeContext& c) {
  const Tensor* scale = c.constant(1);
  const Tensor* zero = c.constant(2);
  if (!scale || (c.has_input(2) && !zero)) return std::nullopt;
  Quantisation q;
  for (int64_t i = 0; i < scale->elements(); ++i) {
    q.scale.push_back(scale->as<float>()[static_cast<size_t>(i)]);
    q.zero_point.push_back(zero ? zero->at_int(i) : 0);
  }
  if (q.scale.size() != 1) q.axis = static_cast<int>(LayoutOf(c).axis);
  return q;
}

void AddQuantizeLinear(OpList& ops) {
  ops.push_back(std::make_unique<QuantizeLinear>());
  ops.push_back(std::make_unique<DequantizeLinear>());
}

}  // namespace heddle::ir
