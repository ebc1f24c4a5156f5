// Folding changes how a graph is written, not what it computes.

#include "ir/quantise/prepare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/interpreter.h"
#include "ir/passes/quant_test_graphs.h"

namespace heddle::ir::quantise {
namespace {

constexpr uint64_t kSeed = 5;
using Ops = std::vector<std::string>;

// Ops after folding, sorted; results are compared on random inputs.
Ops FoldAndCompare(QdqBuilder& b) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Graph before = b.graph();
  Graph after = before;
  const absl::Status status = FoldChannelConstants(after);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(Verify(after).ok()) << Verify(after);
  const std::vector<Tensor> inputs = b.RandomInputs();
  const auto expected = Interpret(before, inputs), found = Interpret(after, inputs);
  EXPECT_TRUE(expected.ok() && found.ok());
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(after.value(after.outputs()[i]).name, before.value(before.outputs()[i]).name);
    for (int64_t k = 0; k < (*expected)[i].elements(); ++k)
      EXPECT_NEAR((*expected)[i].at_double(k), (*found)[i].at_double(k), 1e-4);
  }
  Ops ops;
  for (NodeId id : after.NodeIds()) ops.push_back(after.node(id).op);
  std::sort(ops.begin(), ops.end());
  return ops;
}

Attributes Kernel(int64_t group = 1) { return {{"group", group}, {"pads", std::vector<int64_t>(4, 1)}}; }

TEST(FoldChannelConstants, IntoConvolutions) {
  QdqBuilder b(kSeed);
  ValueId y = b.Op("Conv", {b.Input({2, 4, 5, 5}), b.Floats({6, 2, 3, 3}, -1, 1)}, Kernel(2));
  y = b.Op("Add", {b.Floats({6, 1, 1}, -1, 1), y});
  y = b.Op("Mul", {y, b.Floats({1, 6, 1, 1}, 0.5f, 2)});
  y = b.Op("Sub", {y, b.Scalar(0.25f)});
  y = b.Op("Div", {y, b.Floats({6, 1, 1}, 1, 2)});
  b.Output(y);
  EXPECT_EQ(FoldAndCompare(b), (Ops{"Conv"}));
}

TEST(FoldChannelConstants, IntoMatrixProducts) {
  QdqBuilder b(kSeed);
  const ValueId x = b.Input({3, 4});
  ValueId y = b.Op("Gemm", {x, b.Floats({5, 4}, -1, 1), b.Floats({5}, -1, 1)}, {{"transB", int64_t{1}}});
  y = b.Op("Mul", {b.Op("Add", {y, b.Floats({1, 5}, -1, 1)}), b.Scalar(3)});
  // A bias that is added stays: legalisation knows it. Divided weights do not.
  y = b.Op("Add", {b.Op("Div", {b.Op("MatMul", {y, b.Floats({5, 5}, -1, 1)}), b.Scalar(8)}), b.Floats({5}, -1, 1)});
  b.Output(y);
  EXPECT_EQ(FoldAndCompare(b), (Ops{"Add", "Gemm", "MatMul"}));
}

TEST(FoldChannelConstants, NormalisationBeforeItsLayer) {
  QdqBuilder b(kSeed);
  const ValueId x = b.Op("MaxPool", {b.Input({1, 4, 6, 6})}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  const ValueId normal = b.Op("Add", {b.Op("Mul", {x, b.Floats({4, 1, 1}, 0.1f, 3)}), b.Floats({4, 1, 1}, -1, 1)});
  b.Output(b.Op("Conv", {b.Op("Relu", {normal}), b.Floats({2, 4, 1, 1}, -1, 1)}));
  EXPECT_EQ(FoldAndCompare(b), (Ops{"Conv", "Conv", "MaxPool", "Relu"}));
}

// What others read, what varies along other axes and what is no constant stays.
TEST(FoldChannelConstants, LeavesTheRest) {
  QdqBuilder b(kSeed);
  const ValueId x = b.Input({1, 4, 4, 4});
  const ValueId y = b.Op("Conv", {x, b.Floats({4, 4, 3, 3}, -1, 1)}, Kernel());
  b.Output(y);
  ValueId z = b.Op("Add", {y, b.Floats({4, 1, 1}, -1, 1)});  // y is an output
  z = b.Op("Mul", {z, b.Floats({4}, -1, 1)});                // along the width
  z = b.Op("Mul", {z, b.Floats({1, 4, 4, 4}, -1, 1)});       // everywhere
  z = b.Op("Mul", {z, x});
  z = b.Op("Mul", {z, b.Scalar(2)});                       // of all channels: a lookup
  b.Output(b.Op("Sub", {b.Floats({4, 1, 1}, -1, 1), z}));  // constant first
  EXPECT_EQ(FoldAndCompare(b), (Ops{"Add", "Conv", "Mul", "Mul", "Mul", "Mul", "Sub"}));
}

}  // namespace
}  // namespace heddle::ir::quantise
