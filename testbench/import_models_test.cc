// Every ONNX model of the test data imports, or says what it does not support in a coded error; and what imports prints, parses
// and prints again to the same text.

#include <gtest/gtest.h>

#include <set>

#include "frontend/onnx_import.h"
#include "ir/op.h"
#include "ir/text.h"
#include "testbench/data_path.h"

namespace heddle::testbench {
namespace {

frontend::ImportOptions OptionsFor(const std::string& name) {
  frontend::ImportOptions options;
  if (name.starts_with("magika")) options.shapes["bytes"] = {1, 2048};
  if (name.starts_with("minilm")) options.symbols = {{"batch", 1}, {"sequence", 16}};
  if (name.starts_with("ppocr_cls")) options.shapes["x"] = {1, 3, 48, 192};
  if (name.starts_with("silero_vad")) options.shapes = {{"input", {1, 512}}, {"state", {2, 1, 128}}};
  return options;
}

void ExpectTextIdentity(const ir::Graph& graph, const std::string& name) {
  ir::ConstantStore store;
  const std::string text = PrintGraph(graph, {ir::ConstantForm::kReference, &store});
  auto parsed = ir::ParseGraph(text, {&store});
  ASSERT_TRUE(parsed.ok()) << name << ": " << parsed.status();
  EXPECT_EQ(PrintGraph(*parsed, {ir::ConstantForm::kReference, nullptr}), text) << name;
  if (text.size() > 1000000) return;  // hexadecimal constants are for small models
  const std::string whole = ir::PrintGraph(graph);
  if (whole.size() > (size_t{64} << 20)) return;
  auto again = ir::ParseGraph(whole);
  ASSERT_TRUE(again.ok()) << name << ": " << again.status();
  EXPECT_TRUE(ir::StructurallyEqual(graph, *again)) << name;
}

TEST(ImportModels, EveryModelOfTheTestData) {
  const auto data = DataFolder();
  HEDDLE_SKIP_WITHOUT_DATA(data);
  if (!ir::FindOp("Conv")) GTEST_SKIP() << "this build has no float operators";
  int imported = 0;
  for (const auto& path : FilesUnder(*data, ".onnx")) {
    const std::string name = path.lexically_relative(*data).string();
    auto graph = frontend::ImportOnnx(path, OptionsFor(name));
    if (!graph.ok()) {
      std::printf("%s: %s\n", name.c_str(), std::string(graph.status().message()).substr(0, 300).c_str());
      EXPECT_EQ(ir::ErrorCode(graph.status()), "E-IMPORT-010") << name << ": " << graph.status();
      continue;
    }
    std::printf("%s: %zu nodes\n", name.c_str(), graph->NodeIds().size());
    ++imported;
    ExpectTextIdentity(*graph, name);
  }
  EXPECT_GT(imported, 0);
}

// Symbolic dimensions can be kept for looking at a model.
TEST(ImportModels, SymbolicModelsCanBeShown) {
  const auto path = DataPath("minilm/minilm_int8_qdq.onnx");
  HEDDLE_SKIP_WITHOUT_DATA(path);
  EXPECT_EQ(ir::ErrorCode(frontend::ImportOnnx(*path).status()), "E-IMPORT-004");
  frontend::ImportOptions options;
  options.keep_symbolic = true;
  auto graph = frontend::ImportOnnx(*path, options);
  if (ir::ErrorCode(graph.status()) == "E-IMPORT-010") GTEST_SKIP() << std::string(graph.status().message()).substr(0, 300);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectTextIdentity(*graph, "minilm");
}

}  // namespace
}  // namespace heddle::testbench
