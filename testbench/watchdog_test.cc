// A program made to hang: the simulation ends with a report of which unit waits for which token, in the layers' names.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "hls/compiler.h"
#include "hls/random_region.h"
#include "ir/status.h"
#include "sim/accelerator_device.h"

namespace heddle {
namespace {

// Loads no longer tell the compute unit that they are done.
void TakeTokensOfLoads(hls::CompiledProgram& program) {
  for (hls::Instruction& instruction : program.run) {
    if (instruction.header.opcode == hls::Opcode::kLoad) instruction.header.signal_compute = 0;
  }
  const std::vector<uint8_t> bytes = hls::EncodeProgram(program.run).value();
  std::copy(bytes.begin(), bytes.end(), program.image.begin() + program.run_address);
}

void ExpectReport(const absl::Status& status, const std::string& layer) {
  EXPECT_EQ(ir::ErrorCode(status), "E-SIM-001") << status;
  const std::string message(status.message());
  std::printf("%s\n", message.c_str());  // docs/report.md quotes it
  const std::vector<std::string> expected = {"no unit moved", "in the run program", "the compute unit holds instruction",
                                             "of layer \"" + layer + "\"), which waits for", "of the load unit and has 0; nothing in the program gives it"};
  for (const std::string& words : expected) {
    EXPECT_NE(message.find(words), std::string::npos) << "\"" << words << "\" is missing in:\n" << message;
  }
}

TEST(WatchdogTest, NamesWhoWaitsForWhom) {
  hls::AcceleratorParams params = hls::MakeRandomParams(1);
  params.weight_words = std::max(params.weight_words, 130);
  auto device = sim::MakeAcceleratorDevice({{"name", "accelerator"}, {"kind", "accelerator"}, {"parameters", hls::ParamsToJson(params)}});
  ASSERT_TRUE(device.ok()) << device.status();
  // The first small region that this engine takes and in which a layer waits for a load.
  for (uint64_t seed = 1; seed < 50; ++seed) {
    const hls::RandomRegion region = hls::MakeRandomRegion(seed, 3);
    auto program = hls::CompileRegion(region.graph, params);
    if (!program.ok()) continue;
    const auto first = std::find_if(program->run.begin(), program->run.end(), [](const hls::Instruction& instruction) {
      return instruction.header.opcode == hls::Opcode::kCompute && instruction.header.wait_load > 0;
    });
    if (first == program->run.end()) continue;
    const std::string layer = program->layers.at(first->compute.tag).name;
    TakeTokensOfLoads(*program);
    sim::AcceleratorRegion hanging(**device, std::make_shared<ir::Graph>(region.graph), *program, "hanging", {});
    return ExpectReport(hanging.Run(region.inputs).status(), layer);
  }
  FAIL() << "no region";
}

}  // namespace
}  // namespace heddle
