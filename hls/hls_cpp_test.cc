// HLS C++ of random integer regions: g++ takes it without a warning, and under the address and undefined-behaviour
// sanitizers its output is the reference interpreter's to the byte.

#include "hls/hls_cpp.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "hls/random_region.h"
#include "ir/interpreter.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

std::filesystem::path Folder(const std::string& name) {
  const char* root = std::getenv("TEST_TMPDIR");
  return std::filesystem::path(root ? root : std::filesystem::temp_directory_path().string()) / name;
}

TEST(HlsCppTest, RandomRegionsEqualTheInterpreter) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const RandomRegion region = MakeRandomRegion(seed + 1000, 6);
    const auto expected = ir::Interpret(region.graph, region.inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto sources = GenerateHls(region.graph, "region_" + std::to_string(seed), MakeRandomParams(seed));
    ASSERT_TRUE(sources.ok()) << "seed " << seed << ": " << sources.status();
    EXPECT_NE(sources->kernel_cpp.find("#pragma HLS interface m_axi"), std::string::npos);
    const std::filesystem::path folder = Folder("hls_" + std::to_string(seed));
    absl::Status status = WriteHls(*sources, folder);
    if (status.ok()) status = SimulateHls(folder, region.inputs, *expected);
    EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << status;
    if (seed > 1) continue;
    // The test bench must be able to fail.
    std::vector<ir::Tensor> wrong = *expected;
    wrong[0].set_int(0, wrong[0].at_int(0) == 0 ? 1 : 0);
    EXPECT_EQ(ir::ErrorCode(SimulateHls(folder, region.inputs, wrong)), "E-HLS-002");
  }
}

}  // namespace
}  // namespace heddle::hls
