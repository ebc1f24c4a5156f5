// The passes that are not about quantisation: results stay, structure gets smaller.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/interpreter.h"
#include "ir/passes/pass.h"
#include "ir/passes/quant_test_graphs.h"
#include "ir/region.h"

namespace heddle::ir {
namespace {

using Ops = std::map<std::string, int>;

Ops CountOps(const Graph& graph) {
  Ops counts;
  for (NodeId id : graph.NodeIds()) ++counts[graph.node(id).op];
  return counts;
}

// Runs the passes and checks that outputs are what they were, within float rounding.
Graph RunAndCompare(QdqBuilder& b, const std::vector<std::string>& passes) {
  const std::vector<Tensor> inputs = b.RandomInputs();
  const auto before = Interpret(b.graph(), inputs);
  EXPECT_TRUE(before.ok()) << before.status().message();
  Graph graph = b.graph();
  const absl::Status status = RunPasses(graph, passes, {.verify_each = true});
  EXPECT_TRUE(status.ok()) << status.message();
  const auto after = Interpret(graph, inputs);
  EXPECT_TRUE(after.ok()) << after.status().message();
  if (!before.ok() || !after.ok()) return graph;
  for (size_t o = 0; o < before->size(); ++o) {
    EXPECT_EQ((*before)[o].shape(), (*after)[o].shape());
    for (int64_t i = 0; i < (*before)[o].elements(); ++i) {
      const double want = (*before)[o].at_double(i);
      EXPECT_NEAR((*after)[o].at_double(i), want, 1e-4 + 1e-4 * std::abs(want)) << "output " << o << ", element " << i;
    }
    EXPECT_EQ(graph.value(graph.outputs()[o]).name, b.graph().value(b.graph().outputs()[o]).name);
  }
  return graph;
}

ValueId BatchNorm(QdqBuilder& b, ValueId x, int64_t channels) {
  return b.Op("BatchNormalization", {x, b.Floats({channels}, 0.5f, 2), b.Floats({channels}, -1, 1), b.Floats({channels}, -1, 1),
                                     b.Floats({channels}, 0.5f, 2)});
}

TEST(Passes, BatchNormFoldsIntoConvAndGemm) {
  QdqBuilder b(1);
  const ValueId conv = b.Op("Conv", {b.Input({1, 4, 5, 5}), b.Floats({6, 2, 3, 3}, -1, 1)}, {{"group", int64_t{2}}});
  b.Output(BatchNorm(b, conv, 6));
  const ValueId gemm = b.Op("Gemm", {b.Input({2, 5}), b.Floats({7, 5}, -1, 1), b.Floats({7}, -1, 1)}, {{"transB", int64_t{1}}});
  b.Output(BatchNorm(b, gemm, 7));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"fold-batch-norm"})), (Ops{{"Conv", 1}, {"Gemm", 1}}));
}

TEST(Passes, BatchNormElsewhereBecomesScaleAndShift) {
  QdqBuilder b(2);
  b.Output(BatchNorm(b, b.Op("Relu", {b.Input({2, 3, 4, 4})}), 3));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"fold-batch-norm"})), (Ops{{"Relu", 1}, {"Mul", 1}, {"Add", 1}}));
}

TEST(Passes, SimplifyRemovesAndMerges) {
  QdqBuilder b(3);
  const ValueId x = b.Input({2, 3, 4});
  const ValueId a = b.Op("Reshape", {b.Op("Reshape", {b.Op("Identity", {x}), b.Ints({6, 4})}), b.Ints({3, 8})});
  b.Output(b.Op("Relu", {a}));
  const ValueId t = b.Op("Transpose", {b.Op("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 2, 0}}})}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
  b.Output(b.Op("Relu", {t}));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"simplify", "eliminate-dead-code"})), (Ops{{"Reshape", 1}, {"Relu", 2}}));
}

TEST(Passes, PadJoinsConvAndCountedAverage) {
  QdqBuilder b(4);
  const ValueId padded = b.Op("Pad", {b.Input({1, 2, 6, 6}), b.Ints({0, 0, 1, 0, 0, 0, 2, 1})});
  b.Output(b.Op("Conv", {padded, b.Floats({3, 2, 3, 3}, -1, 1)}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  b.Output(b.Op("AveragePool", {padded}, {{"kernel_shape", std::vector<int64_t>{3, 3}}}));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"simplify", "eliminate-dead-code"})), (Ops{{"Conv", 1}, {"AveragePool", 1}}));
}

TEST(Passes, PadOfAnotherValueStays) {
  QdqBuilder b(5);
  const ValueId padded = b.Op("Pad", {b.Input({1, 2, 6, 6}), b.Ints({0, 0, 1, 1, 0, 0, 1, 1}), b.Scalar(1.5f)});
  b.Output(b.Op("Conv", {padded, b.Floats({3, 2, 3, 3}, -1, 1)}));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"simplify"}))["Pad"], 1);
}

TEST(Passes, OutputsKeepTheirNames) {
  // An output that is a graph input renamed by Identity cannot lose its node; a second name for a result neither.
  QdqBuilder b(6);
  const ValueId x = b.Input({3});
  b.Output(b.Op("Identity", {x}));
  const ValueId r = b.Op("Relu", {x});
  b.Output(r);
  b.Output(b.Op("Identity", {r}));
  RunAndCompare(b, {"simplify", "eliminate-common-subexpressions", "eliminate-dead-code"});
}

TEST(Passes, ConstantsFoldButDequantisedWeightsWaitForTheirTurn) {
  QdqBuilder b(7);
  const ValueId x = b.Input({2, 3});
  const ValueId c = b.Op("Relu", {b.Op("Add", {b.Floats({2, 3}, -1, 1), b.Scalar(0.5f)})});
  b.Output(b.Op("Mul", {b.Op("Add", {x, c}), b.Weights({2, 3}, -1, 0.1f)}));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"fold-constants"})), (Ops{{"Add", 1}, {"Mul", 1}, {"DequantizeLinear", 1}}));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"fold-constants:dequantize=1"})), (Ops{{"Add", 1}, {"Mul", 1}}));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"fold-constants:max-bytes=8"}))["Relu"], 1);
}

TEST(Passes, EqualNodesMergeAcrossEqualConstants) {
  QdqBuilder b(8);
  const ValueId x = b.Input({4});
  const ValueId p = b.Op("Add", {x, b.Scalar(2)}), q = b.Op("Add", {x, b.Scalar(2)}), r = b.Op("Add", {x, b.Scalar(3)});
  b.Output(b.Op("Mul", {b.Op("Mul", {b.Op("Relu", {p}), b.Op("Relu", {q})}), r}));
  EXPECT_EQ(CountOps(RunAndCompare(b, {"eliminate-common-subexpressions"})), (Ops{{"Add", 2}, {"Relu", 1}, {"Mul", 2}}));
}

TEST(Passes, DeadCodeGoesAndInputsStay) {
  QdqBuilder b(9);
  const ValueId x = b.Input({4}), unused = b.Input({4});
  b.Op("Add", {b.Op("Relu", {unused}), b.Scalar(1)});
  b.Output(b.Op("Relu", {x}));
  const Graph graph = RunAndCompare(b, {"eliminate-dead-code"});
  EXPECT_EQ(CountOps(graph), (Ops{{"Relu", 1}}));
  EXPECT_EQ(graph.inputs().size(), 2u);
}

TEST(Passes, VerticalFusionMakesConvexChains) {
  QdqBuilder b(10);
  const ValueId x = b.Input({1, 4, 6, 6});
  const ValueId stem = b.Op("Relu", {b.Op("Conv", {x, b.Floats({4, 4, 1, 1}, -1, 1)})});
  const ValueId branch = b.Op("Conv", {stem, b.Floats({4, 4, 1, 1}, -1, 1)});
  b.Output(b.Op("Relu", {b.Op("Add", {branch, stem})}));
  const Graph graph = RunAndCompare(b, {"fuse-vertical"});
  std::map<int, std::vector<NodeId>> groups;
  for (NodeId id : graph.NodeIds()) groups[graph.node(id).fusion_group].push_back(id);
  ASSERT_EQ(groups.size(), 2u);  // conv + relu, conv + add + relu
  EXPECT_FALSE(groups.contains(-1));
  for (const auto& [group, nodes] : groups) EXPECT_TRUE(IsConvex(graph, nodes));
  const Graph alone = RunAndCompare(b, {"fuse-vertical:longest=1"});
  for (NodeId id : alone.NodeIds()) EXPECT_EQ(alone.node(id).fusion_group, -1);
}

TEST(Passes, RequestsAreChecked) {
  Graph graph("empty");
  EXPECT_EQ(ErrorCode(RunPasses(graph, {"no-such-pass"})), "E-PASS-001");
  EXPECT_EQ(ErrorCode(RunPasses(graph, {"fold-constants:no-such-option=1"})), "E-PASS-002");
  EXPECT_EQ(ErrorCode(RunPasses(graph, {"fold-constants:max-bytes=many"})), "E-PASS-002");
  for (const PipelineStep& step : DefaultPipeline()) {
    EXPECT_FALSE(step.reason.empty());
    EXPECT_TRUE(RunPasses(graph, {step.pass}).ok()) << step.pass;
  }
}

TEST(Verify, FindsWhatIsWrong) {
  QdqBuilder b(11);
  const ValueId y = b.Op("Relu", {b.Input({4})});
  b.Output(y);
  EXPECT_TRUE(Verify(b.graph()).ok());
  {
    Graph wrong = b.graph();
    wrong.set_type(y, ValueType(ElementType::kFloat32, Shape{5}));
    EXPECT_EQ(ErrorCode(Verify(wrong)), "E-IR-029");
  }
  {
    Graph wrong = b.graph();
    wrong.node(wrong.NodeIds()[0]).op = "NoSuchOp";
    EXPECT_EQ(ErrorCode(Verify(wrong)), "E-IR-010");
  }
  {
    Graph wrong = b.graph();
    wrong.node(wrong.NodeIds()[0]).inputs[0] = 99;
    EXPECT_FALSE(Verify(wrong).ok());
  }
}

}  // namespace
}  // namespace heddle::ir
