// Walks the source graph once, in order: names are resolved, each node is rewritten and typed as it comes, and what is not
// supported is collected, so that one run tells all of it. A value behind an unsupported node is "unknown": nodes that use it
// are judged by their names alone.

#include "frontend/onnx_graph_importer.h"

#include <algorithm>

#include "frontend/onnx_codes.h"
#include "frontend/onnx_rewrite.h"
#include "frontend/onnx_tensor.h"

namespace heddle::frontend {

using ir::kNoValue;
using ir::UserError;
using ir::ValueId;
using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxListed = 200;  // nodes named in one error

void CollectValueInfos(const GraphProto& graph, std::map<std::string, const onnx::ValueInfoProto*>& infos) {
  for (const auto& info : graph.value_info()) infos[info.name()] = &info;
  for (const auto& info : graph.output()) infos[info.name()] = &info;
}

// The type of an attribute; models of IR version 1 do not state it.
AttributeProto::AttributeType TypeOf(const AttributeProto& a) {
  if (a.type() != AttributeProto::UNDEFINED) return a.type();
  if (a.has_f()) return AttributeProto::FLOAT;
  if (a.has_i()) return AttributeProto::INT;
  if (a.has_s()) return AttributeProto::STRING;
  if (a.has_t()) return AttributeProto::TENSOR;
  if (a.has_g()) return AttributeProto::GRAPH;
  if (a.floats_size() > 0) return AttributeProto::FLOATS;
  if (a.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::INTS;
}

}  // namespace

std::string NormalDomain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

GraphImporter::GraphImporter(const onnx::ModelProto& model, const ImportOptions& options)
    : model_(model), options_(options), symbols_(options.symbols), budget_bytes_(options.max_constant_bytes) {
  for (const auto& opset : model.opset_import()) {
    int64_t& version = opsets_[NormalDomain(opset.domain())];
    version = std::max(version, static_cast<int64_t>(opset.version()));
  }
  // Models of IR version 1 and 2 declare no opset: they are of opset 1.
  if (opsets_.empty() || (model.ir_version() < 3 && !opsets_.contains(""))) opsets_[""] = 1;
  state_.graph = &graph_;
  state_.keep_symbolic = options.keep_symbolic;
}

int64_t GraphImporter::OpsetOf(const std::string& domain) const {
  auto it = opsets_.find(domain);
  return it == opsets_.end() ? 0 : it->second;
}

absl::StatusOr<ir::Graph> GraphImporter::Import() {
  const GraphProto& proto = model_.graph();
  source_graph_ = &proto;
  graph_.set_name(proto.name());
  CollectValueInfos(proto, value_infos_);
  Scope scope;
  HEDDLE_RETURN_IF_ERROR(AddInitialisers(proto, scope));
  HEDDLE_RETURN_IF_ERROR(BindShapes(proto, scope));
  HEDDLE_RETURN_IF_ERROR(AddInputs(proto, scope));
  HEDDLE_RETURN_IF_ERROR(ImportNodes(proto, scope, 0));
  if (!unsupported_.empty()) return UnsupportedError();
  if (!state_.type_errors.empty()) return TypeError();
  HEDDLE_RETURN_IF_ERROR(AddOutputs(proto, scope));
  RemoveUnusedConstants();
  return std::move(graph_);
}

// --- inputs and constants

absl::Status GraphImporter::AddInitialisers(const GraphProto& proto, Scope& scope) {
  if (proto.sparse_initializer_size() > 0) {
    return UserError("E-IMPORT-003", fmt::format("the model has sparse initialisers ('{}', …)",
                                                 proto.sparse_initializer(0).values().name()),
                     "export the model with dense weights");
  }
  for (const auto& tensor : proto.initializer()) {
    if (tensor.name().empty()) return UserError("E-IMPORT-020", "an initialiser has no name");
    if (!scope.initialisers.emplace(tensor.name(), &tensor).second) {
      return UserError("E-IMPORT-031", fmt::format("initialiser '{}' is defined twice", tensor.name()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::ValueType> GraphImporter::InputType(const onnx::ValueInfoProto& info) const {
  if (!info.type().has_tensor_type()) {
    return UserError("E-IMPORT-003", fmt::format("value '{}' is not a tensor", info.name()),
                     "sequences, maps and optionals are not supported");
  }
  const auto& tensor = info.type().tensor_type();
  const auto element = ElementOfCode(tensor.elem_type());
  if (!element) {
    return UserError("E-IMPORT-003", fmt::format("value '{}' holds {}", info.name(), DataTypeText(tensor.elem_type())),
                     "convert the model to float32 or integers of 8 to 64 bits");
  }
  ir::ValueType type;
  type.element = *element;
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    std::string symbol = dim.dim_param();
    if (symbol.empty() && (!dim.has_dim_value() || dim.dim_value() < 0)) symbol = fmt::format("{}.{}", info.name(), i);
    if (symbol.empty()) {
      type.shape.emplace_back(dim.dim_value());
    } else if (auto it = symbols_.find(symbol); it != symbols_.end()) {
      type.shape.emplace_back(it->second);
    } else {
      type.shape.emplace_back(symbol);
    }
  }
  if (type.is_static()) {
    auto count = ir::CheckedElementCount(type.static_shape(), int64_t{1} << 33);
    if (!count.ok()) return UserError("E-IMPORT-050", fmt::format("value '{}': {}", info.name(), std::string(count.status().message())));
  }
  return type;
}

// Shapes given for inputs bind the symbols of their dimensions.
absl::Status GraphImporter::BindShapes(const GraphProto& proto, const Scope& scope) {
  std::map<std::string, ir::Shape> left = options_.shapes;
  for (const auto& info : proto.input()) {
    auto given = left.find(info.name());
    if (given == left.end() || scope.initialisers.contains(info.name())) continue;
    HEDDLE_ASSIGN_OR_RETURN(const ir::ValueType type, InputType(info));
    const ir::Shape& shape = given->second;
    const bool fixed_rank = info.type().tensor_type().has_shape();
    if (fixed_rank && shape.size() != type.shape.size()) {
      return UserError("E-IMPORT-005", fmt::format("input '{}' is {}, but a shape of {} dimensions is given", info.name(),
                                                   ir::TypeText(type), shape.size()));
    }
    for (size_t i = 0; i < type.shape.size(); ++i) {
      const ir::Dim& dim = type.shape[i];
      if (shape[i] < 0 || (dim.is_constant() && dim.extent != shape[i])) {
        return UserError("E-IMPORT-005", fmt::format("dimension {} of input '{}' is {}, but {} is given", i, info.name(),
                                                     dim.is_constant() ? std::to_string(dim.extent) : dim.symbol, shape[i]));
      }
      if (!dim.is_constant()) symbols_[dim.symbol] = shape[i];
    }
    left.erase(given);
  }
  if (left.empty()) return absl::OkStatus();
  std::string names;
  for (const auto& info : proto.input()) {
    if (!scope.initialisers.contains(info.name())) names += (names.empty() ? "'" : ", '") + info.name() + "'";
  }
  return UserError("E-IMPORT-005", fmt::format("a shape is given for '{}', which is no input of the model", left.begin()->first),
                   "its inputs are " + names);
}

absl::Status GraphImporter::AddInputs(const GraphProto& proto, Scope& scope) {
  std::string unbound, example;
  for (const auto& info : proto.input()) {
    if (scope.initialisers.contains(info.name())) continue;  // a default that callers could override: it is a constant here
    if (info.name().empty() || scope.values.contains(info.name())) {
      return UserError("E-IMPORT-031", fmt::format("input '{}' is empty or defined twice", info.name()));
    }
    HEDDLE_ASSIGN_OR_RETURN(ir::ValueType type, InputType(info));
    if (auto given = options_.shapes.find(info.name()); given != options_.shapes.end() && !info.type().tensor_type().has_shape()) {
      type.shape.assign(given->second.begin(), given->second.end());
    }
    if (!type.is_static() && !options_.keep_symbolic) {
      std::string symbols, shape;
      for (const ir::Dim& dim : type.shape) {
        if (!dim.is_constant()) symbols += fmt::format("{}'{}'", symbols.empty() ? "" : ", ", dim.symbol);
        shape += fmt::format("{}{}", shape.empty() ? "" : ",", dim.is_constant() ? std::to_string(dim.extent) : "N");
      }
      unbound += fmt::format("{}input '{}' is {}, where {} {} not bound", unbound.empty() ? "" : "; ", info.name(), ir::TypeText(type),
                             symbols, symbols.find(',') == std::string::npos ? "is" : "are");
      example += fmt::format(" --shape {}={}", info.name(), shape);
    }
    scope.values[info.name()] = graph_.AddInput(info.name(), std::move(type));
  }
  if (unbound.empty()) return absl::OkStatus();
  return UserError("E-IMPORT-004", unbound, "pass" + example + " with a number for each N");
}

absl::StatusOr<ValueId> GraphImporter::Lookup(Scope& scope, const std::string& name, std::string_view user) {
  for (const Scope* s = &scope; s; s = s->parent) {
    if (auto it = s->values.find(name); it != s->values.end()) return it->second;
    auto it = s->initialisers.find(name);
    if (it == s->initialisers.end()) continue;
    HEDDLE_ASSIGN_OR_RETURN(ir::Tensor tensor, TensorFromProto(*it->second, options_.data_folder, budget_bytes_));
    return scope.values[name] = graph_.AddConstant(name, std::move(tensor));
  }
  return UserError("E-IMPORT-030", fmt::format("{} uses '{}', which nothing defines", user, name), "export the model again");
}

// --- nodes

absl::Status GraphImporter::ImportNodes(const GraphProto& proto, Scope& scope, int depth) {
  if (depth > kMaxDepth) return UserError("E-IMPORT-050", fmt::format("subgraphs are nested deeper than {}", kMaxDepth));
  HEDDLE_ASSIGN_OR_RETURN(NodeOrder order, OrderNodes(proto));
  scope.used_outputs = std::move(order.used_outputs);
  node_names_.Add(proto);
  for (const NodeProto* node : order.nodes) HEDDLE_RETURN_IF_ERROR(ImportNode(*node, scope, depth));
  return absl::OkStatus();
}

absl::Status GraphImporter::ReadAttributes(const NodeProto& proto, SourceNode& source) {
  const auto malformed = [&](std::string_view what) {
    return UserError("E-IMPORT-040", fmt::format("node '{}' ({}): {}", source.name, source.op, what));
  };
  for (const AttributeProto& a : proto.attribute()) {
    ir::Attribute value;
    switch (TypeOf(a)) {
      case AttributeProto::FLOAT: value = static_cast<double>(a.f()); break;
      case AttributeProto::INT: value = static_cast<int64_t>(a.i()); break;
      case AttributeProto::STRING: value = a.s(); break;
      case AttributeProto::FLOATS: value = std::vector<double>(a.floats().begin(), a.floats().end()); break;
      case AttributeProto::INTS: value = std::vector<int64_t>(a.ints().begin(), a.ints().end()); break;
      case AttributeProto::STRINGS: value = std::vector<std::string>(a.strings().begin(), a.strings().end()); break;
      case AttributeProto::GRAPH: continue;  // looked at where control flow is handled
      case AttributeProto::TENSOR: {
        HEDDLE_ASSIGN_OR_RETURN(ir::Tensor tensor, TensorFromProto(a.t(), options_.data_folder, budget_bytes_));
        value = std::make_shared<const ir::Tensor>(std::move(tensor));
        break;
      }
      default: return Unsupported(fmt::format("attribute '{}' of a kind that is not supported", a.name()));
    }
    if (!a.ref_attr_name().empty()) return malformed(fmt::format("attribute '{}' refers to a function's attribute", a.name()));
    if (!source.attributes.emplace(a.name(), std::move(value)).second) {
      return malformed(fmt::format("attribute '{}' is given twice", a.name()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SourceNode> GraphImporter::MakeSource(const NodeProto& proto, const Scope& scope) {
  SourceNode source;
  source.op = proto.op_type();
  source.domain = NormalDomain(proto.domain());
  source.name = node_names_.Of(proto);
  source.opset = OpsetOf(source.domain);
  source.all_outputs = static_cast<size_t>(proto.output_size());
  size_t used = 0;
  for (int i = 0; i < proto.output_size(); ++i) {
    if (scope.used_outputs.contains(proto.output(i))) used = static_cast<size_t>(i) + 1;
  }
  for (size_t i = 0; i < used; ++i) {
    const std::string& name = proto.output(static_cast<int>(i));
    source.outputs.push_back(name.empty() ? fmt::format("{}.output{}", source.name, i) : name);
  }
  return source;
}

ValueId GraphImporter::UnknownValue(const std::string& name) {
  ir::ValueType type(ir::ElementType::kFloat32, ir::SymbolicShape{ir::Dim("unknown")});
  const ValueId id = graph_.AddInput(name, type);
  state_.unknown.insert(id);
  return id;
}

absl::Status GraphImporter::ImportNode(const NodeProto& proto, Scope& scope, int depth) {
  HEDDLE_ASSIGN_OR_RETURN(SourceNode source, MakeSource(proto, scope));
  std::vector<ValueId> inputs;
  for (const std::string& name : proto.input()) {
    ValueId id = kNoValue;
    if (!name.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(id, Lookup(scope, name, fmt::format("node '{}' ({})", source.name, source.op)));
    }
    inputs.push_back(id);
  }
  absl::Status status = ReadAttributes(proto, source);
  bool inlined = false;
  if (status.ok() && source.domain.empty() && source.op == "If") status = ImportIf(proto, source, scope, depth, inlined);
  if (!status.ok() && status.code() != absl::StatusCode::kUnimplemented) return status;
  if (inlined) return absl::OkStatus();

  NodeImporter node(state_, source, std::move(inputs));
  const bool behind_unknown = !options_.keep_symbolic && std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
    return state_.unknown.contains(v);
  });
  if (status.ok() && behind_unknown) {
    // Judged by its name: its forms cannot be told apart without the types that are missing.
    if (!SupportedByName(source.domain, source.op)) status = Unsupported("the operator is not known");
  } else if (status.ok()) {
    status = frontend::ImportNode(node);
    if (status.code() == absl::StatusCode::kFailedPrecondition) {  // NeedsShape
      if (options_.keep_symbolic) node.KeepAsItIs();
      status = options_.keep_symbolic ? absl::OkStatus() : Unsupported("its form depends on dimensions that are not known");
    }
  }
  if (status.code() == absl::StatusCode::kUnimplemented) {
    NoteUnsupported(proto, source, status.message().empty() ? "" : std::string(status.message()));
    status = absl::OkStatus();
  }
  if (!status.ok()) return status;
  return BindResults(proto, node, scope);
}

absl::Status GraphImporter::BindResults(const NodeProto& proto, const NodeImporter& node, Scope& scope) {
  for (size_t i = 0; i < node.source.outputs.size(); ++i) {
    const std::string& name = node.source.outputs[i];
    if (scope.values.contains(name) || scope.initialisers.contains(name)) {
      return UserError("E-IMPORT-031", fmt::format("node '{}' ({}) defines '{}', which is defined already", node.source.name,
                                                   proto.op_type(), name));
    }
    ValueId id = node.results[i];
    if (id == kNoValue) id = UnknownValue(name);
    // Intermediate names are ours; a value of the source keeps its first name.
    const std::string& current = graph_.value(id).name;
    if (current != name && current.starts_with(name + ".") && std::count(graph_.inputs().begin(), graph_.inputs().end(), id) == 0) {
      graph_.RenameValue(id, name);
    }
    if (auto info = value_infos_.find(name); options_.keep_symbolic && state_.unknown.contains(id) && info != value_infos_.end()) {
      auto type = InputType(*info->second);
      if (type.ok()) graph_.set_type(id, *type);
    }
    scope.values[name] = id;
  }
  return absl::OkStatus();
}

// An If whose condition is known at import is its branch. Others are kept only where ir/ops/ knows If.
absl::Status GraphImporter::ImportIf(const NodeProto& proto, const SourceNode& source, Scope& scope, int depth, bool& inlined) {
  if (proto.input_size() != 1) return UserError("E-IMPORT-040", fmt::format("node '{}' (If) takes one input", source.name));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId id, Lookup(scope, proto.input(0), source.name));
  const ir::Tensor* condition = graph_.ConstantOrNull(id);
  if (!condition) return Unsupported("the condition depends on the data");
  if (condition->elements() != 1) return UserError("E-IMPORT-040", fmt::format("node '{}' (If): the condition is not one value", source.name));
  const std::string_view wanted = condition->at_int(0) != 0 ? "then_branch" : "else_branch";
  const GraphProto* branch = nullptr;
  for (const AttributeProto& a : proto.attribute()) {
    if (a.name() == wanted && a.has_g()) branch = &a.g();
  }
  if (!branch || branch->output_size() < static_cast<int>(source.outputs.size())) {
    return UserError("E-IMPORT-040", fmt::format("node '{}' (If): {} is absent or has too few outputs", source.name, wanted));
  }
  Scope inner;
  inner.parent = &scope;
  if (options_.keep_symbolic) CollectValueInfos(*branch, value_infos_);
  HEDDLE_RETURN_IF_ERROR(AddInitialisers(*branch, inner));
  HEDDLE_RETURN_IF_ERROR(ImportNodes(*branch, inner, depth + 1));
  for (size_t i = 0; i < source.outputs.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const ValueId value, Lookup(inner, branch->output(static_cast<int>(i)).name(), source.name));
    if (!scope.values.emplace(source.outputs[i], value).second) {
      return UserError("E-IMPORT-031", fmt::format("node '{}' (If) defines '{}', which is defined already", source.name, source.outputs[i]));
    }
  }
  inlined = true;
  return absl::OkStatus();
}

// --- outputs

absl::Status GraphImporter::AddOutputs(const GraphProto& proto, Scope& scope) {
  if (proto.output_size() == 0) return UserError("E-IMPORT-040", "the model has no outputs");
  std::set<std::string> names;
  for (const auto& info : proto.output()) {
    if (!names.insert(info.name()).second) return UserError("E-IMPORT-031", fmt::format("output '{}' is given twice", info.name()));
    HEDDLE_ASSIGN_OR_RETURN(ValueId id, Lookup(scope, info.name(), "the list of outputs"));
    if (graph_.value(id).name != info.name()) {
      const auto taken = graph_.FindValue(info.name());
      const bool produced = graph_.ProducerOf(id) != ir::kNoNode;
      if (taken && !graph_.IsOutput(*taken) && graph_.ProducerOf(*taken) != ir::kNoNode) graph_.RenameValue(*taken, info.name() + ".inner");
      if (produced && !graph_.IsOutput(id)) {
        graph_.RenameValue(id, info.name());
      } else if (ir::FindOp("Identity")) {  // another name for an input, a constant or another output
        const ir::NodeId copy = graph_.AddNode("Identity", "Identity_" + info.name(), {id}, {info.name()});
        graph_.node(copy).source_names = {"Identity_" + info.name()};
        graph_.set_type(graph_.node(copy).outputs[0], graph_.type(id));
        id = graph_.node(copy).outputs[0];
      }
    }
    graph_.MarkOutput(id);
  }
  return absl::OkStatus();
}

void GraphImporter::RemoveUnusedConstants() {
  for (ValueId id : graph_.ValueIds()) {
    const ir::Value& value = graph_.value(id);
    if (value.constant && value.uses.empty() && !graph_.IsOutput(id)) graph_.RemoveValue(id);
  }
  graph_.Compact();
}

// --- what is not supported

void GraphImporter::NoteUnsupported(const NodeProto& proto, const SourceNode& source, std::string_view reason) {
  const bool is_function = std::any_of(model_.functions().begin(), model_.functions().end(), [&](const auto& function) {
    return function.name() == proto.op_type() && function.domain() == proto.domain();
  });
  unsupported_.push_back({source.name, source.op, source.domain.empty() ? "ai.onnx" : source.domain,
                          is_function ? "a function of the model" : std::string(reason), source.opset});
  for (const AttributeProto& a : proto.attribute()) {
    if (a.has_g()) NoteUnsupportedInside(a.g(), source.name + "/" + a.name());
  }
}

void GraphImporter::NoteUnsupportedInside(const GraphProto& proto, const std::string& path) {
  for (const NodeProto& node : proto.node()) {
    const std::string domain = NormalDomain(node.domain());
    const std::string name = fmt::format("{}/{}", path, node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name());
    bool nested = false;
    for (const AttributeProto& a : node.attribute()) {
      nested = nested || a.has_g();
      if (a.has_g()) NoteUnsupportedInside(a.g(), name + "/" + a.name());
    }
    if (nested || SupportedByName(domain, node.op_type())) continue;
    unsupported_.push_back({name, node.op_type(), domain.empty() ? "ai.onnx" : domain, "the operator is not known", OpsetOf(domain)});
  }
}

absl::Status GraphImporter::UnsupportedError() const {
  std::map<std::string, int> counts;
  for (const UnsupportedNode& node : unsupported_) ++counts[node.domain == "ai.onnx" ? node.op : node.domain + "." + node.op];
  std::string summary;
  for (const auto& [op, count] : counts) summary += fmt::format("{}{} ×{}", summary.empty() ? "" : ", ", op, count);
  std::string text = fmt::format("{} node{} of the model {} not supported: {}", unsupported_.size(), unsupported_.size() == 1 ? "" : "s",
                                 unsupported_.size() == 1 ? "is" : "are", summary);
  for (size_t i = 0; i < unsupported_.size() && i < kMaxListed; ++i) {
    const UnsupportedNode& n = unsupported_[i];
    text += fmt::format("\n  node '{}': {} (domain {}, opset {}): {}", n.name, n.op, n.domain, n.opset, n.reason);
  }
  if (unsupported_.size() > kMaxListed) text += fmt::format("\n  … and {} more", unsupported_.size() - kMaxListed);
  return UserError("E-IMPORT-010", text, "heddle ops lists what is supported; export the model without these operators");
}

absl::Status GraphImporter::TypeError() const {
  std::string text = fmt::format("types do not fit in {} node{}", state_.type_errors.size(), state_.type_errors.size() == 1 ? "" : "s");
  for (size_t i = 0; i < state_.type_errors.size() && i < kMaxListed; ++i) text += "\n  " + state_.type_errors[i];
  return UserError("E-IMPORT-060", text);
}

}  // namespace heddle::frontend
