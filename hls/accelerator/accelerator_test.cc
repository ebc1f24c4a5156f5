// The emitted Verilog is repeatable, silent under verilator --lint-only -Wall without waivers, and taken by Icarus and Yosys
// as it stands; units that are off leave no trace. What it computes is tested in testbench/ on the simulator.

#include "hls/accelerator/accelerator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hls/accelerator/verilog_folder.h"
#include "hls/random_program.h"

namespace heddle::hls {
namespace {

// Exit status and, in `output`, everything that the command said.
int Execute(const std::string& command, const std::filesystem::path& folder, std::string& output) {
  const int status = std::system(("cd " + folder.string() + " && (" + command + ") > said.txt 2>&1").c_str());
  std::ifstream said(folder / "said.txt");
  output.assign(std::istreambuf_iterator<char>(said), std::istreambuf_iterator<char>());
  return status;
}

void ExpectSilentLint(const AcceleratorParams& params, const std::string& name) {
  std::string said;
  const auto folder = WriteFiles(params, name);
  // Newer Verilators close with lines of statistics, "- Verilator: Built from …".
  const char* command = "verilator --lint-only -Wall --top-module heddle_accelerator *.v > lint.txt 2>&1; status=$?; grep -v '^- V' lint.txt; exit $status";
  EXPECT_EQ(Execute(command, folder, said), 0) << name << "\n" << said;
  EXPECT_EQ(said, "") << name;
}

AcceleratorParams Small() {
  AcceleratorParams params;
  params.contraction_lanes = 8;
  params.output_lanes = 4;
  params.requantise_lanes = 2;
  params.activation_bytes = 8192;
  params.weight_words = 64;
  params.parameter_blocks = 8;
  return params;
}

TEST(AcceleratorTest, SameParametersGiveTheSameBytes) {
  EXPECT_EQ(GenerateVerilog(Small()), GenerateVerilog(Small()));
  AcceleratorParams other = Small();
  other.weight_words = 65;
  EXPECT_NE(GenerateVerilog(Small()), GenerateVerilog(other));
}

TEST(AcceleratorTest, LintIsSilentWithEveryUnitOnAndOff) {
  ExpectSilentLint(AcceleratorParams{}, "default");
  for (int unit = 0; unit < 5; ++unit) {
    AcceleratorParams params = Small();
    params.depthwise = unit != 0 && unit != 4;
    params.pooling = unit != 1 && unit != 4;
    params.elementwise = unit != 2 && unit != 4;
    params.lookup = unit != 3 && unit != 4;
    ExpectSilentLint(params, "units_" + std::to_string(unit));
  }
}

TEST(AcceleratorTest, LintIsSilentForRandomParameters) {
  for (uint64_t seed = 1; seed <= 8; ++seed) ExpectSilentLint(MakeSmallParams(seed), "random_" + std::to_string(seed));
}

TEST(AcceleratorTest, UnitsThatAreOffVanish) {
  AcceleratorParams params = Small();
  EXPECT_NE(GenerateVerilog(params).at("heddle_drain_lane.v").find("table_words"), std::string::npos);
  EXPECT_NE(GenerateVerilog(params).at("heddle_operands.v").find("column_0"), std::string::npos);
  params.lookup = params.elementwise = params.depthwise = params.pooling = false;
  const auto files = GenerateVerilog(params);
  EXPECT_EQ(files.at("heddle_drain_lane.v").find("table_words"), std::string::npos);
  EXPECT_EQ(files.at("heddle_drain_lane.v").find("operand_b"), std::string::npos);
  EXPECT_EQ(files.at("heddle_operands.v").find("column_0"), std::string::npos);
}

TEST(AcceleratorTest, TwoProductsInAMultiplierAreExact) {
  AcceleratorParams params;
  params.contraction_lanes = params.output_lanes = params.requantise_lanes = 4;
  params.depthwise = params.pooling = params.elementwise = params.lookup = false;
  params.soft_multipliers = 2;  // of columns 2 and 3, lanes 2 and 3
  std::string said;
  const auto folder = WriteFiles(params, "packed");
  std::filesystem::copy_file("hls/accelerator/packed_products.v", folder / "packed_products.v", std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Execute("iverilog -g2005 -o compiled -s packed_products packed_products.v heddle_array.v && ./compiled", folder, said), 0) << said;
  EXPECT_NE(("\n" + said).find("\n0 errors in 46658 steps\n"), std::string::npos) << said;
}

TEST(AcceleratorTest, IcarusAndYosysTakeItAsItStands) {
  std::string said;
  const auto folder = WriteFiles(Small(), "tools");
  EXPECT_EQ(Execute("iverilog -g2005 -Wall -o compiled -s heddle_accelerator *.v", folder, said), 0) << said;
  EXPECT_EQ(Execute("yosys -q -p 'read_verilog *.v; hierarchy -check -top heddle_accelerator; proc; check -assert'", folder, said), 0)
      << said;
}

}  // namespace
}  // namespace heddle::hls
