// Random programs on the RTL against the functional model: every instruction, every parameter, loads and stores under way
// while the compute unit works, with and without back-pressure. All of the activation memory is compared.
//
// HEDDLE_SEED=n HEDDLE_COUNT=m run m programs from seed n on.

#include <gtest/gtest.h>

#include <cstdlib>

#include "hls/accelerator/accelerator.h"
#include "hls/functional_model.h"
#include "hls/random_program.h"
#include "hls/timing.h"
#include "sim/verilated_model.h"

namespace heddle {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::vector<uint8_t> Expected(const hls::AcceleratorParams& params, const hls::RandomProgram& random) {
  std::vector<uint8_t> dram = random.dram;
  const absl::Status status = hls::FunctionalModel(params).Run(random.program, dram);
  EXPECT_TRUE(status.ok()) << status;
  return {dram.begin() + static_cast<int64_t>(random.result_address),
          dram.begin() + static_cast<int64_t>(random.result_address + random.result_bytes)};
}

// Without back-pressure the fast model's cycles are the RTL's, and so are its counters.
void CompareTiming(const hls::AcceleratorParams& params, const hls::RandomProgram& random, const hls::MemoryModel& memory,
                   const sim::JobResult& job, const std::string& where) {
  const auto timing = hls::EstimateProgram(params, memory, random.program, {.program_address = static_cast<int64_t>(random.program_address), .layer_names = {}});
  ASSERT_TRUE(timing.ok()) << timing.status();
  hls::CycleKinds sum;
  for (const hls::CycleKinds& kinds : timing->tags) sum += kinds;
  const std::pair<const char*, int64_t> pairs[] = {
      {"cycles_low", timing->total_cycles},
      {"load_busy", timing->load_busy_cycles},
      {"load_wait_bank", timing->load_wait_bank_cycles},
      {"compute_busy", timing->compute_busy_cycles},
      {"compute_steps", sum.multiply_steps + sum.other_steps + sum.operand_b_cycles},
      {"compute_wait_drain", sum.wait_drain_cycles},
      {"compute_wait_bank", sum.wait_bank_cycles},
      {"compute_wait_token", sum.wait_load_cycles + sum.wait_store_cycles},
      {"store_busy", timing->store_busy_cycles},
      {"store_wait_bank", timing->store_wait_bank_cycles},
      {"dram_bytes_read", timing->dram_bytes_read},
      {"dram_bytes_written", timing->dram_bytes_written},
  };
  for (const auto& [name, predicted] : pairs) EXPECT_EQ(predicted, job.counters.at(name)) << name << ", " << where;
  EXPECT_EQ(sum.total_cycles(), timing->total_cycles) << where;
}

void CompareSeed(const sim::VerilatedModel& model, const hls::AcceleratorParams& params, uint64_t seed) {
  const hls::RandomProgram random = hls::MakeRandomProgram(params, seed, 40);
  const std::vector<uint8_t> expected = Expected(params, random);
  for (const double stall_probability : {0.0, 0.3}) {
    sim::SimulationRequest request;
    request.image = &random.dram;
    request.memory.beat_bytes = params.beat_bytes();
    request.memory.stall_probability = stall_probability;
    request.memory.bytes_per_cycle = params.beat_bytes() * (seed % 3 == 0 ? 0.6 : 1.0);
    if (seed % 2) {
      request.memory.row_miss_cycles = 7;
      request.memory.refresh_interval_cycles = 400;
      request.memory.refresh_cycles = 30;
    }
    request.memory.seed = seed;
    request.jobs.push_back({random.program_address, {}, {{random.result_address, random.result_bytes}}});
    request.max_cycles = 5'000'000;
    const auto result = model.Run(request);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    EXPECT_TRUE(result->jobs.at(0).dumps.at(0) == expected) << "seed " << seed << ", stall probability " << stall_probability;
    int64_t computes = 0;
    for (const hls::Instruction& instruction : random.program) computes += instruction.header.opcode == hls::Opcode::kCompute;
    EXPECT_GE(result->jobs.at(0).counters.at("compute_busy"), computes);
    if (stall_probability == 0) CompareTiming(params, random, request.memory, result->jobs.at(0), "seed " + std::to_string(seed));
  }
}

void RunParams(uint64_t params_seed) {
  const hls::AcceleratorParams params = hls::MakeSmallParams(params_seed);
  const auto model = sim::VerilatedModel::Build(hls::GenerateVerilog(params), false, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const uint64_t first = FromEnvironment("HEDDLE_SEED", 1), count = FromEnvironment("HEDDLE_COUNT", 8);
  for (uint64_t seed = first; seed < first + count; ++seed) CompareSeed(*model, params, seed);
}

TEST(RandomProgramRtlTest, NarrowLanesWideBus) { RunParams(1); }
TEST(RandomProgramRtlTest, NoWindow) { RunParams(3); }

}  // namespace
}  // namespace heddle
