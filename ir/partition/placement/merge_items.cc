// An item x without work of its own may follow a neighbour y when no device's load can grow by that, whatever the plan:
//
// 1. x exchanges results with y alone: on y's device it costs nothing.
// 2. x is the only reader of y's net and sends no more than it receives: y's device then sends the smaller result, and
//    whoever reads it pays as before.
// 3. the mirror: x has one net with one reader y and receives no more than it sends.
//
// The pipeline order must allow it: x may move to y's stage when everything before x is before y (or y itself) and
// everything after x is after y. Where y is a direct neighbour in the order, one of the two holds by itself.
//
// The same holds for latency: with y, x is never ready later, and the blocks that read it never pay or wait for more.
#include "ir/partition/placement/merge_items.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace heddle::ir::partition {
namespace {

constexpr int kMaxSearch = 2000;  // steps of one search for a path

class Merger {
 public:
  Merger(const ItemGraph& graph, double max_size)
      : graph_(graph), max_size_(max_size), target_(graph.items.size()), touched_(graph.items.size()) {}

  // False where nothing can be merged.
  bool Find() {
    std::iota(target_.begin(), target_.end(), 0);
    bool any = false;
    for (int item = 0; item < static_cast<int>(graph_.items.size()); ++item) {
      const int other = touched_[item] ? -1 : Neighbour(item);
      if (other < 0) continue;
      target_[item] = other;
      touched_[item] = touched_[other] = true;
      any = true;
    }
    return any;
  }
  const std::vector<int>& target() const { return target_; }

 private:
  // The item to merge with, or -1.
  int Neighbour(int x) const {
    const Item& item = graph_.items[x];
    if (item.accelerator_us != 0 || item.cpu_us != 0 || !item.accelerator_supported) return -1;
    if (item.size > max_size_) return -1;
    double received_us = 0, sent_us = 0;
    std::vector<int> sources, readers;
    const Net* first_in = nullptr;
    const Net* first_out = nullptr;
    int outs = 0;
    for (int index : item.nets) {
      const Net& net = graph_.nets[index];
      if (touched_[net.source]) return -1;
      if (net.source == x) {
        sent_us += net.us;
        readers.insert(readers.end(), net.readers.begin(), net.readers.end());
        first_out = &net;
        ++outs;
        for (int reader : net.readers) {
          if (touched_[reader]) return -1;
        }
      } else {
        received_us += net.us;
        sources.push_back(net.source);
        first_in = &net;
      }
    }
    std::vector<int> others = sources;
    others.insert(others.end(), readers.begin(), readers.end());
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    if (others.empty()) return FreeNeighbour(x);
    if (others.size() == 1 && MayFollow(x, others[0])) return others[0];
    if (sources.size() == 1 && first_in->readers.size() == 1 && sent_us <= received_us && MayFollow(x, sources[0])) {
      return sources[0];
    }
    if (outs == 1 && first_out->readers.size() == 1 && received_us <= sent_us && MayFollow(x, readers[0])) return readers[0];
    return -1;
  }

  // x exchanges nothing that costs: it may follow any neighbour of the order.
  int FreeNeighbour(int x) const {
    if (!graph_.items[x].ordered) return -1;
    for (int y : graph_.successors[x]) {
      if (!touched_[y] && MayFollow(x, y)) return y;
    }
    for (int y : graph_.predecessors[x]) {
      if (!touched_[y] && MayFollow(x, y)) return y;
    }
    return -1;
  }

  bool MayFollow(int x, int y) const {
    if (!graph_.items[x].ordered) return true;
    if (!graph_.items[y].ordered) return false;
    // Where y is directly before x, what is after x is after y without more; and the mirror.
    if (!Contains(graph_.successors[x], y)) {
      for (int p : graph_.predecessors[x]) {
        if (p != y && !IsBefore(p, y)) return false;
      }
    }
    if (!Contains(graph_.predecessors[x], y)) {
      for (int s : graph_.successors[x]) {
        if (s != y && !IsBefore(y, s)) return false;
      }
    }
    return true;
  }

  static bool Contains(const std::vector<int>& list, int item) { return std::binary_search(list.begin(), list.end(), item); }

  // Whether a path of the order leads from a to b; false too where the search takes too long.
  bool IsBefore(int a, int b) const {
    std::vector<int> stack = {a};
    std::vector<int> seen = {a};
    while (!stack.empty() && seen.size() < kMaxSearch) {
      const int item = stack.back();
      stack.pop_back();
      if (Contains(graph_.successors[item], b)) return true;
      for (int next : graph_.successors[item]) {
        if (std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
        seen.push_back(next);
        stack.push_back(next);
      }
    }
    return false;
  }

  const ItemGraph& graph_;
  const double max_size_;
  std::vector<int> target_;
  std::vector<char> touched_;
};

}  // namespace

ItemGraph JoinItems(const ItemGraph& graph, const std::vector<int>& target, std::vector<int>* new_of_out) {
  ItemGraph result;
  std::vector<int> number(graph.items.size(), -1), new_of(graph.items.size());
  for (size_t item = 0; item < graph.items.size(); ++item) {
    int& n = number[target[item]];
    if (n < 0) {
      n = static_cast<int>(result.items.size());
      result.items.emplace_back();
    }
    new_of[item] = n;
    const Item& from = graph.items[item];
    Item& to = result.items[n];
    to.nodes.insert(to.nodes.end(), from.nodes.begin(), from.nodes.end());
    to.accelerator_supported = to.accelerator_supported && from.accelerator_supported;
    to.accelerator_us += from.accelerator_us;
    to.cpu_us += from.cpu_us;
    to.size += from.size;
    to.free_size += from.free_size;
    to.ordered = to.ordered || from.ordered;
  }
  std::map<std::pair<int, std::vector<int>>, double> nets;
  for (const Net& net : graph.nets) {
    std::vector<int> readers;
    for (int reader : net.readers) {
      if (new_of[reader] != new_of[net.source]) readers.push_back(new_of[reader]);
    }
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    if (!readers.empty()) nets[{new_of[net.source], std::move(readers)}] += net.us;
  }
  for (auto& [ends, us] : nets) {
    const int net = static_cast<int>(result.nets.size());
    result.items[ends.first].nets.push_back(net);
    for (int reader : ends.second) result.items[reader].nets.push_back(net);
    result.nets.push_back({ends.first, ends.second, us});
  }
  for (auto [from, to] : {std::pair{&graph.successors, &result.successors}, {&graph.predecessors, &result.predecessors}}) {
    if (from->empty()) continue;
    to->resize(result.items.size());
    for (size_t item = 0; item < graph.items.size(); ++item) {
      for (int other : (*from)[item]) {
        if (new_of[other] != new_of[item]) (*to)[new_of[item]].push_back(new_of[other]);
      }
    }
    for (std::vector<int>& list : *to) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }
  for (int item : graph.item_of) result.item_of.push_back(new_of[item]);
  if (new_of_out) *new_of_out = std::move(new_of);
  return result;
}

ItemGraph MergeFreeItems(const ItemGraph& graph, double max_size) {
  ItemGraph result = graph;
  while (true) {
    Merger merger(result, max_size);
    if (!merger.Find()) return result;
    for (size_t item = 0; item < result.items.size(); ++item) {
      if (merger.target()[item] != static_cast<int>(item)) result.items[item].free_size = result.items[item].size;
    }
    result = JoinItems(result, merger.target());
  }
}

ItemGraph WithoutFreeSizes(ItemGraph graph) {
  for (Item& item : graph.items) item.size = std::max(0.0, item.size - item.free_size);
  return graph;
}

ItemGraph JoinCycles(const ItemGraph& graph) {
  if (graph.successors.empty()) return graph;
  return JoinItems(graph, StronglyConnected(graph.successors));
}

ItemGraph JoinHeavyNets(const ItemGraph& graph, double limit_us) {
  ItemGraph result = graph;
  while (true) {
    // Merged nets add up, so that another round may find more.
    std::vector<std::vector<int>> together(result.items.size());
    bool any = false;
    for (const Net& net : result.nets) {
      if (net.us < limit_us) continue;
      any = true;
      for (int reader : net.readers) {
        together[net.source].push_back(reader);
        together[reader].push_back(net.source);
      }
    }
    if (!any) return result;
    result = JoinCycles(JoinItems(result, StronglyConnected(together)));
  }
}

}  // namespace heddle::ir::partition
