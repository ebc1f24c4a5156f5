// QConv: integer convolution with requantisation, grouped, strided, dilated and padded, over one to three spatial
// dimensions. The accumulator is 32 bits wide on every device, so the verifier proves that it cannot overflow.

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/integer_kernels.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

Shape Spatial(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

absl::StatusOr<Window> ConvWindow(const NodeContext& c) {
  return CheckedWindowOf(c, Spatial(c.input_shape(0)), Spatial(c.input_shape(1)));
}

// Largest |accumulator| that any activation can cause, from the weights where they are constants.
int64_t AccumulatorBound(const NodeContext& c) {
  const Shape w = c.input_shape(1);
  const int64_t products = ElementCount(w) / w[0];
  return LargestAccumulator(c.constant(1), w[0], products, products, 1, c.node().Int("x_zero_point"),
                            c.node().Ints("w_zero_point", {0}), c.constant(2));
}

class QConv : public Op {
 public:
  std::string_view name() const override { return "QConv"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x i8 [N, C, spatial…] (one to three spatial dimensions), w i8 [M, C/group, kernel…], optional bias i32 [M]. "
           "Attributes: strides, pads (begin…, end…), dilations, group, x_zero_point, w_zero_point (list of 1 or M), "
           "multiplier and shift (lists of 1 or M), rounding (half_even or doubling_high_mul), y_zero_point, clamp_low, "
           "clamp_high. y i8 [N, M, spatial…] = clamp(y_zero_point + Scale(bias + sum (x - x_zero_point)(w - "
           "w_zero_point))); padding counts as x = x_zero_point. Exact; see ir/requantise.h.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    const Node& node = c.node();
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 2, 3));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 0, ElementType::kInt8));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 1, ElementType::kInt8));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 2, ElementType::kInt32));
    const Shape x = c.input_shape(0), w = c.input_shape(1);
    if (x.size() < 3 || w.size() != x.size()) return NodeError("E-OP-202", node, "x and w need one rank, 3 to 5");
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "group", 1, int64_t{1} << 30));
    const int64_t group = node.Int("group", 1);
    if (w[0] < 1 || x[1] % group != 0 || w[0] % group != 0 || w[1] != x[1] / group) {
      return NodeError("E-OP-202", node, fmt::format("x {}, w {} and group {} do not fit", ShapeText(x), ShapeText(w), group));
    }
    if (c.has_input(2) && c.input_shape(2) != Shape{w[0]}) return NodeError("E-OP-202", node, "bias must have shape [M]");
    HEDDLE_ASSIGN_OR_RETURN(const Window window, ConvWindow(c));
    (void)window;
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "x_zero_point", -128, 127));
    HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::vector<int64_t>>(node, "w_zero_point", false));
    const std::vector<int64_t> zw = node.Ints("w_zero_point", {0});
    if (zw.size() != 1 && static_cast<int64_t>(zw.size()) != w[0]) return NodeError("E-OP-204", node, "w_zero_point has a wrong length");
    for (int64_t zero : zw) {
      if (zero < -128 || zero > 127) return NodeError("E-OP-204", node, "w_zero_point lies outside i8");
    }
    HEDDLE_RETURN_IF_ERROR(VerifyRequantiser(c, w[0]));
    if (AccumulatorBound(c) >= (int64_t{1} << 31)) {
      return NodeError("E-OP-205", node, "the sum of products could leave 32 bits");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, ConvWindow(c));
    Shape shape = {c.input_shape(0)[0], c.input_shape(1)[0]};
    shape.insert(shape.end(), window.output.begin(), window.output.end());
    return std::vector<ValueType>{ValueType(ElementType::kInt8, shape)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override;

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override;

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    const Shape w = c.input_shape(1);
    work.macs = c.output_type().elements() * (ElementCount(w) / w[0]);
    return work;
  }

  std::optional<RandomCase> Sample(Random& random) const override;
};

absl::StatusOr<std::vector<Tensor>> QConv::Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const {
  HEDDLE_ASSIGN_OR_RETURN(const Window window, ConvWindow(c));
  const Node& node = c.node();
  const Requantiser requantiser = RequantiserOf(node);
  const Tensor sums = IntegerConvolution(window, *in[0], *in[1], node.Int("x_zero_point"), node.Ints("w_zero_point", {0}),
                                         node.Int("group", 1), in.size() > 2 ? in[2] : nullptr);
  Tensor y(ElementType::kInt8, sums.shape());
  auto out = y.as<int8_t>();
  const auto accumulators = sums.as<int32_t>();
  const int64_t plane = ElementCount(window.output), channels = sums.shape()[1];
  for (int64_t i = 0; i < y.elements(); ++i) {
    out[static_cast<size_t>(i)] = requantiser.Apply(accumulators[static_cast<size_t>(i)], i / plane % channels);
  }
  return std::vector<Tensor>{std::move(y)};
}

absl::Status QConv::Lower(const NodeContext& c, loops::OpLowering& l) const {
  HEDDLE_ASSIGN_OR_RETURN(const Window w, ConvWindow(c));
  const Requantiser requantiser = RequantiserOf(c.node());
  const int64_t x_zero = c.node().Int("x_zero_point");
  LowerConvolution(
      l, w, c.node().Int("group", 1), [&](const loops::Expr& x) { return Centred(x, x_zero); },
      CentredByChannel(l, c.node().Ints("w_zero_point", {0})), [&](loops::Expr sum, const loops::Indices& i) {
        return RequantisedExpr(requantiser, l.has_input(2) ? sum + l.input(2)(i[1]) : sum, i[1]);
      });
  return absl::OkStatus();
}

std::optional<RandomCase> QConv::Sample(Random& random) const {
  const int64_t rank = RandomInt(random, 0, 4) == 0 ? 1 : 2;
  const int64_t group = RandomInt(random, 1, 3);
  const bool depthwise = RandomInt(random, 0, 2) == 0;
  const int64_t channels = group * (depthwise ? 1 : RandomInt(random, 1, 4));
  const int64_t outputs = group * RandomInt(random, 1, 4);
  Shape x_shape = {RandomInt(random, 1, 2), channels}, w_shape = {outputs, channels / group};
  std::vector<int64_t> strides, dilations, begins, ends;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t kernel = RandomInt(random, 1, 4), dilation = RandomInt(random, 1, 2);
    const int64_t span = dilation * (kernel - 1) + 1;
    w_shape.push_back(kernel);
    dilations.push_back(dilation);
    strides.push_back(RandomInt(random, 1, 3));
    begins.push_back(RandomInt(random, 0, 2));
    ends.push_back(RandomInt(random, 0, 2));
    x_shape.push_back(std::max<int64_t>(1, span - begins.back() - ends.back()) + RandomInt(random, 0, 7));
  }
  const int64_t products = ElementCount(w_shape) / outputs;
  Graph graph("sample");
  Tensor x = RandomTensor(random, ElementType::kInt8, x_shape, -128, 127);
  std::vector<ValueId> inputs = {
      graph.AddInput("x", ValueType(ElementType::kInt8, x_shape)),
      graph.AddConstant("w", RandomTensor(random, ElementType::kInt8, w_shape, -128, 127))};
  if (RandomInt(random, 0, 2) != 0) {
    inputs.push_back(graph.AddConstant("bias", RandomTensor(random, ElementType::kInt32, {outputs}, -100000, 100000)));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  Attributes attributes = {{"strides", strides}, {"pads", begins}, {"dilations", dilations}, {"group", group},
                           {"x_zero_point", RandomInt(random, -128, 127)}};
  std::vector<int64_t> w_zero(static_cast<size_t>(RandomInt(random, 0, 1) ? outputs : 1), 0);
  if (RandomInt(random, 0, 2) == 0) {
    for (int64_t& zero : w_zero) zero = RandomInt(random, -128, 127);
  }
  attributes["w_zero_point"] = w_zero;
  SetRequantiser(RandomRequantiser(random, outputs, 5000 * products), attributes);
  const NodeId node = graph.AddNode("QConv", "qconv", inputs, {"y"}, attributes);
  return FinishCase(std::move(graph), node, {std::move(x)});
}

}  // namespace

void AddQConv(OpList& ops) { ops.push_back(std::make_unique<QConv>()); }

}  // namespace heddle::ir
