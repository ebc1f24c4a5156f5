// Random programs on the RTL against the functional model: every instruction, every parameter, loads and stores under way
// while the compute unit works, with and without back-pressure. All of the activation memory is compared.
//
// HEDDLE_SEED=n HEDDLE_COUNT=m run m programs from seed n on.

#include <gtest/gtest.h>

#include <cstdlib>

#include "hls/accelerator/accelerator.h"
#include "hls/functional_model.h"
#include "hls/random_program.h"
#include "hls/registers.h"
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

void CompareSeed(const sim::VerilatedModel& model, const hls::AcceleratorParams& params, uint64_t seed) {
  const hls::RandomProgram random = hls::MakeRandomProgram(params, seed, 40);
  const std::vector<uint8_t> expected = Expected(params, random);
  for (const double stall_probability : {0.0, 0.3}) {
    sim::SimulationRequest request;
    request.image = &random.dram;
    request.memory.beat_bytes = params.beat_bytes();
    request.memory.stall_probability = stall_probability;
    request.memory.seed = seed;
    for (const hls::RegisterSpec& spec : hls::RegisterMap()) request.registers.emplace_back(std::string(spec.name), spec.offset);
    request.jobs.push_back({random.program_address, {}, {{random.result_address, random.result_bytes}}});
    request.max_cycles = 5'000'000;
    const auto result = model.Run(request);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    EXPECT_TRUE(result->jobs.at(0).dumps.at(0) == expected) << "seed " << seed << ", stall probability " << stall_probability;
    int64_t computes = 0;
    for (const hls::Instruction& instruction : random.program) computes += instruction.header.opcode == hls::Opcode::kCompute;
    EXPECT_GE(result->jobs.at(0).counters.at("compute_busy"), computes);
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
