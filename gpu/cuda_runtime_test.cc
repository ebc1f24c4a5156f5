// Without an NVIDIA GPU: an absent driver is a coded error. With one: a kernel runs.

#include "gpu/cuda_runtime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gpu/test_kernels.h"
#include "ir/loops/interpreter.h"
#include "ir/status.h"

namespace heddle::gpu {
namespace {

TEST(CudaRuntimeTest, AnAbsentLibraryIsACodedError) {
  const absl::Status status = MakeCudaRuntime("libno_such_cuda.so.1").status();
  EXPECT_EQ(ir::ErrorCode(status), "E-GPU-011");
  EXPECT_NE(std::string(status.message()).find("libno_such_cuda.so.1"), std::string::npos);
}

TEST(CudaRuntimeTest, ALibraryWithoutTheFunctionsIsACodedError) {
  const absl::Status status = MakeCudaRuntime("libm.so.6").status();
  EXPECT_EQ(ir::ErrorCode(status), "E-GPU-011");
  EXPECT_NE(std::string(status.message()).find("cuLaunchKernel"), std::string::npos);
}

TEST(CudaRuntimeTest, KernelsAgreeWithTheInterpreter) {
  auto runtime = MakeCudaRuntime();
  if (!runtime.ok()) {
    const std::string code = ir::ErrorCode(runtime.status());
    EXPECT_TRUE(code == "E-GPU-011" || code == "E-GPU-012") << runtime.status().message();
    GTEST_SKIP() << "no NVIDIA GPU on this machine";
  }
  std::vector<TestKernel> tests = TestKernels({.max_lanes = 4});
  std::vector<ir::loops::Function> functions;
  for (const TestKernel& test : tests) functions.push_back(test.kernel.function);
  const auto source = (*runtime)->Print(functions);
  ASSERT_TRUE(source.ok()) << source.status().message();
  auto program = (*runtime)->Build(*source, functions);
  ASSERT_TRUE(program.ok()) << program.status().message();
  constexpr uint64_t kSeed = 20260614;
  for (size_t t = 0; t < tests.size(); ++t) {
    std::mt19937_64 random(kSeed + t);
    std::vector<ir::Tensor> expected = RandomArguments(tests[t], random), actual = expected;
    std::vector<ir::Tensor*> pointers;
    for (ir::Tensor& tensor : expected) pointers.push_back(&tensor);
    ASSERT_TRUE(Interpret(tests[t].plain, pointers).ok());
    std::vector<std::unique_ptr<GpuBuffer>> buffers;
    std::vector<const GpuBuffer*> arguments;
    for (const ir::Tensor& tensor : actual) {
      buffers.push_back((*runtime)->Allocate(tensor.bytes()).value());
      ASSERT_TRUE((*runtime)->Upload(*buffers.back(), tensor.data(), tensor.bytes()).ok());
      arguments.push_back(buffers.back().get());
    }
    ASSERT_TRUE((*program)->Launch(static_cast<int>(t), arguments).ok());
    for (size_t a = 0; a < actual.size(); ++a) ASSERT_TRUE((*runtime)->Download(*buffers[a], actual[a].data(), actual[a].bytes()).ok());
    ASSERT_TRUE((*runtime)->Finish().ok()) << tests[t].name;
    for (size_t a = 0; a < actual.size(); ++a) {
      const bool is_exact = tests[t].is_exact && !ir::IsFloat(expected[a].type());
      if (is_exact) {
        EXPECT_TRUE(expected[a] == actual[a]) << tests[t].name << " seed " << kSeed;
      }
      for (int64_t i = 0; i < expected[a].elements() && !is_exact; ++i) {
        const double e = expected[a].at_double(i);
        if (!std::isfinite(e)) continue;
        EXPECT_NEAR(actual[a].at_double(i), e, 2e-5 * (std::abs(e) + 1)) << tests[t].name << " seed " << kSeed;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::gpu
