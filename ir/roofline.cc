// The roofline model (Williams, Waterman, Patterson, CACM 2009) applied to each fused group of nodes.

#include "ir/roofline.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/check.h"

namespace heddle::ir {
namespace {

// Bytes that cross the group's border: constants and outside values read, outputs needed elsewhere written.
int64_t BorderBytes(const Graph& graph, const std::vector<NodeId>& group) {
  const std::set<NodeId> members(group.begin(), group.end());
  std::set<ValueId> seen;
  int64_t bytes = 0;
  for (NodeId id : group) {
    for (ValueId input : graph.node(id).inputs) {
      if (input != kNoValue && !members.contains(graph.ProducerOf(input)) && seen.insert(input).second) {
        bytes += graph.type(input).bytes();
      }
    }
    for (ValueId output : graph.node(id).outputs) {
      const auto& uses = graph.value(output).uses;
      const bool leaves = graph.IsOutput(output) || std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return !members.contains(use.node);
      });
      if (leaves) bytes += graph.type(output).bytes();
    }
  }
  return bytes;
}

bool IsFloatNode(const Graph& graph, const Node& node) {
  return !node.inputs.empty() && node.inputs[0] != kNoValue && IsFloat(graph.type(node.inputs[0]).element);
}

double ArithmeticUs(const Graph& graph, const std::vector<NodeId>& group, const Roofline& roofline) {
  double us = 0;
  for (NodeId id : group) {
    const Node& node = graph.node(id);
    const Op* op = FindOp(node.op);
    HEDDLE_CHECK(op, "unknown op " + node.op);
    const OpWork work = op->Work(NodeContext(graph, node));
    const double mac_rate = IsFloatNode(graph, node) ? roofline.float_gmacs_per_s : roofline.int8_gmacs_per_s;
    us += static_cast<double>(work.macs) / (mac_rate * 1e3) + static_cast<double>(work.other_ops) / (roofline.other_gops_per_s * 1e3);
  }
  return us;
}

}  // namespace

Cost RooflineCost(const Graph& graph, const std::vector<NodeId>& nodes, const Roofline& roofline) {
  std::map<int, std::vector<NodeId>> groups;
  int next_single = -2;  // fusion_group -1 means alone: each such node gets a key of its own
  for (NodeId id : nodes) {
    const int group = graph.node(id).fusion_group;
    groups[group >= 0 ? group : next_single--].push_back(id);
  }
  Cost cost;
  cost.provenance = Provenance::kModelled;
  for (const auto& [key, group] : groups) {
    const int64_t bytes = BorderBytes(graph, group);
    cost.bytes_moved += bytes;
    cost.time_us += roofline.node_overhead_us + std::max(ArithmeticUs(graph, group, roofline),
                                                         static_cast<double>(bytes) / (roofline.memory_gb_per_s * 1e3));
  }
  cost.source = fmt::format("roofline: {:.4g} GMAC/s float, {:.4g} int8, {:.4g} GB/s, {:.4g} us a group",
                            roofline.float_gmacs_per_s, roofline.int8_gmacs_per_s, roofline.memory_gb_per_s,
                            roofline.node_overhead_us);
  return cost;
}

OpWork TotalWork(const Graph& graph, const std::vector<NodeId>& nodes) {
  OpWork total;
  for (NodeId id : nodes) {
    const Op* op = FindOp(graph.node(id).op);
    HEDDLE_CHECK(op, "unknown op " + graph.node(id).op);
    const OpWork work = op->Work(NodeContext(graph, graph.node(id)));
    total.macs += work.macs;
    total.other_ops += work.other_ops;
    total.weight_bytes += work.weight_bytes;
    total.input_bytes += work.input_bytes;
    total.output_bytes += work.output_bytes;
  }
  return total;
}

}  // namespace heddle::ir
