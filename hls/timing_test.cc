// The fast model by itself; testbench/ compares it with the RTL, cycle for cycle.

#include "hls/timing.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>

#include "hls/attribution.h"
#include "hls/random_program.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

Instruction Make(Opcode opcode) {
  Instruction instruction;
  instruction.header.opcode = opcode;
  return instruction;
}

// A dot product of `passes` steps for each of `pixels` pixels.
Instruction Compute(uint32_t passes, uint32_t pixels) {
  Instruction instruction = Make(Opcode::kCompute);
  ComputeFields& c = instruction.compute;
  c.blocks = c.out_rows = c.kernel_rows = c.kernel_columns = c.in_rows = c.emit_stride = 1;
  c.x_steps = pixels;
  c.passes = passes;
  c.last_block_channels = 16;
  c.in_row_bytes = 4096;
  return instruction;
}

TEST(Timing, OneStepACycleAndTheDrainsPace) {
  AcceleratorParams params;  // 4 of 16 results requantised in a cycle
  const int64_t ends = ComputeCycles(params, Compute(1, 1).compute);
  EXPECT_EQ(ComputeCycles(params, Compute(10, 1).compute) - ends, 9);
  EXPECT_EQ(ComputeCycles(params, Compute(1, 101).compute) - ends, 400);    // bound by the drain
  EXPECT_EQ(ComputeCycles(params, Compute(10, 101).compute) - ends, 1009);  // by the steps
}

TEST(Timing, EveryCycleHasOneCause) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const AcceleratorParams params = MakeSmallParams(seed);
    const RandomProgram random = MakeRandomProgram(params, seed, 30);
    const auto timing = EstimateProgram(params, {}, random.program);
    ASSERT_TRUE(timing.ok()) << timing.status();
    int64_t by_kind = 0, by_cause = 0;
    for (const CycleKinds& kinds : timing->tags) {
      by_kind += kinds.total_cycles();
      for (const auto& [cause, cycles] : CyclesByCause(kinds, kinds.column_steps * params.contraction_lanes, params)) {
        EXPECT_GE(cycles, 0) << cause << ", seed " << seed;
        by_cause += cycles;
      }
    }
    EXPECT_EQ(by_kind, timing->total_cycles) << "seed " << seed;
    EXPECT_EQ(by_cause, timing->total_cycles) << "seed " << seed;
  }
}

// Crossing stretches changes nothing, whatever the program, the parameters and the memory.
TEST(Timing, SkippingIsExact) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const AcceleratorParams params = MakeSmallParams(seed);
    const RandomProgram random = MakeRandomProgram(params, seed, 12);
    MemoryModel memory;
    memory.latency_cycles = static_cast<int>(seed * 7 % 50);
    memory.bytes_per_cycle = params.beat_bytes() * (seed % 4 == 0 ? 0.31 : seed % 4 == 1 ? 0.9 : seed % 4 == 2 ? 1.0 : 1.7);
    memory.max_reads = static_cast<int>(1 + seed % 9);
    if (seed % 3 == 0) memory.row_bytes = 256, memory.row_miss_cycles = 11, memory.row_cycle_cycles = 19;
    if (seed % 5 < 2) memory.refresh_interval_cycles = 150, memory.refresh_cycles = 17;
    EstimateOptions options;
    const auto fast = EstimateProgram(params, memory, random.program, options);
    options.every_cycle = true;
    const auto slow = EstimateProgram(params, memory, random.program, options);
    ASSERT_TRUE(fast.ok()) << fast.status() << ", seed " << seed;
    ASSERT_TRUE(slow.ok()) << slow.status() << ", seed " << seed;
    EXPECT_EQ(fast->total_cycles, slow->total_cycles) << "seed " << seed;
    EXPECT_EQ(fast->tags, slow->tags) << "seed " << seed;
    EXPECT_EQ(fast->load_busy_cycles, slow->load_busy_cycles) << "seed " << seed;
    EXPECT_EQ(fast->load_wait_bank_cycles, slow->load_wait_bank_cycles) << "seed " << seed;
    EXPECT_EQ(fast->row_misses, slow->row_misses) << "seed " << seed;
    for (size_t i = 0; i < fast->instructions.size(); ++i) {
      EXPECT_EQ(fast->instructions[i].start_cycles, slow->instructions[i].start_cycles) << "seed " << seed << ", instruction " << i;
      EXPECT_EQ(fast->instructions[i].end_cycles, slow->instructions[i].end_cycles) << "seed " << seed << ", instruction " << i;
    }
  }
}

TEST(Timing, SlowerMemoriesAreSlower) {
  const AcceleratorParams params = MakeSmallParams(1);
  const RandomProgram random = MakeRandomProgram(params, 1, 30);
  const auto cycles = [&](const MemoryModel& memory) { return EstimateProgram(params, memory, random.program).value().total_cycles; };
  MemoryModel memory;
  const int64_t base = cycles(memory);
  memory.row_miss_cycles = 10;
  const int64_t rows = cycles(memory);
  memory.refresh_interval_cycles = 500;
  memory.refresh_cycles = 50;
  const int64_t refreshed = cycles(memory);
  memory.bytes_per_cycle = 0.5;
  EXPECT_LT(base, rows);
  EXPECT_LT(rows, refreshed);
  EXPECT_LT(refreshed, cycles(memory));
}

TEST(Timing, AStopNamesUnitTokenAndGiver) {
  const AcceleratorParams params;
  Instruction load = Make(Opcode::kLoad), compute = Compute(1, 1), store = Make(Opcode::kStore);
  compute.header.wait_load = 2;
  load.header.signal_compute = 1;
  store.header.wait_compute = 1;
  compute.header.signal_store = 1;
  EstimateOptions options;
  options.layer_names = {"conv1"};
  absl::Status status = EstimateProgram(params, {}, {load, compute, store, Make(Opcode::kEnd)}, options).status();
  EXPECT_EQ(ir::ErrorCode(status), "E-PROGRAM-006");
  EXPECT_NE(status.message().find("the compute unit holds instruction 1 (compute of layer \"conv1\"), which waits for 2 tokens of the load unit "
                                  "and has 1; nothing in the program gives it"),
            std::string::npos)
      << status;
  EXPECT_NE(status.message().find("the store unit holds instruction 2 (store of layer \"conv1\"), which waits for 1 token of the compute unit and has 0; "
                                  "instruction 1 (compute of layer \"conv1\") gives it, which has not finished"),
            std::string::npos)
      << status;
  // The giver stands behind a queue that is full.
  std::vector<Instruction> program(static_cast<size_t>(params.compute_queue) + 2, compute);
  program.push_back(load);
  program.push_back(load);
  program.push_back(Make(Opcode::kEnd));
  status = EstimateProgram(params, {}, program, options).status();
  EXPECT_NE(status.message().find("has not left the fetch unit"), std::string::npos) << status;
  EXPECT_NE(status.message().find("the compute queue of 4 is full"), std::string::npos) << status;
}

// Cycles a second of programs that load, compute and store all the time, where nothing can be crossed in one step.
TEST(Timing, Speed) {
  const AcceleratorParams params = MakeSmallParams(1);
  const RandomProgram random = MakeRandomProgram(params, 7, 200);
  int64_t cycles = 0;
  const std::clock_t start = std::clock();  // of this process: other work on the machine does not count
  for (int run = 0; run < 5; ++run) cycles += EstimateProgram(params, {}, random.program).value().total_cycles;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%.1f million cycles a second\n", static_cast<double>(cycles) / seconds / 1e6);
  EXPECT_GT(cycles, 0);
}

}  // namespace
}  // namespace heddle::hls
