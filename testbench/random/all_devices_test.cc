// Seeded random networks on every device: reference interpreter, CPU, OpenCL, accelerator (functional model and RTL) and
// HLS C++ agree, to the bit in integers and within bounds in float.
//
// HEDDLE_RANDOM_GRAPHS sets the number of networks (default 40; 200 takes some minutes), HEDDLE_RANDOM_SEED the first
// seed, HEDDLE_RANDOM_PARAMS the number of accelerator parameter sets (default 2). A failure prints the seed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "driver/devices.h"
#include "driver/execute.h"
#include "driver/verify.h"
#include "ir/passes/pass.h"
#include "sim/accelerator_device.h"
#include "testbench/random/random_network.h"

namespace heddle::testbench {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

nlohmann::json AcceleratorSection(const hls::AcceleratorParams& params, uint64_t seed) {
  // Slow and stuttering memory on odd seeds: results may not depend on time.
  return {{"name", "accelerator"}, {"kind", "accelerator"}, {"parameters", hls::ParamsToJson(params)},
          {"memory", {{"latency_cycles", 5 + seed % 40}, {"bytes_per_cycle", params.beat_bytes()}, {"stall_probability", seed % 2 ? 0.3 : 0.0}, {"seed", seed}}}};
}

std::unique_ptr<ir::Device> Host() {
  auto target = driver::ParseTarget(R"({"schema_version":1,"name":"t","devices":[{"name":"cpu","kind":"cpu","timing":"measured","threads":1}]})", "t");
  auto set = driver::MakeDevices(*target, {}, 1);
  return set.ok() ? std::move(set->devices[0]) : nullptr;
}

void ExpectAgrees(const driver::CrossCheck& check, bool exact, uint64_t seed) {
  for (const report::OutputCheck& output : check.outputs) {
    EXPECT_EQ(output.mismatches, 0) << "seed " << seed << ": " << check.against << ", output " << output.name << ", first at " << check.first_difference
                                    << ", off by " << output.max_abs_error;
    if (exact) {
      EXPECT_EQ(output.max_abs_error, 0) << "seed " << seed << ": " << check.against;
    }
  }
}

void RunOnEveryDevice(ir::Graph graph, bool exact, uint64_t seed, ir::Device& host, ir::Device* gpu, sim::AcceleratorDevice* accelerator, bool hls) {
  ASSERT_TRUE(ir::RunDefaultPipeline(graph).ok()) << "seed " << seed;
  const absl::Status valid = ir::Verify(graph);
  ASSERT_TRUE(valid.ok()) << "seed " << seed << ": " << valid.message();
  const std::vector<ir::Tensor> inputs = RandomInputs(graph, seed);
  auto reference = driver::ComputeReference(graph, inputs);
  ASSERT_TRUE(reference.ok()) << "seed " << seed << ": " << reference.status().message();
  std::vector<ir::Device*> devices = {&host};
  if (gpu) devices.push_back(gpu);
  if (accelerator) devices.push_back(accelerator);
  for (ir::Device* device : devices) {
    auto check = driver::CheckWholeOn(graph, *reference, inputs, *device, host, {});
    ASSERT_TRUE(check.ok()) << "seed " << seed << " on " << device->name() << ": " << check.status().message();
    ExpectAgrees(*check, exact, seed);
  }
  if (accelerator && hls) {
    auto check = driver::CheckHlsOf(graph, *reference, *accelerator, host);
    ASSERT_TRUE(check.ok()) << "seed " << seed << ", HLS C++: " << check.status().message();
    ExpectAgrees(*check, exact, seed);
  }
}

TEST(AllDevices, IntegerNetworksAgreeToTheBit) {
  const uint64_t graphs = FromEnvironment("HEDDLE_RANDOM_GRAPHS", 40), first = FromEnvironment("HEDDLE_RANDOM_SEED", 1);
  const uint64_t sets = FromEnvironment("HEDDLE_RANDOM_PARAMS", 2);
  const std::unique_ptr<ir::Device> host = Host();
  ASSERT_NE(host, nullptr);
  const std::unique_ptr<ir::Device> gpu = driver::MakeCrossCheckGpu();
  std::unique_ptr<sim::AcceleratorDevice> accelerator;
  for (uint64_t i = 0; i < graphs; ++i) {
    const uint64_t seed = first + i;
    // A parameter set serves consecutive seeds, so that its RTL is verilated once.
    if (i % ((graphs + sets - 1) / sets) == 0) {
      const hls::AcceleratorParams params = RandomParams(seed);
      auto made = sim::MakeAcceleratorDevice(AcceleratorSection(params, seed));
      ASSERT_TRUE(made.ok()) << made.status().message();
      accelerator = *std::move(made);
      fmt::print("seed {}: accelerator {}\n", seed, hls::ParamsToJson(params).dump());
    }
    RunOnEveryDevice(RandomIntegerNetwork(seed), true, seed, *host, gpu.get(), accelerator.get(), i % 8 == 0);
    if (HasFatalFailure()) return;
  }
}

TEST(AllDevices, FloatNetworksAgreeWithinBounds) {
  const uint64_t graphs = FromEnvironment("HEDDLE_RANDOM_GRAPHS", 40), first = FromEnvironment("HEDDLE_RANDOM_SEED", 1);
  const std::unique_ptr<ir::Device> host = Host();
  ASSERT_NE(host, nullptr);
  const std::unique_ptr<ir::Device> gpu = driver::MakeCrossCheckGpu();
  for (uint64_t seed = first; seed < first + graphs; ++seed) {
    RunOnEveryDevice(RandomFloatNetwork(seed), false, seed, *host, gpu.get(), nullptr, false);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::testbench
