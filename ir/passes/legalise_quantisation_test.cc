// Quantised patterns become the integer ops that they should, and every legalised layer stays within one step of the float
// computation of that layer on equal inputs (equal nearly everywhere).

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/interpreter.h"
#include "ir/passes/pass.h"
#include "ir/passes/quant_test_graphs.h"
#include "ir/passes/quantised_compare.h"

namespace heddle::ir {
namespace {

std::map<std::string, int> CountOps(const Graph& graph) {
  std::map<std::string, int> counts;
  for (NodeId id : graph.NodeIds()) ++counts[graph.node(id).op];
  return counts;
}

using Ops = std::map<std::string, int>;

const Node& OnlyNodeOf(const Graph& graph, const char* op) {
  for (NodeId id : graph.NodeIds()) {
    if (graph.node(id).op == op) return graph.node(id);
  }
  HEDDLE_CHECK(false, std::string("no ") + op);
  return graph.node(0);
}

// Runs the pipeline on the built graph and compares, layer by layer and at the outputs.
Graph Legalise(QdqBuilder& b, int64_t allowed_per_mille = 10) {
  const Graph original = b.graph();
  Graph graph = original;
  const absl::Status status = RunDefaultPipeline(graph, {.verify_each = true});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(graph.outputs().size(), original.outputs().size());
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    EXPECT_EQ(graph.value(graph.outputs()[i]).name, original.value(original.outputs()[i]).name);
  }
  QuantisedComparison comparison;
  for (int run = 0; run < 3; ++run) {
    const absl::Status compared = CompareQuantisedLayers(original, graph, b.RandomInputs(), comparison);
    EXPECT_TRUE(compared.ok()) << compared.message();
  }
  EXPECT_FALSE(comparison.layers.empty());
  EXPECT_LE(comparison.largest_step, 1);
  EXPECT_LE(comparison.mismatches * 1000, comparison.elements * allowed_per_mille) << "of " << comparison.elements;
  return graph;
}

Attributes ConvAttributes(int64_t stride, int64_t pad, int64_t group) {
  return {{"strides", std::vector<int64_t>{stride, stride}}, {"pads", std::vector<int64_t>(4, pad)}, {"group", group}};
}

TEST(Legalise, ConvReluWithPerChannelWeightsAndBias) {
  QdqBuilder b(1);
  const ValueId x = b.Fake(b.Input({1, 8, 9, 9}), 0.031f, -7);
  const ValueId w = b.Weights({6, 8, 3, 3}, 0, 0.011f);
  const ValueId y = b.Op("Relu", {b.Op("Conv", {x, w, b.Bias(0.031f)}, ConvAttributes(2, 1, 1))});
  b.Output(b.Fake(y, 0.053f, -128));
  const Graph graph = Legalise(b);
  EXPECT_EQ(CountOps(graph), (Ops{{"QuantizeLinear", 1}, {"QConv", 1}, {"DequantizeLinear", 1}}));
  const Node& conv = OnlyNodeOf(graph, "QConv");
  EXPECT_EQ(conv.Int("clamp_low"), -128);
  EXPECT_EQ(conv.Ints("multiplier").size(), 6u);
  EXPECT_EQ(conv.String("rounding"), "half_even");
}

TEST(Legalise, ClipBoundsAreQuantisedExactly) {
  QdqBuilder b(2);
  const ValueId x = b.Fake(b.Input({1, 4, 6, 6}), 0.04f, 3);
  const ValueId conv = b.Op("Conv", {x, b.Weights({8, 4, 1, 1}, -1, 0.02f)}, ConvAttributes(1, 0, 1));
  b.Output(b.Fake(b.Op("Clip", {conv, b.Scalar(0), b.Scalar(6)}), 0.06f, -20));
  const Graph graph = Legalise(b);
  const Node& conv_node = OnlyNodeOf(graph, "QConv");
  EXPECT_TRUE(conv_node.name.starts_with("Conv"));  // reports call it what the model does
  EXPECT_EQ(conv_node.Int("clamp_low"), -20);
  EXPECT_EQ(conv_node.Int("clamp_high"), 80);  // 6 / 0.06 - 20
}

TEST(Legalise, FloatBiasAndForeignBiasScaleAreRequantised) {
  QdqBuilder b(3);
  const ValueId x = b.Fake(b.Input({1, 4, 6, 6}), 0.05f, 0);
  const ValueId first = b.Op("Conv", {x, b.Weights({4, 4, 3, 3}, 0, 0.02f), b.Floats({4}, -2, 2)}, ConvAttributes(1, 1, 1));
  const ValueId middle = b.Fake(first, 0.07f, 5);
  const ValueId w = b.Weights({4, 1, 3, 3}, 0, 0.02f);
  b.Output(b.Fake(b.Op("Conv", {middle, w, b.Bias(0.09f)}, ConvAttributes(1, 1, 4)), 0.05f, 1));
  const Graph graph = Legalise(b);
  EXPECT_EQ(CountOps(graph)["QConv"], 2);
}

TEST(Legalise, GemmAndMatMulInAllForms) {
  for (const bool transpose : {false, true}) {
    QdqBuilder b(4);
    const ValueId x = b.Fake(b.Input({5, 12}), 0.03f, -3);
    const ValueId w = b.Weights(transpose ? Shape{7, 12} : Shape{12, 7}, transpose ? 0 : 1, 0.02f);
    const ValueId gemm = b.Op("Gemm", {x, w, b.Bias(0.03f)}, {{"transB", int64_t{transpose}}, {"alpha", 0.5}, {"beta", 2.0}});
    const ValueId y = b.Fake(gemm, 0.02f, 9);
    const ValueId z = b.Op("MatMul", {y, b.Weights({7, 6}, 1, 0.01f)});
    b.Output(b.Fake(b.Op("Add", {z, b.Floats({6}, -1, 1)}), 0.01f, -9));
    const Graph graph = Legalise(b);
    EXPECT_EQ(CountOps(graph), (Ops{{"QuantizeLinear", 1}, {"QMatMul", 2}, {"DequantizeLinear", 1}}));
  }
}

TEST(Legalise, TransposedPerChannelWeights) {
  // As exported from a linear layer: weights [N, K] with a scale for each of N, transposed for MatMul.
  QdqBuilder b(20);
  const ValueId x = b.Fake(b.Input({2, 5, 12}), 0.03f, -3);
  const ValueId w = b.Op("Transpose", {b.Weights({7, 12}, 0, 0.02f)}, {{"perm", std::vector<int64_t>{1, 0}}});
  b.Output(b.Fake(b.Op("MatMul", {x, w}), 0.02f, 9));
  EXPECT_EQ(CountOps(Legalise(b)), (Ops{{"QuantizeLinear", 1}, {"QMatMul", 1}, {"DequantizeLinear", 1}}));
}

TEST(Legalise, MatMulOfTwoActivationsWithBatches) {
  QdqBuilder b(5);
  const ValueId x = b.Fake(b.Input({2, 3, 4, 8}), 0.03f, -3), y = b.Fake(b.Input({2, 3, 8, 5}), 0.025f, 11);
  b.Output(b.Fake(b.Op("MatMul", {x, y}), 0.09f, 2));
  EXPECT_EQ(CountOps(Legalise(b)), (Ops{{"QuantizeLinear", 2}, {"QMatMul", 1}, {"DequantizeLinear", 1}}));
}

TEST(Legalise, AddSubAndMulOfQuantisedTensors) {
  for (const char* op : {"Add", "Sub", "Mul"}) {
    QdqBuilder b(6);
    const ValueId x = b.Fake(b.Input({2, 5, 4, 4}), 0.03f, -3), y = b.Fake(b.Input({5, 1, 1}), 0.055f, 40);
    b.Output(b.Fake(b.Op("Relu", {b.Op(op, {x, y})}), 0.06f, -100));
    const Ops counts = CountOps(Legalise(b));
    EXPECT_EQ(counts.count(op), 0u) << op;
    EXPECT_EQ(counts.count("Relu"), 0u) << op;
    EXPECT_EQ(counts.count(std::string(op) == "Mul" ? "QMul" : "QAdd"), 1u) << op;
  }
}

TEST(Legalise, AveragesBecomeIntegerPools) {
  {
    QdqBuilder b(7);
    const ValueId x = b.Fake(b.Input({1, 3, 9, 7}), 0.03f, -3);
    Attributes attributes = {{"kernel_shape", std::vector<int64_t>{3, 2}}, {"strides", std::vector<int64_t>{2, 2}},
                             {"pads", std::vector<int64_t>{1, 1, 1, 0}}};
    b.Output(b.Fake(b.Op("AveragePool", {x}, attributes), 0.02f, 5));
    const Graph graph = Legalise(b);
    EXPECT_EQ(CountOps(graph)["QAveragePool"], 1);
  }
  {
    QdqBuilder b(8);
    b.Output(b.Fake(b.Op("GlobalAveragePool", {b.Fake(b.Input({2, 3, 5, 7}), 0.03f, -3)}), 0.02f, 5));
    EXPECT_EQ(CountOps(Legalise(b))["QAveragePool"], 1);
  }
  for (const int64_t keepdims : {0, 1}) {
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{2, 3}, {-1}, {1, 2}, {0}}) {
      QdqBuilder b(9);
      const ValueId x = b.Fake(b.Input({2, 3, 5, 4}), 0.03f, -3);
      b.Output(b.Fake(b.Op("ReduceMean", {x}, {{"axes", axes}, {"keepdims", keepdims}}), 0.02f, 5));
      const Ops counts = CountOps(Legalise(b));
      EXPECT_EQ(counts.count("ReduceMean"), 0u);
      EXPECT_EQ(counts.at("QAveragePool"), 1);
    }
  }
}

TEST(Legalise, SoftmaxStaysWithinOneStep) {
  for (const float scale : {1.0f / 256, 0.0039215689f, 0.013f}) {
    for (const int64_t axis : {-1, 1}) {
      QdqBuilder b(10);
      const ValueId x = b.Fake(b.Input({3, 40, 7}), 0.15f, 12);
      b.Output(b.Fake(b.Op("Softmax", {x}, {{"axis", axis}}), scale, -128));
      EXPECT_EQ(CountOps(Legalise(b, 100))["QSoftmax"], 1);
    }
  }
}

TEST(Legalise, ChainsOfUnaryFunctionsBecomeOneLookup) {
  QdqBuilder b(11);
  const ValueId x = b.Fake(b.Input({2, 50}), 0.05f, -10);
  const ValueId swish = b.Op("Mul", {x, b.Op("Sigmoid", {x})});
  const ValueId y = b.Fake(b.Op("Add", {swish, b.Scalar(0.25f)}), 0.04f, 3);
  b.Output(b.Fake(b.Op("Tanh", {y}), 1.0f / 128, 0));
  const Graph graph = Legalise(b, 0);
  EXPECT_EQ(CountOps(graph), (Ops{{"QuantizeLinear", 1}, {"QLut", 2}, {"DequantizeLinear", 1}}));
}

TEST(Legalise, RequantisationBetweenParametersIsALookupAndEqualPairsVanish) {
  QdqBuilder b(12);
  const ValueId x = b.Fake(b.Fake(b.Input({2, 50}), 0.05f, -10), 0.05f, -10);
  b.Output(b.Fake(x, 0.09f, 20));
  EXPECT_EQ(CountOps(Legalise(b, 0)), (Ops{{"QuantizeLinear", 1}, {"QLut", 1}, {"DequantizeLinear", 1}}));
}

TEST(Legalise, MovementRunsOnIntegers) {
  QdqBuilder b(13);
  const ValueId x = b.Fake(b.Input({1, 4, 8, 8}), 0.05f, -10), y = b.Fake(b.Input({1, 4, 4, 4}), 0.08f, 30);
  const ValueId pooled = b.Op("MaxPool", {x}, {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const ValueId joined = b.Op("Concat", {pooled, y}, {{"axis", int64_t{1}}});
  const ValueId turned = b.Op("Transpose", {joined}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  b.Output(b.Fake(b.Op("Reshape", {turned, b.Ints({1, -1})}), 0.07f, 0));
  const Ops counts = CountOps(Legalise(b));
  EXPECT_EQ(counts, (Ops{{"QuantizeLinear", 2}, {"MaxPool", 1}, {"QLut", 2}, {"Concat", 1}, {"Transpose", 1}, {"Reshape", 1},
                         {"DequantizeLinear", 1}}));
}

TEST(Legalise, PadsJoinTheConvolution) {
  for (const bool quantised_pad : {false, true}) {
    QdqBuilder b(14);
    ValueId x = b.Quantise(b.Input({1, 4, 8, 8}), 0.05f, -10);
    if (quantised_pad) x = b.Op("Pad", {x, b.Ints({0, 0, 0, 0, 0, 0, 1, 1}), b.ZeroPoint(ElementType::kInt8, -10)});
    x = b.Dequantise(x, 0.05f, -10);
    if (!quantised_pad) x = b.Op("Pad", {x, b.Ints({0, 0, 0, 0, 0, 0, 1, 1})});
    b.Output(b.Fake(b.Op("Conv", {x, b.Weights({4, 4, 3, 3}, 0, 0.02f)}, ConvAttributes(2, 0, 1)), 0.05f, 0));
    const Graph graph = Legalise(b);
    EXPECT_EQ(CountOps(graph), (Ops{{"QuantizeLinear", 1}, {"QConv", 1}, {"DequantizeLinear", 1}}));
    EXPECT_EQ(OnlyNodeOf(graph, "QConv").Ints("pads"), (std::vector<int64_t>{0, 0, 1, 1}));
  }
}

TEST(Legalise, UnsignedModelsBecomeSignedInside) {
  QdqBuilder b(15);
  constexpr ElementType kU8 = ElementType::kUint8;
  const ValueId x = b.Dequantise(b.graph().AddInput("bytes", ValueType(kU8, Shape{1, 3, 8, 8})), 0.02f, 131);
  const ValueId y = b.Fake(b.Op("Relu", {b.Op("Conv", {x, b.Weights({4, 3, 3, 3}, 0, 0.02f, kU8)}, ConvAttributes(1, 1, 1))}), 0.03f, 0, kU8);
  const ValueId pooled = b.Op("MaxPool", {y}, {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  b.Output(b.Quantise(b.Op("Conv", {pooled, b.Weights({4, 4, 3, 3}, 0, 0.02f)}, ConvAttributes(1, 0, 1)), 0.04f, 7, kU8));
  const Graph graph = Legalise(b);
  EXPECT_EQ(CountOps(graph), (Ops{{"SignFlip", 2}, {"QConv", 2}, {"MaxPool", 1}}));
  EXPECT_EQ(graph.type(graph.outputs()[0]).element, kU8);
}

TEST(Legalise, SharedTensorsWork) {
  // Relu read by two equal quantisers; its dequantised value by a convolution and by the addition.
  QdqBuilder b(16);
  const ValueId x = b.Fake(b.Input({1, 4, 6, 6}), 0.05f, 0);
  const ValueId relu = b.Op("Relu", {b.Op("Conv", {x, b.Weights({4, 4, 3, 3}, 0, 0.02f)}, ConvAttributes(1, 1, 1))});
  const ValueId left = b.Fake(relu, 0.06f, -128), right = b.Fake(relu, 0.06f, -128);
  const ValueId conv = b.Fake(b.Op("Conv", {left, b.Weights({4, 4, 3, 3}, 0, 0.02f)}, ConvAttributes(1, 1, 1)), 0.09f, 4);
  b.Output(b.Fake(b.Op("Add", {conv, right}), 0.1f, 0));
  EXPECT_EQ(CountOps(Legalise(b)), (Ops{{"QuantizeLinear", 1}, {"QConv", 2}, {"QAdd", 1}, {"DequantizeLinear", 1}}));
}

TEST(Legalise, WhatDoesNotMatchStaysFloatAndRight) {
  // The convolution's float result is an output too; i16 and unquantised weights have no integer op.
  QdqBuilder b(17);
  const ValueId x = b.Fake(b.Input({1, 4, 6, 6}), 0.05f, 0);
  const ValueId conv = b.Op("Conv", {x, b.Weights({4, 4, 3, 3}, 0, 0.02f)}, ConvAttributes(1, 1, 1));
  b.Output(conv);
  const ValueId wide = b.Fake(conv, 0.001f, 0, ElementType::kInt16);
  b.Output(b.Fake(b.Op("Conv", {wide, b.Floats({2, 4, 1, 1}, -1, 1)}, ConvAttributes(1, 0, 1)), 0.06f, 0));
  const Ops counts = CountOps(Legalise(b));
  EXPECT_EQ(counts.at("Conv"), 2);
  EXPECT_EQ(counts.count("QConv"), 0u);
}

TEST(Legalise, QLinearOperatorsBecomeIntegerOps) {
  QdqBuilder b(18);
  Graph& g = b.graph();
  constexpr ElementType kU8 = ElementType::kUint8;
  const ValueId x = b.Quantise(b.Input({1, 4, 6, 6}), 0.05f, 120, kU8);
  const ValueId w = g.AddConstant("w", RandomTensor(b.random(), ElementType::kInt8, {6, 2, 3, 3}, -127, 127));
  const ValueId bias = g.AddConstant("b", RandomTensor(b.random(), ElementType::kInt32, {6}, -2000, 2000));
  const ValueId conv = b.Op("QLinearConv", {x, b.Scalar(0.05f), b.ZeroPoint(kU8, 120), w, b.Floats({6}, 0.01f, 0.03f),
                                            b.ZeroPoint(ElementType::kInt8, 0), b.Scalar(0.06f), b.ZeroPoint(kU8, 100), bias},
                            ConvAttributes(1, 1, 2));
  const ValueId flat = b.Op("Reshape", {conv, b.Ints({6, 36})});
  const ValueId m = g.AddConstant("m", RandomTensor(b.random(), ElementType::kInt8, {36, 5}, -127, 127));
  const ValueId y = b.Op("QLinearMatMul", {flat, b.Scalar(0.06f), b.ZeroPoint(kU8, 100), m, b.Scalar(0.01f),
                                           b.ZeroPoint(ElementType::kInt8, 2), b.Scalar(0.1f), b.ZeroPoint(ElementType::kInt8, 3)});
  b.Output(b.Dequantise(y, 0.1f, 3));
  const Ops counts = CountOps(Legalise(b));
  EXPECT_EQ(counts, (Ops{{"QuantizeLinear", 1}, {"QConv", 1}, {"Reshape", 1}, {"QMatMul", 1}, {"DequantizeLinear", 1}}));
}

// Random little networks of the layers above, several hundred of them.
TEST(Legalise, RandomConvolutionsStayWithinOneStep) {
  for (uint64_t seed = 100; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    QdqBuilder b(seed);
    auto pick = [&](int64_t low, int64_t high) { return RandomInt(b.random(), low, high); };
    // Powers of two make exact ties in most elements.
    const bool ties = pick(0, 2) == 0;
    auto scale = [&](float s) { return ties ? std::ldexp(1.0f, static_cast<int>(std::round(std::log2(s)))) : s; };
    const int64_t group = pick(1, 2), channels = group * pick(1, 3);
    const float x_scale = scale(0.04f);
    const ValueId x = b.Fake(b.Input({1, channels, pick(5, 8), pick(5, 8)}), x_scale, pick(-128, 127));
    const ValueId w = b.Weights({group * pick(1, 4), channels / group, pick(1, 3), pick(1, 3)}, ties ? -1 : 0, scale(0.02f));
    ValueId y = b.Op("Conv", {x, w}, ConvAttributes(pick(1, 2), pick(0, 1), group));
    if (pick(0, 1)) y = b.Op("Relu", {y});
    b.Output(b.Fake(y, scale(0.05f), pick(-128, 127)));
    EXPECT_EQ(CountOps(Legalise(b, 20)), (Ops{{"QuantizeLinear", 1}, {"QConv", 1}, {"DequantizeLinear", 1}}));
  }
}

}  // namespace
}  // namespace heddle::ir
