// eliminate-common-subexpressions: equal constants become one value, then nodes with one op, equal attributes and the same
// inputs become one node. Producers come first, so that chains collapse in one walk.

#include <functional>
#include <map>
#include <set>

#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

bool EqualAttributes(const Attributes& a, const Attributes& b) {
  if (a.size() != b.size()) return false;
  for (auto ia = a.begin(), ib = b.begin(); ia != a.end(); ++ia, ++ib) {
    if (ia->first != ib->first) return false;
    const auto* ta = std::get_if<std::shared_ptr<const Tensor>>(&ia->second);
    const auto* tb = std::get_if<std::shared_ptr<const Tensor>>(&ib->second);
    if (ta && tb && *ta && *tb) {
      if (!(**ta == **tb)) return false;
    } else if (ia->second != ib->second) {
      return false;
    }
  }
  return true;
}

// Two runs of such a node need not give one result.
bool IsRandom(const Node& node) {
  return node.op.starts_with("Random") || node.op == "Bernoulli" || node.op == "Multinomial" || node.op == "Dropout";
}

void MergeConstants(Graph& graph) {
  std::multimap<size_t, ValueId> seen;
  for (ValueId id : graph.ValueIds()) {
    const Tensor* tensor = graph.ConstantOrNull(id);
    if (!tensor || graph.IsOutput(id)) continue;
    const std::string_view bytes(reinterpret_cast<const char*>(tensor->data()), static_cast<size_t>(tensor->bytes()));
    const size_t hash = std::hash<std::string_view>()(bytes);
    bool merged = false;
    for (auto [it, end] = seen.equal_range(hash); it != end && !merged; ++it) {
      if (!(*graph.ConstantOrNull(it->second) == *tensor) || graph.type(it->second) != graph.type(id)) continue;
      graph.ReplaceAllUses(id, it->second);
      graph.RemoveValue(id);
      merged = true;
    }
    if (!merged) seen.emplace(hash, id);
  }
}

bool MergeInto(Graph& graph, NodeId kept, NodeId dropped) {
  const std::vector<ValueId> old = graph.node(dropped).outputs, now = graph.node(kept).outputs;
  if (old.size() != now.size()) return false;
  for (size_t i = 0; i < old.size(); ++i) {
    // Both names of two equal graph outputs must survive.
    if (graph.IsOutput(old[i]) || graph.type(old[i]) != graph.type(now[i])) return false;
  }
  for (size_t i = 0; i < old.size(); ++i) graph.ReplaceAllUses(old[i], now[i]);
  MergeSources(graph, kept, {kept, dropped});
  RemoveIfDead(graph, dropped);
  return true;
}

absl::Status Run(Graph& graph, const PassOptionValues&) {
  MergeConstants(graph);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  std::map<std::pair<std::string, std::vector<ValueId>>, std::vector<NodeId>> seen;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (IsRandom(node)) continue;
    std::vector<NodeId>& candidates = seen[{node.op, node.inputs}];
    bool merged = false;
    for (NodeId candidate : candidates) {
      if (!EqualAttributes(graph.node(candidate).attributes, node.attributes)) continue;
      merged = MergeInto(graph, candidate, id);
      if (merged) break;
    }
    if (!merged) candidates.push_back(id);
  }
  return absl::OkStatus();
}

}  // namespace

Pass EliminateCommonSubexpressionsPass() {
  return {"eliminate-common-subexpressions", "merges equal constants and equal nodes", {}, Run};
}

}  // namespace heddle::ir
