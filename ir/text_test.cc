#include "ir/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

namespace heddle::ir {
namespace {

// One of everything the text can hold.
Graph Everything() {
  Graph graph("a \"graph\"\n\xff");
  const ValueId x = graph.AddInput("x", ValueType(ElementType::kInt8, Shape{1, 3, 8, 8}));
  ValueType quantised(ElementType::kInt8, Shape{1, 3, 8, 8});
  quantised.quantisation = Quantisation{{0.05f}, {-3}, -1};
  graph.set_type(x, quantised);
  const ValueId s = graph.AddInput("a name with : and x", ValueType(ElementType::kFloat32, SymbolicShape{Dim("n"), Dim(3), Dim("odd x")}));
  std::vector<float> floats = {1.5f, -0.0f, std::numeric_limits<float>::denorm_min(), 3.4028235e38f, std::numeric_limits<float>::infinity()};
  const ValueId f = graph.AddConstant("f", Tensor::Of<float>({5}, floats));
  const ValueId n = graph.AddConstant("nan", Tensor::Of<float>({2}, {std::nanf("7"), 1}));
  const ValueId d = graph.AddConstant("d", Tensor::Of<double>({}, {0.1}));
  graph.AddConstant("big", Tensor::Of<uint64_t>({1}, {UINT64_MAX}));
  graph.AddConstant("small", Tensor::Of<int64_t>({1}, {INT64_MIN}));
  graph.AddConstant("flags", Tensor::Of<uint8_t>({2}, {0, 255}));
  graph.AddConstant("empty", Tensor(ElementType::kInt32, {0, 4}));
  graph.AddConstant("b", Tensor(ElementType::kBool, {3}));
  const ValueId w = graph.AddConstant("w", Tensor(ElementType::kInt16, {4, 5}), Quantisation{{1, 0.5f, 3e-9f, 4}, {0, 1, -2, 0}, 0});
  Graph body("inner");
  body.MarkOutput(body.AddInput("i", ValueType(ElementType::kBool, Shape{})));
  Attributes attributes = {
      {"int", int64_t{-5}},
      {"float", 3.0},
      {"inf", -std::numeric_limits<double>::infinity()},
      {"tiny", 1e-300},
      {"string", std::string("\ttab \\ \x01 ä")},
      {"ints", std::vector<int64_t>{1, 2}},
      {"no_ints", std::vector<int64_t>{}},
      {"floats", std::vector<double>{1, 0.5}},
      {"no_floats", std::vector<double>{}},
      {"strings", std::vector<std::string>{"a", ""}},
      {"no_strings", std::vector<std::string>{}},
      {"tensor", std::make_shared<const Tensor>(Tensor(ElementType::kInt8, {40}))},
      {"body", std::make_shared<const Graph>(body)},
      {"odd key", int64_t{1}},
  };
  const NodeId node = graph.AddNode("Thing", "block1/conv", {x, kNoValue, w, f, n, d, s}, {"y", "z z"}, attributes);
  graph.node(node).fusion_group = 7;
  graph.node(node).source_names = {"conv", "relu \"1\""};
  graph.set_type(graph.node(node).outputs[0], quantised);
  const NodeId plain = graph.AddNode("Relu", "r", {graph.node(node).outputs[0]}, {"out"});
  graph.node(plain).source_names = {"r"};
  graph.AddNode("com.example::Nothing", "%", {}, {});
  graph.MarkOutput(graph.node(plain).outputs[0]);
  graph.MarkOutput(x);
  return graph;
}

TEST(Text, PrintParsePrintIsTheIdentityOnOneOfEverything) {
  const Graph graph = Everything();
  for (int64_t inline_elements : {0, 16, 1000}) {
    const PrintOptions options{ConstantForm::kHex, nullptr, inline_elements};
    const std::string text = PrintGraph(graph, options);
    auto parsed = ParseGraph(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << text;
    EXPECT_EQ(PrintGraph(*parsed, options), text);
    EXPECT_TRUE(StructurallyEqual(graph, *parsed));
  }
}

TEST(Text, ParsedGraphHoldsWhatWasPrinted) {
  auto parsed = ParseGraph(PrintGraph(Everything()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Node& node = parsed->node(*parsed->FindNode("block1/conv"));
  EXPECT_EQ(node.op, "Thing");
  EXPECT_EQ(node.inputs[1], kNoValue);
  EXPECT_EQ(node.fusion_group, 7);
  EXPECT_EQ(node.source_names, (std::vector<std::string>{"conv", "relu \"1\""}));
  EXPECT_EQ(node.Float("float"), 3.0);
  EXPECT_EQ(node.Int("int"), -5);
  EXPECT_EQ(node.String("string"), "\ttab \\ \x01 ä");
  EXPECT_TRUE(node.Floats("no_floats", {1}).empty());
  EXPECT_EQ(parsed->name(), "a \"graph\"\n\xff");
  EXPECT_EQ(parsed->type(node.outputs[0]).quantisation->zero_point[0], -3);
  EXPECT_EQ(parsed->type(parsed->inputs()[1]).shape[2], Dim("odd x"));
  EXPECT_EQ(parsed->outputs().size(), 2u);
  const Tensor& d = *parsed->ConstantOrNull(node.inputs[5]);
  EXPECT_EQ(d.as<double>()[0], 0.1);
  EXPECT_EQ(d.rank(), 0);
}

TEST(Text, ConstantsBesideTheText) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "constants.bin";
  const Graph graph = Everything();
  ConstantStore store;
  const std::string text = PrintGraph(graph, {ConstantForm::kReference, &store});
  EXPECT_NE(text.find("ref:"), std::string::npos);
  EXPECT_EQ(ErrorCode(ParseGraph(text).status()), "E-TEXT-005");
  ASSERT_TRUE(store.Save(path).ok());
  auto loaded = ConstantStore::Load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->size(), store.size());
  auto parsed = ParseGraph(text, {&*loaded});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(StructurallyEqual(graph, *parsed));
  // Every shorter file is refused.
  const auto size = std::filesystem::file_size(path);
  for (uintmax_t cut = 0; cut < size; ++cut) {
    std::filesystem::resize_file(path, size - cut - 1);
    EXPECT_EQ(ErrorCode(ConstantStore::Load(path).status()), "E-TEXT-021") << cut;
  }
}

TEST(Text, ErrorsNameLineAndColumn) {
  const auto code = [](std::string_view text) {
    auto graph = ParseGraph(text);
    return graph.ok() ? std::string("ok") : std::string(graph.status().message()).substr(0, 10 + 18);
  };
  EXPECT_EQ(code("graph \"g\" {}"), "ok");
  EXPECT_EQ(code("graph \"g\" { // note\n}\n"), "ok");
  EXPECT_EQ(code("graph \"g\" {\n  input x : f32[1]\n}"), "E-TEXT-001: line 2, column 9");
  EXPECT_EQ(code("graph \"g\" {\n  input %x : f99[1]\n}").substr(0, 10), "E-TEXT-003");
  EXPECT_EQ(code("graph \"g\" { input %x : f32[1] input %x : f32[1] }").substr(0, 10), "E-TEXT-002");
  EXPECT_EQ(code("graph \"g\" { const %x : i8[1] = [128] }").substr(0, 10), "E-TEXT-003");
  EXPECT_EQ(code("graph \"g\" { const %x : i8[2] = [1] }").substr(0, 10), "E-TEXT-003");
  EXPECT_EQ(code("graph \"g\" { const %x : i8[1000000000000] = [] }").substr(0, 10), "E-TEXT-003");
  EXPECT_EQ(code("graph \"g\" { const %x : i8[9999999999999999x999999999] = [] }").substr(0, 10), "E-TEXT-003");
  EXPECT_EQ(code("graph \"g\" { %y : f32[1] = Relu(%x) @r }").substr(0, 10), "E-TEXT-002");
  EXPECT_EQ(code("graph \"g\" { output _ }").substr(0, 10), "E-TEXT-002");
  EXPECT_EQ(code("graph \"g\" { = A() {k = 99999999999999999999} @a }").substr(0, 10), "E-TEXT-003");
  EXPECT_EQ(code("graph \"g\" {").substr(0, 10), "E-TEXT-001");
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += "graph \"g\" { = A() {b = ";
  EXPECT_EQ(code(nested).substr(0, 10), "E-TEXT-004");
}

// Damaged text gives a coded error, or a graph that prints and parses again.
TEST(Text, MutationsNeverCrash) {
  const std::string text = PrintGraph(Everything());
  const uint64_t seed = 20240611;
  std::mt19937_64 random(seed);
  const std::string pieces = "%@{}[]()=,:\"\\_x?-0123456789 \ngraphinputconstref:hex:q(";
  int parsed_again = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = text;
    for (uint64_t k = 0, edits = 1 + random() % 4; k < edits; ++k) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged.resize(at + 1); break;
        case 1: damaged[at] = static_cast<char>(random()); break;
        case 2: damaged[at] = pieces[random() % pieces.size()]; break;
        default: {
          const std::string piece = damaged.substr(random() % damaged.size(), random() % 40);
          damaged.insert(at, piece);
        }
      }
    }
    auto graph = ParseGraph(damaged);
    if (!graph.ok()) {
      ASSERT_TRUE(ErrorCode(graph.status()).starts_with("E-TEXT-0")) << graph.status() << " seed " << seed << " case " << i;
      continue;
    }
    const std::string again = PrintGraph(*graph);
    auto twice = ParseGraph(again);
    ASSERT_TRUE(twice.ok()) << twice.status() << " seed " << seed << " case " << i << "\n" << again;
    ASSERT_EQ(PrintGraph(*twice), again) << "seed " << seed << " case " << i;
    ++parsed_again;
  }
  EXPECT_GT(parsed_again, 0);
}

}  // namespace
}  // namespace heddle::ir
