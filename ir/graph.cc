// The graph's bookkeeping: use lists, unique names and renumbering are kept right by every mutator, so that passes
// never have to.

#include "ir/graph.h"

#include <algorithm>
#include <queue>

#include "ir/check.h"

namespace heddle::ir {
namespace {

template <typename T>
const T* Get(const Node& node, const std::string& key) {
  auto it = node.attributes.find(key);
  if (it == node.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  HEDDLE_CHECK(value, fmt::format("attribute {} of node {} has another type", key, node.name));
  return value;
}

std::string QuantisationText(const Quantisation& q) {
  std::string text = " q(";
  if (q.axis >= 0) text += fmt::format("axis={} ", q.axis);
  const size_t shown = std::min<size_t>(q.scale.size(), 2);
  for (size_t i = 0; i < shown; ++i) text += fmt::format("{}{}:{}", i ? " " : "", q.scale[i], q.zero_point[i]);
  return text + (q.scale.size() > shown ? " …)" : ")");
}

}  // namespace

bool ValueType::is_static() const {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_constant(); });
}

Shape ValueType::static_shape() const {
  Shape result;
  for (const Dim& dim : shape) {
    HEDDLE_CHECK(dim.is_constant(), "a symbolic dimension '" + dim.symbol + "' where constants are needed");
    result.push_back(dim.extent);
  }
  return result;
}

std::string TypeText(const ValueType& type) {
  std::string dims;
  for (const Dim& dim : type.shape) {
    if (!dims.empty()) dims += "x";
    dims += dim.is_constant() ? std::to_string(dim.extent) : "?" + dim.symbol;
  }
  return fmt::format("{}[{}]{}", ElementTypeName(type.element), dims,
                     type.quantisation ? QuantisationText(*type.quantisation) : "");
}

int64_t Node::Int(const std::string& key, int64_t fallback) const {
  const auto* value = Get<int64_t>(*this, key);
  return value ? *value : fallback;
}

double Node::Float(const std::string& key, double fallback) const {
  const auto* value = Get<double>(*this, key);
  return value ? *value : fallback;
}

std::string Node::String(const std::string& key, const std::string& fallback) const {
  const auto* value = Get<std::string>(*this, key);
  return value ? *value : fallback;
}

std::vector<int64_t> Node::Ints(const std::string& key, std::vector<int64_t> fallback) const {
  const auto* value = Get<std::vector<int64_t>>(*this, key);
  return value ? *value : fallback;
}

std::vector<double> Node::Floats(const std::string& key, std::vector<double> fallback) const {
  const auto* value = Get<std::vector<double>>(*this, key);
  return value ? *value : fallback;
}

std::shared_ptr<const Tensor> Node::TensorAttribute(const std::string& key) const {
  const auto* value = Get<std::shared_ptr<const Tensor>>(*this, key);
  return value ? *value : nullptr;
}

std::string Graph::UniqueName(std::string wanted, const std::map<std::string, int32_t, std::less<>>& taken) const {
  if (wanted.empty()) wanted = "unnamed";
  if (!taken.contains(wanted)) return wanted;
  // The search starts at the number of names taken: linear in the worst case, constant in practice.
  for (size_t i = 1;; ++i) {
    std::string candidate = fmt::format("{}.{}", wanted, i);
    if (!taken.contains(candidate)) return candidate;
  }
}

ValueId Graph::AddValue(std::string name, ValueType type) {
  const auto id = static_cast<ValueId>(values_.size());
  name = UniqueName(std::move(name), value_names_);
  value_names_[name] = id;
  Value value;
  value.id = id;
  value.name = std::move(name);
  value.type = std::move(type);
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::AddInput(std::string name, ValueType type) {
  const ValueId id = AddValue(std::move(name), std::move(type));
  inputs_.push_back(id);
  return id;
}

ValueId Graph::AddConstant(std::string name, Tensor tensor, std::optional<Quantisation> quantisation) {
  return AddConstant(std::move(name), std::make_shared<const Tensor>(std::move(tensor)), std::move(quantisation));
}

ValueId Graph::AddConstant(std::string name, std::shared_ptr<const Tensor> tensor,
                           std::optional<Quantisation> quantisation) {
  ValueType type(tensor->type(), tensor->shape());
  type.quantisation = std::move(quantisation);
  const ValueId id = AddValue(std::move(name), std::move(type));
  values_[static_cast<size_t>(id)].constant = std::move(tensor);
  return id;
}

NodeId Graph::AddNode(std::string op, std::string name, std::vector<ValueId> inputs,
                      std::vector<std::string> output_names, Attributes attributes) {
  const auto id = static_cast<NodeId>(nodes_.size());
  name = UniqueName(std::move(name), node_names_);
  node_names_[name] = id;
  Node node;
  node.id = id;
  node.op = std::move(op);
  node.name = std::move(name);
  node.attributes = std::move(attributes);
  for (std::string& output : output_names) {
    const ValueId value = AddValue(std::move(output), {});
    values_[static_cast<size_t>(value)].producer = id;
    values_[static_cast<size_t>(value)].producer_output = static_cast<int>(node.outputs.size());
    node.outputs.push_back(value);
  }
  nodes_.push_back(std::move(node));
  for (ValueId input : inputs) AppendInput(id, input);
  return id;
}

const Node& Graph::node(NodeId id) const {
  HEDDLE_CHECK(alive(id), "no such node");
  return nodes_[static_cast<size_t>(id)];
}

Node& Graph::node(NodeId id) {
  HEDDLE_CHECK(alive(id), "no such node");
  return nodes_[static_cast<size_t>(id)];
}

const Value& Graph::value(ValueId id) const {
  HEDDLE_CHECK(value_alive(id), "no such value");
  return values_[static_cast<size_t>(id)];
}

std::vector<NodeId> Graph::NodeIds() const {
  std::vector<NodeId> ids;
  for (const Node& node : nodes_) {
    if (node.id != kNoNode) ids.push_back(node.id);
  }
  return ids;
}

std::vector<ValueId> Graph::ValueIds() const {
  std::vector<ValueId> ids;
  for (const Value& value : values_) {
    if (value.id != kNoValue) ids.push_back(value.id);
  }
  return ids;
}

bool Graph::IsOutput(ValueId id) const { return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end(); }

std::optional<NodeId> Graph::FindNode(std::string_view name) const {
  auto it = node_names_.find(name);
  return it == node_names_.end() ? std::nullopt : std::optional<NodeId>(it->second);
}

std::optional<ValueId> Graph::FindValue(std::string_view name) const {
  auto it = value_names_.find(name);
  return it == value_names_.end() ? std::nullopt : std::optional<ValueId>(it->second);
}

absl::StatusOr<std::vector<NodeId>> Graph::TopologicalOrder() const {
  std::vector<int> missing(nodes_.size(), 0);  // inputs whose producers are not yet ordered
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  size_t living = 0;
  for (const Node& node : nodes_) {
    if (node.id == kNoNode) continue;
    ++living;
    for (ValueId input : node.inputs) missing[static_cast<size_t>(node.id)] += ProducerOf(input) != kNoNode;
    if (missing[static_cast<size_t>(node.id)] == 0) ready.push(node.id);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (ValueId output : node(id).outputs) {
      for (const Use& use : value(output).uses) {
        if (--missing[static_cast<size_t>(use.node)] == 0) ready.push(use.node);
      }
    }
  }
  if (order.size() == living) return order;
  for (const Node& node : nodes_) {
    if (node.id != kNoNode && missing[static_cast<size_t>(node.id)] > 0) {
      return UserError("E-IR-003", fmt::format("the graph has a cycle that feeds node '{}'", node.name),
                       "break the cycle in the source model");
    }
  }
  return order;
}

void Graph::set_type(ValueId id, ValueType type) { values_[static_cast<size_t>(value(id).id)].type = std::move(type); }

void Graph::RenameValue(ValueId id, std::string name) {
  Value& v = values_[static_cast<size_t>(value(id).id)];
  value_names_.erase(v.name);
  v.name = UniqueName(std::move(name), value_names_);
  value_names_[v.name] = id;
}

void Graph::RenameNode(NodeId id, std::string name) {
  Node& n = node(id);
  node_names_.erase(n.name);
  n.name = UniqueName(std::move(name), node_names_);
  node_names_[n.name] = id;
}

void Graph::RemoveUse(ValueId id, Use use) {
  if (id == kNoValue) return;
  std::vector<Use>& uses = values_[static_cast<size_t>(value(id).id)].uses;
  auto it = std::find(uses.begin(), uses.end(), use);
  HEDDLE_CHECK(it != uses.end(), "a use is missing from its value's list");
  uses.erase(it);
}

void Graph::SetInput(NodeId id, int input, ValueId value_id) {
  ValueId& slot = node(id).inputs[static_cast<size_t>(input)];
  RemoveUse(slot, {id, input});
  slot = value_id;
  if (value_id != kNoValue) values_[static_cast<size_t>(value(value_id).id)].uses.push_back({id, input});
}

void Graph::AppendInput(NodeId id, ValueId value_id) {
  Node& n = node(id);
  const int index = static_cast<int>(n.inputs.size());
  n.inputs.push_back(value_id);
  if (value_id != kNoValue) values_[static_cast<size_t>(value(value_id).id)].uses.push_back({id, index});
}

void Graph::ReplaceAllUses(ValueId from, ValueId to) {
  if (from == to) return;
  const std::vector<Use> uses = value(from).uses;
  for (const Use& use : uses) SetInput(use.node, use.input, to);
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::RemoveNode(NodeId id) {
  Node& n = node(id);
  for (ValueId output : n.outputs) {
    HEDDLE_CHECK(value(output).uses.empty() && !IsOutput(output), "removing a node whose output is used: " + n.name);
  }
  for (size_t i = 0; i < n.inputs.size(); ++i) RemoveUse(n.inputs[i], {id, static_cast<int>(i)});
  for (ValueId output : n.outputs) {
    value_names_.erase(value(output).name);
    values_[static_cast<size_t>(output)] = Value{};
  }
  node_names_.erase(n.name);
  nodes_[static_cast<size_t>(id)] = Node{};
}

void Graph::RemoveValue(ValueId id) {
  const Value& v = value(id);
  HEDDLE_CHECK(v.uses.empty() && v.producer == kNoNode && !IsOutput(id), "removing a value in use: " + v.name);
  std::erase(inputs_, id);
  value_names_.erase(v.name);
  values_[static_cast<size_t>(id)] = Value{};
}

void Graph::MakeConstant(ValueId id, std::shared_ptr<const Tensor> tensor) {
  Value& v = values_[static_cast<size_t>(value(id).id)];
  HEDDLE_CHECK(v.producer == kNoNode, "a produced value cannot become a constant: " + v.name);
  v.type.element = tensor->type();
  v.type.shape.assign(tensor->shape().begin(), tensor->shape().end());
  v.constant = std::move(tensor);
}

void Graph::Compact() {
  auto order = TopologicalOrder();
  HEDDLE_CHECK(order.ok(), std::string(order.status().message()));
  std::vector<NodeId> new_node(nodes_.size(), kNoNode);
  std::vector<ValueId> new_value(values_.size(), kNoValue);
  std::vector<Node> nodes;
  std::vector<Value> values;
  for (NodeId id : *order) {
    new_node[static_cast<size_t>(id)] = static_cast<NodeId>(nodes.size());
    nodes.push_back(std::move(nodes_[static_cast<size_t>(id)]));
  }
  for (Value& v : values_) {
    if (v.id == kNoValue) continue;
    new_value[static_cast<size_t>(v.id)] = static_cast<ValueId>(values.size());
    values.push_back(std::move(v));
  }
  auto map_value = [&](ValueId& id) { id = id == kNoValue ? kNoValue : new_value[static_cast<size_t>(id)]; };
  auto map_node = [&](NodeId& id) { id = id == kNoNode ? kNoNode : new_node[static_cast<size_t>(id)]; };
  for (Node& n : nodes) {
    map_node(n.id);
    for (ValueId& v : n.inputs) map_value(v);
    for (ValueId& v : n.outputs) map_value(v);
    node_names_[n.name] = n.id;
  }
  for (Value& v : values) {
    map_value(v.id);
    map_node(v.producer);
    for (Use& use : v.uses) map_node(use.node);
    value_names_[v.name] = v.id;
  }
  for (ValueId& v : inputs_) map_value(v);
  for (ValueId& v : outputs_) map_value(v);
  nodes_ = std::move(nodes);
  values_ = std::move(values);
}

}  // namespace heddle::ir
