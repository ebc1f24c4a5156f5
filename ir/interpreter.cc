// Node-by-node execution; a value is freed after its last use, so that large networks stay within memory.

#include "ir/interpreter.h"

#include <map>

#include "ir/op.h"

namespace heddle::ir {
namespace {

absl::Status CheckInputs(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return UserError("E-RUN-001", fmt::format("the graph has {} inputs, {} were given", graph.inputs().size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    if (inputs[i].type() != value.type.element || inputs[i].shape() != value.type.static_shape()) {
      return UserError("E-RUN-001", fmt::format("input '{}': expected {}, found {}[{}]", value.name, TypeText(value.type),
                                                ElementTypeName(inputs[i].type()), ShapeText(inputs[i].shape())));
    }
  }
  return absl::OkStatus();
}

class Run {
 public:
  Run(const Graph& graph, const InterpretOptions& options) : graph_(graph), options_(options) {
    for (ValueId id : graph.ValueIds()) {
      remaining_uses_[id] = static_cast<int>(graph.value(id).uses.size()) + (graph.IsOutput(id) ? 1 : 0);
    }
  }

  void Set(ValueId id, Tensor tensor) {
    if (options_.on_value) options_.on_value(id, tensor);
    tensors_[id] = std::move(tensor);
  }

  absl::Status RunNode(const Node& node) {
    const Op* op = FindOp(node.op);
    if (!op) return NodeError("E-IR-010", node, "unknown op");
    std::vector<const Tensor*> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id == kNoValue ? nullptr : Get(id));
    auto outputs = op->Evaluate(NodeContext(graph_, node), inputs);
    if (!outputs.ok()) return outputs.status();
    for (size_t i = 0; i < node.outputs.size(); ++i) Set(node.outputs[i], std::move((*outputs)[i]));
    for (ValueId id : node.inputs) Release(id);
    return absl::OkStatus();
  }

  const Tensor* Get(ValueId id) const {
    if (const Tensor* constant = graph_.ConstantOrNull(id)) return constant;
    return &tensors_.at(id);
  }

 private:
  void Release(ValueId id) {
    if (id != kNoValue && --remaining_uses_[id] == 0) tensors_.erase(id);
  }

  const Graph& graph_;
  const InterpretOptions& options_;
  std::map<ValueId, Tensor> tensors_;
  std::map<ValueId, int> remaining_uses_;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                              const InterpretOptions& options) {
  HEDDLE_RETURN_IF_ERROR(CheckInputs(graph, inputs));
  Run run(graph, options);
  for (size_t i = 0; i < inputs.size(); ++i) run.Set(graph.inputs()[i], inputs[i]);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) HEDDLE_RETURN_IF_ERROR(run.RunNode(graph.node(id)));
  std::vector<Tensor> outputs;
  for (ValueId id : graph.outputs()) outputs.push_back(*run.Get(id));
  return outputs;
}

}  // namespace heddle::ir
