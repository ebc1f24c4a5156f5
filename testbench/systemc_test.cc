// The SystemC platform against the reference interpreter and the plain RTL simulation: random regions under random parameters
// and memories give the same bits with the fast accelerator and with the RTL behind the bridge, and the platform's cycles are near the
// RTL's.
//
// HEDDLE_SEED=n runs one region only; HEDDLE_VERBOSE prints cycles of each.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "hls/accelerator/accelerator.h"
#include "hls/compiler.h"
#include "hls/random_region.h"
#include "ir/interpreter.h"
#include "sim/systemc_platform.h"
#include "testbench/simulation_request.h"

namespace heddle {
namespace {

// A compiled region with its inputs in DRAM and the interpreter's answer.
struct Case {
  hls::CompiledProgram program;
  std::vector<uint8_t> dram;
  std::vector<ir::Tensor> expected;
};

// Nothing where the region is refused, which hls/ tests.
std::optional<Case> MakeCase(uint64_t seed, const hls::AcceleratorParams& params, const sim::MemoryConfig& memory) {
  const hls::RandomRegion region = hls::MakeRandomRegion(seed, static_cast<int>(seed % 9) + 1);
  auto program = hls::CompileRegion(region.graph, params, memory);
  if (!program.ok()) return std::nullopt;
  std::vector<uint8_t> dram = hls::InitialDram(*program);
  EXPECT_TRUE(hls::PackInputs(*program, region.inputs, dram).ok()) << "seed " << seed;
  auto expected = ir::Interpret(region.graph, region.inputs);
  EXPECT_TRUE(expected.ok()) << "seed " << seed;
  return Case{*std::move(program), std::move(dram), *std::move(expected)};
}

// Cycles of the program; -1 with a test failure where it does not run or differs.
int64_t Check(const Case& c, const absl::StatusOr<sim::SimulationResult>& result, const std::string& what) {
  EXPECT_TRUE(result.ok()) << what << ": " << result.status().message();
  if (!result.ok()) return -1;
  const sim::JobResult& job = result->jobs.at(1);
  EXPECT_EQ(hls::UnpackOutputs(c.program, job.dumps.at(0)), c.expected) << what;
  return job.counters.at("cycles_low");
}

double Percent(int64_t found, int64_t expected) { return 100.0 * (static_cast<double>(found) / static_cast<double>(expected) - 1); }

std::vector<sim::MemoryConfig> Memories(int beat_bytes, uint64_t seed) {
  sim::MemoryConfig plain;
  plain.beat_bytes = beat_bytes;
  plain.bytes_per_cycle = beat_bytes;
  sim::MemoryConfig dram = plain;
  dram.latency_cycles = 55;
  dram.row_miss_cycles = 22;
  dram.row_cycle_cycles = 30;
  dram.refresh_interval_cycles = 780;
  dram.refresh_cycles = 26;
  dram.bytes_per_cycle = beat_bytes * 0.75;
  sim::MemoryConfig hostile = plain;
  hostile.latency_cycles = 5;
  hostile.stall_probability = 0.3;
  hostile.seed = seed;
  return {plain, dram, hostile};
}

// `with_bridge`: the platform around the RTL too, which takes a compilation of its own for each parameter set.
void RunSeeds(uint64_t params_seed, uint64_t first, uint64_t count, bool with_bridge) {
  hls::AcceleratorParams params = hls::MakeRandomParams(params_seed);
  params.weight_words = std::max(params.weight_words, 130);
  const auto rtl = sim::VerilatedModel::Build(hls::GenerateVerilog(params), false, {});
  ASSERT_TRUE(rtl.ok()) << rtl.status();
  const auto fast = sim::SystemCPlatform::Build(sim::PlatformAccelerator::kFast, params, {});
  ASSERT_TRUE(fast.ok()) << fast.status();
  const auto bridged = sim::SystemCPlatform::Build(with_bridge ? sim::PlatformAccelerator::kRtl : sim::PlatformAccelerator::kFast, params, {});
  ASSERT_TRUE(bridged.ok()) << bridged.status();
  const char* only = std::getenv("HEDDLE_SEED");
  if (only) first = std::strtoull(only, nullptr, 10), count = 1;
  int64_t totals[3] = {};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    int index = 0;
    for (const sim::MemoryConfig& memory : Memories(params.beat_bytes(), seed)) {
      const std::optional<Case> c = MakeCase(seed, params, memory);
      if (!c) break;
      const sim::SimulationRequest request = testbench::RequestFor(c->program, c->dram, memory);
      const std::string what = "parameters " + std::to_string(params_seed) + ", seed " + std::to_string(seed) + ", memory " + std::to_string(index++);
      const int64_t cycles[3] = {Check(*c, rtl->Run(request), what + ", RTL"), Check(*c, fast->Run(request), what + ", platform with fast accelerator"),
                                 Check(*c, bridged->Run(request), what + ", platform with RTL")};
      for (int i = 0; i < 3; ++i) totals[i] += cycles[i];
      if (std::getenv("HEDDLE_VERBOSE")) {
        std::printf("%s: RTL %d cycles, estimated %+.2f %%, TLM fast %+.2f %%, TLM RTL %+.2f %%\n", what.c_str(), static_cast<int>(cycles[0]),
                    Percent(c->program.cycles_estimated, cycles[0]), Percent(cycles[1], cycles[0]), Percent(cycles[2], cycles[0]));
      }
    }
  }
  ASSERT_GT(totals[0], 0);
  std::printf("RTL %d cycles in all, TLM with fast accelerator %+.2f %%, %s %+.2f %%\n", static_cast<int>(totals[0]), Percent(totals[1], totals[0]),
              with_bridge ? "with RTL" : "again", Percent(totals[2], totals[0]));
  // Bursts instead of beats: what that leaves out counts most where regions do little but move data (docs/simulation.md).
  EXPECT_LT(std::abs(Percent(totals[1], totals[0])), 15);
  EXPECT_LT(std::abs(Percent(totals[2], totals[0])), with_bridge ? 1 : 15);
}

TEST(SystemCTest, RandomRegionsA) { RunSeeds(1, 1, 6, true); }
TEST(SystemCTest, RandomRegionsB) { RunSeeds(2, 101, 6, false); }

// A program whose tokens never come: the platform says which unit waits for what instead of running for ever.
TEST(SystemCTest, DeadlockIsNamed) {
  const hls::AcceleratorParams params;
  hls::Instruction compute;
  compute.header.opcode = hls::Opcode::kStore;
  compute.header.wait_compute = 1;
  compute.transfer.bytes = 8;
  compute.transfer.rows = compute.transfer.planes = 1;
  hls::Instruction end;
  end.header.opcode = hls::Opcode::kEnd;
  std::vector<uint8_t> dram = hls::EncodeProgram({compute, end}).value();
  dram.resize(8192);
  sim::SimulationRequest request;
  request.image = &dram;
  request.jobs.push_back({0, {}, {}});
  const auto platform = sim::SystemCPlatform::Build(sim::PlatformAccelerator::kFast, params, {});
  ASSERT_TRUE(platform.ok()) << platform.status();
  const auto result = platform->Run(request);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(std::string(result.status().message()).find("store waits for the tokens of"), std::string::npos) << result.status().message();
  EXPECT_NE(std::string(result.status().message()).find("0 from compute"), std::string::npos) << result.status().message();
}

}  // namespace
}  // namespace heddle
