// QMatMul: batched integer matrix product with requantisation; weights or a second activation on the right.

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/integer_kernels.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

// Largest |accumulator|, exact in b where it is a constant.
int64_t AccumulatorBound(const NodeContext& c, const MatrixProduct& p) {
  const Tensor* b = c.constant(1);
  const int64_t zero = c.node().Int("a_zero_point");
  const std::vector<int64_t> b_zero = c.node().Ints("b_zero_point", {0});
  if (!b || b->rank() == 2) return LargestAccumulator(b, p.n, p.k, 1, p.n, zero, b_zero, c.constant(2));
  // Several matrices: the bound that holds for all weights.
  return LargestAccumulator(nullptr, p.n, p.k, 1, p.n, zero, b_zero, c.constant(2));
}

class QMatMul : public Op {
 public:
  std::string_view name() const override { return "QMatMul"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "a i8 […, M, K], b i8 […, K, N] (constant or activation; batch dimensions broadcast), optional bias i32 [N]. "
           "Attributes: a_zero_point, b_zero_point (list of 1 or N), multiplier and shift (lists of 1 or N), rounding, "
           "y_zero_point, clamp_low, clamp_high. y i8 […, M, N] = clamp(y_zero_point + Scale(bias + sum (a - "
           "a_zero_point)(b - b_zero_point))). Exact; see ir/requantise.h.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    const Node& node = c.node();
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 2, 3));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 0, ElementType::kInt8));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 1, ElementType::kInt8));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 2, ElementType::kInt32));
    const auto product = MatrixProductOf(c.input_shape(0), c.input_shape(1));
    if (!product) {
      return NodeError("E-OP-202", node, fmt::format("shapes {} and {} have no matrix product", ShapeText(c.input_shape(0)),
                                                     ShapeText(c.input_shape(1))));
    }
    if (c.has_input(2) && c.input_shape(2) != Shape{product->n}) return NodeError("E-OP-202", node, "bias must have shape [N]");
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "a_zero_point", -128, 127));
    HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::vector<int64_t>>(node, "b_zero_point", false));
    const std::vector<int64_t> zb = node.Ints("b_zero_point", {0});
    if (zb.size() != 1 && static_cast<int64_t>(zb.size()) != product->n) {
      return NodeError("E-OP-204", node, "b_zero_point has a wrong length");
    }
    for (int64_t zero : zb) {
      if (zero < -128 || zero > 127) return NodeError("E-OP-204", node, "b_zero_point lies outside i8");
    }
    HEDDLE_RETURN_IF_ERROR(VerifyRequantiser(c, product->n));
    if (AccumulatorBound(c, *product) >= (int64_t{1} << 31)) {
      return NodeError("E-OP-205", node, "the sum of products could leave 32 bits");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(ElementType::kInt8, MatrixProductOf(c.input_shape(0), c.input_shape(1))->output())};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Node& node = c.node();
    const Requantiser requantiser = RequantiserOf(node);
    const Tensor sums = IntegerMatrixProduct(*in[0], *in[1], node.Int("a_zero_point"), node.Ints("b_zero_point", {0}),
                                             in.size() > 2 ? in[2] : nullptr);
    Tensor y(ElementType::kInt8, sums.shape());
    auto out = y.as<int8_t>();
    const auto accumulators = sums.as<int32_t>();
    const int64_t columns = sums.shape().back();
    for (int64_t i = 0; i < y.elements(); ++i) {
      out[static_cast<size_t>(i)] = requantiser.Apply(accumulators[static_cast<size_t>(i)], i % columns);
    }
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const MatrixProduct p = *MatrixProductOf(c.input_shape(0), c.input_shape(1));
    const Requantiser requantiser = RequantiserOf(c.node());
    const int64_t a_zero = c.node().Int("a_zero_point");
    LowerMatrixProduct(
        l, p.k, [&](const loops::Expr& a) { return Centred(a, a_zero); },
        CentredByChannel(l, c.node().Ints("b_zero_point", {0})), [&](loops::Expr sum, const loops::Indices& i) {
          return RequantisedExpr(requantiser, l.has_input(2) ? sum + l.input(2)(i.back()) : sum, i.back());
        });
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * c.input_shape(0).back();
    return work;
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    const int64_t m = RandomInt(random, 1, 5), k = RandomInt(random, 1, 40), n = RandomInt(random, 1, 9);
    Shape a_shape = {m, k}, b_shape = {k, n};
    const int64_t batch = RandomInt(random, 1, 3);
    if (RandomInt(random, 0, 1)) a_shape.insert(a_shape.begin(), batch);
    if (RandomInt(random, 0, 2) == 0) b_shape.insert(b_shape.begin(), RandomInt(random, 0, 1) ? batch : 1);
    if (RandomInt(random, 0, 3) == 0) a_shape.insert(a_shape.begin(), a_shape.size() == 3 ? 2 : batch);
    Graph graph("sample");
    std::vector<Tensor> tensors = {RandomTensor(random, ElementType::kInt8, a_shape, -128, 127)};
    std::vector<ValueId> inputs = {graph.AddInput("a", ValueType(ElementType::kInt8, a_shape))};
    Tensor b = RandomTensor(random, ElementType::kInt8, b_shape, -128, 127);
    if (RandomInt(random, 0, 1)) {
      inputs.push_back(graph.AddConstant("b", std::move(b)));
    } else {
      inputs.push_back(graph.AddInput("b", ValueType(ElementType::kInt8, b_shape)));
      tensors.push_back(std::move(b));
    }
    if (RandomInt(random, 0, 1)) {
      inputs.push_back(graph.AddConstant("bias", RandomTensor(random, ElementType::kInt32, {n}, -100000, 100000)));
    }
    std::vector<int64_t> b_zero(static_cast<size_t>(RandomInt(random, 0, 1) ? n : 1), 0);
    if (RandomInt(random, 0, 1)) {
      for (int64_t& zero : b_zero) zero = RandomInt(random, -128, 127);
    }
    Attributes attributes = {{"a_zero_point", RandomInt(random, -128, 127)}, {"b_zero_point", b_zero}};
    SetRequantiser(RandomRequantiser(random, n, 5000 * k), attributes);
    const NodeId node = graph.AddNode("QMatMul", "qmatmul", inputs, {"y"}, attributes);
    return FinishCase(std::move(graph), node, std::move(tensors));
  }
};

}  // namespace

void AddQMatMul(OpList& ops) { ops.push_back(std::make_unique<QMatMul>()); }

}  // namespace heddle::ir
