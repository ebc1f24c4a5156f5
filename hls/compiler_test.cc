// Random regions under random parameters: the compiled program on the functional model gives the reference interpreter's
// bytes, under several interleavings of the units.

#include "hls/compiler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

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
    absl::Status status = PackInputs(program, region.inputs, dram);
    if (status.ok()) status = RunFunctional(program, dram, interleaving);
    if (!status.ok()) return std::string(status.message());
    const std::vector<ir::Tensor> found = UnpackOutputs(program, dram);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!(found[i] == (*expected)[i])) return "output " + program.outputs[i].name + " differs";
    }
  }
  return "";
}

// Where a refusal names a memory that would do, it does; returns whether it names one.
bool CheckNamedMemory(const RandomRegion& region, const AcceleratorParams& params, const std::string& message) {
  std::smatch found;
  if (!std::regex_search(message, found, std::regex(R"((\w+) (\d+) instead of (\d+) would do)"))) return false;
  nlohmann::json json = ParamsToJson(params);
  EXPECT_EQ(json[found[1].str()].dump(), found[3].str()) << message;
  json[found[1].str()] = std::stoi(found[2].str());
  const absl::StatusOr<AcceleratorParams> larger = ParamsFromJson(json);
  EXPECT_TRUE(larger.ok()) << larger.status();
  if (larger.ok()) {
    EXPECT_TRUE(CompileRegion(region.graph, *larger).ok()) << message;
  }
  return true;
}

// HEDDLE_SEED=n runs one seed and prints its program.
TEST(CompilerTest, RandomRegionsEqualTheInterpreter) {
  const char* only = std::getenv("HEDDLE_SEED");
  const uint64_t first = only ? std::strtoull(only, nullptr, 10) : 1, last = only ? first : 400;
  std::map<std::string, int> refused;
  int compiled = 0, named = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const RandomRegion region = MakeRandomRegion(seed, static_cast<int>(seed % 9) + 1);
    const AcceleratorParams params = MakeRandomParams(seed);
    const auto program = CompileRegion(region.graph, params);
    if (!program.ok()) {
      const std::string code = ir::ErrorCode(program.status());
      EXPECT_TRUE(code.starts_with("E-ACC-")) << "seed " << seed << ": " << program.status();
      if (only || std::getenv("HEDDLE_VERBOSE")) std::printf("seed %d: %s\n", static_cast<int>(seed), std::string(program.status().message()).c_str());
      ++refused[code];
      named += CheckNamedMemory(region, params, std::string(program.status().message()));
      continue;
    }
    ++compiled;
    if (only) std::printf("%s", ProgramText(*program).c_str());
    EXPECT_EQ(RunAndCompare(region, *program), "") << "seed " << seed;
  }
  for (const auto& [code, count] : refused) std::printf("refused %s: %d\n", code.c_str(), count);
  std::printf("compiled %d; %d refusals named a memory that would do\n", compiled, named);
  if (!only) {
    EXPECT_GE(compiled, 350);
    EXPECT_EQ(refused.count("E-ACC-010"), 0u) << "a region is refused for its arrangement in memory, though copies can change that";
    EXPECT_GE(named, 1);
  }
}

}  // namespace
}  // namespace heddle::hls
