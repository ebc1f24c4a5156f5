// Groups of a region in an order in which they can run, and the lowering of one group through its ops' definitions.

#include "ir/loops/lower_group.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/check.h"
#include "ir/loops/names.h"
#include "ir/loops/op_lowering.h"
#include "ir/loops/visit.h"
#include "ir/op.h"

namespace heddle::ir::loops {
namespace {

// Groups in order by Kahn's algorithm over the condensed graph, ties by the earliest node; groups on a cycle are left out.
std::vector<int> OrderGroups(const Graph& graph, const std::vector<std::vector<NodeId>>& groups,
                             const std::map<NodeId, int>& group_of) {
  std::vector<std::set<int>> readers(groups.size());
  std::vector<int> waiting(groups.size(), 0);
  for (const auto& [node, group] : group_of) {
    for (ValueId input : graph.node(node).inputs) {
      const NodeId producer = graph.ProducerOf(input);
      if (producer == kNoNode || group_of.at(producer) == group) continue;
      if (readers[static_cast<size_t>(group_of.at(producer))].insert(group).second) ++waiting[static_cast<size_t>(group)];
    }
  }
  std::set<int> ready;  // groups are numbered by their first node's topological position
  for (size_t g = 0; g < groups.size(); ++g) {
    if (waiting[g] == 0) ready.insert(static_cast<int>(g));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int group = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(group);
    for (int reader : readers[static_cast<size_t>(group)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.insert(reader);
    }
  }
  return order;
}

bool IsRead(const std::vector<TensorExpr>& stages, const Buffer& buffer) {
  for (const TensorExpr& stage : stages) {
    for (const Expr& expr : {stage.value, stage.init, stage.combine, stage.epilogue}) {
      if (expr && ReadsBuffer(expr, buffer)) return true;
    }
    bool read = false;
    if (stage.imperative) ForEachRootExpr(stage.imperative, [&](const Expr& e) { read = read || ReadsBuffer(e, buffer); });
    if (read) return true;
  }
  return false;
}

bool IsNeededOutside(const Graph& graph, ValueId value, const std::set<NodeId>& members) {
  if (graph.IsOutput(value)) return true;
  const auto& uses = graph.value(value).uses;
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return !members.contains(use.node); });
}

}  // namespace

absl::StatusOr<std::vector<std::vector<NodeId>>> FusionGroups(const Graph& graph) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  std::set<int> split;  // fusion groups that cannot run as one
  for (;;) {
    std::vector<std::vector<NodeId>> groups;
    std::map<NodeId, int> group_of;
    std::map<int, int> index_of;
    for (NodeId id : order) {
      const int fusion_group = graph.node(id).fusion_group;
      int index = static_cast<int>(groups.size());
      if (fusion_group >= 0 && !split.contains(fusion_group)) index = index_of.try_emplace(fusion_group, index).first->second;
      if (index == static_cast<int>(groups.size())) groups.emplace_back();
      groups[static_cast<size_t>(index)].push_back(id);
      group_of[id] = index;
    }
    const std::vector<int> ordered = OrderGroups(graph, groups, group_of);
    if (ordered.size() == groups.size()) {
      std::vector<std::vector<NodeId>> result;
      for (int group : ordered) result.push_back(groups[static_cast<size_t>(group)]);
      return result;
    }
    const std::set<int> done(ordered.begin(), ordered.end());
    for (const auto& [fusion_group, index] : index_of) {
      if (!done.contains(index)) split.insert(fusion_group);
    }
  }
}

absl::StatusOr<LoweredGroup> LowerGroup(const Graph& graph, const std::vector<NodeId>& nodes) {
  LoweredGroup group;
  const std::set<NodeId> members(nodes.begin(), nodes.end());
  std::unordered_map<ValueId, Buffer> buffers;
  std::vector<ValueId> read, written;
  auto buffer_of = [&](ValueId id, bool is_read) -> Buffer {
    if (id == kNoValue) return Buffer();
    auto [it, is_new] = buffers.try_emplace(id);
    if (is_new) {
      const Value& value = graph.value(id);
      it->second = Buffer(ToIdentifier(value.name), value.type.element, value.type.static_shape());
      if (is_read) read.push_back(id);
    }
    return it->second;
  };
  for (NodeId id : nodes) {
    const Node& node = graph.node(id);
    const Op* op = FindOp(node.op);
    HEDDLE_CHECK(op, "unknown op " + node.op);
    std::vector<Buffer> inputs, outputs;
    for (ValueId input : node.inputs) inputs.push_back(buffer_of(input, true));
    for (ValueId output : node.outputs) {
      outputs.push_back(buffer_of(output, false));
      if (output != kNoValue && IsNeededOutside(graph, output, members)) written.push_back(output);
    }
    OpLowering lowering(std::move(inputs), std::move(outputs), ToIdentifier(node.name) + "_");
    HEDDLE_RETURN_IF_ERROR(op->Lower(NodeContext(graph, node), lowering));
    for (TensorExpr& stage : lowering.TakeStages()) group.stages.push_back(std::move(stage));
  }
  std::vector<Buffer> outputs;
  for (ValueId id : written) outputs.push_back(buffers.at(id));
  group.stages = FuseStages(std::move(group.stages), outputs);
  auto add_param = [&](ValueId id, ParamRole role) {
    group.params.push_back({buffers.at(id), role});
    group.param_values.push_back(id);
  };
  for (ValueId id : read) {
    if (!IsRead(group.stages, buffers.at(id))) continue;
    add_param(id, graph.IsConstant(id) ? ParamRole::kConstant : ParamRole::kInput);
  }
  for (ValueId id : written) add_param(id, ParamRole::kOutput);
  return group;
}

}  // namespace heddle::ir::loops
