// The MLPerf Tiny networks as accelerator programs: what the engine of a preset takes of each becomes one region, in
// exactly so many cycles. With zynq7020's parameters it runs on the RTL, with edge-soc's on the functional model; both
// give the reference interpreter's bytes, and the RTL takes the fast model's cycles.

#include <gtest/gtest.h>

#include "frontend/onnx_import.h"
#include "hls/accelerator/accelerator.h"
#include "hls/compiler.h"
#include "ir/interpreter.h"
#include "ir/passes/pass.h"
#include "sim/verilated_model.h"
#include "testbench/accelerator_region.h"
#include "testbench/data_path.h"
#include "testbench/resnet50.h"
#include "testbench/simulation_request.h"

namespace heddle {
namespace {

using testbench::AcceleratorTarget;

AcceleratorTarget Preset(const std::string& name) {
  auto target = testbench::ReadAcceleratorTarget("driver/targets/" + name + ".json");
  EXPECT_TRUE(target.ok()) << target.status();
  return target.ok() ? *target : AcceleratorTarget{};
}

std::vector<ir::Tensor> RunFunctional(const hls::CompiledProgram& program, const std::vector<ir::Tensor>& inputs) {
  std::vector<uint8_t> dram = hls::InitialDram(program);
  absl::Status status = hls::PackInputs(program, inputs, dram);
  if (status.ok()) status = hls::RunFunctional(program, dram, 1);
  EXPECT_TRUE(status.ok()) << status;
  return hls::UnpackOutputs(program, dram);
}

std::vector<ir::Tensor> RunOnRtl(const AcceleratorTarget& target, const hls::CompiledProgram& program,
                                 const std::vector<ir::Tensor>& inputs) {
  static const auto* const model = new auto(sim::VerilatedModel::Build(hls::GenerateVerilog(target.params), false, {}));
  EXPECT_TRUE(model->ok()) << model->status();
  if (!model->ok()) return {};
  auto run = testbench::RunProgram(**model, program, inputs, {target.memory, target.params.beat_bytes()});
  EXPECT_TRUE(run.ok()) << run.status();
  if (!run.ok()) return {};
  EXPECT_EQ(run->cycles, program.cycles_estimated);
  return std::move(run->outputs);
}

void RunModel(const std::string& file, const std::string& preset, int64_t cycles) {
  const auto path = testbench::DataPath("mlperf_tiny_onnx/" + file);
  if (!path) GTEST_SKIP() << "no test data";
  auto graph = frontend::ImportOnnx(*path);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(ir::RunDefaultPipeline(*graph).ok());
  const AcceleratorTarget target = Preset(preset);
  const testbench::AcceleratorPart part = testbench::TakeAcceleratorPart(*graph, target.params);
  const auto program = hls::CompileRegion(part.region, target.params, target.memory);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->cycles_estimated, cycles);
  const std::vector<ir::Tensor> inputs = testbench::RandomInputs(part.region, 5);
  const auto expected = ir::Interpret(part.region, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::vector<ir::Tensor> found =
      preset == "zynq7020" ? RunOnRtl(target, *program, inputs) : RunFunctional(*program, inputs);
  ASSERT_EQ(found.size(), expected->size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i] == (*expected)[i]) << program->outputs[i].name;
}

// MACs over what the lanes could have done in the estimated cycles.
double EstimatedUtilisation(const ir::Graph& graph, const AcceleratorTarget& target) {
  const auto program = hls::CompileRegion(graph, target.params, target.memory);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return 0;
  std::printf("%s: %lld cycles estimated\n", graph.name().c_str(), static_cast<long long>(program->cycles_estimated));
  return static_cast<double>(program->macs()) /
         (static_cast<double>(program->cycles_estimated) * target.params.peak_macs_per_cycle());
}

// Whole, with first convolution, pooling, residuals and the last matrix.
TEST(AcceleratorModelsTest, Resnet50) {
  const ir::Graph graph = testbench::MakeResnet50();
  EXPECT_GE(EstimatedUtilisation(graph, Preset("edge-soc")), 0.90);
  EXPECT_GE(EstimatedUtilisation(graph, Preset("zu7ev")), 0.85);
}

struct Expected {
  const char* name;
  const char* file;
  int64_t zynq7020_cycles, edge_soc_cycles;
};

void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.name; }

class MlperfTiny : public testing::TestWithParam<Expected> {};

// The bar of accelerator engines elsewhere, at 100 MHz: 38,000, 15,000, 45,000 and 3,000 cycles (docs/accelerator.md).
TEST_P(MlperfTiny, Zynq7020) { RunModel(GetParam().file, "zynq7020", GetParam().zynq7020_cycles); }
TEST_P(MlperfTiny, EdgeSoc) { RunModel(GetParam().file, "edge-soc", GetParam().edge_soc_cycles); }

INSTANTIATE_TEST_SUITE_P(Networks, MlperfTiny,
                         testing::Values(Expected{"Ic", "ic_int8_qdq.onnx", 37398, 52856},
                                         Expected{"Kws", "kws_int8_qdq.onnx", 14502, 16588},
                                         Expected{"Vww", "vww_int8_qdq.onnx", 38301, 42928},
                                         Expected{"Ad", "ad_int8_qdq.onnx", 1360, 1647},
                                         Expected{"IcQop", "ic_int8_qop.onnx", 37398, 52856},
                                         Expected{"KwsQop", "kws_int8_qop.onnx", 14502, 16588}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle
