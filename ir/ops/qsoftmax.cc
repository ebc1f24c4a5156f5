// QSoftmax: softmax in integers. exp comes from a table indexed by the distance to the row's maximum, the division is
// exact integer division, so that every device gives the same result.

#include <algorithm>
#include <cmath>

#include "ir/ops/all_ops.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

int64_t AxisOf(const NodeContext& c) {
  const auto rank = static_cast<int64_t>(c.input_shape(0).size());
  const int64_t axis = c.node().Int("axis", -1);
  return axis < 0 ? axis + rank : axis;
}

class QSoftmax : public Op {
 public:
  std::string_view name() const override { return "QSoftmax"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x i8 of rank 1 or more. Attributes: axis (default -1), exp_table (i32 tensor [256]: 2^23 exp(-d s) rounded, d = "
           "maximum - x, s the scale of x), y_multiplier (1 / scale of y, rounded), y_zero_point, clamp_low, clamp_high. "
           "With e = exp_table[d] and S the sum of e along the axis, y i8 = clamp(y_zero_point + RoundHalfEven(e "
           "y_multiplier / S)). Exact; within one step of the float softmax.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    const Node& node = c.node();
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 1, 1));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 0, ElementType::kInt8));
    const auto rank = static_cast<int64_t>(c.input_shape(0).size());
    if (rank < 1) return NodeError("E-OP-202", node, "x needs rank 1 or more");
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "axis", -rank, rank - 1));
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "y_multiplier", 0, (int64_t{1} << 31) - 1, true));
    HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::shared_ptr<const Tensor>>(node, "exp_table", true));
    const auto table = node.TensorAttribute("exp_table");
    if (!table || table->type() != ElementType::kInt32 || table->shape() != Shape{256}) {
      return NodeError("E-OP-204", node, "exp_table must be i32[256]");
    }
    const auto entries = table->as<int32_t>();
    if (entries[0] < 1 || *std::min_element(entries.begin(), entries.end()) < 0) {
      return NodeError("E-OP-204", node, "exp_table must start with a positive entry and hold no negative one");
    }
    return VerifyClamp(node);
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(ElementType::kInt8, c.input_shape(0))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Node& node = c.node();
    const auto table = node.TensorAttribute("exp_table");
    const auto exp = table->as<int32_t>();
    const int64_t multiplier = node.Int("y_multiplier"), zero = node.Int("y_zero_point");
    const int64_t low = node.Int("clamp_low", -128), high = node.Int("clamp_high", 127);
    const Shape shape = in[0]->shape();
    const auto axis = static_cast<size_t>(AxisOf(c));
    const int64_t extent = shape[axis];
    const int64_t inner = ElementCount(Shape(shape.begin() + static_cast<int64_t>(axis) + 1, shape.end()));
    const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + static_cast<int64_t>(axis)));
    Tensor y(ElementType::kInt8, shape);
    for (int64_t row = 0; row < outer * inner && extent > 0; ++row) {
      const int64_t base = row / inner * extent * inner + row % inner;
      const int8_t* x = in[0]->as<int8_t>().data() + base;
      int8_t* out = y.as<int8_t>().data() + base;
      int peak = -128;
      for (int64_t i = 0; i < extent; ++i) peak = std::max<int>(peak, x[i * inner]);
      int64_t sum = 0;
      for (int64_t i = 0; i < extent; ++i) sum += exp[static_cast<size_t>(peak - x[i * inner])];
      for (int64_t i = 0; i < extent; ++i) {
        const int64_t numerator = exp[static_cast<size_t>(peak - x[i * inner])] * multiplier;
        const int64_t quotient = numerator / sum, twice = 2 * (numerator % sum);
        const bool up = twice > sum || (twice == sum && quotient % 2 != 0);
        out[i * inner] = static_cast<int8_t>(std::clamp(quotient + (up ? 1 : 0) + zero, low, high));
      }
    }
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    constexpr ElementType kI64 = ElementType::kInt64;
    const Node& node = c.node();
    const Shape shape = c.input_shape(0);
    const auto axis = static_cast<size_t>(AxisOf(c));
    Shape rows = shape;
    rows[axis] = 1;
    const loops::Buffer peak = l.Temporary("peak", ElementType::kInt8, rows), total = l.Temporary("total", kI64, rows);
    const loops::Buffer exps = l.Temporary("exp", ElementType::kInt32, shape);
    const loops::Buffer table = l.Table("exp_table", *node.TensorAttribute("exp_table"));
    auto along = [&](loops::Indices i, const loops::Expr& at) {
      i[axis] = at;
      return i;
    };
    l.Add(loops::Reduce(peak, {shape[axis]}, loops::Combiner::kMax, [&](const loops::Indices& i, const loops::Indices& r) {
      return l.input(0).At(along(i, r[0]));
    }));
    l.Add(loops::Compute(exps, [&](const loops::Indices& i) {
      return table(loops::Cast(kI64, peak.At(along(i, 0))) - loops::Cast(kI64, l.input(0).At(i)));
    }));
    l.Add(loops::Reduce(total, {shape[axis]}, loops::Combiner::kSum, [&](const loops::Indices& i, const loops::Indices& r) {
      return loops::Cast(kI64, exps.At(along(i, r[0])));
    }));
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      const loops::Expr sum = total.At(along(i, 0));
      const loops::Expr numerator = loops::Cast(kI64, exps.At(i)) * node.Int("y_multiplier");
      const loops::Expr quotient = numerator / sum;
      const loops::Expr twice = (numerator - quotient * sum) << 1;
      const loops::Expr odd = loops::Equal(quotient & 1, loops::IntConstant(kI64, 1));
      const loops::Expr up = loops::Or(twice > sum, loops::And(loops::Equal(twice, sum), odd));
      const loops::Expr y = quotient + loops::Cast(kI64, up) + node.Int("y_zero_point");
      return loops::Cast(ElementType::kInt8, loops::Clamp(y, loops::IntConstant(kI64, node.Int("clamp_low", -128)),
                                                          loops::IntConstant(kI64, node.Int("clamp_high", 127))));
    }));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.other_ops *= 4;  // maximum, lookup, sum, division
    return work;
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    Shape shape;
    for (int64_t d = RandomInt(random, 1, 4); d > 0; --d) shape.push_back(RandomInt(random, 1, 7));
    const auto rank = static_cast<int64_t>(shape.size());
    Graph graph("sample");
    const ValueId x = graph.AddInput("x", ValueType(ElementType::kInt8, shape));
    const double scale = std::uniform_real_distribution<double>(0.001, 0.3)(random);
    Attributes attributes = {{"axis", RandomInt(random, -rank, rank - 1)},
                             {"exp_table", std::make_shared<const Tensor>(SoftmaxExpTable(scale))},
                             {"y_multiplier", RandomInt(random, 0, 1) ? 256 : RandomInt(random, 1, 3000)},
                             {"y_zero_point", RandomInt(random, 0, 1) ? -128 : RandomInt(random, -128, 127)}};
    const NodeId node = graph.AddNode("QSoftmax", "qsoftmax", {x}, {"y"}, attributes);
    return FinishCase(std::move(graph), node, {RandomTensor(random, ElementType::kInt8, shape, -128, 127)});
  }
};

}  // namespace

Tensor SoftmaxExpTable(double scale) {
  Tensor table(ElementType::kInt32, {256});
  for (int64_t d = 0; d < 256; ++d) {
    table.set_int(d, static_cast<int64_t>(std::nearbyint((1 << 23) * std::exp(-static_cast<double>(d) * scale))));
  }
  return table;
}

void AddQSoftmax(OpList& ops) { ops.push_back(std::make_unique<QSoftmax>()); }

}  // namespace heddle::ir
