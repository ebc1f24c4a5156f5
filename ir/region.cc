// Regions: extraction keeps names, so that results of a region are found in the whole by name.

#include "ir/region.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/check.h"
#include "ir/device.h"

namespace heddle::ir {
namespace {

std::vector<NodeId> Ordered(const Graph& graph, const std::set<NodeId>& members) {
  auto order = graph.TopologicalOrder();
  HEDDLE_CHECK(order.ok(), std::string(order.status().message()));
  std::vector<NodeId> result;
  std::copy_if(order->begin(), order->end(), std::back_inserter(result), [&](NodeId id) { return members.contains(id); });
  return result;
}

bool NeededOutside(const Graph& graph, const Value& value, const std::set<NodeId>& members) {
  if (graph.IsOutput(value.id)) return true;
  return std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) { return !members.contains(use.node); });
}

}  // namespace

std::string_view ProvenanceName(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured: return "measured";
    case Provenance::kSimulated: return "simulated";
    case Provenance::kModelled: return "modelled";
    case Provenance::kAssumed: return "assumed";
  }
  return "assumed";
}

Graph ExtractRegion(const Graph& graph, const std::vector<NodeId>& nodes) {
  const std::set<NodeId> members(nodes.begin(), nodes.end());
  const std::vector<NodeId> order = Ordered(graph, members);
  Graph region(graph.name());
  std::map<ValueId, ValueId> mapped;
  // Inputs first, so that their names are never changed to make them unique.
  for (NodeId id : order) {
    for (ValueId input : graph.node(id).inputs) {
      if (input == kNoValue || mapped.contains(input) || members.contains(graph.ProducerOf(input))) continue;
      const Value& value = graph.value(input);
      mapped[input] = value.constant ? region.AddConstant(value.name, value.constant, value.type.quantisation)
                                     : region.AddInput(value.name, value.type);
    }
  }
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(input == kNoValue ? kNoValue : mapped.at(input));
    std::vector<std::string> names;
    for (ValueId output : node.outputs) names.push_back(graph.value(output).name);
    const NodeId copy = region.AddNode(node.op, node.name, std::move(inputs), std::move(names), node.attributes);
    region.node(copy).source_names = node.source_names;
    region.node(copy).fusion_group = node.fusion_group;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = region.node(copy).outputs[i];
      mapped[node.outputs[i]] = output;
      region.set_type(output, graph.type(node.outputs[i]));
      if (NeededOutside(graph, graph.value(node.outputs[i]), members)) region.MarkOutput(output);
    }
  }
  return region;
}

bool IsConvex(const Graph& graph, const std::vector<NodeId>& nodes) {
  const std::set<NodeId> members(nodes.begin(), nodes.end());
  // Walk forward from every value that leaves the set; meeting a member again is a path that returns.
  std::vector<NodeId> stack;
  std::set<NodeId> seen;
  auto push_users = [&](NodeId id, bool from_member) {
    for (ValueId output : graph.node(id).outputs) {
      for (const Use& use : graph.value(output).uses) {
        if (from_member && members.contains(use.node)) continue;
        if (seen.insert(use.node).second) stack.push_back(use.node);
      }
    }
  };
  for (NodeId id : members) push_users(id, true);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (members.contains(id)) return false;
    push_users(id, false);
  }
  return true;
}

}  // namespace heddle::ir
