// Random regions on the RTL in Icarus Verilog: the functional model's bytes, which compiler_test compares with the reference
// interpreter's and testbench/accelerator_rtl_test with Verilator's; and a test bench that does notice a wrong byte.

#include "hls/verilog_testbench.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "hls/accelerator/verilog_folder.h"
#include "hls/compiler.h"
#include "hls/random_region.h"

namespace heddle::hls {
namespace {

// Regions and parameters small enough for some thousands of cycles.
TEST(VerilogTestbenchTest, RegionsEndInIcarusWithTheSameBytes) {
  int simulated = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const AcceleratorParams params = MakeRandomParams(seed);
    const std::string name = "region_" + std::to_string(seed);
    const std::filesystem::path rtl = WriteFiles(params, name + "/rtl");
    const RandomRegion region = MakeRandomRegion(seed, static_cast<int>(seed % 4) + 1);
    const auto program = CompileRegion(region.graph, params);
    if (!program.ok()) continue;  // refusals are compiler_test's
    const auto result = SimulateInIcarus(*program, region.inputs, rtl, TestFolder(name + "/bench"));
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status();
    EXPECT_GT(result->cycles, 0);
    int64_t bytes = 0;
    for (const HostTensor& output : program->outputs) bytes += output.bytes;
    EXPECT_EQ(result->bytes_compared, bytes) << "seed " << seed;
    ++simulated;
  }
  EXPECT_GE(simulated, 3);
}

TEST(VerilogTestbenchTest, AWrongByteIsNoticed) {
  const AcceleratorParams params = MakeRandomParams(1);
  const std::filesystem::path folder = WriteFiles(params, "wrong/rtl").parent_path();
  uint64_t seed = 1;
  RandomRegion region = MakeRandomRegion(seed, 1);
  auto program = CompileRegion(region.graph, params);
  while (!program.ok()) {
    region = MakeRandomRegion(++seed, 1);
    program = CompileRegion(region.graph, params);
  }
  const auto files = GenerateVerilogTestbench(*program, region.inputs);
  ASSERT_TRUE(files.ok()) << files.status();
  for (const auto& [name, text] : *files) std::ofstream(folder / name) << text;
  // The last hexadecimal digit of a line is the low half of the beat's first byte.
  std::string expected = files->at("expected.hex");
  const auto line = static_cast<size_t>(program->outputs[0].dram_address / params.beat_bytes());
  const auto beat_digits = static_cast<size_t>(2 * params.beat_bytes());
  char& digit = expected[line * (beat_digits + 1) + beat_digits - 1];
  digit = digit == '0' ? '1' : '0';
  std::ofstream(folder / "expected.hex") << expected;
  const std::string command = "cd " + folder.string() +
                              " && iverilog -g2005 -o bench -s testbench testbench.v rtl/*.v && vvp -n bench > said.txt && grep -qx FAIL said.txt";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace heddle::hls
