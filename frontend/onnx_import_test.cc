// Importer: forms of tensors, opset rewriting, and errors that name what the user wrote. Models are built in memory.

#include "frontend/onnx_import.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <fstream>

#include "ir/op.h"

namespace heddle::frontend {
namespace {

using ir::ElementType;
using ir::ErrorCode;
using ir::Shape;
using ir::Tensor;

// Builds models of one opset.
class Model {
 public:
  explicit Model(int64_t opset) {
    proto_.set_ir_version(8);
    auto* import = proto_.add_opset_import();
    import->set_version(opset);
    auto* microsoft = proto_.add_opset_import();
    microsoft->set_domain("com.microsoft");
    microsoft->set_version(1);
    proto_.mutable_graph()->set_name("test");
  }

  Model& Input(const std::string& name, const std::vector<std::string>& dims, int type = onnx::TensorProto::FLOAT) {
    auto* tensor = Info(proto_.mutable_graph()->add_input(), name, type);
    tensor->mutable_shape();
    for (const std::string& dim : dims) {
      auto* d = tensor->mutable_shape()->add_dim();
      if (dim.empty()) continue;
      if (std::isdigit(static_cast<unsigned char>(dim[0]))) d->set_dim_value(std::stoll(dim)); else d->set_dim_param(dim);
    }
    return *this;
  }
  Model& Output(const std::string& name) {
    Info(proto_.mutable_graph()->add_output(), name, onnx::TensorProto::FLOAT);
    return *this;
  }
  onnx::NodeProto* Node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                        const std::string& name = "") {
    auto* node = proto_.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name(name);
    for (const auto& input : inputs) node->add_input(input);
    for (const auto& output : outputs) node->add_output(output);
    return node;
  }
  onnx::TensorProto* Initialiser(const std::string& name, const Shape& shape, int type) {
    auto* tensor = proto_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (int64_t extent : shape) tensor->add_dims(extent);
    return tensor;
  }
  void Floats(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    auto* tensor = Initialiser(name, shape, onnx::TensorProto::FLOAT);
    for (float value : values) tensor->add_float_data(value);
  }
  void Ints(const std::string& name, const std::vector<int64_t>& values) {
    auto* tensor = Initialiser(name, {static_cast<int64_t>(values.size())}, onnx::TensorProto::INT64);
    for (int64_t value : values) tensor->add_int64_data(value);
  }

  onnx::ModelProto& proto() { return proto_; }
  absl::StatusOr<ir::Graph> Import(const ImportOptions& options = {}) const { return ImportOnnxBytes(proto_.SerializeAsString(), options); }

 private:
  static onnx::TypeProto_Tensor* Info(onnx::ValueInfoProto* info, const std::string& name, int type) {
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    return tensor;
  }
  onnx::ModelProto proto_;
};

void SetInt(onnx::NodeProto* node, const std::string& name, int64_t value) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(value);
}
void SetFloat(onnx::NodeProto* node, const std::string& name, float value) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_f(value);
}
void SetString(onnx::NodeProto* node, const std::string& name, const std::string& value) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(value);
}
void SetInts(onnx::NodeProto* node, const std::string& name, const std::vector<int64_t>& values) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) a->add_ints(value);
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

const ir::Node& OnlyNode(const ir::Graph& graph) { return graph.node(graph.NodeIds().at(0)); }

#define ASSERT_IMPORTS(graph, model)      \
  auto graph##_or = (model).Import();     \
  ASSERT_TRUE(graph##_or.ok()) << graph##_or.status(); \
  const ir::Graph& graph = *graph##_or

TEST(OnnxImport, NamesComeFromTheModelAndAreMadeWhereAbsent) {
  Model model(13);
  model.Input("x", {"1", "4"}).Output("y");
  model.Node("Relu", {"x"}, {"a"}, "first");
  model.Node("Relu", {"a"}, {"b"}, "first");
  model.Node("Relu", {"b"}, {"y"});
  ASSERT_IMPORTS(graph, model);
  EXPECT_TRUE(graph.FindNode("first") && graph.FindNode("first.1") && graph.FindNode("Relu_y"));
  EXPECT_EQ(graph.node(*graph.FindNode("first")).source_names, std::vector<std::string>{"first"});
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  EXPECT_EQ(ir::TypeText(graph.type(graph.outputs()[0])), "f32[1x4]");
}

TEST(OnnxImport, SortsNodesDropsDeadOnesAndRefusesCycles) {
  Model model(13);
  model.Input("x", {"2"}).Output("y");
  model.Node("Relu", {"a"}, {"y"}, "second");
  model.Node("Relu", {"x"}, {"a"}, "first");
  model.Node("NoSuchThing", {"x"}, {"dead"}, "dead");
  ASSERT_IMPORTS(graph, model);
  ASSERT_EQ(graph.NodeIds().size(), 2u);
  EXPECT_EQ(graph.node(graph.NodeIds()[0]).name, "first");

  Model cycle(13);
  cycle.Input("x", {"2"}).Output("y");
  cycle.Node("Add", {"x", "z"}, {"y"}, "one");
  cycle.Node("Relu", {"y"}, {"z"}, "two");
  const absl::Status status = cycle.Import().status();
  EXPECT_EQ(ErrorCode(status), "E-IMPORT-032");
  EXPECT_NE(std::string(status.message()).find("'one' -> 'two'"), std::string::npos) << status.message();
}

TEST(OnnxImport, EveryStorageFormOfATensor) {
  Model model(13);
  model.Input("x", {"2"}).Output("y");
  struct Case { int type; ElementType element; };
  for (const Case& c : {Case{onnx::TensorProto::INT8, ElementType::kInt8}, Case{onnx::TensorProto::UINT8, ElementType::kUint8},
                        Case{onnx::TensorProto::INT16, ElementType::kInt16}, Case{onnx::TensorProto::INT32, ElementType::kInt32}}) {
    onnx::TensorProto tensor;
    tensor.set_data_type(c.type);
    tensor.add_dims(2);
    tensor.add_int32_data(1);
    tensor.add_int32_data(100);
    auto read = ReadTensorProto(tensor.SerializeAsString());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->type(), c.element);
    EXPECT_EQ(read->at_int(1), 100);
    tensor.set_int32_data(1, 70000);  // too large for all but i32
    EXPECT_EQ(ReadTensorProto(tensor.SerializeAsString()).ok(), c.element == ElementType::kInt32);
    tensor.add_int32_data(3);
    EXPECT_EQ(ErrorCode(ReadTensorProto(tensor.SerializeAsString()).status()), "E-IMPORT-020");
  }
  onnx::TensorProto raw;
  raw.set_data_type(onnx::TensorProto::BOOL);
  raw.add_dims(3);
  raw.set_raw_data(std::string("\0\1\7", 3));
  auto bools = ReadTensorProto(raw.SerializeAsString());
  ASSERT_TRUE(bools.ok());
  EXPECT_TRUE(*bools == Tensor([] { Tensor t(ElementType::kBool, {3}); t.set_int(1, 1); t.set_int(2, 1); return t; }()));
  raw.set_data_type(onnx::TensorProto::FLOAT16);
  EXPECT_EQ(ErrorCode(ReadTensorProto(raw.SerializeAsString()).status()), "E-IMPORT-003");
  raw.set_data_type(onnx::TensorProto::FLOAT);
  EXPECT_EQ(ErrorCode(ReadTensorProto(raw.SerializeAsString()).status()), "E-IMPORT-020");
  raw.clear_dims();
  raw.add_dims(INT64_MAX);
  raw.add_dims(INT64_MAX);
  EXPECT_EQ(ErrorCode(ReadTensorProto(raw.SerializeAsString()).status()), "E-IMPORT-020");
}

TEST(OnnxImport, ExternalDataStaysInsideTheModelsFolder) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "external";
  std::filesystem::create_directories(root / "model");
  const std::vector<float> values = {1, 2, 3};
  for (const auto& file : {root / "model" / "w.bin", root / "secret.bin"}) {
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 12);
  }
  std::error_code ignored;
  std::filesystem::create_symlink(root / "secret.bin", root / "model" / "link.bin", ignored);
  const auto import = [&](const std::string& location, const std::string& offset, const std::string& length) {
    Model model(13);
    model.Input("x", {"2"}).Output("y");
    auto* w = model.Initialiser("w", {2}, onnx::TensorProto::FLOAT);
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location}, {"offset", offset}, {"length", length}}) {
      auto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    model.Node("Relu", {"w"}, {"y"});
    std::ofstream(root / "model" / "m.onnx", std::ios::binary) << model.proto().SerializeAsString();
    return ImportOnnx(root / "model" / "m.onnx");
  };
  auto good = import("w.bin", "4", "8");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_TRUE(*good->ConstantOrNull(good->ProducerOf(good->outputs()[0]) == ir::kNoNode ? good->outputs()[0] : good->node(0).inputs[0]) ==
              Tensor::Of<float>({2}, {2, 3}));
  EXPECT_EQ(ErrorCode(import("w.bin", "8", "8").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import("w.bin", "0", "12").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import("w.bin", "18446744073709551615", "8").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import("w.bin", "9223372036854775807", "8").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import("../secret.bin", "0", "8").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import((root / "secret.bin").string(), "0", "8").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import("link.bin", "0", "8").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import("/etc/passwd", "0", "8").status()), "E-IMPORT-021");
  EXPECT_EQ(ErrorCode(import(".", "0", "8").status()), "E-IMPORT-021");
}

TEST(OnnxImport, AllUnsupportedOperatorsInOneError) {
  Model model(13);
  model.Input("x", {"2"}).Output("y");
  model.Node("FancyOne", {"x"}, {"a"}, "layer1/fancy");
  model.Node("Relu", {"a"}, {"b"});
  model.Node("FancyTwo", {"b"}, {"c"})->set_domain("com.example");
  model.Node("FancyOne", {"c"}, {"d"}, "layer3/fancy");
  model.Node("QConv", {"d"}, {"y"}, "internal");  // an op of ours, not of ONNX
  const auto status = model.Import().status();
  EXPECT_EQ(ErrorCode(status), "E-IMPORT-010");
  for (const char* text : {"FancyOne ×2", "com.example.FancyTwo ×1", "'layer1/fancy'", "'layer3/fancy'", "'FancyTwo_c'", "opset 13",
                           "domain com.example", "'internal'"}) {
    EXPECT_NE(Message(status).find(text), std::string::npos) << text << "\n" << status;
  }
  EXPECT_EQ(Message(status).find("Relu"), std::string::npos);
}

TEST(OnnxImport, SymbolicDimensionsAreBoundOrNamed) {
  Model model(13);
  model.Input("ids", {"batch", "4"}).Input("mask", {"batch", ""}).Output("y");
  model.Node("Relu", {"ids"}, {"a"});
  model.Node("Relu", {"mask"}, {"b"});
  model.Node("Relu", {"a"}, {"y"});
  model.Output("b");
  const auto status = model.Import().status();
  EXPECT_EQ(ErrorCode(status), "E-IMPORT-004");
  for (const char* text : {"'ids'", "'batch'", "'mask.1'", "--shape ids=N,4 --shape mask=N,N"}) {
    EXPECT_NE(Message(status).find(text), std::string::npos) << text << "\n" << status;
  }
  ImportOptions options;
  options.shapes["mask"] = {2, 7};  // binds batch for ids too
  auto graph = model.Import(options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->type(graph->inputs()[0]).static_shape(), (Shape{2, 4}));
  options.shapes["ids"] = {3, 4};
  EXPECT_EQ(ErrorCode(model.Import(options).status()), "E-IMPORT-005");
  options.shapes = {{"nothing", {1}}};
  EXPECT_EQ(ErrorCode(model.Import(options).status()), "E-IMPORT-005");
  options.shapes = {{"ids", {1, 5}}};
  EXPECT_EQ(ErrorCode(model.Import(options).status()), "E-IMPORT-005");
  options = {};
  options.symbols = {{"batch", 3}, {"mask.1", 1}};
  EXPECT_TRUE(model.Import(options).ok());
  options = {};
  options.keep_symbolic = true;
  auto symbolic = model.Import(options);
  ASSERT_TRUE(symbolic.ok()) << symbolic.status();
  EXPECT_EQ(symbolic->NodeIds().size(), 3u);
}

TEST(OnnxImport, InitialisersThatAreInputsAreConstants) {
  Model model(9);
  model.Input("x", {"2"}).Input("w", {"2"}).Output("y");
  model.Floats("w", {2}, {1, -1});
  model.Node("Add", {"x", "w"}, {"y"});
  if (!ir::FindOp("Add")) GTEST_SKIP() << "Add is not there";
  ASSERT_IMPORTS(graph, model);
  EXPECT_EQ(graph.inputs().size(), 1u);
  EXPECT_TRUE(graph.IsConstant(OnlyNode(graph).inputs[1]));
}

TEST(OnnxImport, DefinitionsAreUniqueAndComplete) {
  Model twice(13);
  twice.Input("x", {"2"}).Output("y");
  twice.Node("Relu", {"x"}, {"y"});
  twice.Node("Relu", {"x"}, {"y"});
  EXPECT_EQ(ErrorCode(twice.Import().status()), "E-IMPORT-031");
  Model undefined(13);
  undefined.Input("x", {"2"}).Output("y");
  undefined.Node("Relu", {"z"}, {"y"}, "r");
  EXPECT_EQ(ErrorCode(undefined.Import().status()), "E-IMPORT-030");
  EXPECT_NE(Message(undefined.Import().status()).find("'r'"), std::string::npos);
  Model shadow(13);
  shadow.Input("x", {"2"}).Output("x");
  shadow.Node("Relu", {"x"}, {"x"});
  EXPECT_EQ(shadow.Import().ok(), false);
  EXPECT_EQ(ErrorCode(ImportOnnxBytes("not a model").status()), "E-IMPORT-002");
  EXPECT_EQ(ErrorCode(ImportOnnxBytes("").status()), "E-IMPORT-002");
  EXPECT_EQ(ErrorCode(ImportOnnx("/nonexistent/model.onnx").status()), "E-IMPORT-001");
}

TEST(OnnxImport, OutputsKeepTheirNames) {
  Model model(13);
  model.Input("x", {"2"}).Output("y").Output("z").Output("x");
  model.Node("Relu", {"x"}, {"y"});
  model.Node("Identity", {"y"}, {"z"});
  if (!ir::FindOp("Identity")) GTEST_SKIP() << "Identity is not there";
  ASSERT_IMPORTS(graph, model);
  std::vector<std::string> names;
  for (ir::ValueId id : graph.outputs()) names.push_back(graph.value(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"y", "z", "x"}));
}

TEST(OnnxImport, ScalesAreFiniteAndPositive) {
  for (float scale : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Model model(13);
    model.Input("x", {"2"}).Output("y");
    model.Floats("s", {}, {scale});
    model.Node("QuantizeLinear", {"x", "s"}, {"y"}, "quant");
    EXPECT_EQ(ErrorCode(model.Import().status()), "E-IMPORT-041") << scale;
  }
}

TEST(OnnxImport, TypeErrorsNameEveryNode) {
  if (!ir::FindOp("MatMul")) GTEST_SKIP() << "MatMul is not there";
  Model model(13);
  model.Input("x", {"2", "3"}).Output("y").Output("z");
  model.Node("MatMul", {"x", "x"}, {"y"}, "bad1");
  model.Node("MatMul", {"x", "x"}, {"z"}, "bad2");
  const auto status = model.Import().status();
  EXPECT_EQ(ErrorCode(status), "E-IMPORT-060");
  EXPECT_NE(Message(status).find("'bad1'"), std::string::npos) << status;
  EXPECT_NE(Message(status).find("'bad2'"), std::string::npos) << status;
}

TEST(OnnxImport, ConstantIfsBecomeTheirBranch) {
  Model model(13);
  model.Input("x", {"2"}).Output("y");
  auto* condition = model.Initialiser("c", {}, onnx::TensorProto::BOOL);
  condition->add_int32_data(1);
  auto* node = model.Node("If", {"c"}, {"y"}, "choose");
  for (const auto& [branch, op] : {std::pair<std::string, std::string>{"then_branch", "Relu"}, {"else_branch", "NoSuchThing"}}) {
    auto* a = node->add_attribute();
    a->set_name(branch);
    a->set_type(onnx::AttributeProto::GRAPH);
    auto* inner = a->mutable_g()->add_node();
    inner->set_op_type(op);
    inner->add_input("x");
    inner->add_output("inner");
    a->mutable_g()->add_output()->set_name("inner");
  }
  ASSERT_IMPORTS(graph, model);
  EXPECT_EQ(OnlyNode(graph).op, "Relu");
  EXPECT_EQ(graph.value(graph.outputs()[0]).name, "y");
  condition->set_int32_data(0, 0);
  EXPECT_EQ(ErrorCode(model.Import().status()), "E-IMPORT-010");
}

// --- opsets

TEST(OnnxOpsets, AttributesBecomeInputs) {
  if (!ir::FindOp("Clip") || !ir::FindOp("Slice") || !ir::FindOp("Unsqueeze")) GTEST_SKIP() << "ops are not there";
  Model clip(6);
  clip.Input("x", {"2"}).Output("y");
  auto* node = clip.Node("Clip", {"x"}, {"y"});
  SetFloat(node, "max", 6);
  ASSERT_IMPORTS(clipped, clip);
  EXPECT_EQ(OnlyNode(clipped).inputs[1], ir::kNoValue);
  EXPECT_EQ(clipped.ConstantOrNull(OnlyNode(clipped).inputs[2])->at_double(0), 6);

  Model slice(1);
  slice.Input("x", {"4", "5"}).Output("y");
  node = slice.Node("Slice", {"x"}, {"y"});
  SetInts(node, "starts", {1});
  SetInts(node, "ends", {INT64_MAX});
  SetInts(node, "axes", {1});
  ASSERT_IMPORTS(sliced, slice);
  EXPECT_EQ(sliced.type(sliced.outputs()[0]).static_shape(), (Shape{4, 4}));

  Model unsqueeze(1);
  unsqueeze.Input("x", {"4"}).Output("y");
  SetInts(unsqueeze.Node("Unsqueeze", {"x"}, {"y"}), "axes", {0, 2});
  ASSERT_IMPORTS(wide, unsqueeze);
  EXPECT_EQ(wide.type(wide.outputs()[0]).static_shape(), (Shape{1, 4, 1}));
}

TEST(OnnxOpsets, OldSoftmaxFlattens) {
  if (!ir::FindOp("Softmax") || !ir::FindOp("Reshape")) GTEST_SKIP() << "ops are not there";
  Model model(11);
  model.Input("x", {"2", "3", "4"}).Output("y");
  model.Node("Softmax", {"x"}, {"y"}, "soft");
  ASSERT_IMPORTS(graph, model);
  const auto ids = graph.NodeIds();
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(graph.type(graph.node(ids[0]).outputs[0]).static_shape(), (Shape{2, 12}));
  EXPECT_EQ(graph.type(graph.outputs()[0]).static_shape(), (Shape{2, 3, 4}));
  for (auto id : ids) EXPECT_EQ(graph.node(id).source_names, std::vector<std::string>{"soft"});
  Model last(11);
  last.Input("x", {"2", "3"}).Output("y");
  last.Node("Softmax", {"x"}, {"y"});
  ASSERT_IMPORTS(direct, last);
  EXPECT_EQ(direct.NodeIds().size(), 1u);
}

TEST(OnnxOpsets, AutoPadBecomesPads) {
  if (!ir::FindOp("Conv")) GTEST_SKIP() << "Conv is not there";
  struct Case { const char* mode; std::vector<int64_t> pads; Shape shape; };
  for (const Case& c : {Case{"SAME_UPPER", {0, 0, 1, 1}, {1, 1, 2, 2}}, Case{"SAME_LOWER", {1, 1, 0, 0}, {1, 1, 2, 2}},
                        Case{"VALID", {}, {1, 1, 1, 1}}, Case{"NOTSET", {}, {1, 1, 1, 1}}}) {
    Model model(11);
    model.Input("x", {"1", "1", "4", "4"}).Output("y");
    model.Floats("w", {1, 1, 3, 3}, std::vector<float>(9, 1));
    auto* node = model.Node("Conv", {"x", "w"}, {"y"});
    SetString(node, "auto_pad", c.mode);
    SetInts(node, "strides", {2, 2});
    ASSERT_IMPORTS(graph, model);
    EXPECT_EQ(OnlyNode(graph).Ints("pads"), c.pads) << c.mode;
    EXPECT_FALSE(OnlyNode(graph).Has("auto_pad"));
    EXPECT_EQ(graph.type(graph.outputs()[0]).static_shape(), c.shape) << c.mode;
  }
}

TEST(OnnxOpsets, OldBroadcastingAlignsAtAnAxis) {
  if (!ir::FindOp("Add") || !ir::FindOp("Reshape")) GTEST_SKIP() << "ops are not there";
  Model model(6);
  model.Input("a", {"2", "3", "4"}).Input("b", {"3"}).Output("y");
  auto* node = model.Node("Add", {"a", "b"}, {"y"});
  SetInt(node, "broadcast", 1);
  SetInt(node, "axis", 1);
  ASSERT_IMPORTS(graph, model);
  EXPECT_EQ(graph.type(graph.outputs()[0]).static_shape(), (Shape{2, 3, 4}));
}

TEST(OnnxOpsets, DropoutIsTheIdentityAndShapesFold) {
  if (!ir::FindOp("Reshape") || !ir::FindOp("Concat")) GTEST_SKIP() << "ops are not there";
  Model model(13);
  model.Input("x", {"2", "3", "4"}).Output("y");
  model.Node("Dropout", {"x"}, {"d", "mask"});
  SetInt(model.Node("Shape", {"d"}, {"s"}), "end", 1);
  model.Ints("minus", {-1});
  SetInt(model.Node("Concat", {"s", "minus"}, {"shape"}), "axis", 0);
  model.Node("Reshape", {"d", "shape"}, {"y"});
  model.proto().mutable_opset_import(0)->set_version(15);
  ASSERT_IMPORTS(graph, model);
  EXPECT_EQ(graph.NodeIds().size(), 1u);
  EXPECT_EQ(graph.type(graph.outputs()[0]).static_shape(), (Shape{2, 12}));
}

TEST(OnnxMicrosoft, QLinearAddBecomesDequantiseAddQuantise) {
  if (!ir::FindOp("Add") || !ir::FindOp("QuantizeLinear")) GTEST_SKIP() << "ops are not there";
  Model model(13);
  model.Input("a", {"4"}, onnx::TensorProto::INT8).Input("b", {"4"}, onnx::TensorProto::INT8).Output("y");
  for (const char* name : {"as", "bs", "ys"}) model.Floats(name, {}, {0.5f});
  for (const char* name : {"az", "bz", "yz"}) model.Initialiser(name, {}, onnx::TensorProto::INT8)->add_int32_data(3);
  model.Node("QLinearAdd", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"}, "sum")->set_domain("com.microsoft");
  ASSERT_IMPORTS(graph, model);
  std::multiset<std::string> ops;
  for (auto id : graph.NodeIds()) ops.insert(graph.node(id).op);
  EXPECT_EQ(ops, (std::multiset<std::string>{"Add", "DequantizeLinear", "DequantizeLinear", "QuantizeLinear"}));
  EXPECT_EQ(graph.type(graph.outputs()[0]).element, ElementType::kInt8);
}

}  // namespace
}  // namespace heddle::frontend
