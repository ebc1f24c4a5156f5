// Groups nodes by colour and by cycles of the order, and their results into nets. Results with the same readers become
// one net, so that a load is updated in few steps.
#include "ir/partition/placement/items.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace heddle::ir::partition {
namespace {

class UnionFind {
 public:
  explicit UnionFind(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int Find(int element) {
    while (parent_[element] != element) element = parent_[element] = parent_[parent_[element]];
    return element;
  }
  void Join(int a, int b) { parent_[Find(b)] = Find(a); }

 private:
  std::vector<int> parent_;
};

class Builder {
 public:
  Builder(const PlacementGraph& graph, Order order) : graph_(graph), order_(order), together_(graph.nodes.size()) {}

  ItemGraph Build() {
    std::vector<int> first_of_colour(graph_.colours, -1);
    for (int node = 0; node < Count(); ++node) {
      const int colour = graph_.nodes[node].colour;
      if (colour < 0) continue;
      if (first_of_colour[colour] < 0) first_of_colour[colour] = node;
      together_.Join(first_of_colour[colour], node);
    }
    if (order_ != Order::kNone) JoinCycles();
    AddItems();
    AddNets();
    if (order_ != Order::kNone) AddOrder();
    return std::move(result_);
  }

 private:
  int Count() const { return static_cast<int>(graph_.nodes.size()); }
  bool Ordered(int node) const { return order_ == Order::kAll || (order_ == Order::kForward && !graph_.nodes[node].backward); }

  void JoinCycles() {
    std::vector<std::vector<int>> successors(Count());
    for (int node = 0; node < Count(); ++node) {
      if (!Ordered(node)) continue;
      for (int next : graph_.nodes[node].successors) {
        if (Ordered(next)) successors[together_.Find(node)].push_back(together_.Find(next));
      }
    }
    const std::vector<int> component = StronglyConnected(successors);
    std::vector<int> first(Count(), -1);
    for (int node = 0; node < Count(); ++node) {
      int& other = first[component[node]];
      if (other < 0) other = node;
      together_.Join(other, node);
    }
  }

  void AddItems() {
    std::vector<int> item_of_root(Count(), -1);
    for (int node = 0; node < Count(); ++node) {
      int& item = item_of_root[together_.Find(node)];
      if (item < 0) {
        item = static_cast<int>(result_.items.size());
        result_.items.emplace_back();
      }
      const PlacementNode& from = graph_.nodes[node];
      Item& to = result_.items[item];
      to.nodes.push_back(node);
      to.accelerator_supported = to.accelerator_supported && from.accelerator_supported;
      to.accelerator_us += from.accelerator_us;
      to.cpu_us += from.cpu_us;
      to.size += from.size;
      to.ordered = to.ordered || Ordered(node);
      result_.item_of.push_back(item);
    }
  }

  void AddNets() {
    std::map<std::pair<int, std::vector<int>>, double> nets;
    for (int node = 0; node < Count(); ++node) {
      std::vector<int> readers;
      for (int next : graph_.nodes[node].successors) {
        if (result_.item_of[next] != result_.item_of[node]) readers.push_back(result_.item_of[next]);
      }
      std::sort(readers.begin(), readers.end());
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
      if (!readers.empty() && graph_.nodes[node].send_us > 0) {
        nets[{result_.item_of[node], std::move(readers)}] += graph_.nodes[node].send_us;
      }
    }
    for (auto& [ends, us] : nets) {
      const int net = static_cast<int>(result_.nets.size());
      result_.items[ends.first].nets.push_back(net);
      for (int reader : ends.second) result_.items[reader].nets.push_back(net);
      result_.nets.push_back({ends.first, ends.second, us});
    }
  }

  void AddOrder() {
    const size_t count = result_.items.size();
    result_.successors.resize(count);
    result_.predecessors.resize(count);
    for (int node = 0; node < Count(); ++node) {
      if (!Ordered(node)) continue;
      for (int next : graph_.nodes[node].successors) {
        const int from = result_.item_of[node], to = result_.item_of[next];
        if (!Ordered(next) || from == to) continue;
        result_.successors[from].push_back(to);
        result_.predecessors[to].push_back(from);
      }
    }
    for (auto* lists : {&result_.successors, &result_.predecessors}) {
      for (std::vector<int>& list : *lists) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
    }
  }

  const PlacementGraph& graph_;
  const Order order_;
  UnionFind together_;
  ItemGraph result_;
};

}  // namespace

// Tarjan's algorithm, with a stack of our own: graphs may be long chains.
std::vector<int> StronglyConnected(const std::vector<std::vector<int>>& successors) {
  const int count = static_cast<int>(successors.size());
  std::vector<int> index(count, -1), low(count), component(count, -1), stack;
  std::vector<std::pair<int, size_t>> calls;
  int next_index = 0, next_component = 0;
  for (int root = 0; root < count; ++root) {
    if (index[root] >= 0) continue;
    calls.emplace_back(root, 0);
    while (!calls.empty()) {
      auto& [node, edge] = calls.back();
      if (edge == 0) {
        index[node] = low[node] = next_index++;
        stack.push_back(node);
      }
      if (edge < successors[node].size()) {
        const int next = successors[node][edge++];
        if (index[next] < 0) {
          calls.emplace_back(next, 0);
        } else if (component[next] < 0) {
          low[node] = std::min(low[node], index[next]);
        }
        continue;
      }
      const int done = node;
      if (low[done] == index[done]) {
        while (component[done] < 0) {
          component[stack.back()] = next_component;
          stack.pop_back();
        }
        ++next_component;
      }
      calls.pop_back();
      if (!calls.empty()) low[calls.back().first] = std::min(low[calls.back().first], low[done]);
    }
  }
  return component;
}

ItemGraph BuildItems(const PlacementGraph& graph, Order order) { return Builder(graph, order).Build(); }

void DeviceLoad::Add(int item) {
  const Item& info = graph_->items[item];
  for (int net : info.nets) transfer_us_ -= Transfer(net);
  has_[item] = true;
  for (int net : info.nets) {
    if (graph_->nets[net].source != item) ++readers_[net];
    transfer_us_ += Transfer(net);
  }
  accelerator_us_ += info.accelerator_us;
  cpu_us_ += info.cpu_us;
  size_ += info.size;
  unsupported_ += !info.accelerator_supported;
  ++count_;
}

void DeviceLoad::Remove(int item) {
  const Item& info = graph_->items[item];
  for (int net : info.nets) transfer_us_ -= Transfer(net);
  has_[item] = false;
  for (int net : info.nets) {
    if (graph_->nets[net].source != item) --readers_[net];
    transfer_us_ += Transfer(net);
  }
  accelerator_us_ -= info.accelerator_us;
  cpu_us_ -= info.cpu_us;
  size_ -= info.size;
  unsupported_ -= !info.accelerator_supported;
  --count_;
}

}  // namespace heddle::ir::partition
