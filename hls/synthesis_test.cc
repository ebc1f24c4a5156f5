// Yosys synthesises the whole accelerator, to its end, into cells of an FPGA.

#include "hls/synthesis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "hls/accelerator/accelerator.h"
#include "hls/accelerator/verilog_folder.h"
#include "hls/resources.h"

namespace heddle::hls {
namespace {

constexpr double kTimeoutS = 800;

// The optional units are off: synthesising them takes most of the time.
AcceleratorParams Smallest() {
  AcceleratorParams params;
  params.contraction_lanes = 4;
  params.output_lanes = 4;
  params.requantise_lanes = 1;
  params.activation_bytes = 8192;
  params.weight_words = 1024;
  params.parameter_blocks = 32;
  params.axi_data_bits = 32;
  params.load_queue = params.compute_queue = params.store_queue = 1;
  params.depthwise = params.pooling = params.elementwise = params.lookup = false;
  return params;
}

void Print(const std::string& what, const Synthesis& synthesis) {
  const CellCounts& total = synthesis.total;
  fmt::print("{}, {}: {} LUT, {} FF, {} DSP, {} RAMB18, {:.0f} s\n", what, synthesis.tool, total.lut, total.ff, total.dsp, total.bram18,
             synthesis.seconds);
}

TEST(SynthesisTest, YosysSynthesisesTheTop) {
  const auto synthesis = Synthesise(WriteFiles(Smallest(), "top"), kTopModule, FpgaFamily::kXilinx7, kTimeoutS);
  ASSERT_TRUE(synthesis.ok()) << synthesis.status();
  Print("smallest", *synthesis);
  const CellCounts& total = synthesis->total;
  EXPECT_GT(total.lut, 1000);
  EXPECT_GT(total.ff, 1000);
  // The whole hierarchy was mapped: every module holds cells of the library, and none is missing.
  EXPECT_GE(synthesis->modules.size(), 15u);
  for (const auto& [name, counts] : synthesis->modules) {
    EXPECT_GT(counts.lut + counts.ff + counts.dsp + counts.bram18, 0) << name;
  }
  const Resources model = EstimateResources(Smallest());
  EXPECT_EQ(total.dsp, model.dsp);
  // A memory may end in one 18 Kibit block or in half of a pair.
  EXPECT_NEAR(static_cast<double>(total.bram18), static_cast<double>(model.bram18), 1);
}

// Two products in a DSP48E1, with lanes that are split for the depthwise window; the whole above has none.
TEST(SynthesisTest, ArrayTakesOneMultiplierForTwoProducts) {
  AcceleratorParams params;
  params.contraction_lanes = 4;
  params.output_lanes = 4;
  params.requantise_lanes = 4;
  ASSERT_EQ(params.split_lanes(), 2);
  const auto synthesis = Synthesise(WriteFiles(params, "array"), "heddle_array", FpgaFamily::kXilinx7, kTimeoutS);
  ASSERT_TRUE(synthesis.ok()) << synthesis.status();
  Print("array 4x4", *synthesis);
  EXPECT_EQ(synthesis->total.dsp, (4 + 2) * 4 / 2);
}

TEST(SynthesisTest, WhatYosysRefusesIsAnError) {
  const auto folder = WriteFiles(Smallest(), "broken");
  std::ofstream(folder / "heddle_accelerator.v") << "module heddle_accelerator (input wire clk); no_such_module x (); endmodule\n";
  const auto synthesis = Synthesise(folder, kTopModule, FpgaFamily::kXilinx7, kTimeoutS);
  ASSERT_FALSE(synthesis.ok());
  EXPECT_NE(synthesis.status().message().find("E-TOOL-003"), std::string::npos) << synthesis.status();
}

}  // namespace
}  // namespace heddle::hls
