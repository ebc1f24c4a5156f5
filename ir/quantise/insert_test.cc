// Small float graphs, quantised and legalised: every layer becomes the integer op it should, nothing else is rounded,
// and the result is near the float graph's.

#include "ir/quantise/insert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/interpreter.h"
#include "ir/passes/pass.h"
#include "ir/passes/quant_test_graphs.h"
#include "ir/quantise/noise.h"

namespace heddle::ir::quantise {
namespace {

constexpr uint64_t kSeed = 20240711;
constexpr int kSamples = 4;

std::vector<std::vector<Tensor>> Samples(const Graph& graph, Random& random) {
  std::vector<std::vector<Tensor>> samples(kSamples);
  for (auto& inputs : samples) {
    for (ValueId id : graph.inputs()) {
      Tensor tensor(ElementType::kFloat32, graph.type(id).static_shape());
      for (float& value : tensor.as<float>()) value = std::normal_distribution<float>(0, 1)(random);
      inputs.push_back(std::move(tensor));
    }
  }
  return samples;
}

Histograms HistogramsOf(const Graph& graph, const Plan& plan, const std::vector<std::vector<Tensor>>& samples) {
  Histograms histograms;
  InterpretOptions options;
  options.on_value = [&](ValueId id, const Tensor& tensor) {
    if (plan.Quantised(id)) histograms[id].Add(Observed(plan, id, tensor).as<float>());
  };
  for (const auto& inputs : samples) EXPECT_TRUE(Interpret(graph, inputs, options).ok());
  return histograms;
}

struct Outcome {
  std::vector<std::string> ops;  // after legalisation, sorted, QuantizeLinear and DequantizeLinear left out
  double sqnr_db = 0;            // of the first output, the worst sample
  Quantised quantised;
};

Outcome QuantiseAndRun(const Graph& graph, Random& random, const PlanOptions& options = {}) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Outcome outcome;
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph);
  const auto plan = PlanQuantisation(graph, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return outcome;
  const auto samples = Samples(graph, random);
  auto quantised = Quantise(graph, *plan, HistogramsOf(graph, *plan, samples), {});
  EXPECT_TRUE(quantised.ok()) << quantised.status();
  if (!quantised.ok()) return outcome;
  EXPECT_TRUE(Verify(quantised->graph).ok()) << Verify(quantised->graph);
  Graph legalised = quantised->graph;
  EXPECT_TRUE(RunDefaultPipeline(legalised).ok());
  for (NodeId id : legalised.NodeIds()) {
    const std::string& op = legalised.node(id).op;
    if (op != "QuantizeLinear" && op != "DequantizeLinear") outcome.ops.push_back(op);
  }
  std::sort(outcome.ops.begin(), outcome.ops.end());
  outcome.sqnr_db = HUGE_VAL;
  for (const auto& inputs : samples) {
    const auto real = Interpret(graph, inputs), found = Interpret(legalised, inputs);
    EXPECT_TRUE(real.ok() && found.ok());
    Noise noise;
    noise.Add((*real)[0], (*found)[0]);
    outcome.sqnr_db = std::min(outcome.sqnr_db, noise.sqnr_db());
  }
  outcome.quantised = *std::move(quantised);
  return outcome;
}

using Ops = std::vector<std::string>;

const QuantisedTensor& TensorCalled(const Quantised& quantised, const std::string& value) {
  for (const QuantisedTensor& tensor : quantised.tensors) {
    if (tensor.value == value) return tensor;
  }
  ADD_FAILURE() << "no tensor " << value;
  static const QuantisedTensor none;
  return none;
}

class FloatBuilder : public QdqBuilder {
 public:
  FloatBuilder() : QdqBuilder(kSeed) {}
  ValueId Conv(ValueId x, int64_t out, int64_t kernel, int64_t group = 1, bool bias = true) {
    const int64_t in = graph().type(x).static_shape()[1], pad = kernel / 2;
    std::vector<ValueId> inputs = {x, Floats({out, in / group, kernel, kernel}, -0.5f, 0.5f)};
    if (bias) inputs.push_back(Floats({out}, -1, 1));
    return Op("Conv", inputs, {{"pads", std::vector<int64_t>(4, pad)}, {"group", group}});
  }
  std::string Name(ValueId value) { return graph().value(value).name; }
};

TEST(Quantise, ConvolutionsAndClamps) {
  FloatBuilder b;
  ValueId y = b.Op("Relu", {b.Conv(b.Input({1, 3, 8, 8}), 8, 3)});
  y = b.Op("Clip", {b.Conv(y, 8, 3, /*group=*/8), b.Scalar(0), b.Scalar(6)});  // depthwise
  y = b.Conv(y, 12, 1, /*group=*/4, /*bias=*/false);
  b.graph().MarkOutput(y);
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  EXPECT_EQ(outcome.ops, (Ops{"QConv", "QConv", "QConv"}));
  EXPECT_GT(outcome.sqnr_db, 30);
  EXPECT_EQ(outcome.quantised.layers, 3);
  // The interface is the model's.
  EXPECT_EQ(outcome.quantised.graph.value(outcome.quantised.graph.outputs()[0]).name, b.Name(y));
  EXPECT_EQ(outcome.quantised.graph.type(outcome.quantised.graph.outputs()[0]).element, ElementType::kFloat32);
  EXPECT_EQ(outcome.quantised.graph.value(outcome.quantised.graph.inputs()[0]).name, "input0");
}

TEST(Quantise, WeightsHaveAScaleForEachChannelAndBiasesThatOfTheSum) {
  FloatBuilder b;
  const ValueId x = b.Input({1, 2, 4, 4});
  Tensor weights(ElementType::kFloat32, {2, 2, 1, 1});
  const float values[] = {0.127f, -0.0635f, 12.7f, 1.27f};
  std::copy(std::begin(values), std::end(values), weights.as<float>().begin());
  const ValueId w = b.graph().AddConstant("w", weights),
                bias = b.graph().AddConstant("b", Tensor::Of<float>({2}, {0.5f, 1e6f}));
  b.graph().MarkOutput(b.Op("Conv", {x, w, bias}));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  const Graph& graph = outcome.quantised.graph;
  const float x_scale = TensorCalled(outcome.quantised, "input0").parameters.scale;
  bool found_weights = false, found_bias = false;
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const Tensor* q = node.op == "DequantizeLinear" ? graph.ConstantOrNull(node.inputs[0]) : nullptr;
    if (!q) continue;
    const Tensor& scale = *graph.ConstantOrNull(node.inputs[1]);
    EXPECT_EQ(scale.elements(), 2);
    EXPECT_EQ(node.Int("axis"), 0);
    if (q->type() == ElementType::kInt8) {
      found_weights = true;
      EXPECT_EQ(q->at_int(0), 127);
      EXPECT_EQ(q->at_int(1), -64);  // -63.5, ties to even
      EXPECT_NEAR(scale.at_double(0), 0.001, 1e-9);
      EXPECT_GE(scale.at_double(1), 0.1 - 1e-6);
    } else {
      found_bias = true;
      EXPECT_EQ(q->type(), ElementType::kInt32);
      EXPECT_FLOAT_EQ(static_cast<float>(scale.at_double(0)), x_scale * 0.001f);
      EXPECT_NEAR(static_cast<double>(q->at_int(0)) * scale.at_double(0), 0.5, scale.at_double(0));
      EXPECT_NEAR(static_cast<double>(q->at_int(1)) * scale.at_double(1), 1e6, 1);
      EXPECT_LE(q->at_int(1), int64_t{1} << 30);
    }
  }
  EXPECT_TRUE(found_weights && found_bias);
}

TEST(Quantise, ResidualAddPoolAndClassifier) {
  FloatBuilder b;
  const ValueId stem = b.Op("Relu", {b.Conv(b.Input({2, 4, 8, 8}), 8, 3)});
  const ValueId sum = b.Op("Relu", {b.Op("Add", {b.Conv(stem, 8, 3), stem})});
  const ValueId pooled =
      b.Op("MaxPool", {sum}, {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const ValueId average = b.Op("AveragePool", {pooled},
                               {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>(4, 1)}});
  const ValueId mean = b.Op("GlobalAveragePool", {average});
  const ValueId flat = b.Op("Flatten", {mean}, {{"axis", int64_t{1}}});
  const ValueId logits = b.Op("Gemm", {flat, b.Floats({5, 8}, -1, 1), b.Floats({5}, -1, 1)}, {{"transB", int64_t{1}}});
  b.graph().MarkOutput(b.Op("Softmax", {logits}));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  EXPECT_EQ(outcome.ops, (Ops{"Flatten", "MaxPool", "QAdd", "QAveragePool", "QAveragePool", "QConv", "QConv", "QMatMul",
                              "QSoftmax"}));
  EXPECT_GT(outcome.sqnr_db, 20);
  // A pool of maxima has the parameters of what it reads; probabilities have those of [0, 1).
  EXPECT_EQ(TensorCalled(outcome.quantised, b.Name(pooled)).parameters.scale,
            TensorCalled(outcome.quantised, b.Name(sum)).parameters.scale);
  EXPECT_TRUE(TensorCalled(outcome.quantised, b.Name(pooled)).moved);
  EXPECT_EQ(TensorCalled(outcome.quantised, b.Name(b.graph().outputs()[0])).parameters.scale, 1.0f / 256);
  EXPECT_EQ(TensorCalled(outcome.quantised, b.Name(b.graph().outputs()[0])).parameters.zero_point, -128);
}

TEST(Quantise, ConcatenatedLayersAreMadeInTheResultsUnits) {
  FloatBuilder b;
  const ValueId x = b.Input({1, 4, 6, 6});
  const ValueId narrow = b.Conv(x, 4, 1), wide = b.Op("Mul", {b.Conv(x, 4, 3), b.Scalar(5)});
  const ValueId joined = b.Op("Concat", {narrow, wide}, {{"axis", int64_t{1}}});
  b.graph().MarkOutput(b.Conv(joined, 4, 1));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  // The factor of 5 is a lookup; neither operand is rounded twice.
  EXPECT_EQ(outcome.ops, (Ops{"Concat", "QConv", "QConv", "QConv", "QLut"}));
  EXPECT_GT(outcome.sqnr_db, 25);
  EXPECT_EQ(TensorCalled(outcome.quantised, b.Name(narrow)).parameters.scale,
            TensorCalled(outcome.quantised, b.Name(joined)).parameters.scale);
}

// An operand that others read too keeps its own units there.
TEST(Quantise, ConcatenationOfSharedTensors) {
  FloatBuilder b;
  const ValueId x = b.Input({1, 4, 6, 6});
  const ValueId small = b.Conv(x, 4, 1), large = b.Op("Mul", {b.Conv(small, 4, 3), b.Scalar(20)});
  b.graph().MarkOutput(b.Conv(b.Op("Concat", {small, large}, {{"axis", int64_t{1}}}), 4, 1));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  EXPECT_EQ(outcome.ops, (Ops{"Concat", "QConv", "QConv", "QConv", "QLut", "QLut"}));
  EXPECT_LT(TensorCalled(outcome.quantised, b.Name(small)).parameters.scale,
            TensorCalled(outcome.quantised, b.Name(large)).parameters.scale / 2);
}

// x * sigmoid(x) and its like: one lookup, the tensors inside are never rounded.
TEST(Quantise, FunctionsOfOneTensorAreOneLookup) {
  FloatBuilder b;
  const ValueId x = b.Conv(b.Input({1, 4, 6, 6}), 8, 3);
  const ValueId gate =
      b.Op("Div", {b.Op("Clip", {b.Op("Add", {x, b.Scalar(3)}), b.Scalar(0), b.Scalar(6)}), b.Scalar(6)});
  const ValueId swish = b.Op("Mul", {x, gate});
  const ValueId squeezed = b.Op("Sigmoid", {b.Conv(b.Op("GlobalAveragePool", {swish}), 8, 1)});
  b.graph().MarkOutput(b.Conv(b.Op("Mul", {swish, squeezed}), 4, 1));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  EXPECT_EQ(outcome.ops, (Ops{"QAveragePool", "QConv", "QConv", "QConv", "QLut", "QLut", "QMul"}));
  EXPECT_GT(outcome.sqnr_db, 20);
}

TEST(Quantise, AttentionAndNormalisation) {
  FloatBuilder b;
  const ValueId x = b.Input({1, 6, 8});
  const auto dense = [&](ValueId value) {
    return b.Op("Add", {b.Floats({8}, -1, 1), b.Op("MatMul", {value, b.Floats({8, 8}, -1, 1)})});
  };
  const ValueId keys = b.Op("Transpose", {dense(x)}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const ValueId scores = b.Op("Mul", {b.Op("MatMul", {dense(x), keys}), b.Scalar(0.1f)});
  const ValueId mixed = b.Op("MatMul", {b.Op("Softmax", {scores}), dense(x)});
  const ValueId sum = b.Op("Add", {mixed, x});
  const std::vector<int64_t> last = {-1};
  const ValueId centred = b.Op("Sub", {sum, b.Op("ReduceMean", {sum}, {{"axes", last}})});
  const ValueId variance = b.Op("ReduceMean", {b.Op("Pow", {centred, b.Scalar(2)})}, {{"axes", last}});
  const ValueId normal = b.Op("Div", {centred, b.Op("Sqrt", {b.Op("Add", {variance, b.Scalar(1e-5f)})})});
  const ValueId scaled = b.Op("Add", {b.Op("Mul", {normal, b.Floats({8}, 0.5f, 1.5f)}), b.Floats({8}, -1, 1)});
  b.graph().MarkOutput(dense(scaled));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  EXPECT_EQ(outcome.ops,
            (Ops{"Add", "Add", "Div", "Mul", "Pow", "QAdd", "QLut", "QMatMul", "QMatMul", "QMatMul", "QMatMul",
                 "QMatMul", "QMatMul", "QSoftmax", "ReduceMean", "ReduceMean", "Sqrt", "Sub", "Transpose"}));
  EXPECT_GT(outcome.sqnr_db, 20);
}

// A mask of -10000, -infinity or the lowest float leaves the scores their steps.
TEST(Quantise, MasksBeforeSoftmax) {
  for (const float masked : {-1e4f, -INFINITY, std::numeric_limits<float>::lowest()}) {
    FloatBuilder b;
    const ValueId scores =
        b.Op("MatMul",
             {b.Input({1, 6, 8}), b.Op("Transpose", {b.Input({1, 6, 8})}, {{"perm", std::vector<int64_t>{0, 2, 1}}})});
    Tensor mask(ElementType::kFloat32, {6, 6});
    for (int64_t i = 0; i < 36; ++i) mask.as<float>()[static_cast<size_t>(i)] = i % 6 > i / 6 ? masked : 0;
    const ValueId sum = b.Op("Add", {scores, b.graph().AddConstant("mask", mask)});
    b.graph().MarkOutput(b.Op("MatMul", {b.Op("Softmax", {sum}), b.Input({1, 6, 8})}));
    const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
    EXPECT_EQ(outcome.ops, (Ops{"QAdd", "QMatMul", "QMatMul", "QSoftmax", "Transpose"})) << masked;
    EXPECT_GT(outcome.sqnr_db, 25) << masked;
    EXPECT_LT(TensorCalled(outcome.quantised, b.Name(sum)).parameters.scale, 0.3) << masked;
  }
}

// What has no integer form stays float between dequantiser and quantiser; what only feeds it is not rounded.
TEST(Quantise, OtherOpsStayFloat) {
  FloatBuilder b;
  const ValueId x = b.Input({1, 4, 6, 6});
  const ValueId prepared = b.Op("Sub", {x, b.Floats({4, 1, 1}, -1, 1)});
  const ValueId y =
      b.Op("InstanceNormalization", {b.Conv(prepared, 4, 3), b.Floats({4}, 0.5f, 1), b.Floats({4}, -1, 1)});
  b.graph().MarkOutput(b.Op("LogSoftmax", {b.Op("Mul", {y, b.Scalar(2)})}, {{"axis", int64_t{1}}}));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  EXPECT_EQ(outcome.ops, (Ops{"InstanceNormalization", "LogSoftmax", "Mul", "QConv", "Sub"}));
  EXPECT_GT(outcome.sqnr_db, 25);
}

TEST(Quantise, PadsAndConstantOperands) {
  FloatBuilder b;
  const ValueId x = b.Conv(b.Input({1, 3, 6, 6}), 4, 3);
  const ValueId scaled = b.Op("Add", {b.Op("Mul", {x, b.Floats({4, 1, 1}, 0.5f, 2)}), b.Floats({1, 4, 1, 1}, -1, 1)});
  const ValueId padded = b.Op("Pad", {scaled, b.Ints({0, 0, 1, 1, 0, 0, 1, 1})});
  b.graph().MarkOutput(b.Conv(padded, 4, 3));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random());
  EXPECT_EQ(outcome.ops, (Ops{"QAdd", "QConv", "QConv", "QMul"}));  // the pad is the convolution's
  EXPECT_GT(outcome.sqnr_db, 25);
}

TEST(Quantise, KeepsNamedNodesInFloat) {
  FloatBuilder b;
  const ValueId x = b.Conv(b.Input({1, 3, 6, 6}), 4, 3);
  const ValueId y = b.Conv(x, 4, 3);
  b.graph().MarkOutput(b.Conv(y, 4, 1));
  const Outcome outcome = QuantiseAndRun(b.graph(), b.random(), {{b.graph().node(b.graph().ProducerOf(y)).name}});
  EXPECT_EQ(outcome.ops, (Ops{"Conv", "QConv", "QConv"}));
  EXPECT_EQ(ErrorCode(PlanQuantisation(b.graph(), {{"nobody"}}).status()), "E-QUANT-003");
}

TEST(Quantise, RefusesWhatItCannotQuantise) {
  FloatBuilder b;
  const ValueId x = b.Input({1, 4});
  b.graph().MarkOutput(b.Op("Exp", {x}));
  EXPECT_EQ(ErrorCode(PlanQuantisation(b.graph()).status()), "E-QUANT-002");
  FloatBuilder quantised;
  quantised.graph().MarkOutput(quantised.Fake(quantised.Input({1, 4}), 0.1f, 0));
  EXPECT_EQ(ErrorCode(PlanQuantisation(quantised.graph()).status()), "E-QUANT-001");
  FloatBuilder broken;
  Tensor weights(ElementType::kFloat32, {4, 4});
  weights.as<float>()[3] = NAN;
  const ValueId input = broken.Input({1, 4});
  broken.graph().MarkOutput(broken.Op("MatMul", {input, broken.graph().AddConstant("w", weights)}));
  const auto plan = PlanQuantisation(broken.graph());
  ASSERT_TRUE(plan.ok());
  Histograms histograms;
  for (ValueId id : broken.graph().ValueIds()) histograms[id].Add(std::vector<float>{0, 1});
  EXPECT_EQ(ErrorCode(Quantise(broken.graph(), *plan, histograms, {}).status()), "E-QUANT-004");
}

}  // namespace
}  // namespace heddle::ir::quantise
