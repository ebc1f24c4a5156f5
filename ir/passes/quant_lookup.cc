// Element-wise functions of one quantised tensor as tables: the float nodes between a dequantiser and a quantiser are run
// once on all 256 values by their reference kernels, so that the table is right by construction for any chain of them
// (x * sigmoid(x), clips, scalings, requantisation alone).

#include <algorithm>
#include <map>
#include <set>

#include "ir/interpreter.h"
#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

constexpr size_t kMostNodes = 64;

// The float nodes between one dequantised tensor and a quantiser.
struct Cone {
  std::optional<QuantisedInput> source;
  std::set<ValueId> sources;      // float values that are the dequantised tensor
  std::set<NodeId> nodes;         // includes no dequantiser
  std::set<ValueId> constants;    // one-element float constants
};

bool GrowCone(const Graph& graph, ValueId value, const SymbolicShape& shape, Cone& cone) {
  if (cone.sources.contains(value) || cone.constants.contains(value)) return true;
  if (const auto x = MatchDequantised(graph, value)) {
    if (graph.type(value).shape != shape) return false;
    if (cone.source && (cone.source->integer != x->integer || cone.source->scale != x->scale || cone.source->zero != x->zero)) {
      return false;
    }
    cone.source = x;
    cone.sources.insert(value);
    return true;
  }
  if (const Tensor* constant = graph.ConstantOrNull(value)) {
    if (constant->elements() != 1 || constant->type() != ElementType::kFloat32) return false;
    cone.constants.insert(value);
    return true;
  }
  const NodeId producer = graph.ProducerOf(value);
  if (producer == kNoNode || !IsElementwise(graph.node(producer))) return false;
  if (graph.type(value).shape != shape || graph.type(value).element != ElementType::kFloat32) return false;
  if (!cone.nodes.insert(producer).second) return true;
  if (cone.nodes.size() > kMostNodes) return false;
  for (ValueId input : graph.node(producer).inputs) {
    if (input != kNoValue && !GrowCone(graph, input, shape, cone)) return false;
  }
  return true;
}

// The cone as a graph of its own on the 256 real values that the source can take.
absl::StatusOr<Tensor> EvaluateCone(const Graph& graph, const Cone& cone, ValueId result) {
  Tensor reals(ElementType::kFloat32, {256});
  for (int64_t i = 0; i < 256; ++i) {
    reals.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i - 128 - cone.source->zero) * cone.source->scale;
  }
  if (cone.sources.contains(result)) return reals;
  Graph table("lookup");
  const ValueId x = table.AddInput("x", ValueType(ElementType::kFloat32, Shape{256}));
  std::map<ValueId, ValueId> mapped;
  for (ValueId source : cone.sources) mapped[source] = x;
  for (ValueId id : cone.constants) {
    mapped[id] = table.AddConstant(graph.value(id).name, graph.ConstantOrNull(id)->Reshaped({}));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!cone.nodes.contains(id)) continue;
    const Node& node = graph.node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(input == kNoValue ? kNoValue : mapped.at(input));
    const NodeId copy = table.AddNode(node.op, node.name, inputs, {graph.value(node.outputs[0]).name}, node.attributes);
    HEDDLE_RETURN_IF_ERROR(InferNodeTypes(table, copy));
    mapped[node.outputs[0]] = table.node(copy).outputs[0];
  }
  table.MarkOutput(mapped.at(result));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, Interpret(table, {reals}));
  if (outputs[0].elements() != 256) return absl::InternalError("a lookup's function changed the shape");
  return std::move(outputs[0]);
}

bool IsIdentityTable(const Tensor& table) {
  for (int64_t i = 0; i < 256; ++i) {
    if (table.at_int(i) != i - 128) return false;
  }
  return true;
}

// The bounds where the table is clamp(x, low, high).
std::optional<std::pair<int64_t, int64_t>> ClampOf(const Tensor& table) {
  const int64_t low = table.at_int(0), high = table.at_int(255);
  if (low > high) return std::nullopt;
  for (int64_t i = 0; i < 256; ++i) {
    if (table.at_int(i) != std::clamp(i - 128, low, high)) return std::nullopt;
  }
  return std::pair(low, high);
}

}  // namespace

bool IsElementwise(const Node& node) {
  static const std::set<std::string, std::less<>> kOps = {
      "Abs",  "Acos",      "Acosh",     "Add",  "Asin",    "Asinh",    "Atan",       "Atanh",    "Ceil",     "Celu", "Clip",
      "Cos",  "Cosh",      "Div",       "Elu",  "Erf",     "Exp",      "Floor",      "Gelu",     "HardSigmoid", "HardSwish",
      "Identity", "LeakyRelu", "Log",   "Max",  "Mean",    "Min",      "Mish",       "Mul",      "Neg",      "PRelu", "Pow",
      "Reciprocal", "Relu", "Round",    "Selu", "Shrink",  "Sigmoid",  "Sign",       "Sin",      "Sinh",     "Softplus",
      "Softsign", "Sqrt",  "Sub",       "Sum",  "Tan",     "Tanh",     "ThresholdedRelu"};
  return kOps.contains(node.op) && node.outputs.size() == 1;
}

bool MatchLookup(Graph& graph, const OutputQuantiser& q) {
  Cone cone;
  if (!GrowCone(graph, q.input, graph.type(q.input).shape, cone) || !cone.source) return false;
  auto reals = EvaluateCone(graph, cone, q.input);
  if (!reals.ok()) return false;
  Tensor table(ElementType::kInt8, {256});
  for (int64_t i = 0; i < 256; ++i) {
    table.set_int(i, QuantiseValue(reals->as<float>()[static_cast<size_t>(i)], q.scale, q.zero, ElementType::kInt8));
  }
  const ValueId source = cone.source->integer;
  // Equal parameters: the function alone says what happens. With others a table that is the identity still changes what
  // the integers mean, which only the value's type records.
  if (IsIdentityTable(table) && cone.source->scale == q.scale && cone.source->zero == q.zero) {
    if (ReplaceValue(graph, q.output, source)) {
      RemoveIfDead(graph, q.node);
      return true;
    }
  }
  std::vector<NodeId> absorbed(cone.nodes.begin(), cone.nodes.end());
  const std::string name = graph.node(absorbed.empty() ? q.node : absorbed.back()).name;
  return Emit(graph, q, {"QLut", name, {source}, {{"table", std::make_shared<const Tensor>(std::move(table))}}, std::move(absorbed)});
}

absl::Status MergeClampLookups(Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!graph.alive(id) || graph.node(id).op != "QLut") continue;
    const ValueId x = graph.node(id).inputs[0], y = graph.node(id).outputs[0];
    const NodeId producer = graph.ProducerOf(x);
    const auto bounds = ClampOf(*graph.node(id).TensorAttribute("table"));
    const bool same_meaning = graph.type(x).quantisation && graph.type(x).quantisation == graph.type(y).quantisation;
    if (!bounds || !same_meaning || producer == kNoNode || !HasSingleUse(graph, x)) continue;
    static const std::set<std::string, std::less<>> kClamping = {"QConv", "QMatMul", "QAdd", "QMul", "QAveragePool"};
    if (!kClamping.contains(graph.node(producer).op)) continue;
    Attributes& attributes = graph.node(producer).attributes;
    const int64_t low = graph.node(producer).Int("clamp_low", -128), high = graph.node(producer).Int("clamp_high", 127);
    attributes["clamp_low"] = std::clamp(low, bounds->first, bounds->second);
    attributes["clamp_high"] = std::clamp(high, bounds->first, bounds->second);
    MergeSources(graph, producer, {producer, id});
    ReplaceValue(graph, y, x, /*keep_name=*/true);
    RemoveIfDead(graph, id);
  }
  return absl::OkStatus();
}

}  // namespace heddle::ir
