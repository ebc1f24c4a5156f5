// Graph surgery shared by the passes.

#include "ir/passes/rewrite.h"

#include <algorithm>
#include <set>

#include "ir/check.h"

namespace heddle::ir {
namespace {

template <typename T>
const T* AttributeOrNull(const Node& node, const std::string& key) {
  auto it = node.attributes.find(key);
  return it == node.attributes.end() ? nullptr : std::get_if<T>(&it->second);
}

// Results differ from run to run, or the node is more than its inputs.
bool IsFoldable(const Node& node) {
  static const std::set<std::string, std::less<>> kNever = {"RandomNormal", "RandomNormalLike", "RandomUniform",
                                                            "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout",
                                                            "If", "Loop", "Scan"};
  return !kNever.contains(node.op);
}

bool DependsOnShapeOnly(const Node& node) { return node.op == "Shape" || node.op == "Size"; }

}  // namespace

bool HasSingleUse(const Graph& graph, ValueId value) {
  return graph.value(value).uses.size() == 1 && !graph.IsOutput(value);
}

NodeId SoleUser(const Graph& graph, ValueId value) {
  return HasSingleUse(graph, value) ? graph.value(value).uses[0].node : kNoNode;
}

absl::StatusOr<ValueId> AddTypedNode(Graph& graph, const std::string& op, const std::string& name,
                                     const std::vector<ValueId>& inputs, const std::string& output_name,
                                     Attributes attributes) {
  const NodeId node = graph.AddNode(op, name, inputs, {output_name}, std::move(attributes));
  if (const absl::Status status = InferNodeTypes(graph, node); !status.ok()) {
    graph.RemoveNode(node);
    return status;
  }
  return graph.node(node).outputs[0];
}

bool ReplaceValue(Graph& graph, ValueId old, ValueId replacement, bool keep_name) {
  if (old == replacement) return false;
  const bool is_output = graph.IsOutput(old);
  if (is_output && (graph.ProducerOf(replacement) == kNoNode || graph.IsOutput(replacement))) return false;
  const std::string name = graph.value(old).name;
  graph.ReplaceAllUses(old, replacement);
  if (is_output || keep_name) {
    graph.RenameValue(old, name + ".replaced");
    graph.RenameValue(replacement, name);
  }
  return true;
}

void RemoveIfDead(Graph& graph, NodeId id) {
  if (id == kNoNode || !graph.alive(id)) return;
  const Node& node = graph.node(id);
  for (ValueId output : node.outputs) {
    if (!graph.value(output).uses.empty() || graph.IsOutput(output)) return;
  }
  std::vector<ValueId> inputs = node.inputs;
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  graph.RemoveNode(id);
  for (ValueId input : inputs) {
    if (input == kNoValue || !graph.value_alive(input) || !graph.value(input).uses.empty()) continue;
    if (graph.ProducerOf(input) != kNoNode) {
      RemoveIfDead(graph, graph.ProducerOf(input));
    } else if (graph.IsConstant(input) && !graph.IsOutput(input)) {
      graph.RemoveValue(input);
    }
  }
}

void RemoveDeadCode(Graph& graph) {
  auto order = graph.TopologicalOrder();
  HEDDLE_CHECK(order.ok(), std::string(order.status().message()));
  for (auto it = order->rbegin(); it != order->rend(); ++it) RemoveIfDead(graph, *it);
  for (ValueId id : graph.ValueIds()) {
    if (graph.IsConstant(id) && graph.value(id).uses.empty() && !graph.IsOutput(id)) graph.RemoveValue(id);
  }
}

void MergeSources(Graph& graph, NodeId into, const std::vector<NodeId>& from) {
  std::vector<std::string> merged = graph.node(into).source_names;
  for (NodeId id : from) {
    if (!graph.alive(id)) continue;
    const Node& node = graph.node(id);
    std::vector<std::string> names = node.source_names;
    if (names.empty()) names.push_back(node.name);
    for (const std::string& name : names) {
      if (std::find(merged.begin(), merged.end(), name) == merged.end()) merged.push_back(name);
    }
  }
  graph.node(into).source_names = std::move(merged);
}

int64_t IntOr(const Node& node, const std::string& key, int64_t fallback) {
  const auto* value = AttributeOrNull<int64_t>(node, key);
  return value ? *value : fallback;
}

std::vector<int64_t> IntsOr(const Node& node, const std::string& key, std::vector<int64_t> fallback) {
  const auto* value = AttributeOrNull<std::vector<int64_t>>(node, key);
  return value ? *value : fallback;
}

std::string StringOr(const Node& node, const std::string& key, const std::string& fallback) {
  const auto* value = AttributeOrNull<std::string>(node, key);
  return value ? *value : fallback;
}

std::optional<std::vector<int64_t>> ConstantInts(const Graph& graph, ValueId value) {
  const Tensor* tensor = graph.ConstantOrNull(value);
  if (!tensor || !IsInteger(tensor->type())) return std::nullopt;
  std::vector<int64_t> result;
  for (int64_t i = 0; i < tensor->elements(); ++i) result.push_back(tensor->at_int(i));
  return result;
}

std::optional<double> ConstantScalar(const Graph& graph, ValueId value) {
  const Tensor* tensor = graph.ConstantOrNull(value);
  if (!tensor || tensor->elements() != 1) return std::nullopt;
  return tensor->at_double(0);
}

bool FoldNode(Graph& graph, NodeId id, int64_t max_bytes) {
  const Node& node = graph.node(id);
  const Op* op = FindOp(node.op);
  if (!op || !IsFoldable(node)) return false;
  const NodeContext context(graph, node);
  std::vector<const Tensor*> inputs;
  std::vector<Tensor> blanks;
  blanks.reserve(node.inputs.size());
  for (ValueId input : node.inputs) {
    if (input == kNoValue) {
      inputs.push_back(nullptr);
    } else if (const Tensor* constant = graph.ConstantOrNull(input)) {
      inputs.push_back(constant);
    } else if (DependsOnShapeOnly(node) && graph.type(input).is_static() && graph.type(input).bytes() <= max_bytes) {
      blanks.emplace_back(graph.type(input).element, graph.type(input).static_shape());
      inputs.push_back(&blanks.back());
    } else {
      return false;
    }
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (graph.IsOutput(node.outputs[i])) return false;
    bytes += graph.type(node.outputs[i]).bytes();
  }
  if (bytes > max_bytes) return false;
  auto results = op->Evaluate(context, inputs);
  if (!results.ok()) return false;  // the same error comes when the node runs
  const std::vector<ValueId> outputs = node.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = graph.value(outputs[i]).name;
    const auto quantisation = graph.type(outputs[i]).quantisation;
    const ValueId constant = graph.AddConstant(name + ".folded", std::move((*results)[i]), quantisation);
    graph.ReplaceAllUses(outputs[i], constant);
    graph.RenameValue(outputs[i], name + ".replaced");
    graph.RenameValue(constant, name);
  }
  RemoveIfDead(graph, id);
  return true;
}

}  // namespace heddle::ir
