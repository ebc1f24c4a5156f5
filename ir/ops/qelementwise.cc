// QAdd and QMul: element-wise integer arithmetic of two quantised tensors, broadcast as in ONNX.

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

absl::Status VerifyOperands(const NodeContext& c) {
  HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 2, 2));
  HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 0, ElementType::kInt8));
  HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 1, ElementType::kInt8));
  if (!BroadcastShapes(c.input_shape(0), c.input_shape(1))) {
    return NodeError("E-OP-202", c.node(), fmt::format("shapes {} and {} do not broadcast", ShapeText(c.input_shape(0)),
                                                       ShapeText(c.input_shape(1))));
  }
  HEDDLE_RETURN_IF_ERROR(CheckIntRange(c.node(), "a_zero_point", -128, 127));
  return CheckIntRange(c.node(), "b_zero_point", -128, 127);
}

std::vector<ValueType> BroadcastType(const NodeContext& c) {
  return {ValueType(ElementType::kInt8, *BroadcastShapes(c.input_shape(0), c.input_shape(1)))};
}

// y[i] = combine(a[i], b[i]), both as int64.
template <typename Combine>
Tensor ForEachPair(const NodeContext& c, std::span<const Tensor* const> in, Combine combine) {
  Tensor y(ElementType::kInt8, c.output_shape());
  auto out = y.as<int8_t>();
  const auto a = in[0]->as<int8_t>(), b = in[1]->as<int8_t>();
  const Shape a_strides = BroadcastStrides(in[0]->shape(), y.shape()), b_strides = BroadcastStrides(in[1]->shape(), y.shape());
  size_t position = 0;
  ForEachIndex(y.shape(), [&](const Shape& index) {
    int64_t ia = 0, ib = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      ia += index[d] * a_strides[d];
      ib += index[d] * b_strides[d];
    }
    out[position++] = combine(int64_t{a[static_cast<size_t>(ia)]}, int64_t{b[static_cast<size_t>(ib)]});
  });
  return y;
}

// Two shapes that broadcast, as graph inputs a and b.
std::vector<ValueId> SampleOperands(Random& random, Graph& graph, std::vector<Tensor>& tensors) {
  Shape full;
  for (int64_t d = RandomInt(random, 1, 4); d > 0; --d) full.push_back(RandomInt(random, 1, 5));
  std::vector<ValueId> inputs;
  for (const char* name : {"a", "b"}) {
    Shape shape = full;
    if (RandomInt(random, 0, 2) == 0) {
      for (int64_t& extent : shape) extent = RandomInt(random, 0, 1) ? extent : 1;
      shape.erase(shape.begin(), shape.begin() + RandomInt(random, 0, static_cast<int64_t>(shape.size()) - 1));
    }
    inputs.push_back(graph.AddInput(name, ValueType(ElementType::kInt8, shape)));
    tensors.push_back(RandomTensor(random, ElementType::kInt8, shape, -128, 127));
  }
  return inputs;
}

class QAdd : public Op {
 public:
  std::string_view name() const override { return "QAdd"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "a, b i8, broadcast. Attributes: a_zero_point, b_zero_point, a_multiplier and b_multiplier (0 to 2^20 - 1), shift "
           "(0 to 40), y_zero_point, clamp_low, clamp_high. y i8 = clamp(y_zero_point + RoundHalfEven(((a - a_zero_point) "
           "a_multiplier + (b - b_zero_point) b_multiplier) / 2^shift)). Exact.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifyOperands(c));
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(c.node(), "a_multiplier", 0, (1 << 20) - 1, true));
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(c.node(), "b_multiplier", 0, (1 << 20) - 1, true));
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(c.node(), "shift", 0, 40, true));
    return VerifyClamp(c.node());
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override { return BroadcastType(c); }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Node& node = c.node();
    const int64_t za = node.Int("a_zero_point"), zb = node.Int("b_zero_point"), zy = node.Int("y_zero_point");
    const int64_t ma = node.Int("a_multiplier"), mb = node.Int("b_multiplier");
    const int64_t low = node.Int("clamp_low", -128), high = node.Int("clamp_high", 127);
    const int shift = static_cast<int>(node.Int("shift"));
    Tensor y = ForEachPair(c, in, [&](int64_t a, int64_t b) {
      const int64_t sum = ShiftRightHalfEven((a - za) * ma + (b - zb) * mb, shift) + zy;
      return static_cast<int8_t>(std::clamp(sum, low, high));
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const Node& node = c.node();
    // Both products and their sum stay below 2^30, so 32 bits do; a multiplier of 1 leaves the rounding shift alone.
    const FixedPointScale shift{1, static_cast<int32_t>(node.Int("shift"))};
    Requantiser r;
    r.scales = {shift};
    r.y_zero_point = static_cast<int32_t>(node.Int("y_zero_point"));
    r.clamp_low = static_cast<int32_t>(node.Int("clamp_low", -128));
    r.clamp_high = static_cast<int32_t>(node.Int("clamp_high", 127));
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      const loops::Expr a = Centred(BroadcastRead(l.input(0), i), node.Int("a_zero_point")) * node.Int("a_multiplier");
      const loops::Expr b = Centred(BroadcastRead(l.input(1), i), node.Int("b_zero_point")) * node.Int("b_multiplier");
      return RequantisedExpr(r, a + b, loops::Expr());
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    Graph graph("sample");
    std::vector<Tensor> tensors;
    const std::vector<ValueId> inputs = SampleOperands(random, graph, tensors);
    const Requantiser r = RandomRequantiser(random, 1, 1);
    // Powers of two make exact ties.
    const bool ties = RandomInt(random, 0, 2) == 0;
    const int64_t ma = ties ? int64_t{1} << RandomInt(random, 0, 19) : RandomInt(random, 0, (1 << 20) - 1);
    const int64_t mb = ties ? int64_t{1} << RandomInt(random, 0, 19) : RandomInt(random, 0, (1 << 20) - 1);
    const int64_t shift = RandomInt(random, 0, 3) == 0 ? RandomInt(random, 0, 40) : RandomInt(random, 17, 21);
    Attributes attributes = {{"a_zero_point", RandomInt(random, -128, 127)}, {"b_zero_point", RandomInt(random, -128, 127)},
                             {"a_multiplier", ma}, {"b_multiplier", mb}, {"shift", shift},
                             {"y_zero_point", int64_t{r.y_zero_point}}, {"clamp_low", int64_t{r.clamp_low}},
                             {"clamp_high", int64_t{r.clamp_high}}};
    const NodeId node = graph.AddNode("QAdd", "qadd", inputs, {"y"}, attributes);
    return FinishCase(std::move(graph), node, std::move(tensors));
  }
};

class QMul : public Op {
 public:
  std::string_view name() const override { return "QMul"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "a, b i8, broadcast. Attributes: a_zero_point, b_zero_point, multiplier, shift, rounding, "
           "y_zero_point, clamp_low, clamp_high. y i8 = clamp(y_zero_point + Scale((a - a_zero_point)(b - b_zero_point))). "
           "Exact; see ir/requantise.h.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifyOperands(c));
    return VerifyRequantiser(c, 0);
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override { return BroadcastType(c); }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const int64_t za = c.node().Int("a_zero_point"), zb = c.node().Int("b_zero_point");
    const Requantiser requantiser = RequantiserOf(c.node());
    Tensor y = ForEachPair(c, in, [&](int64_t a, int64_t b) { return requantiser.Apply((a - za) * (b - zb), 0); });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const Node& node = c.node();
    const Requantiser r = RequantiserOf(node);
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      const loops::Expr a = Centred(BroadcastRead(l.input(0), i), node.Int("a_zero_point"));
      const loops::Expr b = Centred(BroadcastRead(l.input(1), i), node.Int("b_zero_point"));
      return RequantisedExpr(r, a * b, loops::Expr());
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    Graph graph("sample");
    std::vector<Tensor> tensors;
    const std::vector<ValueId> inputs = SampleOperands(random, graph, tensors);
    Attributes attributes = {{"a_zero_point", RandomInt(random, -128, 127)}, {"b_zero_point", RandomInt(random, -128, 127)}};
    SetRequantiser(RandomRequantiser(random, 1, 16384), attributes, /*as_list=*/false);
    const NodeId node = graph.AddNode("QMul", "qmul", inputs, {"y"}, attributes);
    return FinishCase(std::move(graph), node, std::move(tensors));
  }
};

}  // namespace

void AddQElementwise(OpList& ops) {
  ops.push_back(std::make_unique<QAdd>());
  ops.push_back(std::make_unique<QMul>());
}

}  // namespace heddle::ir
