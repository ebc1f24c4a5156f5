// The graph IR: typed values, nodes with an op and attributes, control flow as subgraphs.
//
// Values and nodes are named by small integers that stay valid until Compact(). A Graph owns everything in it; copying
// copies the structure and shares constant tensors. ir/graph_boost.h makes a Graph a Boost.Graph.
#ifndef HEDDLE_IR_GRAPH_H_
#define HEDDLE_IR_GRAPH_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/status.h"
#include "ir/types.h"

namespace heddle::ir {

class Graph;

using NodeId = int32_t;
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an optional input that is absent
inline constexpr NodeId kNoNode = -1;    // producer of graph inputs and constants

// Element type, shape and, for quantised tensors, how integers stand for reals.
struct ValueType {
  ElementType element = ElementType::kFloat32;
  SymbolicShape shape;
  std::optional<Quantisation> quantisation;
  ValueType() = default;
  ValueType(ElementType e, const Shape& s) : element(e), shape(s.begin(), s.end()) {}
  ValueType(ElementType e, SymbolicShape s) : element(e), shape(std::move(s)) {}
  bool is_static() const;
  // CHECK-fails unless is_static(); passes after import may rely on it.
  Shape static_shape() const;
  int64_t elements() const { return ElementCount(static_shape()); }
  int64_t bytes() const { return elements() * ElementBytes(element); }
  bool operator==(const ValueType&) const = default;
};
std::string TypeText(const ValueType& type);  // "f32[1x3x224x224]", "i8[1x16] q(0.5:-3)"

struct Use {
  NodeId node = kNoNode;
  int input = 0;  // index among the node's inputs
  bool operator==(const Use&) const = default;
};

struct Value {
  ValueId id = kNoValue;
  std::string name;  // unique in the graph; as in the source model where it came from there
  ValueType type;
  NodeId producer = kNoNode;
  int producer_output = 0;                 // index among the producer's outputs
  std::shared_ptr<const Tensor> constant;  // weights and other known values; null otherwise
  std::vector<Use> uses;                   // in no particular order; graph outputs are not uses
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, std::shared_ptr<const Tensor>, std::shared_ptr<const Graph>>;
using Attributes = std::map<std::string, Attribute>;  // sorted: printing is deterministic

struct Node {
  NodeId id = kNoNode;
  std::string op;    // a name of ir/ops/all_ops.cc: "Conv", "QConv", …
  std::string name;  // unique in the graph; what every message and report calls the node
  std::vector<ValueId> inputs;  // kNoValue for an absent optional input
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::vector<std::string> source_names;  // nodes of the source model that this one stands for (several after fusion)
  int fusion_group = -1;  // nodes of one group run as one region on every device; -1: alone

  // Typed attribute access; the fallback where absent. CHECK-fails on another type: verifiers have run before.
  int64_t Int(const std::string& key, int64_t fallback = 0) const;
  double Float(const std::string& key, double fallback = 0) const;
  std::string String(const std::string& key, const std::string& fallback = "") const;
  std::vector<int64_t> Ints(const std::string& key, std::vector<int64_t> fallback = {}) const;
  std::vector<double> Floats(const std::string& key, std::vector<double> fallback = {}) const;
  std::shared_ptr<const Tensor> TensorAttribute(const std::string& key) const;  // null where absent
  bool Has(const std::string& key) const { return attributes.contains(key); }
};

class Graph {
 public:
  Graph() = default;
  explicit Graph(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // --- building. Names are made unique by a suffix where taken ("conv", "conv.1").
  ValueId AddInput(std::string name, ValueType type);
  ValueId AddConstant(std::string name, Tensor tensor, std::optional<Quantisation> quantisation = std::nullopt);
  ValueId AddConstant(std::string name, std::shared_ptr<const Tensor> tensor,
                      std::optional<Quantisation> quantisation = std::nullopt);
  // A node with one output for each of `output_names`; their types are set by InferTypes (ir/op.h) or set_type.
  NodeId AddNode(std::string op, std::string name, std::vector<ValueId> inputs, std::vector<std::string> output_names,
                 Attributes attributes = {});
  void MarkOutput(ValueId value) { outputs_.push_back(value); }
  void SetOutput(int index, ValueId value) { outputs_[static_cast<size_t>(index)] = value; }

  // --- reading
  int num_node_slots() const { return static_cast<int>(nodes_.size()); }
  int num_value_slots() const { return static_cast<int>(values_.size()); }
  bool alive(NodeId id) const { return id >= 0 && id < num_node_slots() && nodes_[static_cast<size_t>(id)].id == id; }
  bool value_alive(ValueId id) const {
    return id >= 0 && id < num_value_slots() && values_[static_cast<size_t>(id)].id == id;
  }
  const Node& node(NodeId id) const;
  Node& node(NodeId id);
  const Value& value(ValueId id) const;
  const ValueType& type(ValueId id) const { return value(id).type; }
  std::vector<NodeId> NodeIds() const;    // living nodes in insertion order
  std::vector<ValueId> ValueIds() const;  // living values
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  bool IsOutput(ValueId id) const;
  std::optional<NodeId> FindNode(std::string_view name) const;
  std::optional<ValueId> FindValue(std::string_view name) const;
  bool IsConstant(ValueId id) const { return id != kNoValue && value(id).constant != nullptr; }
  const Tensor* ConstantOrNull(ValueId id) const { return id == kNoValue ? nullptr : value(id).constant.get(); }
  // Producer of an input value, or kNoNode for graph inputs, constants and absent inputs.
  NodeId ProducerOf(ValueId id) const { return id == kNoValue ? kNoNode : value(id).producer; }
  // Living nodes so that producers precede users, ties by insertion order; an error naming a node on a cycle (E-IR-003).
  absl::StatusOr<std::vector<NodeId>> TopologicalOrder() const;

  // --- changing
  void set_type(ValueId id, ValueType type);
  void RenameValue(ValueId id, std::string name);
  void RenameNode(NodeId id, std::string name);
  void SetInput(NodeId node, int input, ValueId value);
  void AppendInput(NodeId node, ValueId value);
  // Every use of `from`, graph outputs included, becomes a use of `to`.
  void ReplaceAllUses(ValueId from, ValueId to);
  // The node and its outputs; CHECK-fails where an output is still used.
  void RemoveNode(NodeId id);
  // A constant or graph input without uses; CHECK-fails otherwise.
  void RemoveValue(ValueId id);
  void MakeConstant(ValueId id, std::shared_ptr<const Tensor> tensor);  // of a value without producer
  // Reorders nodes topologically, drops dead slots and renumbers ids. CHECK-fails on a cycle.
  void Compact();

 private:
  std::string UniqueName(std::string wanted, const std::map<std::string, int32_t, std::less<>>& taken) const;
  ValueId AddValue(std::string name, ValueType type);
  void RemoveUse(ValueId value, Use use);

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::map<std::string, int32_t, std::less<>> node_names_;
  std::map<std::string, int32_t, std::less<>> value_names_;
};

// Structure, names, single producers, use lists, no cycle, every op known, each op's own verifier, types as inferred.
// Error codes E-IR-001…; the message names the node. (Implemented in ir/verify.cc, which knows the ops.)
absl::Status Verify(const Graph& graph);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_GRAPH_H_
