// The layers' bytes add up to what the fast model counts at the memory port, and no memory is fuller than full.

#include "driver/memory_facts.h"

#include <gtest/gtest.h>

#include <numeric>

#include "hls/compiler.h"
#include "hls/random_region.h"

namespace heddle::driver {
namespace {

TEST(MemoryFactsTest, LayersAddUpToThePort) {
  int compiled = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const hls::RandomRegion region = hls::MakeRandomRegion(seed, static_cast<int>(seed % 6) + 1);
    const auto program = hls::CompileRegion(region.graph, hls::MakeRandomParams(seed));
    if (!program.ok()) continue;  // refused: compiler_test looks at those
    ++compiled;
    const std::vector<int64_t> bytes = DramBytesByLayer(*program);
    const int64_t moved = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    const int64_t fetched = static_cast<int64_t>(program->run.size()) * hls::kInstructionBytes;
    int64_t rows = 0;  // each is rounded up to whole beats at the port
    for (const hls::Instruction& instruction : program->run) rows += int64_t{instruction.transfer.rows} * instruction.transfer.planes;
    const int64_t port = program->dram_bytes_read + program->dram_bytes_written - fetched;
    EXPECT_GE(port, moved) << "seed " << seed;
    EXPECT_LE(port, moved + rows * (program->params.beat_bytes() - 1) + program->params.burst_beats * program->params.beat_bytes()) << "seed " << seed;

    report::Accelerator out;
    AddMemoryFacts(*program, out);
    ASSERT_EQ(out.on_chip.size(), 3u);
    for (const report::OnChipMemory& memory : out.on_chip) {
      EXPECT_LE(memory.resident, memory.used) << "seed " << seed << " " << memory.name;
      EXPECT_LE(memory.used, memory.available) << "seed " << seed << " " << memory.name;
    }
    EXPECT_GT(out.on_chip[0].used, 0) << "seed " << seed;
    EXPECT_GT(out.memory_bytes_per_cycle, 0);
    EXPECT_EQ(out.spilled_tensors > 0, out.spilled_bytes > 0) << "seed " << seed;
  }
  EXPECT_GE(compiled, 30);
}

}  // namespace
}  // namespace heddle::driver
