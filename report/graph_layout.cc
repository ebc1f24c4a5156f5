// Places nodes in layers. Positions within a layer start from the order of the input and are improved by a fixed number
// of sweeps, so that the same graph always gives the same picture.
#include "report/graph_layout.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace heddle::report {
namespace {

constexpr int kOrderSweeps = 8;
constexpr int kPositionSweeps = 12;
constexpr int64_t kMaxBends = 100'000;  // beyond, long edges are drawn straight: nobody reads such a picture anyway

// A node or a bend of a long edge.
struct Item {
  int layer = 0;
  double width = 0;
  double center = 0;
  std::vector<int> above;
  std::vector<int> below;
};

class Drawing {
 public:
  Drawing(int node_count, const std::vector<std::pair<int, int>>& edges, const LayoutOptions& options)
      : options_(options), node_count_(node_count), edges_(edges) {}

  Layout Run() {
    AssignLayers();
    AddBends();
    OrderLayers();
    AssignPositions();
    return Extract();
  }

 private:
  void AssignLayers() {
    items_.resize(node_count_);
    for (Item& item : items_) item.width = options_.node_width;
    // Longest path by relaxation; the number of rounds is bounded so that a cycle cannot hang the drawing.
    bool changed = true;
    for (int round = 0; changed && round < node_count_; ++round) {
      changed = false;
      for (const auto& [from, to] : edges_) {
        if (items_[to].layer > items_[from].layer || items_[from].layer + 1 >= node_count_) continue;
        items_[to].layer = items_[from].layer + 1;
        changed = true;
      }
    }
  }

  void Link(int upper, int lower) {
    items_[upper].below.push_back(lower);
    items_[lower].above.push_back(upper);
  }

  void AddBends() {
    int64_t bends = 0;
    for (const auto& [from, to] : edges_) bends += std::max(0, items_[to].layer - items_[from].layer - 1);
    const bool lead = bends <= kMaxBends;
    for (const auto& [from, to] : edges_) {
      std::vector<int> path = {from};
      for (int layer = items_[from].layer + 1; lead && layer < items_[to].layer; ++layer) {
        path.push_back(static_cast<int>(items_.size()));
        items_.push_back({layer, options_.bend_width});
      }
      path.push_back(to);
      for (size_t i = 1; i < path.size(); ++i) {
        if (items_[path[i - 1]].layer < items_[path[i]].layer) Link(path[i - 1], path[i]);
      }
      paths_.push_back(std::move(path));
    }
    int last = 0;
    for (const Item& item : items_) last = std::max(last, item.layer);
    layers_.resize(node_count_ == 0 ? 0 : last + 1);
    for (size_t item = 0; item < items_.size(); ++item) layers_[items_[item].layer].push_back(static_cast<int>(item));
  }

  void OrderLayers() {
    for (std::vector<int>& layer : layers_) {
      for (size_t at = 0; at < layer.size(); ++at) items_[layer[at]].center = static_cast<double>(at);
    }
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t step = 0; step < layers_.size(); ++step) {
        std::vector<int>& layer = layers_[down ? step : layers_.size() - 1 - step];
        std::vector<std::pair<double, int>> order;
        for (int item : layer) order.emplace_back(Mean(down ? items_[item].above : items_[item].below, item), item);
        std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (size_t at = 0; at < layer.size(); ++at) {
          layer[at] = order[at].second;
          items_[layer[at]].center = static_cast<double>(at) - (layer.size() - 1) / 2.0;
        }
      }
    }
  }

  double Mean(const std::vector<int>& neighbours, int self) const {
    if (neighbours.empty()) return items_[self].center;
    double sum = 0;
    for (int other : neighbours) sum += items_[other].center;
    return sum / static_cast<double>(neighbours.size());
  }

  // Draws each item towards the mean of its neighbours, as far as the order leaves room.
  void AssignPositions() {
    for (std::vector<int>& layer : layers_) {
      double x = 0;
      for (int item : layer) {
        items_[item].center = x + items_[item].width / 2;
        x += items_[item].width + options_.gap_x;
      }
      for (int item : layer) items_[item].center -= x / 2;
    }
    for (int sweep = 0; sweep < kPositionSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t step = 0; step < layers_.size(); ++step) {
        Settle(layers_[down ? step : layers_.size() - 1 - step], down);
      }
    }
  }

  void Settle(const std::vector<int>& layer, bool down) {
    const size_t count = layer.size();
    std::vector<double> wish(count), low(count), high(count);
    for (size_t at = 0; at < count; ++at) {
      wish[at] = Mean(down ? items_[layer[at]].above : items_[layer[at]].below, layer[at]);
    }
    auto room = [&](size_t left) {
      return (items_[layer[left]].width + items_[layer[left + 1]].width) / 2 + options_.gap_x;
    };
    // Pushed apart from the left and from the right; the middle of both keeps the distances and the balance.
    for (size_t at = 0; at < count; ++at) low[at] = at == 0 ? wish[0] : std::max(wish[at], low[at - 1] + room(at - 1));
    for (size_t at = count; at-- > 0;) {
      high[at] = at + 1 == count ? wish[at] : std::min(wish[at], high[at + 1] - room(at));
    }
    for (size_t at = 0; at < count; ++at) items_[layer[at]].center = (low[at] + high[at]) / 2;
  }

  Layout Extract() const {
    Layout layout;
    double left = 0, right = 0;
    for (const Item& item : items_) {
      left = std::min(left, item.center - item.width / 2);
      right = std::max(right, item.center + item.width / 2);
    }
    const double pitch = options_.node_height + options_.gap_y;
    layout.width = right - left;
    layout.height = layers_.empty() ? 0 : layers_.size() * pitch - options_.gap_y;
    for (int node = 0; node < node_count_; ++node) {
      const Item& item = items_[node];
      layout.nodes.push_back({item.center - item.width / 2 - left, item.layer * pitch});
    }
    for (const std::vector<int>& path : paths_) {
      std::vector<Point> points;
      for (size_t at = 0; at < path.size(); ++at) {
        const Item& item = items_[path[at]];
        const double x = item.center - left;
        if (at > 0) points.push_back({x, item.layer * pitch});
        if (at + 1 < path.size()) points.push_back({x, item.layer * pitch + options_.node_height});
      }
      layout.edges.push_back(std::move(points));
    }
    return layout;
  }

  const LayoutOptions& options_;
  const int node_count_;
  const std::vector<std::pair<int, int>>& edges_;
  std::vector<Item> items_;
  std::vector<std::vector<int>> layers_;
  std::vector<std::vector<int>> paths_;  // items of each edge
};

}  // namespace

Layout LayOut(int node_count, const std::vector<std::pair<int, int>>& edges, const LayoutOptions& options) {
  return Drawing(node_count, edges, options).Run();
}

}  // namespace heddle::report
