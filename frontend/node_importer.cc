// Emits IR nodes one by one with their types, and folds the shape arithmetic that exporters write (Shape → Gather → Concat →
// Reshape) as it goes, because the types of later nodes depend on its values. Weights are left to the passes: folding a
// DequantizeLinear here would hide a quantised layer.

#include "frontend/node_importer.h"

#include <algorithm>

namespace heddle::frontend {

using ir::kNoValue;
using ir::NodeId;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

namespace {

constexpr int64_t kMaxFoldedElements = 1024;
constexpr int64_t kMaxFoldedInputElements = 65536;
constexpr int64_t kMaxFoldedMacs = int64_t{1} << 22;

}  // namespace

absl::Status Unsupported(std::string_view reason) { return absl::UnimplementedError(std::string(reason)); }
absl::Status NeedsShape() { return absl::FailedPreconditionError("the input's dimensions are not known"); }

NodeImporter::NodeImporter(ImportState& state, const SourceNode& node, std::vector<ValueId> node_inputs)
    : source(node), graph(*state.graph), inputs(std::move(node_inputs)), attributes(node.attributes), state_(state) {
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  results.assign(source.outputs.size(), kNoValue);
}

bool NodeImporter::Known(ValueId value) const {
  return value == kNoValue || (!state_.unknown.contains(value) && graph.type(value).is_static());
}

absl::Status NodeImporter::Malformed(std::string_view what) const {
  return ir::UserError("E-IMPORT-040", fmt::format("node '{}' ({}, opset {}): {}", source.name, source.op, source.opset, what));
}

absl::Status NodeImporter::Require(size_t least_inputs) const {
  for (size_t i = 0; i < least_inputs; ++i) {
    if (!Has(i)) return Malformed(fmt::format("input {} is absent", i));
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<T> NodeImporter::Take(const std::string& key, T fallback, std::string_view kind) {
  auto it = attributes.find(key);
  if (it == attributes.end()) return fallback;
  T* value = std::get_if<T>(&it->second);
  if (!value) return Malformed(fmt::format("attribute '{}' is not {}", key, kind));
  T result = std::move(*value);
  attributes.erase(it);
  return result;
}

absl::StatusOr<int64_t> NodeImporter::TakeInt(const std::string& key, int64_t fallback) { return Take(key, fallback, "an int"); }
absl::StatusOr<double> NodeImporter::TakeFloat(const std::string& key, double fallback) { return Take(key, fallback, "a float"); }
absl::StatusOr<std::string> NodeImporter::TakeString(const std::string& key, const std::string& fallback) {
  return Take(key, fallback, "a string");
}
absl::StatusOr<std::vector<int64_t>> NodeImporter::TakeInts(const std::string& key) {
  return Take(key, std::vector<int64_t>(), "a list of ints");
}

void NodeImporter::Drop(std::initializer_list<const char*> keys) {
  for (const char* key : keys) attributes.erase(key);
}

absl::StatusOr<Shape> NodeImporter::ShapeOf(ValueId value) const {
  if (value == kNoValue) return Malformed("an input is absent");
  if (!Known(value)) return NeedsShape();
  return graph.type(value).static_shape();
}

absl::StatusOr<std::vector<int64_t>> NodeImporter::ConstantInts(size_t input, std::string_view role) const {
  if (!Has(input)) return Malformed(fmt::format("{} (input {}) is absent", role, input));
  const Tensor* tensor = Constant(input);
  if (!tensor) {
    if (!Known(Input(input))) return NeedsShape();
    return Unsupported(fmt::format("{} (input {}) depends on the data", role, input));
  }
  if (!ir::IsInteger(tensor->type()) || tensor->rank() > 1) return Malformed(fmt::format("{} is not a list of integers", role));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor->elements(); ++i) values.push_back(tensor->at_int(i));
  return values;
}

ValueId NodeImporter::AddConstant(std::string_view role, Tensor tensor) {
  return graph.AddConstant(fmt::format("{}.{}", source.outputs.empty() ? source.name : source.outputs[0], role), std::move(tensor));
}

ValueId NodeImporter::AddInts(std::string_view role, const std::vector<int64_t>& values) {
  return AddConstant(role, Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

absl::StatusOr<ValueId> NodeImporter::AddScalar(std::string_view role, ValueId like, double value) {
  if (like == kNoValue) return Malformed("input 0 is absent");
  if (state_.unknown.contains(like)) return NeedsShape();
  Tensor tensor(graph.type(like).element, {});
  if (!ir::IsFloat(tensor.type()) && !(value >= -9.2e18 && value <= 9.2e18)) {
    return Malformed(fmt::format("attribute '{}' = {} does not fit the input's type", role, value));
  }
  if (ir::IsFloat(tensor.type())) {
    tensor.set_double(0, value);
  } else {
    tensor.set_int(0, static_cast<int64_t>(value));
  }
  return AddConstant(role, std::move(tensor));
}

void NodeImporter::SetInput(size_t index, ValueId value) {
  if (inputs.size() <= index) inputs.resize(index + 1, kNoValue);
  inputs[index] = value;
}

absl::Status NodeImporter::Infer(NodeId id) {
  const ir::Node& node = graph.node(id);
  const bool known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return Known(v); });
  absl::Status status = known ? ir::InferNodeTypes(graph, id) : absl::OkStatus();
  if (known && status.ok()) return status;
  if (!status.ok()) {
    const std::string message(status.message());
    const bool names_node = message.find("'" + source.name + "'") != std::string::npos;
    state_.type_errors.push_back(names_node ? message : fmt::format("node '{}' ({}): {}", source.name, source.op, message));
  }
  for (ValueId output : graph.node(id).outputs) {
    graph.set_type(output, ir::ValueType(ir::ElementType::kFloat32, ir::SymbolicShape{ir::Dim("unknown")}));
    state_.unknown.insert(output);
  }
  return absl::OkStatus();
}

void NodeImporter::FoldIfConstant(NodeId id, std::vector<ValueId>& outputs) {
  const ir::Node& node = graph.node(id);
  if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") return;
  int64_t input_elements = 0, output_elements = 0;
  std::vector<const Tensor*> tensors;
  for (ValueId input : node.inputs) {
    const Tensor* tensor = graph.ConstantOrNull(input);
    if (input != kNoValue && !tensor) return;
    input_elements += tensor ? tensor->elements() : 0;
    tensors.push_back(tensor);
  }
  for (ValueId output : node.outputs) {
    if (state_.unknown.contains(output)) return;
    output_elements += graph.type(output).elements();
  }
  if (output_elements > kMaxFoldedElements || input_elements > kMaxFoldedInputElements) return;
  const ir::NodeContext context(graph, node);
  const ir::Op* op = ir::FindOp(node.op);
  if (op->Work(context).macs > kMaxFoldedMacs) return;
  auto values = op->Evaluate(context, tensors);
  if (!values.ok() || values->size() < outputs.size()) return;  // it stays a node; running it will say what is wrong
  std::vector<std::string> names;
  for (ValueId output : outputs) names.push_back(graph.value(output).name);
  graph.RemoveNode(id);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = graph.AddConstant(names[i], std::move((*values)[i]));
}

absl::StatusOr<std::vector<ValueId>> NodeImporter::EmitMany(const std::string& op, std::vector<ValueId> node_inputs,
                                                            ir::Attributes node_attributes, size_t outputs) {
  if (!ir::FindOp(op)) return Unsupported(op == source.op ? "the operator is not known" : "it needs " + op + ", which is not known");
  while (!node_inputs.empty() && node_inputs.back() == kNoValue) node_inputs.pop_back();
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(fmt::format("{}.{}", i < source.outputs.size() ? source.outputs[i] : source.name, op));
  }
  const NodeId id = graph.AddNode(op, source.name, std::move(node_inputs), std::move(names), std::move(node_attributes));
  graph.node(id).source_names = {source.name};
  HEDDLE_RETURN_IF_ERROR(Infer(id));
  std::vector<ValueId> values = graph.node(id).outputs;
  FoldIfConstant(id, values);
  return values;
}

absl::StatusOr<ValueId> NodeImporter::Emit(const std::string& op, std::vector<ValueId> node_inputs, ir::Attributes node_attributes) {
  HEDDLE_ASSIGN_OR_RETURN(auto values, EmitMany(op, std::move(node_inputs), std::move(node_attributes), 1));
  return values[0];
}

absl::StatusOr<ValueId> NodeImporter::Reshape(ValueId value, const Shape& shape) {
  ir::Attributes allow_zero;
  if (std::count(shape.begin(), shape.end(), 0) != 0) allow_zero["allowzero"] = int64_t{1};
  return Emit("Reshape", {value, AddInts("shape", shape)}, std::move(allow_zero));
}

absl::Status NodeImporter::EmitSame(const std::string& op) {
  HEDDLE_ASSIGN_OR_RETURN(results, EmitMany(op, inputs, attributes, num_outputs()));
  return absl::OkStatus();
}

void NodeImporter::KeepAsItIs() {
  std::vector<std::string> names;
  for (const std::string& output : source.outputs) names.push_back(output + "." + source.op);
  const NodeId id = graph.AddNode(source.op, source.name, inputs, std::move(names), source.attributes);
  graph.node(id).source_names = {source.name};
  results = graph.node(id).outputs;
  for (ValueId output : results) {
    graph.set_type(output, ir::ValueType(ir::ElementType::kFloat32, ir::SymbolicShape{ir::Dim("unknown")}));
    state_.unknown.insert(output);
  }
}

absl::Status NodeImporter::Finish(absl::StatusOr<ValueId> value) {
  if (!value.ok()) return value.status();
  results[0] = *value;
  return absl::OkStatus();
}

}  // namespace heddle::frontend
