// Ops that convert element types or make tensors from shapes and scalars: Cast, Shape, ConstantOfShape, Range.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

// ONNX TensorProto.DataType numbers of the types that Heddle has.
struct Code {
  int64_t code;
  ElementType type;
};
constexpr Code kCodes[] = {{1, ElementType::kFloat32}, {2, ElementType::kUint8},  {3, ElementType::kInt8},   {4, ElementType::kUint16},
                           {5, ElementType::kInt16},   {6, ElementType::kInt32},  {7, ElementType::kInt64},  {9, ElementType::kBool},
                           {11, ElementType::kFloat64}, {12, ElementType::kUint32}, {13, ElementType::kUint64}};

// Integers wrap, floats to integers truncate and saturate (a NaN gives 0), anything to bool is "not zero".
template <typename To, typename From>
To Converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return To{0};
    const auto low = static_cast<double>(std::numeric_limits<To>::lowest());
    const auto high = std::ldexp(1.0, std::numeric_limits<To>::digits);  // the first value too large
    const double whole = std::trunc(static_cast<double>(value));
    if (whole < low) return std::numeric_limits<To>::lowest();
    return whole >= high ? std::numeric_limits<To>::max() : static_cast<To>(whole);
  } else {
    return static_cast<To>(value);
  }
}

class CastOp : public Op {
 public:
  std::string_view name() const override { return "Cast"; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.output_type().element) ? OpKind::kFloat : OpKind::kInteger;
  }
  std::string_view doc() const override {
    return "input of any type. Attribute to: an ONNX type number (1 f32, 2 u8, 3 i8, 4 u16, 5 i16, 6 i32, 7 i64, 9 bool, 11 f64, 12 u32, "
           "13 u64). Integers wrap; floats truncate towards zero and saturate; bool is 'not zero'. ONNX Cast 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"to", AttributeKind::kInt, true}}));
    for (const Code& code : kCodes) {
      if (code.code == c.node().Int("to")) return absl::OkStatus();
    }
    return NodeError("E-OP-004", c.node(), fmt::format("type number {} is not supported", c.node().Int("to")));
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const auto* code = std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Code& k) { return k.code == c.node().Int("to"); });
    return std::vector<ValueType>{ValueType(code->type, c.input_shape(0))};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    Tensor y(c.output_type().element, c.output_shape());
    DispatchElement(in[0]->type(), [&]<typename From>(Tag<From>) {
      DispatchElement(y.type(), [&]<typename To>(Tag<To>) {
        const auto x = in[0]->as<From>();
        const auto out = y.as<To>();
        for (size_t i = 0; i < x.size(); ++i) out[i] = Converted<To>(x[i]);
      });
    });
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    const ElementType to = l.output().type();
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      const Expr x = l.input(0).At(i);
      return IsFloat(x.type()) && IsInteger(to) ? loops::SaturatingCast(to, x) : loops::Cast(to, x);
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const int64_t to = kCodes[b.Int(0, std::size(kCodes) - 1)].code;
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), b.RandomShape(0, 4), -400, 400))}, {{"to", to}});
  }
};

class ShapeOp : public Op {
 public:
  std::string_view name() const override { return "Shape"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "data of any type. Attributes start (0), end (rank). The extents of dimensions start up to end, i64. ONNX Shape 15.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    return VerifySignature(c, 1, 1, {{"start", AttributeKind::kInt}, {"end", AttributeKind::kInt}});
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(ElementType::kInt64, Shape{static_cast<int64_t>(Extents(c).size())})};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const>) const override {
    const Shape extents = Extents(c);
    return std::vector<Tensor>{Tensor::Of<int64_t>({static_cast<int64_t>(extents.size())}, extents)};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const Shape extents = Extents(c);
    if (extents.empty()) return Op::Lower(c, l);
    const loops::Buffer table = l.Table("shape", Tensor::Of<int64_t>(l.output().shape(), extents));
    l.Add(loops::Compute(l.output(), [&](const Indices& i) { return table.At(i); }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    Attributes attributes;
    if (b.Coin()) attributes["start"] = b.Int(-3, 3);
    if (b.Coin()) attributes["end"] = b.Int(-3, 3);
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), b.RandomShape(0, 4)))}, attributes);
  }

 private:
  static Shape Extents(const NodeContext& c) {
    const Shape shape = c.input_shape(0);
    const auto rank = static_cast<int64_t>(shape.size());
    auto place = [&](int64_t p) { return std::clamp(p < 0 ? std::max(p, -rank) + rank : p, int64_t{0}, rank); };
    const int64_t start = place(c.node().Int("start", 0)), end = place(c.node().Int("end", rank));
    return start < end ? Shape(shape.begin() + start, shape.begin() + end) : Shape();
  }
};

class ConstantOfShape : public Op {
 public:
  std::string_view name() const override { return "ConstantOfShape"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "input: a shape, constant i64 list. Attribute value: a tensor of one element (default f32 0). A tensor of that shape filled "
           "with it. ONNX ConstantOfShape 9.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"value", AttributeKind::kTensor}}));
    if (Value(c).elements() == 1) return absl::OkStatus();
    return NodeError("E-OP-004", c.node(), "attribute 'value' must have one element");
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ConstantInts(c, 0, "shape"));
    HEDDLE_ASSIGN_OR_RETURN(const int64_t count, CheckedElementCount(shape));
    (void)count;
    return std::vector<ValueType>{ValueType(Value(c).type(), shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const>) const override {
    const Tensor value = Value(c);
    return std::vector<Tensor>{BroadcastTo(value.Reshaped({}), c.output_shape())};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const Tensor value = Value(c);
    l.Add(loops::Compute(l.output(), [&](const Indices&) {
      return IsFloat(value.type()) ? loops::FloatConstant(value.type(), value.at_double(0))
                                   : loops::IntConstant(value.type(), value.at_int(0));
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    Attributes attributes;
    if (b.Coin()) attributes["value"] = std::make_shared<const Tensor>(b.RandomTensor(b.AnyType(), {1}));
    return b.Finish(name(), {b.IntsConstant(b.RandomShape(0, 4))}, attributes);
  }

 private:
  static Tensor Value(const NodeContext& c) {
    const auto value = c.node().TensorAttribute("value");
    return value ? *value : Tensor(ElementType::kFloat32, {1});
  }
};

class Range : public Op {
 public:
  std::string_view name() const override { return "Range"; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }
  std::string_view doc() const override {
    return "start, limit, delta: constant scalars of one number type. start + i·delta for i from 0 while below limit (above it for a "
           "negative delta). ONNX Range 11.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 3, 3));
    HEDDLE_RETURN_IF_ERROR(ExpectNumber(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    for (int i = 0; i < 3; ++i) {
      if (!c.constant(i)) {
        return NodeError("E-OP-005", c.node(), fmt::format("input {} must be a constant", i), "export the model with fixed shapes");
      }
      if (c.constant(i)->elements() != 1) return NodeError("E-OP-003", c.node(), fmt::format("input {} must be a scalar", i));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const double start = c.constant(0)->at_double(0), limit = c.constant(1)->at_double(0), delta = c.constant(2)->at_double(0);
    const double count = std::ceil((limit - start) / delta);
    if (delta == 0 || !(count <= static_cast<double>(kLargestIndex))) {
      return NodeError("E-OP-004", c.node(), fmt::format("no range from {} to {} in steps of {}", start, limit, delta));
    }
    return std::vector<ValueType>{ValueType(c.input_type(0).element, Shape{static_cast<int64_t>(std::max(count, 0.0))})};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    Tensor y(in[0]->type(), c.output_shape());
    for (int64_t i = 0; i < y.elements(); ++i) {
      if (IsFloat(y.type())) {
        y.set_double(i, in[0]->at_double(0) + static_cast<double>(i) * in[2]->at_double(0));
      } else {
        y.set_int(i, static_cast<int64_t>(static_cast<uint64_t>(in[0]->at_int(0)) +
                                          static_cast<uint64_t>(i) * static_cast<uint64_t>(in[2]->at_int(0))));
      }
    }
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const ElementType type = l.output().type();
    auto scalar = [&](int input) {
      const Tensor& t = *c.constant(input);
      return IsFloat(type) ? loops::FloatConstant(type, t.at_double(0)) : loops::IntConstant(type, t.at_int(0));
    };
    l.Add(loops::Compute(l.output(), [&](const Indices& i) { return scalar(0) + loops::Cast(type, i[0]) * scalar(2); }));
    return absl::OkStatus();
  }
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    if (!IsFloat(in[0]->type())) return 0;
    const double largest = std::max(std::abs(in[0]->at_double(0)), std::abs(in[1]->at_double(0)) + std::abs(in[2]->at_double(0)));
    return 4 * UnitRoundoff(c.output_type().element) * largest;
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.NumberType();
    const bool up = b.Coin() || type == ElementType::kUint8 || type == ElementType::kUint16 || type == ElementType::kUint32 ||
                    type == ElementType::kUint64;
    const Tensor start = b.RandomTensor(type, {}, up ? 0 : 20, up ? 5 : 30), limit = b.RandomTensor(type, {}, up ? 20 : 0, up ? 30 : 5),
                 delta = b.RandomTensor(type, {}, up ? 1 : -4, up ? 4 : -1);
    return b.Finish(name(), {b.Constant(start), b.Constant(limit), b.Constant(delta)});
  }
};

}  // namespace

void AddGenerate(OpList& ops) {
  ops.push_back(std::make_unique<CastOp>());
  ops.push_back(std::make_unique<ShapeOp>());
  ops.push_back(std::make_unique<ConstantOfShape>());
  ops.push_back(std::make_unique<Range>());
}

}  // namespace heddle::ir
