// Hand-computed results of float and movement ops, and the coded refusals of nodes that do not verify.

#include <gtest/gtest.h>

#include <cmath>

#include "ir/interpreter.h"
#include "ir/op.h"

namespace heddle::ir {
namespace {

struct Built {
  Graph graph;
  std::vector<Tensor> inputs;
};

// One node; `tensors` in the order of its inputs, those from `first_constant` on constants. A tensor of rank 0 and type bool stands
// for an absent input.
Built Build(const std::string& op, std::vector<Tensor> tensors, size_t first_constant, Attributes attributes = {}) {
  Built b;
  std::vector<ValueId> ids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].rank() == 0 && tensors[i].type() == ElementType::kBool) {
      ids.push_back(kNoValue);
    } else if (i >= first_constant) {
      ids.push_back(b.graph.AddConstant(fmt::format("c{}", i), tensors[i]));
    } else {
      ids.push_back(b.graph.AddInput(fmt::format("x{}", i), ValueType(tensors[i].type(), tensors[i].shape())));
      b.inputs.push_back(tensors[i]);
    }
  }
  const NodeId node = b.graph.AddNode(op, "node", ids, {"y"}, std::move(attributes));
  b.graph.MarkOutput(b.graph.node(node).outputs[0]);
  return b;
}

Tensor Evaluated(Built b) {
  const absl::Status typed = InferGraphTypes(b.graph);
  EXPECT_TRUE(typed.ok()) << typed.message();
  if (!typed.ok()) return Tensor();
  auto outputs = Interpret(b.graph, b.inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? (*outputs)[0] : Tensor();
}

std::string Refusal(Built b) { return ErrorCode(InferGraphTypes(b.graph)); }

Tensor F(Shape shape, std::vector<float> values) { return Tensor::Of<float>(std::move(shape), std::move(values)); }
Tensor I(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::Of<int64_t>({count}, std::move(values));
}
const Tensor& Absent() {
  static const Tensor& tensor = *new Tensor(ElementType::kBool, {});
  return tensor;
}
constexpr size_t kNone = 99;  // no constants

TEST(Ops, ConvAddsWindowsWithPaddingStrideAndBias) {
  // 3×3 picture 1…9, kernel [[1, 2], [3, 4]], pads 1 at the top and left, stride 2.
  const Tensor x = F({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), w = F({1, 1, 2, 2}, {1, 2, 3, 4}), b = F({1}, {10});
  const Tensor y = Evaluated(Build("Conv", {x, w, b}, 1, {{"strides", std::vector<int64_t>{2, 2}}, {"pads", std::vector<int64_t>{1, 1, 0, 0}}}));
  // Windows: (.,.;.,1) = 4; (.,.;2,3) = 6+12; (.,4;.,7) = 8+28; (5,6;8,9) = 5+12+24+36.
  EXPECT_EQ(y, F({1, 1, 2, 2}, {14, 28, 46, 87}));
}

TEST(Ops, GroupedConvKeepsChannelsApart) {
  const Tensor x = F({1, 2, 2}, {1, 2, 10, 20}), w = F({2, 1, 1}, {3, 5});
  EXPECT_EQ(Evaluated(Build("Conv", {x, w}, 1, {{"group", int64_t{2}}})), F({1, 2, 2}, {3, 6, 50, 100}));
}

TEST(Ops, ConvTransposeSpreads) {
  const Tensor x = F({1, 1, 2}, {1, 10}), w = F({1, 1, 3}, {1, 2, 3});
  EXPECT_EQ(Evaluated(Build("ConvTranspose", {x, w}, 1, {{"strides", std::vector<int64_t>{2}}})), F({1, 1, 5}, {1, 2, 13, 20, 30}));
}

TEST(Ops, GemmTransposesAndScales) {
  const Tensor a = F({2, 1}, {1, 2}), b = F({3, 2}, {1, 0, 0, 1, 1, 1}), c = F({3}, {1, 2, 3});
  const Attributes attributes = {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 2.0}, {"beta", 10.0}};
  EXPECT_EQ(Evaluated(Build("Gemm", {a, b, c}, 1, attributes)), F({1, 3}, {12, 24, 36}));
}

TEST(Ops, MatMulBroadcastsBatches) {
  const Tensor a = F({2, 1, 2}, {1, 2, 3, 4}), b = F({2}, {10, 1});
  EXPECT_EQ(Evaluated(Build("MatMul", {a, b}, kNone)), F({2, 1}, {12, 34}));
}

TEST(Ops, AveragePoolCountsPaddingOnlyWhereAsked) {
  const Tensor x = F({1, 1, 3}, {3, 6, 9});
  Attributes attributes = {{"kernel_shape", std::vector<int64_t>{2}}, {"pads", std::vector<int64_t>{1, 0}}};
  EXPECT_EQ(Evaluated(Build("AveragePool", {x}, kNone, attributes)), F({1, 1, 3}, {3, 4.5, 7.5}));
  attributes["count_include_pad"] = int64_t{1};
  EXPECT_EQ(Evaluated(Build("AveragePool", {x}, kNone, attributes)), F({1, 1, 3}, {1.5, 4.5, 7.5}));
}

TEST(Ops, MaxPoolOfIntegersIgnoresPadding) {
  const Tensor x = Tensor::Of<int8_t>({1, 1, 4}, {-5, -7, -3, -128});
  const Attributes attributes = {{"kernel_shape", std::vector<int64_t>{3}}, {"strides", std::vector<int64_t>{2}},
                                 {"pads", std::vector<int64_t>{1, 0}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(Evaluated(Build("MaxPool", {x}, kNone, attributes)), Tensor::Of<int8_t>({1, 1, 2}, {-5, -3}));
}

TEST(Ops, SoftmaxSumsToOneAndDoesNotOverflow) {
  const Tensor y = Evaluated(Build("Softmax", {F({1, 2}, {1000, 1000})}, kNone));
  EXPECT_EQ(y, F({1, 2}, {0.5, 0.5}));
}

TEST(Ops, BatchNormalization) {
  const Tensor x = F({1, 2, 2}, {1, 3, 5, 7}), scale = F({2}, {2, 1}), b = F({2}, {1, 0}), mean = F({2}, {1, 5}), var = F({2}, {4, 1});
  const Tensor y = Evaluated(Build("BatchNormalization", {x, scale, b, mean, var}, 1, {{"epsilon", 0.0}}));
  EXPECT_EQ(y, F({1, 2, 2}, {1, 3, 0, 2}));
}

TEST(Ops, IntegersWrapAndDivideByZeroGivesZero) {
  const Tensor a = Tensor::Of<int8_t>({3}, {127, -128, 9}), b = Tensor::Of<int8_t>({3}, {1, -1, 0});
  EXPECT_EQ(Evaluated(Build("Add", {a, b}, kNone)), Tensor::Of<int8_t>({3}, {-128, 127, 9}));
  EXPECT_EQ(Evaluated(Build("Div", {a, b}, kNone)), Tensor::Of<int8_t>({3}, {127, -128, 0}));
}

TEST(Ops, SliceWalksBackwards) {
  const Tensor y = Evaluated(Build("Slice", {I({0, 1, 2, 3, 4}), I({-1}), I({-100}), I({0}), I({-2})}, 1));
  EXPECT_EQ(y, I({4, 2, 0}));
}

TEST(Ops, PadReflectsAndRepeats) {
  EXPECT_EQ(Evaluated(Build("Pad", {I({1, 2, 3}), I({2, 1})}, 1, {{"mode", std::string("reflect")}})), I({3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(Evaluated(Build("Pad", {I({1, 2, 3}), I({1, 2})}, 1, {{"mode", std::string("edge")}})), I({1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(Evaluated(Build("Pad", {I({1, 2, 3}), I({1, -1}), Tensor::Of<int64_t>({}, {7})}, 1)), I({7, 1, 2}));
}

TEST(Ops, ResizeHalfPixelLinear) {
  const Tensor y = Evaluated(Build("Resize", {F({1, 1, 2}, {0, 4}), Absent(), Absent(), I({1, 1, 4})}, 1, {{"mode", std::string("linear")}}));
  EXPECT_EQ(y, F({1, 1, 4}, {0, 1, 3, 4}));
}

TEST(Ops, CastSaturatesFloatsAndWrapsIntegers) {
  EXPECT_EQ(Evaluated(Build("Cast", {F({4}, {1e9f, -1e9f, -1.9f, NAN})}, kNone, {{"to", int64_t{3}}})), Tensor::Of<int8_t>({4}, {127, -128, -1, 0}));
  EXPECT_EQ(Evaluated(Build("Cast", {I({257, -129})}, kNone, {{"to", int64_t{3}}})), Tensor::Of<int8_t>({2}, {1, 127}));
}

TEST(Ops, ArgMaxPicksFirstOrLastOfEquals) {
  EXPECT_EQ(Evaluated(Build("ArgMax", {I({3, 5, 5, 1})}, kNone, {{"keepdims", int64_t{0}}})), Tensor::Of<int64_t>({}, {1}));
  EXPECT_EQ(Evaluated(Build("ArgMax", {I({3, 5, 5, 1})}, kNone, {{"select_last_index", int64_t{1}}})), I({2}));
}

TEST(Ops, RefusalsAreCoded) {
  const Tensor x = F({1, 1, 3, 3}, std::vector<float>(9, 1)), w = F({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(Refusal(Build("Conv", {x}, kNone)), "E-OP-001");
  EXPECT_EQ(Refusal(Build("Conv", {I({1}), I({1})}, kNone)), "E-OP-002");
  EXPECT_EQ(Refusal(Build("Conv", {x, F({1, 2, 2, 2}, std::vector<float>(8, 1))}, 1)), "E-OP-003");
  EXPECT_EQ(Refusal(Build("Conv", {x, F({1, 1, 4, 4}, std::vector<float>(16, 1))}, 1)), "E-OP-003");
  EXPECT_EQ(Refusal(Build("Conv", {x, w}, 1, {{"strides", std::vector<int64_t>{0, 1}}})), "E-OP-004");
  EXPECT_EQ(Refusal(Build("Conv", {x, w}, 1, {{"pads", std::vector<int64_t>{1}}})), "E-OP-004");
  EXPECT_EQ(Refusal(Build("Conv", {x, w}, 1, {{"strides", int64_t{1}}})), "E-OP-006");
  EXPECT_EQ(Refusal(Build("Conv", {x, w}, 1, {{"stride", std::vector<int64_t>{1, 1}}})), "E-OP-006");
  EXPECT_EQ(Refusal(Build("Reshape", {x, I({9})}, kNone)), "E-OP-005");
  EXPECT_EQ(Refusal(Build("Reshape", {x, I({-1, 4})}, 1)), "E-OP-003");
  EXPECT_EQ(Refusal(Build("Softmax", {x}, kNone, {{"axis", int64_t{4}}})), "E-OP-004");
  EXPECT_EQ(Refusal(Build("Add", {x, F({2}, {1, 2})}, kNone)), "E-OP-003");
}

TEST(Ops, GatherOutsideIsAnErrorOfTheRun) {
  Built b = Build("Gather", {I({1, 2, 3}), I({3})}, kNone);
  ASSERT_TRUE(InferGraphTypes(b.graph).ok());
  EXPECT_EQ(ErrorCode(Interpret(b.graph, b.inputs).status()), "E-OP-007");
}

}  // namespace
}  // namespace heddle::ir
