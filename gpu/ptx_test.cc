// PTX of the test kernels and of every op's random cases: ptxas accepts it, and what must be exact is.

#include "gpu/ptx_emitter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "gpu/gpu_plan.h"
#include "gpu/test_kernels.h"
#include "ir/op.h"
#include "ir/status.h"
#include "ir/subprocess.h"

namespace heddle::gpu {
namespace {

namespace fs = std::filesystem;

// ptxas of $CUDA_HOME or where NVIDIA's installer puts it; empty where there is none.
std::string FindPtxas() {
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& root : {std::string(home == nullptr ? "" : home), std::string("/usr/local/cuda"), std::string("/usr")}) {
    if (!root.empty() && fs::exists(root + "/bin/ptxas")) return root + "/bin/ptxas";
  }
  return "";
}

// What ptxas says about the text; empty where it accepts it.
std::string Assemble(const std::string& ptxas, const std::string& ptx, const std::string& name) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("heddle_ptx_{}", getpid());
  fs::create_directories(folder);
  std::ofstream(folder / (name + ".ptx")) << ptx;
  const auto result = ir::RunProcess({ptxas, "-arch=sm_90", (folder / (name + ".ptx")).string(), "-o", (folder / (name + ".cubin")).string()});
  fs::remove_all(folder);
  if (!result.ok()) return std::string(result.status().message());
  return result->exit_status == 0 ? "" : result->output + "\n" + ptx.substr(0, 4000);
}

int Count(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

std::vector<ir::loops::Function> FunctionsOf(const std::vector<TestKernel>& tests) {
  std::vector<ir::loops::Function> functions;
  for (const TestKernel& test : tests) functions.push_back(test.kernel.function);
  return functions;
}

TEST(PtxTest, TestKernelsAssemble) {
  const std::vector<ir::loops::Function> functions = FunctionsOf(TestKernels({.max_lanes = 4}));
  const std::string ptxas = FindPtxas();
  const auto ptx = EmitPtx(functions, {.compute_capability = 90});
  if (!ptx.ok() && FindLibdevice().empty()) {
    EXPECT_EQ(ir::ErrorCode(ptx.status()), "E-GPU-041");
    GTEST_SKIP() << "no CUDA toolkit on this machine";
  }
  ASSERT_TRUE(ptx.ok()) << ptx.status().message();
  EXPECT_EQ(Count(*ptx, ".entry "), static_cast<int>(functions.size()));
  EXPECT_EQ(*ptx, EmitPtx(functions, {.compute_capability = 90}).value());
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas on this machine";
  EXPECT_EQ(Assemble(ptxas, *ptx, "stages"), "");
}

TEST(PtxTest, RoundingIsExact) {
  std::vector<ir::loops::Function> exact, contracted;
  for (const TestKernel& test : TestKernels({.max_lanes = 4})) {
    if (test.name == "quantize") exact.push_back(test.kernel.function);
    if (test.name == "conv_1x1") contracted.push_back(test.kernel.function);
  }
  const std::string quantize = EmitPtx(exact).value();
  EXPECT_EQ(Count(quantize, "div.rn.f32"), 1);
  EXPECT_EQ(Count(quantize, "fma"), 0);
  EXPECT_EQ(Count(quantize, ".ftz"), 0);
  EXPECT_EQ(Count(quantize, ".approx"), 0);
  EXPECT_GT(Count(quantize, "add.rn.f32"), 0);  // without .rn ptxas would contract
  EXPECT_GT(Count(EmitPtx(contracted).value(), "fma.rn.f32"), 0);
}

TEST(PtxTest, EveryOpAssembles) {
  const std::string ptxas = FindPtxas();
  if (ptxas.empty() || FindLibdevice().empty()) GTEST_SKIP() << "no CUDA toolkit on this machine";
  std::vector<ir::loops::Function> functions;
  constexpr uint64_t kSeed = 20260613;
  for (const ir::Op* op : ir::AllOps()) {
    ir::Random random(kSeed);
    std::optional<ir::RandomCase> sample = op->Sample(random);
    if (!sample) continue;
    ASSERT_TRUE(ir::InferGraphTypes(sample->graph).ok()) << op->name();
    const auto kernels = KernelsOfGroup(sample->graph, sample->graph.NodeIds(), {.max_lanes = 4});
    if (!kernels.ok()) {
      EXPECT_EQ(ir::ErrorCode(kernels.status()), "E-OP-090") << op->name();
      continue;
    }
    for (const Kernel& kernel : *kernels) {
      functions.push_back(kernel.function);
      functions.back().name = fmt::format("k{}_{}", functions.size(), op->name());
    }
  }
  ASSERT_FALSE(functions.empty());
  const auto ptx = EmitPtx(functions, {.compute_capability = 90});
  ASSERT_TRUE(ptx.ok()) << ptx.status().message();
  EXPECT_EQ(Assemble(ptxas, *ptx, "ops"), "") << "seed " << kSeed;
}

}  // namespace
}  // namespace heddle::gpu
