#include "frontend/onnx_export.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "frontend/onnx_import.h"
#include "ir/text.h"

namespace heddle::frontend {
namespace {

const std::filesystem::path kModel = "testbench/models/digits/digits_int8_qdq.onnx";

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

NodeNotes NotesForAll(const ir::Graph& graph) {
  NodeNotes notes;
  for (ir::NodeId id : graph.NodeIds()) {
    for (const std::string& name : graph.node(id).source_names) {
      notes[name] = {{"heddle.device", "accelerator"}, {"heddle.cost_us", "1.5"}};
    }
  }
  return notes;
}

TEST(OnnxExport, AnnotatedModelIsTheSameModel) {
  const std::string bytes = Read(kModel);
  ASSERT_FALSE(bytes.empty());
  auto graph = ImportOnnxBytes(bytes);
  if (!graph.ok()) GTEST_SKIP() << std::string(graph.status().message()).substr(0, 300);
  auto annotated = AnnotateOnnx(bytes, NotesForAll(*graph));
  ASSERT_TRUE(annotated.ok()) << annotated.status();
  EXPECT_NE(annotated->find("heddle.cost_us=1.5, heddle.device=accelerator"), std::string::npos);
  auto again = ImportOnnxBytes(*annotated);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(ir::StructurallyEqual(*graph, *again));
  auto untouched = AnnotateOnnx(bytes, {});
  ASSERT_TRUE(untouched.ok());
  EXPECT_EQ(untouched->find("heddle."), std::string::npos);
  EXPECT_EQ(ir::ErrorCode(AnnotateOnnx("\x01\x02", {}).status()), "E-IMPORT-002");
}

// onnx's own checker accepts the file, and its classes read the metadata.
TEST(OnnxExport, OnnxCheckerAcceptsIt) {
  const char* venv = std::getenv("HEDDLE_VENV");
  if (!venv || !*venv) GTEST_SKIP() << "HEDDLE_VENV names no Python environment with onnx";
  auto graph = ImportOnnx(kModel);
  if (!graph.ok()) GTEST_SKIP() << std::string(graph.status().message()).substr(0, 300);
  const std::filesystem::path folder = testing::TempDir();
  ASSERT_TRUE(WritePartitionedOnnx(kModel, folder / "partitioned.onnx", NotesForAll(*graph)).ok());
  std::ofstream(folder / "check.py") << "import onnx, sys\n"
                                        "m = onnx.load(sys.argv[1])\n"
                                        "onnx.checker.check_model(m, full_check=True)\n"
                                        "assert any(p.key == 'heddle.device' for n in m.graph.node for p in n.metadata_props)\n";
  const std::string command = fmt::format("'{0}/bin/python' '{1}/check.py' '{1}/partitioned.onnx'", venv, folder.string());
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace heddle::frontend
