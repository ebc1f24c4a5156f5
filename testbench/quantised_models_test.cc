// Real quantised networks through the pass pipeline: every layer that was quantised is an integer op afterwards, and stays
// within one step of its float computation on equal inputs. Models beside the project are skipped where they are absent.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "frontend/onnx_import.h"
#include "ir/op.h"
#include "ir/passes/pass.h"
#include "ir/passes/quantised_compare.h"
#include "testbench/data_path.h"

namespace heddle {
namespace {

ir::Tensor RandomInput(const ir::ValueType& type, ir::Random& random, float low, float high) {
  ir::Tensor tensor(type.element, type.static_shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set_double(i, std::uniform_real_distribution<float>(low, high)(random));
  }
  return tensor;
}

struct ModelCase {
  std::string name;
  std::string path;  // below the data folder, or in the project
  bool bundled = false;
  int inputs = 5;
};

class QuantisedModel : public testing::TestWithParam<ModelCase> {};

TEST_P(QuantisedModel, IsIntegerInsideAndWithinOneStepOfFloat) {
  const ModelCase& model = GetParam();
  const auto path = model.bundled ? std::optional<std::filesystem::path>(model.path) : testbench::DataPath(model.path);
  HEDDLE_SKIP_WITHOUT_DATA(path);
  const auto original = frontend::ImportOnnx(*path);
  ASSERT_TRUE(original.ok()) << original.status().message();
  ir::Graph graph = *original;
  const absl::Status status = ir::RunDefaultPipeline(graph, {.verify_each = true});
  ASSERT_TRUE(status.ok()) << status.message();

  const std::set<std::string> integer = {"QConv", "QMatMul", "QAdd", "QMul", "QAveragePool", "QSoftmax", "QLut", "SignFlip"};
  std::map<std::string, int> counts;
  for (ir::NodeId id : graph.NodeIds()) {
    const ir::Node& node = graph.node(id);
    ++counts[node.op];
    const bool at_border = (node.op == "QuantizeLinear" && graph.ProducerOf(node.inputs[0]) == ir::kNoNode) ||
                           (node.op == "DequantizeLinear" && graph.IsOutput(node.outputs[0]));
    const bool movement = ir::FindOp(node.op)->kind(ir::NodeContext(graph, node)) == ir::OpKind::kMovement;
    const bool on_bytes = graph.type(node.outputs[0]).element == ir::ElementType::kInt8;
    EXPECT_TRUE(integer.contains(node.op) || at_border || ((movement || node.op == "MaxPool") && on_bytes))
        << "node " << node.name << " (" << node.op << ") stayed " << TypeText(graph.type(node.outputs[0]));
  }
  for (const auto& [op, count] : counts) std::printf("  %s %d\n", op.c_str(), count);

  ir::Random random(7);
  ir::QuantisedComparison comparison;
  for (int run = 0; run < model.inputs; ++run) {
    std::vector<ir::Tensor> inputs;
    for (ir::ValueId id : graph.inputs()) inputs.push_back(RandomInput(graph.type(id), random, -3.0f, 3.0f * static_cast<float>(run + 1)));
    const absl::Status compared = ir::CompareQuantisedLayers(*original, graph, inputs, comparison);
    ASSERT_TRUE(compared.ok()) << compared.message();
  }
  EXPECT_LE(comparison.largest_step, 1);
  EXPECT_GT(comparison.elements, 0);
  // Differences lie next to ties only: rare.
  EXPECT_LT(comparison.mismatches * 1000, comparison.elements);
  std::printf("  %zu layers, %lld elements, %lld differ, by at most %lld\n", comparison.layers.size(),
              static_cast<long long>(comparison.elements), static_cast<long long>(comparison.mismatches),
              static_cast<long long>(comparison.largest_step));
}

std::vector<ModelCase> Cases() {
  std::vector<ModelCase> cases = {{"digits", "testbench/models/digits/digits_int8_qdq.onnx", true, 5}};
  for (const char* name : {"ic", "kws", "vww", "ad"}) {
    for (const char* form : {"qdq", "qop"}) {
      const std::string file = std::string(name) + "_int8_" + form;
      cases.push_back({file, "mlperf_tiny_onnx/" + file + ".onnx"});
    }
  }
  cases.push_back({"mobilenet_v2", "tflite/mobilenet_v2_int8/mobilenet_v2_int8_qdq.onnx", false, 1});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, QuantisedModel, testing::ValuesIn(Cases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle
