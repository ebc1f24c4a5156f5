// The integer ops' reference kernels against a second computation straight from the formulas of README.md, element by
// element with plain index arithmetic and exact rationals, and the verifiers against malformed nodes.

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/op.h"
#include "ir/ops/quant_common.h"

namespace heddle::ir {
namespace {

constexpr int kCases = 150;

// value * 2^-shift rounded half to even, by comparing remainders in 128 bits.
int64_t HalfEven(__int128 value, int shift) {
  const __int128 unit = static_cast<__int128>(1) << shift;
  __int128 quotient = value / unit, rest = value % unit;
  if (rest < 0) {
    rest += unit;
    quotient -= 1;
  }
  if (2 * rest > unit || (2 * rest == unit && quotient % 2 != 0)) quotient += 1;
  return static_cast<int64_t>(quotient);
}

// The nearest integer, ties away from zero.
__int128 NearestAway(__int128 value, int shift) {
  if (shift == 0) return value;
  const __int128 magnitude = value < 0 ? -value : value;
  const __int128 rounded = (magnitude + (static_cast<__int128>(1) << (shift - 1))) >> shift;
  return value < 0 ? -rounded : rounded;
}

int64_t Scale(int64_t sum, int64_t multiplier, int64_t shift, const std::string& rounding) {
  if (rounding == "half_even") return HalfEven(static_cast<__int128>(sum) * multiplier, static_cast<int>(shift));
  __int128 value = sum;
  for (int64_t s = shift; s < 31; ++s) value *= 2;
  value = std::clamp<__int128>(value, INT32_MIN, INT32_MAX);
  // The high product rounds a tie upwards, also below zero: floor(x + 1/2).
  const __int128 product = value * multiplier;
  const __int128 high = (product + (1LL << 30)) >> 31;
  const int right = static_cast<int>(std::max<int64_t>(shift - 31, 0));
  return static_cast<int64_t>(NearestAway(high, right));
}

int64_t Finish(const Node& node, int64_t scaled) {
  return std::clamp<int64_t>(scaled + node.Int("y_zero_point"), node.Int("clamp_low", -128), node.Int("clamp_high", 127));
}

int64_t At(const std::vector<int64_t>& list, int64_t i) { return list[list.size() == 1 ? 0 : static_cast<size_t>(i)]; }

// Element of a tensor by multi-index.
int64_t Get(const Tensor& t, const Shape& index) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) flat = flat * t.shape()[d] + index[d];
  return t.at_int(flat);
}

// The same with broadcasting and extra leading dimensions dropped.
int64_t GetBroadcast(const Tensor& t, const Shape& index) {
  Shape own;
  for (size_t d = 0; d < t.shape().size(); ++d) {
    const int64_t i = index[index.size() - t.shape().size() + d];
    own.push_back(t.shape()[d] == 1 ? 0 : i);
  }
  return Get(t, own);
}

using Inputs = std::vector<const Tensor*>;

int64_t ConvElement(const Node& node, const Inputs& in, const Shape& y) {
  const Tensor &x = *in[0], &w = *in[1];
  const size_t rank = x.shape().size() - 2;
  const int64_t group_outputs = w.shape()[0] / node.Int("group", 1);
  int64_t sum = in.size() > 2 ? in[2]->at_int(y[1]) : 0;
  Shape kernel(w.shape().begin() + 1, w.shape().end());
  ForEachIndex(kernel, [&](const Shape& k) {
    Shape xi = {y[0], y[1] / group_outputs * w.shape()[1] + k[0]}, wi = {y[1], k[0]};
    for (size_t d = 0; d < rank; ++d) {
      const int64_t position = y[d + 2] * node.Ints("strides")[d] + k[d + 1] * node.Ints("dilations")[d] - node.Ints("pads")[d];
      if (position < 0 || position >= x.shape()[d + 2]) return;
      xi.push_back(position);
      wi.push_back(k[d + 1]);
    }
    sum += (Get(x, xi) - node.Int("x_zero_point")) * (Get(w, wi) - At(node.Ints("w_zero_point"), y[1]));
  });
  return Finish(node, Scale(sum, At(node.Ints("multiplier"), y[1]), At(node.Ints("shift"), y[1]), node.String("rounding")));
}

int64_t MatMulElement(const Node& node, const Inputs& in, const Shape& y) {
  const int64_t n = y.back();
  int64_t sum = in.size() > 2 ? in[2]->at_int(n) : 0;
  for (int64_t k = 0; k < in[0]->shape().back(); ++k) {
    Shape a = y, b = y;
    a.back() = k;
    b[b.size() - 2] = k;
    // Only batch dimensions broadcast: an M, K or N of 1 is read at 0 anyway.
    sum += (GetBroadcast(*in[0], a) - node.Int("a_zero_point")) * (GetBroadcast(*in[1], b) - At(node.Ints("b_zero_point"), n));
  }
  return Finish(node, Scale(sum, At(node.Ints("multiplier"), n), At(node.Ints("shift"), n), node.String("rounding")));
}

int64_t AddElement(const Node& node, const Inputs& in, const Shape& y) {
  const int64_t sum = (GetBroadcast(*in[0], y) - node.Int("a_zero_point")) * node.Int("a_multiplier") +
                      (GetBroadcast(*in[1], y) - node.Int("b_zero_point")) * node.Int("b_multiplier");
  return Finish(node, HalfEven(sum, static_cast<int>(node.Int("shift"))));
}

int64_t MulElement(const Node& node, const Inputs& in, const Shape& y) {
  const int64_t product = (GetBroadcast(*in[0], y) - node.Int("a_zero_point")) * (GetBroadcast(*in[1], y) - node.Int("b_zero_point"));
  return Finish(node, Scale(product, node.Int("multiplier"), node.Int("shift"), node.String("rounding")));
}

int64_t PoolElement(const Node& node, const Inputs& in, const Shape& y) {
  const Tensor& x = *in[0];
  const std::vector<int64_t> kernel = node.Ints("kernel_shape"), pads = node.Ints("pads");
  int64_t sum = 0, count = 0;
  ForEachIndex(kernel, [&](const Shape& k) {
    Shape xi = {y[0], y[1]};
    bool inside = true, on_pad = true;
    for (size_t d = 0; d < k.size(); ++d) {
      const int64_t position = y[d + 2] * node.Ints("strides")[d] + k[d] * node.Ints("dilations")[d] - pads[d];
      inside = inside && position >= 0 && position < x.shape()[d + 2];
      on_pad = on_pad && position >= -pads[d] && position < x.shape()[d + 2] + pads[d + k.size()];
      xi.push_back(position);
    }
    if (inside) sum += Get(x, xi) - node.Int("x_zero_point");
    count += node.Int("count_include_pad") ? on_pad : inside;
  });
  const std::vector<int64_t> counts = node.Ints("counts");
  const auto which = std::find(counts.begin(), counts.end(), count) - counts.begin();
  EXPECT_LT(which, static_cast<int64_t>(counts.size()));
  return Finish(node, Scale(sum, At(node.Ints("multiplier"), which), At(node.Ints("shift"), which), node.String("rounding")));
}

int64_t SoftmaxElement(const Node& node, const Inputs& in, const Shape& y) {
  const auto table = node.TensorAttribute("exp_table");
  const auto axis = static_cast<size_t>((node.Int("axis") + static_cast<int64_t>(y.size())) % static_cast<int64_t>(y.size()));
  int64_t peak = -1000, total = 0;
  Shape at = y;
  for (int pass = 0; pass < 2; ++pass) {
    for (at[axis] = 0; at[axis] < in[0]->shape()[axis]; ++at[axis]) {
      if (pass == 0) peak = std::max(peak, Get(*in[0], at));
      if (pass == 1) total += table->at_int(peak - Get(*in[0], at));
    }
  }
  const __int128 numerator = static_cast<__int128>(table->at_int(peak - Get(*in[0], y))) * node.Int("y_multiplier");
  __int128 quotient = numerator / total;
  const __int128 rest = numerator % total;
  if (2 * rest > total || (2 * rest == total && quotient % 2 != 0)) ++quotient;
  return Finish(node, static_cast<int64_t>(quotient));
}

int64_t LutElement(const Node& node, const Inputs& in, const Shape& y) {
  return node.TensorAttribute("table")->at_int(Get(*in[0], y) + 128);
}

int64_t FlipElement(const Node&, const Inputs& in, const Shape& y) {
  return in[0]->type() == ElementType::kInt8 ? Get(*in[0], y) + 128 : Get(*in[0], y) - 128;
}

void CheckOp(const std::string& name, int64_t (*element)(const Node&, const Inputs&, const Shape&)) {
  const Op* op = FindOp(name);
  ASSERT_NE(op, nullptr);
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(name + ", seed " + std::to_string(seed));
    Random random(seed);
    const RandomCase sample = *op->Sample(random);
    const Node& node = sample.graph.node(sample.graph.NodeIds().front());
    Inputs inputs;
    for (ValueId id : node.inputs) {
      const auto& names = sample.graph.inputs();
      const auto which = std::find(names.begin(), names.end(), id) - names.begin();
      const Tensor* constant = sample.graph.ConstantOrNull(id);
      inputs.push_back(constant ? constant : &sample.inputs[static_cast<size_t>(which)]);
    }
    const auto outputs = op->Evaluate(NodeContext(sample.graph, node), inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    const Tensor& y = (*outputs)[0];
    int64_t flat = 0;
    ForEachIndex(y.shape(), [&](const Shape& index) {
      ASSERT_EQ(y.at_int(flat), element(node, inputs, index)) << "element " << flat;
      ++flat;
    });
    ASSERT_EQ(flat, y.elements());
  }
}

TEST(QuantOps, ConvIsTheFormula) { CheckOp("QConv", ConvElement); }
TEST(QuantOps, MatMulIsTheFormula) { CheckOp("QMatMul", MatMulElement); }
TEST(QuantOps, AddIsTheFormula) { CheckOp("QAdd", AddElement); }
TEST(QuantOps, MulIsTheFormula) { CheckOp("QMul", MulElement); }
TEST(QuantOps, AveragePoolIsTheFormula) { CheckOp("QAveragePool", PoolElement); }
TEST(QuantOps, SoftmaxIsTheFormula) { CheckOp("QSoftmax", SoftmaxElement); }
TEST(QuantOps, LutIsTheFormula) { CheckOp("QLut", LutElement); }
TEST(QuantOps, SignFlipIsTheFormula) { CheckOp("SignFlip", FlipElement); }

TEST(QuantOps, QuantizeLinearRoundsTiesToEvenAndSaturates) {
  EXPECT_EQ(QuantiseValue(0.5f, 1.0f, 0, ElementType::kInt8), 0);
  EXPECT_EQ(QuantiseValue(1.5f, 1.0f, 0, ElementType::kInt8), 2);
  EXPECT_EQ(QuantiseValue(-0.5f, 1.0f, 3, ElementType::kInt8), 3);
  EXPECT_EQ(QuantiseValue(-2.5f, 1.0f, 3, ElementType::kInt8), 1);
  EXPECT_EQ(QuantiseValue(1e30f, 1e-10f, 0, ElementType::kInt8), 127);
  EXPECT_EQ(QuantiseValue(-INFINITY, 1.0f, 100, ElementType::kUint8), 0);
  EXPECT_EQ(QuantiseValue(NAN, 1.0f, 100, ElementType::kUint8), 100);
}

// Every attribute in turn replaced by a wrong type and by absurd values: an error with a code, never a crash.
TEST(QuantOps, MalformedAttributesAreErrors) {
  for (const char* name : {"QConv", "QMatMul", "QAdd", "QMul", "QAveragePool", "QLut", "QSoftmax", "QuantizeLinear"}) {
    const Op* op = FindOp(name);
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      const RandomCase sample = *op->Sample(random);
      const NodeId id = sample.graph.NodeIds().front();
      for (const auto& [key, value] : sample.graph.node(id).attributes) {
        const std::vector<Attribute> wrong = {std::string("x"), int64_t{-1000000000000}, int64_t{1} << 40, std::vector<int64_t>{},
                                              std::vector<int64_t>(9, -7), 1.5, std::shared_ptr<const Tensor>()};
        for (const Attribute& replacement : wrong) {
          Graph graph = sample.graph;
          graph.node(id).attributes[key] = replacement;
          const absl::Status status = InferNodeTypes(graph, id);
          if (status.ok()) continue;  // an axis is not read for per-tensor scales, and the like
          EXPECT_FALSE(ErrorCode(status).empty()) << name << " " << key << ": " << status.message();
        }
        Graph graph = sample.graph;
        graph.node(id).attributes[key] = 1.5;
        EXPECT_FALSE(InferNodeTypes(graph, id).ok()) << name << " accepts a float as " << key;
      }
      Graph graph = sample.graph;
      graph.AppendInput(id, graph.inputs()[0]);
      graph.AppendInput(id, graph.inputs()[0]);
      EXPECT_FALSE(InferNodeTypes(graph, id).ok()) << name << " accepts too many inputs";
    }
  }
}

TEST(QuantOps, AnAccumulatorThatCouldOverflowIsRefused) {
  Graph graph("overflow");
  const int64_t k = 70000;
  const ValueId a = graph.AddInput("a", ValueType(ElementType::kInt8, Shape{1, k}));
  Tensor weights(ElementType::kInt8, {k, 1});
  for (int8_t& w : weights.as<int8_t>()) w = 127;
  const ValueId b = graph.AddConstant("b", std::move(weights));
  Attributes attributes = {{"a_zero_point", int64_t{-128}}, {"b_zero_point", std::vector<int64_t>{0}}};
  SetRequantiser({{{1 << 30, 40}}, Rounding::kHalfEven, 0, -128, 127}, attributes);
  const NodeId node = graph.AddNode("QMatMul", "m", {a, b}, {"y"}, attributes);
  EXPECT_EQ(ErrorCode(InferNodeTypes(graph, node)), "E-OP-205");
}

}  // namespace
}  // namespace heddle::ir
