// Every test stage scheduled, printed and run by OpenCL, against the loop interpreter on the same kernel and on plain loops.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gpu/opencl_printer.h"
#include "gpu/opencl_runtime.h"
#include "gpu/test_kernels.h"
#include "ir/loops/interpreter.h"
#include "ir/loops/printer.h"

namespace heddle::gpu {
namespace {

using ir::Tensor;
using namespace ir::loops;  // NOLINT: this file is about that namespace's types

constexpr uint64_t kSeed = 20260611;

std::vector<Tensor*> Pointers(std::vector<Tensor>& tensors) {
  std::vector<Tensor*> pointers;
  for (Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

void ExpectEqual(const Tensor& expected, const Tensor& actual, bool is_exact, const std::string& what) {
  if (is_exact && !ir::IsFloat(expected.type())) {
    EXPECT_TRUE(expected == actual.Reshaped(expected.shape())) << what;
    if (expected == actual.Reshaped(expected.shape())) return;
  }
  int shown = 0;
  for (int64_t i = 0; i < expected.elements() && shown < 3; ++i) {
    const double e = expected.at_double(i), a = actual.at_double(i);
    const double bound = is_exact ? 0 : (expected.type() == ir::ElementType::kFloat64 ? 1e-12 : 2e-5) * (std::abs(e) + 1);
    const bool fits = e == a || (std::isnan(e) && std::isnan(a)) || std::abs(e - a) <= bound;
    EXPECT_TRUE(fits) << what << " element " << i << ": expected " << e << ", found " << a;
    shown += fits ? 0 : 1;
  }
}

class OpenClTest : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    auto runtime = MakeOpenClRuntime("any");
    if (runtime.ok()) runtime_ = runtime->release();
  }
  void SetUp() override {
    if (runtime_ == nullptr) GTEST_SKIP() << "no OpenCL device on this machine";
  }
  static GpuRuntime* runtime_;
};
GpuRuntime* OpenClTest::runtime_ = nullptr;

// All stages with one width of vectors, in one program.
TEST_P(OpenClTest, StagesAgreeWithTheInterpreter) {
  const std::vector<TestKernel> tests =
      TestKernels({.max_lanes = GetParam(), .max_rows = 4, .group_size = 32}, /*only_reductions=*/GetParam() != 4);
  std::vector<Function> functions;
  for (const TestKernel& test : tests) functions.push_back(test.kernel.function);
  const std::string source = runtime_->Print(functions).value();
  EXPECT_EQ(source, runtime_->Print(functions).value());
  auto program = runtime_->Build(source, functions);
  ASSERT_TRUE(program.ok()) << program.status().message() << "\n" << source;

  for (size_t t = 0; t < tests.size(); ++t) {
    const std::string what = tests[t].name + " seed " + std::to_string(kSeed);
    std::mt19937_64 random(kSeed + t);
    std::vector<Tensor> expected = RandomArguments(tests[t], random);
    std::vector<Tensor> interpreted = expected, actual = expected;
    ASSERT_TRUE(Interpret(tests[t].plain, Pointers(expected)).ok()) << what;
    // The kernel is checked twice: as loops (is the schedule right?) and as OpenCL (is the text right?).
    const absl::Status status = Interpret(tests[t].kernel.function, Pointers(interpreted), {.reverse_independent_loops = true});
    ASSERT_TRUE(status.ok()) << what << ": " << status.message() << ToText(tests[t].kernel.function);
    std::vector<std::unique_ptr<GpuBuffer>> buffers;
    std::vector<const GpuBuffer*> arguments;
    for (const Tensor& tensor : actual) {
      buffers.push_back(runtime_->Allocate(tensor.bytes()).value());
      ASSERT_TRUE(runtime_->Upload(*buffers.back(), tensor.data(), tensor.bytes()).ok());
      arguments.push_back(buffers.back().get());
    }
    ASSERT_TRUE((*program)->Launch(static_cast<int>(t), arguments).ok()) << what;
    for (size_t a = 0; a < actual.size(); ++a) ASSERT_TRUE(runtime_->Download(*buffers[a], actual[a].data(), actual[a].bytes()).ok());
    auto times = runtime_->Finish();
    ASSERT_TRUE(times.ok()) << times.status().message();
    EXPECT_EQ(times->size(), 2 * actual.size() + 1);
    for (size_t a = 0; a < actual.size(); ++a) {
      ExpectEqual(expected[a], interpreted[a], tests[t].is_exact, what + " interpreted");
      ExpectEqual(expected[a], actual[a], tests[t].is_exact, what + " by OpenCL");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, OpenClTest, testing::Values(1, 4, 16));

TEST_F(OpenClTest, BuildErrorsCarryTheLog) {
  auto program = runtime_->Build("__kernel void broken(__global float* x) { x[0] = missing; }", {});
  ASSERT_FALSE(program.ok());
  EXPECT_NE(std::string(program.status().message()).find("E-GPU-020"), std::string::npos);
  EXPECT_NE(std::string(program.status().message()).find("missing"), std::string::npos);
}

}  // namespace
}  // namespace heddle::gpu
