// QAveragePool: integer average over a sliding window. The number of summed elements differs at borders, so there is one
// scale for each distinct number, the division by it included.

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/ops/all_ops.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

absl::StatusOr<Window> PoolWindow(const NodeContext& c) {
  HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::vector<int64_t>>(c.node(), "kernel_shape", true));
  const Shape shape = c.input_shape(0);
  return CheckedWindowOf(c, Shape(shape.begin() + 2, shape.end()), c.node().Ints("kernel_shape"));
}

// Elements that divide the sum at one output position: the taps inside the input, or every tap that lies on input or pads.
int64_t CountAt(const Window& w, const Shape& output, bool include_pad) {
  int64_t count = 1;
  for (int d = 0; d < w.rank(); ++d) count *= CoveredPositions(w, d, output[static_cast<size_t>(d)], include_pad);
  return count;
}

int64_t SumAt(const Window& w, const Shape& output, const int8_t* plane, int64_t zero) {
  int64_t sum = 0;
  ForEachIndex(w.kernel, [&](const Shape& tap) {
    int64_t offset = 0;
    for (size_t d = 0; d < tap.size(); ++d) {
      const int64_t position = output[d] * w.strides[d] - w.pads_begin[d] + tap[d] * w.dilations[d];
      if (position < 0 || position >= w.input[d]) return;
      offset = offset * w.input[d] + position;
    }
    sum += plane[offset] - zero;
  });
  return sum;
}

class QAveragePool : public Op {
 public:
  std::string_view name() const override { return "QAveragePool"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x i8 [N, C, spatial…] (one to three spatial dimensions). Attributes: kernel_shape, strides, pads, dilations, "
           "count_include_pad (0 or 1), counts (list of the distinct numbers of elements that a window divides by), "
           "multiplier and shift (lists, one entry for each of counts, 1/count included), rounding, x_zero_point, "
           "y_zero_point, clamp_low, clamp_high. y i8 = clamp(y_zero_point + Scale_count(sum (x - x_zero_point))); outside "
           "counts as x = x_zero_point. Exact.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    const Node& node = c.node();
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 1, 1));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 0, ElementType::kInt8));
    if (c.input_shape(0).size() < 3) return NodeError("E-OP-202", node, "x needs rank 3 to 5");
    HEDDLE_ASSIGN_OR_RETURN(const Window window, PoolWindow(c));
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "count_include_pad", 0, 1));
    HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "x_zero_point", -128, 127));
    HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::vector<int64_t>>(node, "counts", true));
    const std::vector<int64_t> counts = node.Ints("counts");
    if (counts.empty()) return NodeError("E-OP-204", node, "counts is empty");
    HEDDLE_RETURN_IF_ERROR(VerifyRequantiser(c, static_cast<int64_t>(counts.size())));
    if (node.Ints("multiplier").size() != counts.size()) return NodeError("E-OP-204", node, "needs one scale for each of counts");
    int64_t positions = 0;
    for (size_t d = 0; d < window.kernel.size(); ++d) positions += window.output[d] * window.kernel[d];
    if (positions > (int64_t{1} << 28)) return NodeError("E-OP-204", node, "the window is too large");
    if (ElementCount(window.kernel) > (int64_t{1} << 22)) return NodeError("E-OP-205", node, "the window's sum could leave 32 bits");
    for (int64_t count : WindowCounts(window, node.Int("count_include_pad") != 0)) {
      if (std::find(counts.begin(), counts.end(), count) == counts.end()) {
        return NodeError("E-OP-204", node, fmt::format("a window sums {} elements, which counts does not list", count));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, PoolWindow(c));
    Shape shape = {c.input_shape(0)[0], c.input_shape(0)[1]};
    shape.insert(shape.end(), window.output.begin(), window.output.end());
    return std::vector<ValueType>{ValueType(ElementType::kInt8, shape)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window window, PoolWindow(c));
    const Node& node = c.node();
    const Requantiser requantiser = RequantiserOf(node);
    const std::vector<int64_t> counts = node.Ints("counts");
    const int64_t zero = node.Int("x_zero_point");
    const bool include_pad = node.Int("count_include_pad") != 0;
    const int64_t planes = c.input_shape(0)[0] * c.input_shape(0)[1], in_plane = ElementCount(window.input);
    Tensor y(ElementType::kInt8, c.output_shape());
    auto out = y.as<int8_t>();
    size_t position = 0;
    for (int64_t plane = 0; plane < planes; ++plane) {
      const int8_t* x = in[0]->as<int8_t>().data() + plane * in_plane;
      ForEachIndex(window.output, [&](const Shape& at) {
        const int64_t count = CountAt(window, at, include_pad);
        const auto which = std::find(counts.begin(), counts.end(), count) - counts.begin();
        out[position++] = requantiser.Apply(SumAt(window, at, x, zero), counts.size() == 1 ? 0 : which);
      });
    }
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override;

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.other_ops = c.output_type().elements() * (ElementCount(c.node().Ints("kernel_shape")) + 1);
    return work;
  }

  std::optional<RandomCase> Sample(Random& random) const override;
};

// Index into `counts` of the number of elements at spatial output position `at`: products of one table a dimension, compared
// with each count.
loops::Expr CountIndex(const Window& w, bool include_pad, const std::vector<int64_t>& counts, loops::OpLowering& l,
                       const loops::Indices& at) {
  loops::Expr count = loops::Constant(ElementType::kInt64, 1);
  for (size_t d = 0; d < w.input.size(); ++d) {
    std::vector<int64_t> inside;
    for (int64_t o = 0; o < w.output[d]; ++o) {
      inside.push_back(CoveredPositions(w, static_cast<int>(d), o, include_pad));
    }
    if (std::all_of(inside.begin(), inside.end(), [&](int64_t n) { return n == inside[0]; })) {
      count = count * inside[0];
    } else {
      count = count * l.Table(fmt::format("count{}", d), Tensor::Of<int64_t>({w.output[d]}, inside))(at[d + 2]);
    }
  }
  loops::Expr index = loops::Constant(ElementType::kInt64, 0);
  for (size_t k = 1; k < counts.size(); ++k) {
    index = loops::Select(loops::Equal(count, loops::Constant(ElementType::kInt64, counts[k])),
                          loops::Constant(ElementType::kInt64, static_cast<int64_t>(k)), index);
  }
  return index;
}

absl::Status QAveragePool::Lower(const NodeContext& c, loops::OpLowering& l) const {
  HEDDLE_ASSIGN_OR_RETURN(const Window w, PoolWindow(c));
  const Requantiser requantiser = RequantiserOf(c.node());
  const std::vector<int64_t> counts = c.node().Ints("counts");
  const int64_t zero = c.node().Int("x_zero_point");
  const bool include_pad = c.node().Int("count_include_pad") != 0;
  auto value = [&](const loops::Indices& i, const loops::Indices& r) {
    loops::Indices at = {i[0], i[1]};
    const loops::Expr guard = WindowPositions(w, i, r, 0, at);
    const loops::Expr element = Centred(l.input(0).At(at), zero);
    return guard ? loops::Select(guard, element, loops::Constant(ElementType::kInt32, 0)) : element;
  };
  l.Add(loops::Reduce(l.output(), w.kernel, loops::Combiner::kSum, value, [&](loops::Expr sum, const loops::Indices& i) {
    return RequantisedExpr(requantiser, sum, counts.size() == 1 ? loops::Expr() : CountIndex(w, include_pad, counts, l, i));
  }));
  return absl::OkStatus();
}

std::optional<RandomCase> QAveragePool::Sample(Random& random) const {
  Shape shape = {RandomInt(random, 1, 2), RandomInt(random, 1, 4)};
  std::vector<int64_t> kernel, strides, dilations, begins, ends;
  for (int64_t d = RandomInt(random, 0, 3) == 0 ? 1 : 2; d > 0; --d) {
    kernel.push_back(RandomInt(random, 1, 4));
    dilations.push_back(RandomInt(random, 0, 3) == 0 ? 2 : 1);
    strides.push_back(RandomInt(random, 1, 3));
    const int64_t span = dilations.back() * (kernel.back() - 1) + 1;
    // A window that lies in the pads alone has no elements to average.
    begins.push_back(dilations.back() == 1 ? RandomInt(random, 0, kernel.back() - 1) : 0);
    ends.push_back(dilations.back() == 1 ? RandomInt(random, 0, kernel.back() - 1) : 0);
    shape.push_back(span + RandomInt(random, 0, 7));
  }
  Graph graph("sample");
  Tensor x = RandomTensor(random, ElementType::kInt8, shape, -128, 127);
  const ValueId input = graph.AddInput("x", ValueType(ElementType::kInt8, shape));
  begins.insert(begins.end(), ends.begin(), ends.end());
  const bool include_pad = RandomInt(random, 0, 1) != 0;
  Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", begins},
                           {"count_include_pad", int64_t{include_pad}}, {"x_zero_point", RandomInt(random, -128, 127)}};
  const NodeId node = graph.AddNode("QAveragePool", "qpool", {input}, {"y"}, attributes);
  const Window window = *PoolWindow(NodeContext(graph, graph.node(node)));
  const std::vector<int64_t> counts = WindowCounts(window, include_pad);
  Requantiser r = RandomRequantiser(random, 1, 128);
  const FixedPointScale scale = r.scales[0];
  r.scales.clear();
  for (int64_t count : counts) {
    r.scales.push_back(FixedPointScaleOf(scale.multiplier * std::pow(0.5, scale.shift) / static_cast<double>(count)));
  }
  graph.node(node).attributes["counts"] = counts;
  SetRequantiser(r, graph.node(node).attributes);
  return FinishCase(std::move(graph), node, {std::move(x)});
}

}  // namespace

std::vector<int64_t> WindowCounts(const Window& window, bool include_pad) {
  // A count is a product of one number for each dimension; every combination of positions occurs.
  std::set<int64_t> products = {1};
  for (int d = 0; d < window.rank(); ++d) {
    std::set<int64_t> line;
    for (int64_t o = 0; o < window.output[static_cast<size_t>(d)]; ++o) line.insert(CoveredPositions(window, d, o, include_pad));
    std::set<int64_t> next;
    for (int64_t product : products) {
      for (int64_t n : line) next.insert(product * n);
    }
    products = std::move(next);
  }
  return {products.begin(), products.end()};
}

void AddQPool(OpList& ops) { ops.push_back(std::make_unique<QAveragePool>()); }

}  // namespace heddle::ir
