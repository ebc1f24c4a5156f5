// Compiled programs on the RTL: random regions under a few parameter sets give the reference interpreter's bytes, whatever the
// memory's latency and back-pressure; the fast model's cycles are the RTL's, to the cycle, for every kind of memory.
//
// HEDDLE_SEED=n runs one region only; HEDDLE_VERBOSE prints cycles of each.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "hls/accelerator/accelerator.h"
#include "hls/compiler.h"
#include "hls/random_region.h"
#include "ir/interpreter.h"
#include "sim/verilated_model.h"
#include "testbench/simulation_request.h"

namespace heddle {
namespace {

struct Comparison {
  std::string problem;  // "" where all is well
  int64_t cycles = 0;
};

Comparison RunOnRtl(const sim::VerilatedModel& model, const hls::RandomRegion& region, const hls::CompiledProgram& program,
                    const sim::MemoryConfig& memory) {
  const auto expected = ir::Interpret(region.graph, region.inputs);
  if (!expected.ok()) return {"interpreter: " + std::string(expected.status().message())};
  const auto run = testbench::RunProgram(model, program, region.inputs, memory);
  if (!run.ok()) return {std::string(run.status().message())};
  Comparison comparison;
  for (size_t i = 0; i < run->outputs.size(); ++i) {
    if (!(run->outputs[i] == (*expected)[i])) comparison.problem = "output " + program.outputs[i].name + " differs";
  }
  comparison.cycles = run->cycles;
  return comparison;
}

// Fast and slow memories, with and without rows and refresh.
hls::MemoryModel MakeMemory(uint64_t seed, const hls::AcceleratorParams& params) {
  hls::MemoryModel memory;
  memory.latency_cycles = static_cast<int>(5 + seed * 7 % 60);
  memory.bytes_per_cycle = params.beat_bytes() * (seed % 3 == 0 ? 0.37 : seed % 3 == 1 ? 1.0 : 2.0);
  if (seed % 2 == 0) return memory;
  memory.row_bytes = 512;
  memory.row_miss_cycles = 9;
  memory.row_cycle_cycles = 21;
  memory.refresh_interval_cycles = 700;
  memory.refresh_cycles = 40;
  return memory;
}

void RunSeeds(uint64_t params_seed, uint64_t first, uint64_t count) {
  hls::AcceleratorParams params = hls::MakeRandomParams(params_seed);
  params.weight_words = std::max(params.weight_words, 130);
  const auto model = sim::VerilatedModel::Build(hls::GenerateVerilog(params), false, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const char* only = std::getenv("HEDDLE_SEED");
  if (only) first = std::strtoull(only, nullptr, 10), count = 1;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const hls::RandomRegion region = hls::MakeRandomRegion(seed, static_cast<int>(seed % 9) + 1);
    const hls::MemoryModel main_memory = MakeMemory(seed, params);
    const auto program = hls::CompileRegion(region.graph, params, main_memory);
    if (!program.ok()) continue;  // what is refused is tested in hls/
    sim::MemoryConfig memory{main_memory, params.beat_bytes()};
    const Comparison quiet = RunOnRtl(*model, region, *program, memory);
    EXPECT_EQ(quiet.problem, "") << "parameters " << params_seed << ", seed " << seed;
    EXPECT_EQ(program->cycles_estimated, quiet.cycles) << "the fast model's cycles; parameters " << params_seed << ", seed " << seed;
    if (std::getenv("HEDDLE_VERBOSE")) {
      std::printf("seed %d: %lld cycles, estimated %lld (%+.2f %%)\n", static_cast<int>(seed), static_cast<long long>(quiet.cycles),
                  static_cast<long long>(program->cycles_estimated),
                  100.0 * static_cast<double>(program->cycles_estimated - quiet.cycles) / std::max<double>(1, static_cast<double>(quiet.cycles)));
    }
    memory.stall_probability = 0.3;
    memory.latency_cycles = 7;
    memory.seed = seed;
    EXPECT_EQ(RunOnRtl(*model, region, *program, memory).problem, "") << "with stalls, parameters " << params_seed << ", seed " << seed;
  }
}

TEST(AcceleratorRtlTest, ParametersA) { RunSeeds(1, 1, 8); }
TEST(AcceleratorRtlTest, ParametersB) { RunSeeds(2, 101, 8); }
TEST(AcceleratorRtlTest, ParametersC) { RunSeeds(6, 201, 8); }

}  // namespace
}  // namespace heddle
