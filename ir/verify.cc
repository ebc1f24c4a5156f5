// The verifier: what must hold of every graph between two passes. It looks at the graph through its public interface only,
// so that a defect in a mutator shows here too.

#include <algorithm>
#include <set>

#include "ir/graph.h"
#include "ir/op.h"

namespace heddle::ir {
namespace {

absl::Status VerifyUses(const Graph& graph, const Value& value) {
  for (const Use& use : value.uses) {
    const bool right = graph.alive(use.node) && use.input >= 0 &&
                       use.input < static_cast<int>(graph.node(use.node).inputs.size()) &&
                       graph.node(use.node).inputs[static_cast<size_t>(use.input)] == value.id;
    if (!right) return UserError("E-IR-020", fmt::format("value '{}' lists a use that does not read it", value.name));
  }
  return absl::OkStatus();
}

absl::Status VerifyValues(const Graph& graph) {
  std::set<std::string> names;
  for (ValueId id : graph.ValueIds()) {
    const Value& value = graph.value(id);
    if (value.name.empty() || !names.insert(value.name).second) {
      return UserError("E-IR-021", fmt::format("value name '{}' is empty or used twice", value.name));
    }
    HEDDLE_RETURN_IF_ERROR(VerifyUses(graph, value));
    const bool is_input = std::count(graph.inputs().begin(), graph.inputs().end(), id) != 0;
    const int sources = (value.producer != kNoNode) + (value.constant != nullptr) + is_input;
    if (sources != 1) {
      return UserError("E-IR-022", fmt::format("value '{}' has {} sources: one of a node, a constant and a graph input is "
                                               "needed", value.name, sources));
    }
    if (value.producer != kNoNode) {
      const bool right = graph.alive(value.producer) && value.producer_output >= 0 &&
                         value.producer_output < static_cast<int>(graph.node(value.producer).outputs.size()) &&
                         graph.node(value.producer).outputs[static_cast<size_t>(value.producer_output)] == id;
      if (!right) return UserError("E-IR-023", fmt::format("value '{}' is not an output of its producer", value.name));
    }
    if (value.constant && (value.constant->type() != value.type.element || !value.type.is_static() ||
                           value.constant->shape() != value.type.static_shape())) {
      return UserError("E-IR-024", fmt::format("constant '{}' has type {}, its tensor is {}[{}]", value.name,
                                               TypeText(value.type), ElementTypeName(value.constant->type()),
                                               ShapeText(value.constant->shape())));
    }
    if (const auto& q = value.type.quantisation) {
      if (q->scale.empty() || q->scale.size() != q->zero_point.size() || (q->scale.size() > 1 && q->axis < 0)) {
        return UserError("E-IR-025", fmt::format("value '{}' has an ill-formed quantisation", value.name));
      }
    }
  }
  for (ValueId id : graph.outputs()) {
    if (!graph.value_alive(id)) return UserError("E-IR-026", "a graph output does not exist");
  }
  return absl::OkStatus();
}

absl::Status VerifyNodeLinks(const Graph& graph, const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input == kNoValue) continue;
    if (!graph.value_alive(input)) return NodeError("E-IR-027", node, fmt::format("input {} does not exist", i));
    const std::vector<Use>& uses = graph.value(input).uses;
    if (std::count(uses.begin(), uses.end(), Use{node.id, static_cast<int>(i)}) != 1) {
      return NodeError("E-IR-028", node, fmt::format("input {} is not in the use list of '{}'", i, graph.value(input).name));
    }
  }
  return absl::OkStatus();
}

// The op's own verifier, and that output types are what it infers (quantisation aside, which passes add).
absl::Status VerifyNode(const Graph& graph, const Node& node) {
  const Op* op = FindOp(node.op);
  if (!op) return NodeError("E-IR-010", node, "unknown op", "see `heddle ops` for the list");
  for (ValueId input : node.inputs) {
    if (input != kNoValue && !graph.type(input).is_static()) return absl::OkStatus();  // shapes are not known yet
  }
  const NodeContext context(graph, node);
  HEDDLE_RETURN_IF_ERROR(op->Verify(context));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ValueType> types, op->InferTypes(context));
  if (types.size() < node.outputs.size()) return NodeError("E-IR-012", node, "has more outputs than the op gives");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueType& found = graph.type(node.outputs[i]);
    if (found.element != types[i].element || found.shape != types[i].shape) {
      return NodeError("E-IR-029", node, fmt::format("output {} is {}, the op gives {}", i, TypeText(found), TypeText(types[i])));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Graph& graph) {
  HEDDLE_RETURN_IF_ERROR(VerifyValues(graph));
  std::set<std::string> names;
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.name.empty() || !names.insert(node.name).second) {
      return UserError("E-IR-021", fmt::format("node name '{}' is empty or used twice", node.name));
    }
    HEDDLE_RETURN_IF_ERROR(VerifyNodeLinks(graph, node));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) HEDDLE_RETURN_IF_ERROR(VerifyNode(graph, graph.node(id)));
  return absl::OkStatus();
}

}  // namespace heddle::ir
