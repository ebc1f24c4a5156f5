// Breadth-first enumeration: every ideal is reached by adding one item whose predecessors are all in it. The order of
// discovery is by size, so steps go to larger numbers.
#include "ir/partition/placement/ideals.h"

#include <absl/container/flat_hash_map.h>

#include <string>

namespace heddle::ir::partition {

std::optional<Ideals> AllIdeals(const ItemGraph& graph, int limit, const Deadline& deadline) {
  const int items = static_cast<int>(graph.items.size());
  std::vector<int> ordered;
  for (int item = 0; item < items; ++item) {
    if (graph.items[item].ordered) ordered.push_back(item);
  }
  auto contains = [](const std::string& set, int item) { return set[item / 8] >> (item % 8) & 1; };
  Ideals result;
  // One layer holds the ideals of one size with the numbers first …; only two layers are alive at once.
  std::vector<std::string> layer = {std::string(items / 8 + 1, '\0')};
  int first = 0;
  for (size_t size = 0; size < ordered.size(); ++size) {
    absl::flat_hash_map<std::string, int> known;
    std::vector<std::string> next_layer;
    const int next_first = first + static_cast<int>(layer.size());
    for (const std::string& ideal : layer) {
      if (deadline.Passed()) return std::nullopt;
      auto& steps = result.steps.emplace_back();
      for (int item : ordered) {
        if (contains(ideal, item)) continue;
        bool ready = true;
        for (int before : graph.predecessors[item]) ready = ready && contains(ideal, before);
        if (!ready) continue;
        std::string larger = ideal;
        larger[item / 8] |= static_cast<char>(1 << (item % 8));
        const auto [entry, inserted] = known.try_emplace(std::move(larger), next_first + static_cast<int>(next_layer.size()));
        if (inserted) next_layer.push_back(entry->first);
        steps.emplace_back(item, entry->second);
      }
      if (next_first + static_cast<int>(next_layer.size()) > limit) return std::nullopt;
    }
    layer = std::move(next_layer);
    first = next_first;
  }
  result.steps.emplace_back();
  return result;
}

std::vector<int> DepthFirstOrder(const ItemGraph& graph) {
  std::vector<int> waiting_for, stack, order;
  for (size_t item = 0; item < graph.items.size(); ++item) {
    waiting_for.push_back(static_cast<int>(graph.predecessors[item].size()));
    if (graph.items[item].ordered && waiting_for.back() == 0) stack.push_back(static_cast<int>(item));
  }
  while (!stack.empty()) {
    const int item = stack.back();
    stack.pop_back();
    order.push_back(item);
    for (int next : graph.successors[item]) {
      if (--waiting_for[next] == 0) stack.push_back(next);
    }
  }
  return order;
}

Ideals IdealsOfOrder(const std::vector<int>& order) {
  Ideals result;
  for (int item : order) {
    const int next = static_cast<int>(result.steps.size()) + 1;
    result.steps.push_back({{item, next}});
  }
  result.steps.emplace_back();
  return result;
}

}  // namespace heddle::ir::partition
