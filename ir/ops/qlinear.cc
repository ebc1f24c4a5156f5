// ONNX's own integer operators: QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger. legalise_quantisation rewrites the
// first two to QConv and QMatMul; the others give 32-bit sums. Requantisation here is by float32 scales as in ONNX Runtime:
// y = saturate(rint(sum * (x_scale * w_scale / y_scale)) + y_zero_point).

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/integer_kernels.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

bool IsByte(const NodeContext& c, int input) {
  const ElementType type = c.input_type(input).element;
  return type == ElementType::kInt8 || type == ElementType::kUint8;
}

// Input i must be i8 or u8; zero point input z, where present, of its type with one element or `channels` elements.
absl::Status VerifyOperand(const NodeContext& c, int i, int z, int64_t channels) {
  if (!IsByte(c, i)) return NodeError("E-OP-201", c.node(), fmt::format("input {} must be i8 or u8", i));
  if (!c.has_input(z)) return absl::OkStatus();
  HEDDLE_RETURN_IF_ERROR(CheckInputType(c, z, c.input_type(i).element));
  const int64_t count = c.input_type(z).elements();
  if (count == 1 || count == channels) return absl::OkStatus();
  return NodeError("E-OP-202", c.node(), fmt::format("zero point input {} has {} elements", z, count));
}

absl::Status VerifyScaleInput(const NodeContext& c, int i, int64_t channels) {
  HEDDLE_RETURN_IF_ERROR(CheckInputType(c, i, ElementType::kFloat32));
  const int64_t count = c.input_type(i).elements();
  if (count == 1 || count == channels) return absl::OkStatus();
  return NodeError("E-OP-202", c.node(), fmt::format("scale input {} has {} elements", i, count));
}

std::vector<int64_t> Zeros(const Tensor* zero) {
  if (!zero) return {0};
  std::vector<int64_t> result;
  for (int64_t i = 0; i < zero->elements(); ++i) result.push_back(zero->at_int(i));
  return result;
}

absl::StatusOr<Window> WindowOfConv(const NodeContext& c, int x, int w) {
  const Node& node = c.node();
  const Shape xs = c.input_shape(x), ws = c.input_shape(w);
  if (xs.size() < 3 || ws.size() != xs.size()) return NodeError("E-OP-202", node, "x and w need one rank, 3 to 5");
  HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "group", 1, int64_t{1} << 30));
  HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::string>(node, "auto_pad", false));
  if (node.String("auto_pad", "NOTSET") != "NOTSET") {
    return NodeError("E-OP-204", node, "auto_pad is not supported here", "export the model with explicit pads");
  }
  const int64_t group = node.Int("group", 1);
  if (ws[0] < 1 || xs[1] % group != 0 || ws[0] % group != 0 || ws[1] != xs[1] / group) {
    return NodeError("E-OP-202", node, fmt::format("x {}, w {} and group {} do not fit", ShapeText(xs), ShapeText(ws), group));
  }
  return CheckedWindowOf(c, Shape(xs.begin() + 2, xs.end()), Shape(ws.begin() + 2, ws.end()));
}

Shape ConvOutput(const NodeContext& c, const Window& window, int x, int w) {
  Shape shape = {c.input_shape(x)[0], c.input_shape(w)[0]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  return shape;
}

// sums to the output's type; scale factor of channel i at scales[i].
Tensor RequantiseFloat(const Tensor& sums, const Tensor& x_scale, const Tensor& w_scale, const Tensor& y_scale, int64_t y_zero,
                       ElementType type, int64_t inner) {
  const int64_t channels = w_scale.elements();
  std::vector<float> factors;
  for (int64_t i = 0; i < channels; ++i) {
    factors.push_back(x_scale.as<float>()[0] * w_scale.as<float>()[static_cast<size_t>(i)] / y_scale.as<float>()[0]);
  }
  Tensor y(type, sums.shape());
  for (int64_t i = 0; i < y.elements(); ++i) {
    const float factor = factors[channels == 1 ? 0 : static_cast<size_t>(i / inner % channels)];
    y.set_int(i, QuantiseValue(static_cast<float>(sums.at_int(i)) * factor, 1.0f, y_zero, type));
  }
  return y;
}

class QLinearConv : public Op {
 public:
  std::string_view name() const override { return "QLinearConv"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, optional bias i32 [M]; attributes of "
           "Conv with explicit pads. Sums exactly in integers, then y = saturate(rint(sum * float32(x_scale w_scale / "
           "y_scale)) + y_zero_point). ONNX QLinearConv.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 8, 9));
    HEDDLE_ASSIGN_OR_RETURN(const Window window, WindowOfConv(c, 0, 3));
    (void)window;
    const int64_t outputs = c.input_shape(3)[0];
    HEDDLE_RETURN_IF_ERROR(VerifyOperand(c, 0, 2, 1));
    HEDDLE_RETURN_IF_ERROR(VerifyOperand(c, 3, 5, outputs));
    HEDDLE_RETURN_IF_ERROR(VerifyScaleInput(c, 1, 1));
    HEDDLE_RETURN_IF_ERROR(VerifyScaleInput(c, 4, outputs));
    HEDDLE_RETURN_IF_ERROR(VerifyScaleInput(c, 6, 1));
    if (!IsByte(c, 7) || c.input_type(7).elements() != 1) return NodeError("E-OP-201", c.node(), "y_zero_point must be one i8 or u8");
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 8, ElementType::kInt32));
    if (c.has_input(8) && c.input_shape(8) != Shape{outputs}) return NodeError("E-OP-202", c.node(), "bias must have shape [M]");
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, WindowOfConv(c, 0, 3));
    return std::vector<ValueType>{ValueType(c.input_type(7).element, ConvOutput(c, window, 0, 3))};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, WindowOfConv(c, 0, 3));
    const Tensor sums = IntegerConvolution(window, *in[0], *in[3], in[2]->at_int(0), Zeros(in[5]), c.node().Int("group", 1),
                                           in.size() > 8 ? in[8] : nullptr);
    return std::vector<Tensor>{RequantiseFloat(sums, *in[1], *in[4], *in[6], in[7]->at_int(0), in[7]->type(),
                                               ElementCount(window.output))};
  }
  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * (c.input_type(3).elements() / c.input_shape(3)[0]);
    return work;
  }
};

absl::StatusOr<MatrixProduct> ProductOf(const NodeContext& c, int a, int b) {
  const auto product = MatrixProductOf(c.input_shape(a), c.input_shape(b));
  if (product) return *product;
  return NodeError("E-OP-202", c.node(), fmt::format("shapes {} and {} have no matrix product of rank 2 or more",
                                                     ShapeText(c.input_shape(a)), ShapeText(c.input_shape(b))));
}

class QLinearMatMul : public Op {
 public:
  std::string_view name() const override { return "QLinearMatMul"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "a […, M, K], a_scale, a_zero_point, b […, K, N], b_scale, b_zero_point, y_scale, y_zero_point; scale and zero point "
           "of b are one value or [N]. y = saturate(rint(sum * float32(a_scale b_scale / y_scale)) + y_zero_point). ONNX "
           "QLinearMatMul.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 8, 8));
    HEDDLE_ASSIGN_OR_RETURN(const MatrixProduct p, ProductOf(c, 0, 3));
    HEDDLE_RETURN_IF_ERROR(VerifyOperand(c, 0, 2, 1));
    HEDDLE_RETURN_IF_ERROR(VerifyOperand(c, 3, 5, p.n));
    HEDDLE_RETURN_IF_ERROR(VerifyScaleInput(c, 1, 1));
    HEDDLE_RETURN_IF_ERROR(VerifyScaleInput(c, 4, p.n));
    HEDDLE_RETURN_IF_ERROR(VerifyScaleInput(c, 6, 1));
    if (!IsByte(c, 7) || c.input_type(7).elements() != 1) return NodeError("E-OP-201", c.node(), "y_zero_point must be one i8 or u8");
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const MatrixProduct p, ProductOf(c, 0, 3));
    return std::vector<ValueType>{ValueType(c.input_type(7).element, p.output())};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext&, std::span<const Tensor* const> in) const override {
    const Tensor sums = IntegerMatrixProduct(*in[0], *in[3], in[2]->at_int(0), Zeros(in[5]), nullptr);
    return std::vector<Tensor>{RequantiseFloat(sums, *in[1], *in[4], *in[6], in[7]->at_int(0), in[7]->type(), 1)};
  }
  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * c.input_shape(0).back();
    return work;
  }
};

// The element less its zero point, where the node has that input: zero points may be computed by the model.
ChannelValue CentredByInput(loops::OpLowering& l, int input) {
  return [&l, input](const loops::Expr& element, const loops::Expr& channel) {
    const loops::Expr wide = loops::Cast(ElementType::kInt32, element);
    if (!l.has_input(input)) return wide;
    const loops::Buffer zero = l.input(input);
    loops::Indices at(static_cast<size_t>(zero.rank()), loops::Expr(0));
    if (zero->elements() > 1) at.back() = channel;
    return wide - loops::Cast(ElementType::kInt32, zero.At(at));
  };
}

// A sampled node on i8 or u8 operands, with or without zero points.
RandomCase SampleIntegerNode(Random& random, const char* op, const Shape& x_shape, const Shape& w_shape, int64_t channels,
                             Attributes attributes) {
  Graph graph("sample");
  std::vector<ValueId> inputs;
  std::vector<Tensor> tensors;
  std::vector<ElementType> types;
  for (const Shape& shape : {x_shape, w_shape}) {
    types.push_back(RandomInt(random, 0, 1) ? ElementType::kInt8 : ElementType::kUint8);
    const auto [low, high] = IntegerRange(types.back());
    tensors.push_back(RandomTensor(random, types.back(), shape, low, high));
    inputs.push_back(graph.AddInput(shape == x_shape ? "x" : "w", ValueType(types.back(), shape)));
  }
  for (size_t i = 0; i < 2; ++i) {
    if (RandomInt(random, 0, 2) == 0) {
      inputs.push_back(kNoValue);
      continue;
    }
    const auto [low, high] = IntegerRange(types[i]);
    const Shape shape = i == 1 && RandomInt(random, 0, 1) ? Shape{channels} : Shape{};
    inputs.push_back(graph.AddConstant("zero", RandomTensor(random, types[i], shape, low, high)));
  }
  const NodeId node = graph.AddNode(op, "integer", inputs, {"y"}, std::move(attributes));
  return FinishCase(std::move(graph), node, std::move(tensors));
}

class ConvInteger : public Op {
 public:
  std::string_view name() const override { return "ConvInteger"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x, w (i8 or u8), optional x_zero_point (one value) and w_zero_point (one value or [M]); attributes of Conv with "
           "explicit pads. y i32 = sum (x - x_zero_point)(w - w_zero_point), modulo 2^32. ONNX ConvInteger.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 2, 4));
    HEDDLE_ASSIGN_OR_RETURN(const Window window, WindowOfConv(c, 0, 1));
    (void)window;
    HEDDLE_RETURN_IF_ERROR(VerifyOperand(c, 0, 2, 1));
    return VerifyOperand(c, 1, 3, c.input_shape(1)[0]);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, WindowOfConv(c, 0, 1));
    return std::vector<ValueType>{ValueType(ElementType::kInt32, ConvOutput(c, window, 0, 1))};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, WindowOfConv(c, 0, 1));
    const int64_t x_zero = in.size() > 2 && in[2] ? in[2]->at_int(0) : 0;
    return std::vector<Tensor>{IntegerConvolution(window, *in[0], *in[1], x_zero, Zeros(in.size() > 3 ? in[3] : nullptr),
                                                  c.node().Int("group", 1), nullptr)};
  }
  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * (c.input_type(1).elements() / c.input_shape(1)[0]);
    return work;
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, WindowOfConv(c, 0, 1));
    const ChannelValue x_value = CentredByInput(l, 2);
    LowerConvolution(
        l, window, c.node().Int("group", 1), [&](const loops::Expr& x) { return x_value(x, loops::Expr(0)); }, CentredByInput(l, 3),
        [](loops::Expr sum, const loops::Indices&) { return sum; });
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    const int64_t group = RandomInt(random, 1, 2), channels = group * RandomInt(random, 1, 3), outputs = group * RandomInt(random, 1, 3);
    Attributes attributes = {{"group", group},
                             {"strides", std::vector<int64_t>{RandomInt(random, 1, 2), RandomInt(random, 1, 2)}},
                             {"pads", std::vector<int64_t>{RandomInt(random, 0, 2), 1, 0, RandomInt(random, 0, 2)}}};
    const Shape x = {1, channels, RandomInt(random, 3, 7), RandomInt(random, 3, 7)};
    return SampleIntegerNode(random, "ConvInteger", x, {outputs, channels / group, RandomInt(random, 1, 3), RandomInt(random, 1, 3)},
                             outputs, std::move(attributes));
  }
};

class MatMulInteger : public Op {
 public:
  std::string_view name() const override { return "MatMulInteger"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "a […, M, K], b […, K, N] (i8 or u8), optional a_zero_point (one value) and b_zero_point (one value or [N]). y i32 = "
           "sum (a - a_zero_point)(b - b_zero_point), modulo 2^32. ONNX MatMulInteger.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 2, 4));
    HEDDLE_ASSIGN_OR_RETURN(const MatrixProduct p, ProductOf(c, 0, 1));
    HEDDLE_RETURN_IF_ERROR(VerifyOperand(c, 0, 2, 1));
    return VerifyOperand(c, 1, 3, p.n);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const MatrixProduct p, ProductOf(c, 0, 1));
    return std::vector<ValueType>{ValueType(ElementType::kInt32, p.output())};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext&, std::span<const Tensor* const> in) const override {
    const int64_t a_zero = in.size() > 2 && in[2] ? in[2]->at_int(0) : 0;
    return std::vector<Tensor>{IntegerMatrixProduct(*in[0], *in[1], a_zero, Zeros(in.size() > 3 ? in[3] : nullptr), nullptr)};
  }
  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * c.input_shape(0).back();
    return work;
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const ChannelValue a_value = CentredByInput(l, 2);
    LowerMatrixProduct(
        l, c.input_shape(0).back(), [&](const loops::Expr& a) { return a_value(a, loops::Expr(0)); }, CentredByInput(l, 3),
        [](loops::Expr sum, const loops::Indices&) { return sum; });
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    const int64_t m = RandomInt(random, 1, 5), k = RandomInt(random, 1, 20), n = RandomInt(random, 1, 6);
    const Shape a = RandomInt(random, 0, 1) ? Shape{m, k} : Shape{2, m, k};
    return SampleIntegerNode(random, "MatMulInteger", a, {k, n}, n, {});
  }
};

}  // namespace

void AddQLinear(OpList& ops) {
  ops.push_back(std::make_unique<QLinearConv>());
  ops.push_back(std::make_unique<QLinearMatMul>());
  ops.push_back(std::make_unique<ConvInteger>());
  ops.push_back(std::make_unique<MatMulInteger>());
}

}  // namespace heddle::ir
