// The IR's ops are ONNX's in their opset-13 forms (ir/ops/README.md), so that writing is mostly copying. What differs
// between opsets is decided here: which opset a node needs at least, and whether axes are an attribute or an input in
// the one chosen.

#include "frontend/onnx_write.h"

#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "frontend/onnx_codes.h"
#include "ir/ops/quant_common.h"

namespace heddle::frontend {
namespace {

constexpr int64_t kOldestOpset = 13;

bool IsReduction(const std::string& op) { return op.starts_with("Reduce"); }

bool HoldsGraph(const ir::Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& entry) {
    return std::holds_alternative<std::shared_ptr<const ir::Graph>>(entry.second);
  });
}

bool HasInput(const ir::Node& node, size_t input) {
  return node.inputs.size() > input && node.inputs[input] != ir::kNoValue;
}

// The oldest opset with the operator in the form that the node has.
int64_t OpsetOf(const ir::Node& node) {
  static const std::map<std::string, int64_t, std::less<>> kSince = {{"HardSwish", 14}, {"BatchNormalization", 14},
                                                                     {"Identity", 14},  {"LayerNormalization", 17},
                                                                     {"Mish", 18},      {"Gelu", 20}};
  if (auto it = kSince.find(node.op); it != kSince.end()) return it->second;
  if (node.op == "Reshape" && node.Has("allowzero")) return 14;
  if (node.op == "Shape" && (node.Has("start") || node.Has("end"))) return 15;
  if (node.op == "Pad" && node.Has("mode") && node.String("mode") == "wrap") return 19;
  if (node.op == "Pad" && HasInput(node, 3)) return 18;
  if (node.op == "AveragePool" && node.Has("dilations")) return 19;
  if (node.op == "Resize" && node.Has("coordinate_transformation_mode") &&
      node.String("coordinate_transformation_mode") == "half_pixel_symmetric")
    return 19;
  if (IsReduction(node.op) && node.op != "ReduceSum" && node.Has("noop_with_empty_axes")) return 18;
  return kOldestOpset;
}

void SetTensor(const ir::Tensor& tensor, const std::string& name, onnx::TensorProto& proto) {
  proto.set_name(name);
  proto.set_data_type(static_cast<int32_t>(CodeOfElement(tensor.type())));
  for (int64_t extent : tensor.shape()) proto.add_dims(extent);
  proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
}

void SetType(const ir::ValueType& type, onnx::ValueInfoProto& info) {
  onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(CodeOfElement(type.element)));
  onnx::TensorShapeProto& shape = *tensor.mutable_shape();
  for (const ir::Dim& dim : type.shape) {
    if (dim.is_constant()) {
      shape.add_dim()->set_dim_value(dim.extent);
    } else {
      shape.add_dim()->set_dim_param(dim.symbol);
    }
  }
}

struct AttributeWriter {
  onnx::AttributeProto& proto;
  void operator()(int64_t value) const {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(double value) const {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    proto.set_type(onnx::AttributeProto::INTS);
    for (int64_t value : values) proto.add_ints(value);
  }
  void operator()(const std::vector<double>& values) const {
    proto.set_type(onnx::AttributeProto::FLOATS);
    for (double value : values) proto.add_floats(static_cast<float>(value));
  }
  void operator()(const std::vector<std::string>& values) const {
    proto.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) proto.add_strings(value);
  }
  void operator()(const std::shared_ptr<const ir::Tensor>& tensor) const {
    proto.set_type(onnx::AttributeProto::TENSOR);
    SetTensor(*tensor, "", *proto.mutable_t());
  }
  void operator()(const std::shared_ptr<const ir::Graph>&) const {}  // refused before
};

class Writer {
 public:
  explicit Writer(const ir::Graph& graph) : graph_(graph) {}

  absl::StatusOr<std::string> Write() {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::NodeId> order, graph_.TopologicalOrder());
    HEDDLE_RETURN_IF_ERROR(CheckForms(order));
    for (ir::NodeId id : order) opset_ = std::max(opset_, OpsetOf(graph_.node(id)));
    model_.set_ir_version(opset_ <= 18 ? 8 : 9);
    model_.set_producer_name("heddle");
    onnx::OperatorSetIdProto& import = *model_.add_opset_import();
    import.set_domain("");
    import.set_version(opset_);
    onnx::GraphProto& proto = *model_.mutable_graph();
    proto.set_name(graph_.name().empty() ? "graph" : graph_.name());
    for (ir::ValueId id : graph_.inputs()) AddInfo(id, *proto.add_input());
    for (ir::NodeId id : order) AddNode(graph_.node(id), proto);
    for (ir::ValueId id : graph_.outputs()) {
      if (graph_.IsConstant(id)) UseConstant(id);
      AddInfo(id, *proto.add_output());
    }
    if (model_.ByteSizeLong() > INT32_MAX) {
      return ir::UserError("E-EXPORT-003",
                           fmt::format("the model has {} bytes; ONNX files hold 2 GiB", model_.ByteSizeLong()),
                           "split the model");
    }
    return model_.SerializeAsString();
  }

 private:
  absl::Status CheckForms(const std::vector<ir::NodeId>& order) const {
    std::vector<std::string> refused;
    for (ir::NodeId id : order) {
      const ir::Node& node = graph_.node(id);
      if (ir::IsOwnOp(node.op) || HoldsGraph(node)) refused.push_back(fmt::format("'{}' ({})", node.name, node.op));
    }
    if (refused.empty()) return absl::OkStatus();
    return ir::UserError("E-EXPORT-002", fmt::format("no ONNX form of: {}", fmt::join(refused, ", ")),
                         "write the graph before legalise-quantisation");
  }

  void AddInfo(ir::ValueId id, onnx::ValueInfoProto& info) const {
    info.set_name(graph_.value(id).name);
    SetType(graph_.type(id), info);
  }

  std::string UseConstant(ir::ValueId id) {
    const ir::Value& value = graph_.value(id);
    if (written_.insert(id).second) SetTensor(*value.constant, value.name, *model_.mutable_graph()->add_initializer());
    return value.name;
  }

  // A constant that the graph does not have, of a name that nothing else has.
  std::string AddConstant(const std::string& wanted, const ir::Tensor& tensor) {
    std::string name = wanted;
    while (graph_.FindValue(name) || !added_.insert(name).second) name += "_";
    SetTensor(tensor, name, *model_.mutable_graph()->add_initializer());
    return name;
  }

  std::string NameOf(ir::ValueId id) {
    if (id == ir::kNoValue) return "";
    return graph_.IsConstant(id) ? UseConstant(id) : graph_.value(id).name;
  }

  void AddNode(const ir::Node& node, onnx::GraphProto& graph) {
    onnx::NodeProto& proto = *graph.add_node();
    proto.set_op_type(node.op);
    proto.set_name(node.name);
    ir::Attributes attributes = node.attributes;
    std::vector<std::string> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(IsReplaced(node, i) ? "" : NameOf(node.inputs[i]));
    AdaptForm(node, inputs, attributes);
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    for (const std::string& input : inputs) proto.add_input(input);
    for (ir::ValueId id : node.outputs) proto.add_output(id == ir::kNoValue ? "" : graph_.value(id).name);
    for (const auto& [key, value] : attributes) {
      onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(key);
      std::visit(AttributeWriter{attribute}, value);
    }
  }

  bool AxesAreInput(const std::string& op) const { return op == "ReduceSum" || opset_ >= 18; }

  // Inputs that AdaptForm writes in another form.
  bool IsReplaced(const ir::Node& node, size_t input) const {
    if (IsReduction(node.op) && input == 1) return true;
    const ir::Tensor* constant = graph_.ConstantOrNull(node.inputs[input]);
    return node.op == "Clip" && input > 0 && constant && constant->rank() > 0;
  }

  void AdaptForm(const ir::Node& node, std::vector<std::string>& inputs, ir::Attributes& attributes) {
    const auto move_to_input = [&](const char* key) {
      if (!node.Has(key)) return;
      const std::vector<int64_t> values = node.Ints(key);
      inputs.resize(std::max<size_t>(inputs.size(), 2));
      inputs[1] =
          AddConstant(node.name + "_" + key, ir::Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
      attributes.erase(key);
    };
    if (node.op == "Squeeze" || node.op == "Unsqueeze") move_to_input("axes");
    if (node.op == "Split") AdaptSplit(node, inputs, attributes);
    if (IsReduction(node.op)) AdaptReduction(node, inputs, attributes);
    for (size_t i = 1; node.op == "Clip" && i < inputs.size(); ++i) {
      if (IsReplaced(node, i))
        inputs[i] =
            AddConstant(node.name + (i == 1 ? "_min" : "_max"), graph_.ConstantOrNull(node.inputs[i])->Reshaped({}));
    }
  }

  // The parts' extents, which every opset takes; "num_outputs" is younger.
  void AdaptSplit(const ir::Node& node, std::vector<std::string>& inputs, ir::Attributes& attributes) {
    const auto rank = static_cast<int64_t>(graph_.type(node.inputs[0]).shape.size());
    const int64_t axis = (node.Int("axis", 0) + rank) % rank;
    attributes.erase("split");
    attributes.erase("num_outputs");
    if (inputs.size() > 1 && !inputs[1].empty()) return;
    std::vector<int64_t> extents;
    for (ir::ValueId id : node.outputs) extents.push_back(graph_.type(id).static_shape()[static_cast<size_t>(axis)]);
    inputs.resize(2);
    inputs[1] =
        AddConstant(node.name + "_split", ir::Tensor::Of<int64_t>({static_cast<int64_t>(extents.size())}, extents));
  }

  void AdaptReduction(const ir::Node& node, std::vector<std::string>& inputs, ir::Attributes& attributes) {
    std::vector<int64_t> axes = node.Ints("axes");
    if (HasInput(node, 1)) {
      axes.clear();
      const ir::Tensor* constant = graph_.ConstantOrNull(node.inputs[1]);
      for (int64_t i = 0; constant && i < constant->elements(); ++i) axes.push_back(constant->at_int(i));
    }
    inputs.resize(1);
    attributes.erase("axes");
    if (axes.empty()) return;
    if (AxesAreInput(node.op)) {
      inputs.push_back(
          AddConstant(node.name + "_axes", ir::Tensor::Of<int64_t>({static_cast<int64_t>(axes.size())}, axes)));
    } else {
      attributes["axes"] = axes;
    }
  }

  const ir::Graph& graph_;
  onnx::ModelProto model_;
  int64_t opset_ = kOldestOpset;
  std::set<ir::ValueId> written_;
  std::set<std::string> added_;
};

}  // namespace

absl::StatusOr<std::string> OnnxBytes(const ir::Graph& graph) { return Writer(graph).Write(); }

absl::Status WriteOnnxBytes(const std::string& bytes, const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (!out || error) {
    std::filesystem::remove(temporary, error);
    return ir::UserError("E-EXPORT-001", fmt::format("'{}' cannot be written", path.string()),
                         "check the folder and the free space");
  }
  return absl::OkStatus();
}

}  // namespace heddle::frontend
