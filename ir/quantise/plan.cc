// The set of rounded tensors is the least one that the rules of plan.h ask for: it grows until no rule adds to it.
// Roles are looked at again after each round, because a tensor that is rounded starts a new chain of functions.

#include "ir/quantise/plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/ops/quant_common.h"
#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"
#include "ir/quantise/roles.h"
#include "ir/quantise/softmax_input.h"

namespace heddle::ir::quantise {
namespace {

bool IsQuantisedOp(const std::string& op) {
  static const std::set<std::string, std::less<>> kOnnxOps = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear",
                                                              "QLinearConv",    "QLinearMatMul",    "ConvInteger",
                                                              "MatMulInteger"};
  return IsOwnOp(op) || kOnnxOps.contains(op);
}

absl::StatusOr<std::set<NodeId>> NodesNamed(const Graph& graph, const std::vector<std::string>& names) {
  std::set<NodeId> nodes;
  for (const std::string& name : names) {
    const size_t before = nodes.size();
    for (NodeId id : graph.NodeIds()) {
      const Node& node = graph.node(id);
      if (node.name == name ||
          std::find(node.source_names.begin(), node.source_names.end(), name) != node.source_names.end())
        nodes.insert(id);
    }
    if (nodes.size() == before) {
      return UserError("E-QUANT-003", fmt::format("no node is called '{}'", name),
                       "`heddle import MODEL` lists the nodes' names behind @");
    }
  }
  return nodes;
}

class Planner {
 public:
  Planner(const Graph& graph, std::vector<NodeId> order, std::set<NodeId> keep_float)
      : graph_(graph), order_(std::move(order)), keep_float_(std::move(keep_float)) {
    keep_float_.merge(NormalisationNodes(graph));
  }

  void ChooseTensors() {
    size_t before = 0;
    do {
      before = rounded_.size();
      source_ = SourcesOf(graph_, order_, keep_float_, rounded_);
      roles_ = RolesOf(graph_, keep_float_, source_);
      inside_.clear();
      for (NodeId id : order_) Visit(graph_.node(id));
    } while (rounded_.size() != before);
  }

  Plan Finish() {
    Plan plan;
    FormClasses(plan);
    FindSoftmaxInputs(plan);
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      const Role role = RoleOf(id);
      if (inside_.contains(id)) continue;
      if (role == Role::kLayer) {
        if (auto layer = WeightedLayerOf(graph_, node)) {
          plan.layers.push_back(*layer);
        } else if (IsFloatConstant(graph_, node.inputs[0])) {
          plan.constants.emplace_back(id, 0);
        }
      }
      if (role == Role::kJoin && joined_.contains(id)) {
        for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
          if (IsFloatConstant(graph_, node.inputs[static_cast<size_t>(i)])) plan.constants.emplace_back(id, i);
        }
      }
    }
    return plan;
  }

 private:
  void FindSoftmaxInputs(Plan& plan) const {
    for (const auto& [value, axis] : SoftmaxInputs(graph_)) {
      // A tensor that shares its parameters has to serve others too.
      if (plan.Quantised(value) &&
          plan.classes[static_cast<size_t>(plan.class_of[static_cast<size_t>(value)])].members.size() == 1) {
        plan.softmax_axis[value] = axis;
      }
    }
    for (const auto& [value, axis] : plan.softmax_axis) {
      const NodeId producer = graph_.ProducerOf(value);
      if (!joined_.contains(producer) || graph_.node(producer).op != "Add") continue;
      const Node& add = graph_.node(producer);
      plan.masks[add.inputs[0]].push_back({add.id, add.inputs[1]});
      plan.masks[add.inputs[1]].push_back({add.id, add.inputs[0]});
    }
    std::erase_if(plan.masks, [&](const auto& entry) {
      const ValueId value = entry.first;
      const bool only_here = graph_.value(value).uses.size() == entry.second.size() && !graph_.IsOutput(value);
      const bool alone =
          graph_.IsConstant(value) ||
          plan.classes[static_cast<size_t>(plan.class_of[static_cast<size_t>(value)])].members.size() == 1;
      return !only_here || !alone;
    });
  }

  Role RoleOf(NodeId id) const { return id == kNoNode ? Role::kFloat : roles_[static_cast<size_t>(id)]; }
  bool Rounded(ValueId value) const { return rounded_.contains(value); }

  void RoundInputs(const Node& node) {
    for (ValueId value : Activations(graph_, node)) rounded_.insert(value);
  }

  // Nodes between the node's own output and its result are part of it.
  void RoundResult(const Node& node) {
    const ValueId result = ResultOf(graph_, node, keep_float_);
    rounded_.insert(result);
    for (ValueId value = result; value != node.outputs[0];) {
      const Node& part = graph_.node(graph_.ProducerOf(value));
      inside_.insert(part.id);
      value = IsActivation(graph_, part.inputs[0]) ? part.inputs[0] : part.inputs[1];
    }
  }

  void Visit(const Node& node) {
    if (inside_.contains(node.id)) return;
    const std::vector<ValueId> activations = Activations(graph_, node);
    const bool any = std::any_of(activations.begin(), activations.end(), [&](ValueId v) { return Rounded(v); });
    const bool all = std::all_of(activations.begin(), activations.end(), [&](ValueId v) { return Rounded(v); });
    switch (RoleOf(node.id)) {
      case Role::kFloat: return;
      case Role::kJoin:
        if (!any) return;
        joined_.insert(node.id);
        [[fallthrough]];
      case Role::kLayer:
      case Role::kPool:
        RoundInputs(node);
        RoundResult(node);
        return;
      case Role::kSoftmax:
        if (any) rounded_.insert(node.outputs[0]);
        return;
      case Role::kFunction:
        if (Rounded(source_[static_cast<size_t>(node.outputs[0])]) && EndsChain(node)) rounded_.insert(node.outputs[0]);
        return;
      case Role::kMovement:
        if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return Rounded(v); }))
          RoundInputs(node);
        if (all) rounded_.insert(node.outputs.begin(), node.outputs.end());
        return;
    }
  }

  bool EndsChain(const Node& node) const {
    const ValueId result = node.outputs[0], source = source_[static_cast<size_t>(result)];
    if (graph_.IsOutput(result)) return true;
    const std::vector<Use>& uses = graph_.value(result).uses;
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return RoleOf(use.node) != Role::kFunction ||
             source_[static_cast<size_t>(graph_.node(use.node).outputs[0])] != source;
    });
  }

  // Where nothing else reads it, a concatenation's operand may as well be made in the result's units: one rounding, not
  // two.
  bool MayTakeUnitsOf(ValueId value) const {
    if (!Rounded(value) || !HasSingleUse(graph_, value)) return false;
    const NodeId producer = graph_.ProducerOf(value);
    if (RoleOf(producer) != Role::kMovement) return true;
    const Node& node = graph_.node(producer);
    const std::vector<ValueId> moved = Activations(graph_, node);
    return node.outputs.size() == 1 &&
           std::all_of(moved.begin(), moved.end(), [&](ValueId v) { return MayTakeUnitsOf(v); });
  }

  int Find(int x) {
    while (parent_[static_cast<size_t>(x)] != x) x = parent_[static_cast<size_t>(x)];
    return x;
  }
  void Unite(ValueId a, ValueId b) {
    const int x = Find(a), y = Find(b);
    parent_[static_cast<size_t>(std::max(x, y))] = std::min(x, y);
  }

  void FormClasses(Plan& plan) {
    parent_.resize(static_cast<size_t>(graph_.num_value_slots()));
    std::iota(parent_.begin(), parent_.end(), 0);
    for (NodeId id : order_) {
      if (RoleOf(id) != Role::kMovement) continue;
      const Node& node = graph_.node(id);
      for (ValueId input : Activations(graph_, node)) {
        if (!Rounded(input) || (node.op == "Concat" && !MayTakeUnitsOf(input))) continue;
        for (ValueId output : node.outputs) {
          if (Rounded(output)) Unite(input, output);
        }
      }
    }
    plan.class_of.assign(parent_.size(), -1);
    std::map<int, int> index;
    for (ValueId value : rounded_) {
      const auto [it, fresh] = index.emplace(Find(value), static_cast<int>(plan.classes.size()));
      if (fresh) plan.classes.emplace_back();
      plan.class_of[static_cast<size_t>(value)] = it->second;
      plan.classes[static_cast<size_t>(it->second)].members.push_back(value);
    }
    for (ParameterClass& entry : plan.classes) FindSources(plan, entry);
  }

  void FindSources(const Plan& plan, ParameterClass& entry) const {
    const int own = plan.class_of[static_cast<size_t>(entry.members[0])];
    entry.is_softmax = true;
    for (ValueId value : entry.members) {
      const NodeId producer = graph_.ProducerOf(value);
      if (RoleOf(producer) == Role::kMovement && !AddsValues(graph_.node(producer), plan, own)) continue;
      entry.sources.push_back(value);
      entry.is_softmax = entry.is_softmax && RoleOf(producer) == Role::kSoftmax;
    }
    entry.is_softmax = entry.is_softmax && !entry.sources.empty();
  }

  // The node's result has values that are not in the class's other members: of a constant, a fill, an operand
  // elsewhere.
  bool AddsValues(const Node& node, const Plan& plan, int own) const {
    const auto data = MovementInputs(graph_, node);
    for (int i : *data) {
      if (plan.class_of[static_cast<size_t>(node.inputs[static_cast<size_t>(i)])] != own) return true;
    }
    const int fill = MovementFillInput(node);
    if (fill < 0 || fill >= static_cast<int>(node.inputs.size()) || node.inputs[static_cast<size_t>(fill)] == kNoValue)
      return false;
    return ConstantScalar(graph_, node.inputs[static_cast<size_t>(fill)]) != 0.0;
  }

  const Graph& graph_;
  const std::vector<NodeId> order_;
  std::set<NodeId> keep_float_;
  std::set<ValueId> rounded_;
  std::vector<ValueId> source_;
  std::vector<Role> roles_;
  std::set<NodeId> inside_;  // parts of the node before them: bias additions and clamps
  std::set<NodeId> joined_;  // of role kJoin, quantised
  std::vector<int> parent_;
};

}  // namespace

Tensor Observed(const Plan& plan, ValueId value, const Tensor& tensor) {
  const auto it = plan.softmax_axis.find(value);
  return it == plan.softmax_axis.end() ? tensor : VisibleToSoftmax(tensor, it->second);
}

absl::StatusOr<Plan> PlanQuantisation(const Graph& graph, const PlanOptions& options) {
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (!IsQuantisedOp(node.op)) continue;
    return UserError(
        "E-QUANT-001",
        fmt::format("node '{}' ({}): the model is quantised already; expected a float model", node.name, node.op),
        "give the float model it was made from");
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  HEDDLE_ASSIGN_OR_RETURN(const std::set<NodeId> keep_float, NodesNamed(graph, options.keep_float));
  Planner planner(graph, order, keep_float);
  planner.ChooseTensors();
  Plan plan = planner.Finish();
  if (plan.classes.empty()) {
    return UserError(
        "E-QUANT-002",
        fmt::format("'{}' has no float32 layer that becomes int8 (Conv, Gemm, MatMul, AveragePool)", graph.name()),
        "see `heddle import MODEL` for its operators");
  }
  return plan;
}

}  // namespace heddle::ir::quantise
