// The MLPerf Tiny networks as accelerator programs: what the engine takes of each becomes one region, whose program on the
// functional model gives the reference interpreter's bytes; the fast model's cycles are printed. HEDDLE_RTL=1 runs them on the
// RTL too, prints layer by layer what either says, and compares the bytes once more.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "frontend/onnx_import.h"
#include "hls/accelerator/accelerator.h"
#include "hls/compiler.h"
#include "hls/functional_model.h"
#include "ir/interpreter.h"
#include "ir/ops/quant_common.h"
#include "ir/passes/pass.h"
#include "ir/region.h"
#include "sim/verilated_model.h"
#include "testbench/data_path.h"
#include "testbench/resnet50.h"

namespace heddle {
namespace {

// The zynq7020 preset's parameters.
hls::AcceleratorParams Params() {
  hls::AcceleratorParams params;
  params.contraction_lanes = 24;
  params.output_lanes = 16;
  params.requantise_lanes = 16;
  params.activation_bytes = 98304;
  params.weight_words = 1024;
  params.parameter_blocks = 256;
  params.soft_multipliers = 4;
  return params;
}

// Cycles of each layer on the RTL beside the fast model's.
void RunOnRtl(const hls::CompiledProgram& program, const std::vector<ir::Tensor>& inputs, const std::vector<ir::Tensor>& expected) {
  const auto model = sim::VerilatedModel::Build(hls::GenerateVerilog(program.params), false, {});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<uint8_t> dram = hls::InitialDram(program);
  ASSERT_TRUE(hls::PackInputs(program, inputs, dram).ok());
  sim::SimulationRequest request;
  request.image = &dram;
  request.memory.beat_bytes = program.params.beat_bytes();
  request.jobs.push_back({static_cast<uint64_t>(program.setup_address), {}, {}});
  request.jobs.push_back({static_cast<uint64_t>(program.run_address), {}, {{0, dram.size()}}});
  const auto result = model->Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  const sim::JobResult& job = result->jobs.at(1);
  const std::vector<ir::Tensor> found = hls::UnpackOutputs(program, job.dumps.at(0));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i] == expected[i]) << program.outputs[i].name;
  std::map<uint64_t, int> computed;  // end of each compute instruction, its layer
  uint64_t before = UINT64_MAX;
  for (const sim::UnitEvent& event : job.events) {
    before = std::min(before, event.start_cycle);
    if (event.unit == 1) computed[event.end_cycle] = event.tag;
  }
  std::map<int, int64_t> cycles;
  for (const auto& [end, tag] : computed) {
    cycles[tag] += static_cast<int64_t>(end - before);
    before = end;
  }
  for (const auto& [tag, count] : cycles) {
    std::printf("  %-40s %8lld RTL %8lld estimated\n", program.layers[static_cast<size_t>(tag)].name.c_str(), static_cast<long long>(count),
                static_cast<long long>(program.layers[static_cast<size_t>(tag)].cycles_estimated));
  }
  std::printf("  total %lld RTL, %lld estimated (%+.2f %%); setup %lld estimated, simulated at %.0f cycles/s\n", static_cast<long long>(job.counters.at("cycles_low")),
              static_cast<long long>(program.cycles_estimated),
              100.0 * static_cast<double>(program.cycles_estimated - job.counters.at("cycles_low")) / static_cast<double>(job.counters.at("cycles_low")),
              static_cast<long long>(program.setup_cycles_estimated), static_cast<double>(result->cycles) / result->seconds);
  for (const auto& [name, value] : job.counters) std::printf("    %s %lld\n", name.c_str(), static_cast<long long>(value));
}

void RunModel(const std::string& file, int64_t most_cycles) {
  const auto path = testbench::DataPath("mlperf_tiny_onnx/" + file);
  if (!path) GTEST_SKIP() << "no test data";
  auto graph = frontend::ImportOnnx(*path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(ir::RunDefaultPipeline(*graph).ok());
  const hls::AcceleratorParams params = Params();
  std::vector<ir::NodeId> nodes;
  for (ir::NodeId id : graph->NodeIds()) {
    const ir::Node& node = graph->node(id);
    const ir::Support support = hls::SupportsNode(*graph, node, params);
    if (support.supported) {
      nodes.push_back(id);
    } else {
      std::printf("  %s (%s) elsewhere: %s %s\n", node.name.c_str(), node.op.c_str(), support.code.c_str(), support.text.c_str());
    }
  }
  const ir::Graph region = ir::ExtractRegion(*graph, nodes);
  const auto program = hls::CompileRegion(region, params);
  ASSERT_TRUE(program.ok()) << program.status();
  if (std::getenv("HEDDLE_VERBOSE")) std::printf("%s", hls::ProgramText(*program).c_str());
  std::printf("%s: %zu of %zu nodes, %zu layers, %zu instructions, %lld cycles estimated, utilisation %.3f, spilled %lld bytes\n", file.c_str(), nodes.size(),
              graph->NodeIds().size(), program->layers.size(), program->run.size(), static_cast<long long>(program->cycles_estimated),
              static_cast<double>(program->macs()) / static_cast<double>(program->cycles_estimated * params.peak_macs_per_cycle()),
              static_cast<long long>(program->plan.activations_spilled_bytes));
  EXPECT_LE(program->cycles_estimated, most_cycles);
  ir::Random random(5);
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId value : region.inputs()) {
    inputs.push_back(ir::RandomTensor(random, ir::ElementType::kInt8, region.type(value).static_shape(), -128, 127));
  }
  const auto expected = ir::Interpret(region, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  std::vector<uint8_t> dram = hls::InitialDram(*program);
  hls::FunctionalModel model(params);
  ASSERT_TRUE(model.Run(program->setup, dram, 1).ok());
  ASSERT_TRUE(hls::PackInputs(*program, inputs, dram).ok());
  const absl::Status status = model.Run(program->run, dram, 1);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<ir::Tensor> found = hls::UnpackOutputs(*program, dram);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i] == (*expected)[i]) << program->outputs[i].name;
  if (std::getenv("HEDDLE_RTL")) RunOnRtl(*program, inputs, *expected);
}

// MACs over what the lanes could have done in the estimated cycles.
double EstimatedUtilisation(const ir::Graph& graph, const hls::AcceleratorParams& params, const hls::MemoryModel& memory) {
  const auto program = hls::CompileRegion(graph, params, memory);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return 0;
  std::printf("%s: %lld cycles estimated\n", graph.name().c_str(), static_cast<long long>(program->cycles_estimated));
  return static_cast<double>(program->macs()) / (static_cast<double>(program->cycles_estimated) * params.peak_macs_per_cycle());
}

// Whole, with first convolution, pooling, residuals and the last matrix; memories as of targets edge-soc and zu7ev.
TEST(AcceleratorModelsTest, Resnet50) {
  const ir::Graph graph = testbench::MakeResnet50();
  hls::AcceleratorParams params;
  params.requantise_lanes = 16, params.activation_bytes = 262144, params.weight_words = 2048, params.parameter_blocks = 256;
  params.axi_data_bits = 128;
  EXPECT_GE(EstimatedUtilisation(graph, params, {60, 16}), 0.90);
  params.contraction_lanes = params.output_lanes = 32;
  params.requantise_lanes = 32, params.activation_bytes = 524288, params.weight_words = 1024, params.axi_data_bits = 256;
  EXPECT_GE(EstimatedUtilisation(graph, params, {50, 32}), 0.85);
}

// 38,000 is the aim. Residual layers keep the drain's rhythm of two cycles, so their odd numbers of steps are rounded up: 1,300 cycles.
TEST(AcceleratorModelsTest, Ic) { RunModel("ic_int8_qdq.onnx", 38600); }
TEST(AcceleratorModelsTest, Kws) { RunModel("kws_int8_qdq.onnx", 15000); }
TEST(AcceleratorModelsTest, Vww) { RunModel("vww_int8_qdq.onnx", 45000); }
TEST(AcceleratorModelsTest, Ad) { RunModel("ad_int8_qdq.onnx", 3000); }
TEST(AcceleratorModelsTest, IcQop) { RunModel("ic_int8_qop.onnx", 38600); }
TEST(AcceleratorModelsTest, KwsQop) { RunModel("kws_int8_qop.onnx", 15000); }

}  // namespace
}  // namespace heddle
