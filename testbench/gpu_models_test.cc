// Real networks whole on the GPU device through OpenCL: int8 ones equal the reference interpreter to the bit, also where a
// quantisation step follows float arithmetic at the model's ends; float ones within a small bound of it.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "frontend/onnx_import.h"
#include "gpu/gpu_device.h"
#include "ir/interpreter.h"
#include "ir/op.h"
#include "ir/passes/pass.h"
#include "testbench/data_path.h"

namespace heddle {
namespace {

constexpr uint64_t kSeed = 20260615;

ir::Tensor RandomInput(const ir::ValueType& type, std::mt19937_64& random) {
  ir::Tensor tensor(type.element, type.static_shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (ir::IsFloat(type.element)) {
      tensor.set_double(i, std::uniform_real_distribution<double>(0, 1)(random));
    } else {
      tensor.set_int(i, static_cast<int64_t>(random() % 256) - (type.element == ir::ElementType::kInt8 ? 128 : 0));
    }
  }
  return tensor;
}

struct Model {
  const char* path;
  double relative_bound;  // 0: equal to the bit
};

class GpuModelsTest : public testing::TestWithParam<Model> {};

TEST_P(GpuModelsTest, AgreesWithTheReference) {
  const auto path = testbench::DataPath(GetParam().path);
  HEDDLE_SKIP_WITHOUT_DATA(path);
  auto device = gpu::MakeGpuDevice({{"name", "gpu"}, {"timing", "measured"}, {"api", "opencl"}});
  if (!device.ok() && ir::ErrorCode(device.status()) == "E-GPU-010") GTEST_SKIP() << "no OpenCL device on this machine";
  ASSERT_TRUE(device.ok()) << device.status().message();
  auto imported = frontend::ImportOnnx(*path);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const absl::Status passes = RunDefaultPipeline(*imported);
  ASSERT_TRUE(passes.ok()) << passes.message();
  const auto graph = std::make_shared<const ir::Graph>(*std::move(imported));
  for (ir::NodeId id : graph->NodeIds()) {
    const ir::Support support = (*device)->Supports(*graph, graph->node(id));
    EXPECT_TRUE(support.supported) << graph->node(id).name << ": " << support.code << " " << support.text;
  }
  auto region = (*device)->Compile(graph, {.name = "whole"});
  ASSERT_TRUE(region.ok()) << region.status().message();
  std::mt19937_64 random(kSeed);
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId id : graph->inputs()) inputs.push_back(RandomInput(graph->type(id), random));
  const auto expected = Interpret(*graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  for (int run = 0; run < 2; ++run) {  // memory is reused from run to run
    const auto actual = (*region)->Run(inputs);
    ASSERT_TRUE(actual.ok()) << actual.status().message();
    for (size_t o = 0; o < expected->size(); ++o) {
      const ir::Tensor &e = (*expected)[o], &a = actual->outputs[o];
      if (GetParam().relative_bound == 0) {
        EXPECT_TRUE(e == a) << "output " << o << " seed " << kSeed;
        continue;
      }
      double largest = 0, worst = 0;
      for (int64_t i = 0; i < e.elements(); ++i) largest = std::max(largest, std::abs(e.at_double(i)));
      for (int64_t i = 0; i < e.elements(); ++i) worst = std::max(worst, std::abs(e.at_double(i) - a.at_double(i)));
      EXPECT_LE(worst, GetParam().relative_bound * largest) << "output " << o << " seed " << kSeed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuModelsTest,
                         testing::Values(Model{"mlperf_tiny_onnx/kws_int8_qdq.onnx", 0}, Model{"mlperf_tiny_onnx/ic_int8_qdq.onnx", 0},
                                         Model{"mlperf_tiny_onnx/vww_int8_qop.onnx", 0}, Model{"mlperf_tiny_onnx/ad_int8_qop.onnx", 0},
                                         Model{"tflite/mobilenet_v2_int8/mobilenet_v2_int8_qdq.onnx", 0},
                                         Model{"mnist/mnist.onnx", 1e-5}, Model{"onnx_light/light_squeezenet.onnx", 1e-5}));

}  // namespace
}  // namespace heddle
