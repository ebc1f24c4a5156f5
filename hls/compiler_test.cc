// Random regions under random parameters: the compiled program on the functional model gives the reference interpreter's
// bytes, under several interleavings of the units.

#include "hls/compiler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "hls/functional_model.h"
#include "hls/random_region.h"
#include "ir/interpreter.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

// "" where the program gives the expected bytes; else what went wrong.
std::string RunAndCompare(const RandomRegion& region, const CompiledProgram& program) {
  const auto expected = ir::Interpret(region.graph, region.inputs);
  if (!expected.ok()) return "interpreter: " + std::string(expected.status().message());
  for (uint64_t interleaving : {0, 1, 2}) {
    std::vector<uint8_t> dram = InitialDram(program);
    FunctionalModel model(program.params);
    absl::Status status = model.Run(program.setup, dram, interleaving);
    if (status.ok()) status = PackInputs(program, region.inputs, dram);
    if (status.ok()) status = model.Run(program.run, dram, interleaving);
    if (!status.ok()) return std::string(status.message());
    const std::vector<ir::Tensor> found = UnpackOutputs(program, dram);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!(found[i] == (*expected)[i])) return "output " + program.outputs[i].name + " differs";
    }
  }
  return "";
}

// HEDDLE_SEED=n runs one seed and prints its program.
TEST(CompilerTest, RandomRegionsEqualTheInterpreter) {
  const char* only = std::getenv("HEDDLE_SEED");
  const uint64_t first = only ? std::strtoull(only, nullptr, 10) : 1, last = only ? first : 400;
  std::map<std::string, int> refused;
  int compiled = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const RandomRegion region = MakeRandomRegion(seed, static_cast<int>(seed % 9) + 1);
    const AcceleratorParams params = MakeRandomParams(seed);
    const auto program = CompileRegion(region.graph, params);
    if (!program.ok()) {
      const std::string code = ir::ErrorCode(program.status());
      EXPECT_TRUE(code.starts_with("E-ACC-")) << "seed " << seed << ": " << program.status();
      if (only || std::getenv("HEDDLE_VERBOSE")) std::printf("seed %d: %s\n", static_cast<int>(seed), std::string(program.status().message()).c_str());
      ++refused[code];
      continue;
    }
    ++compiled;
    if (only) std::printf("%s", ProgramText(*program).c_str());
    EXPECT_EQ(RunAndCompare(region, *program), "") << "seed " << seed;
  }
  for (const auto& [code, count] : refused) std::printf("refused %s: %d\n", code.c_str(), count);
  std::printf("compiled %d\n", compiled);
  if (!only) {
    EXPECT_GE(compiled, 350);
    EXPECT_EQ(refused.count("E-ACC-010"), 0u) << "a region is refused for its arrangement in memory, though copies can change that";
  }
}

}  // namespace
}  // namespace heddle::hls
