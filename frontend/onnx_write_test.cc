// Write → import gives the same graph: on the bundled models, and on random nodes of every op that ONNX has.

#include "frontend/onnx_write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "frontend/onnx_import.h"
#include "ir/interpreter.h"
#include "ir/op.h"
#include "ir/text.h"

namespace heddle::frontend {
namespace {

TEST(OnnxWrite, BundledModelsComeBackTheSame) {
  for (const char* model :
       {"testbench/models/digits/digits_fp32.onnx", "testbench/models/digits/digits_int8_qdq.onnx"}) {
    const auto graph = ImportOnnx(model);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const auto bytes = OnnxBytes(*graph);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto again = ImportOnnxBytes(*bytes);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(ir::StructurallyEqual(*graph, *again)) << model;
    EXPECT_EQ(*bytes, OnnxBytes(*again).value());
  }
}

// Equal integers, and floats within the rounding of sums that the importer writes in another order.
bool Same(const ir::Tensor& a, const ir::Tensor& b) {
  if (!ir::IsFloat(a.type()) || a.shape() != b.shape() || a.type() != b.type()) return a == b;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.at_double(i), y = b.at_double(i);
    if (!(x == y || (x != x && y != y) || std::abs(x - y) <= 1e-5 * std::max(1.0, std::abs(x)))) return false;
  }
  return true;
}

// The IR takes more types than ONNX does, and a window that ceil_mode would start in the padding is none from opset 22
// on only.
bool IsStrict(const ir::Graph& graph) {
  for (ir::ValueId id : graph.ValueIds()) {
    const ir::ElementType type = graph.type(id).element;
    if (type != ir::ElementType::kFloat32 && type != ir::ElementType::kInt64 && type != ir::ElementType::kInt8 &&
        type != ir::ElementType::kBool)
      return false;
  }
  for (ir::NodeId id : graph.NodeIds()) {
    const ir::Node& node = graph.node(id);
    const bool floats = node.inputs.empty() || graph.type(node.inputs[0]).element == ir::ElementType::kFloat32;
    if (!floats && node.op != "DequantizeLinear") return false;
    if (node.Has("ceil_mode") && node.Int("ceil_mode") != 0) return false;
  }
  return true;
}

// ONNX's attributes are float32.
void RoundAttributes(ir::Graph& graph) {
  for (ir::NodeId id : graph.NodeIds()) {
    for (auto& [key, value] : graph.node(id).attributes) {
      if (auto* number = std::get_if<double>(&value)) *number = static_cast<float>(*number);
      if (auto* numbers = std::get_if<std::vector<double>>(&value)) {
        for (double& entry : *numbers) entry = static_cast<float>(entry);
      }
    }
  }
}

// Inputs that the importer wants as constants are constants in the samples too.
TEST(OnnxWrite, RandomNodesComeBackAndComputeTheSame) {
  const uint64_t seed = 77;
  ir::Random random(seed);
  int tried = 0;
  std::set<std::string> ops;
  for (const ir::Op* op : ir::AllOps()) {
    for (int i = 0; i < 12; ++i) {
      auto sample = op->Sample(random);
      if (!sample) break;
      RoundAttributes(sample->graph);
      ASSERT_TRUE(ir::InferGraphTypes(sample->graph).ok());
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << op->name() << " " << i << "\n"
                                      << ir::PrintGraph(sample->graph));
      const auto bytes = OnnxBytes(sample->graph);
      if (!bytes.ok()) {
        EXPECT_EQ(ir::ErrorCode(bytes.status()), "E-EXPORT-002") << bytes.status();
        break;
      }
      const auto again = ImportOnnxBytes(*bytes);
      ASSERT_TRUE(again.ok()) << again.status();
      const auto expected = ir::Interpret(sample->graph, sample->inputs);
      if (!expected.ok()) continue;  // an index outside, say: of the values
      const auto found = ir::Interpret(*again, sample->inputs);
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(expected->size(), found->size());
      for (size_t k = 0; k < found->size(); ++k) EXPECT_TRUE(Same((*expected)[k], (*found)[k]));
      ++tried;
      ops.insert(std::string(op->name()));
    }
  }
  std::printf("%d nodes of %zu ops\n", tried, ops.size());
  EXPECT_GT(ops.size(), 80u);
}

TEST(OnnxWrite, RefusesWhatOnnxDoesNotHave) {
  ir::Graph graph("g");
  const ir::ValueId x = graph.AddInput("x", ir::ValueType(ir::ElementType::kInt8, ir::Shape{4}));
  const ir::NodeId node =
      graph.AddNode("QLut", "lookup", {x}, {"y"},
                    {{"table", std::make_shared<const ir::Tensor>(ir::ElementType::kInt8, ir::Shape{256})}});
  ASSERT_TRUE(ir::InferNodeTypes(graph, node).ok());
  graph.MarkOutput(graph.node(node).outputs[0]);
  const absl::Status status = OnnxBytes(graph).status();
  EXPECT_EQ(ir::ErrorCode(status), "E-EXPORT-002");
  EXPECT_NE(std::string(status.message()).find("'lookup' (QLut)"), std::string::npos);
  EXPECT_EQ(ir::ErrorCode(WriteOnnxBytes("bytes", "/no/such/folder/model.onnx")), "E-EXPORT-001");
}

// onnx's own checker accepts one model of each random node.
TEST(OnnxWrite, OnnxCheckerAcceptsThem) {
  const char* venv = std::getenv("HEDDLE_VENV");
  if (!venv || !*venv) GTEST_SKIP() << "HEDDLE_VENV names no Python environment with onnx";
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "onnx_write";
  std::filesystem::create_directories(folder);
  ir::Random random(78);
  for (const ir::Op* op : ir::AllOps()) {
    for (int i = 0; i < 6; ++i) {
      auto sample = op->Sample(random);
      if (!sample) break;
      RoundAttributes(sample->graph);
      ASSERT_TRUE(ir::InferGraphTypes(sample->graph).ok());
      if (!IsStrict(sample->graph)) continue;
      const auto bytes = OnnxBytes(sample->graph);
      if (!bytes.ok()) continue;
      ASSERT_TRUE(WriteOnnxBytes(*bytes, folder / fmt::format("{}{}.onnx", std::string(op->name()), i)).ok());
    }
  }
  std::ofstream(folder / "check.py") << R"(import glob, onnx, sys
bad = 0
files = sorted(glob.glob(sys.argv[1] + "/*.onnx"))
for path in files:
    try:
        onnx.checker.check_model(onnx.load(path), full_check=True)
    except Exception as error:
        bad += 1
        print(path, str(error)[:300])
print(len(files), "models,", bad, "refused")
sys.exit(1 if bad or len(files) < 100 else 0)
)";
  const std::string command = fmt::format("'{0}/bin/python' '{1}/check.py' '{1}'", venv, folder.string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace heddle::frontend
