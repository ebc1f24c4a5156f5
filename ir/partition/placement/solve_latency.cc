// Latency of one sample: the programme over labels with few labels at each ideal gives a plan quickly; with more, a
// better one and a better bound; when none had to be given up, the plan is proven.
#include <algorithm>
#include <limits>

#include "ir/partition/placement/evaluate_placement.h"
#include "ir/partition/placement/latency_programme.h"
#include "ir/partition/placement/merge_items.h"
#include "ir/partition/placement/throughput.h"

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMaxIdeals = 400'000;

class LatencySolver {
 public:
  LatencySolver(const PlacementGraph& graph, const Deadline& deadline)
      : graph_(graph), deadline_(deadline), items_(BuildItems(graph, Order::kAll)) {}

  BoundedPlacement Run() {
    result_.solver = "dynamic programme over ideals";
    result_.lower_bound_us = PathBound();
    TryAllOnCpu();
    const ItemGraph smallest = MergeFreeItems(items_, kNever);
    const Ideals one_order = IdealsOfOrder(DepthFirstOrder(smallest));
    for (int width : {8, 64}) Take(smallest, BestLatency(graph_, smallest, one_order, Upper(), width, deadline_));
    for (double share : {0.0, 0.001, 0.01, 0.1, 1.0}) {
      const ItemGraph merged = MergeFreeItems(items_, share * graph_.accelerator_capacity);
      const std::optional<Ideals> ideals = AllIdeals(merged, kMaxIdeals, deadline_.AtMost(deadline_.SecondsLeft() / 8));
      if (!ideals) continue;
      Widen(merged, *ideals);
      return std::move(result_);
    }
    result_.solver = "dynamic programme along one order";
    return std::move(result_);
  }

 private:
  double Upper() const { return result_.device_of ? result_.cost_us : kNever; }

  // More and more labels, until none is given up. Small items that were merged for free count first nothing, which is a
  // bound; where the plan that this gives does not fit, a second run looks for one that does.
  void Widen(const ItemGraph& merged, const Ideals& ideals) {
    const ItemGraph relaxed = WithoutFreeSizes(merged);
    for (int width = 2; !deadline_.Passed() && width < 1'000'000; width *= 4) {
      const LatencyAnswer answer = BestLatency(graph_, relaxed, ideals, Upper(), width, deadline_);
      if (complete_) result_.lower_bound_us = std::max(result_.lower_bound_us, answer.lower_bound_us);
      const bool fits = !answer.found || Take(relaxed, answer);
      if (!fits) Take(merged, BestLatency(graph_, merged, ideals, Upper(), width, deadline_));
      if (result_.lower_bound_us >= Upper() * (1 - 1e-12)) return;
      if (answer.found && answer.lower_bound_us >= answer.latency_us * (1 - 1e-12)) return;
    }
  }

  double PathBound() const {
    if (complete_) return ComputeTails(graph_, items_).all_us;
    PlacementGraph loose = graph_;
    for (PlacementNode& node : loose.nodes) {
      node.colour = -1;
      node.size = 0;
    }
    return ComputeTails(loose, BuildItems(loose, Order::kAll)).all_us;
  }

  void TryAllOnCpu() {
    if (graph_.cpus == 0) return;
    Placement plan(graph_.nodes.size(), graph_.accelerators);
    result_.cost_us = *LatencyUs(graph_, plan);
    result_.device_of = std::move(plan);
  }

  // Keeps a plan if it is the best; false where it breaks a limit.
  bool Take(const ItemGraph& items, const LatencyAnswer& answer) {
    if (!answer.found) return true;
    Placement plan;
    for (int item : items.item_of) plan.push_back(answer.device_of[item]);
    const std::optional<double> latency_us = LatencyUs(graph_, plan);
    if (!latency_us || !KeepsLimits(graph_, plan)) return false;
    if (*latency_us >= Upper()) return true;
    result_.device_of = std::move(plan);
    result_.cost_us = *latency_us;
    return true;
  }

  const PlacementGraph& graph_;
  const Deadline deadline_;
  const ItemGraph items_;
  // False where nodes of one colour wait for others in between. Joining them leaves out plans: those that run the colour
  // on the CPU and the others elsewhere.
  const bool complete_ = items_.items.size() == BuildItems(graph_, Order::kNone).items.size();
  BoundedPlacement result_;
};

}  // namespace

BoundedPlacement SolvePlacementLatency(const PlacementGraph& graph, const Deadline& deadline) {
  return LatencySolver(graph, deadline).Run();
}

}  // namespace heddle::ir::partition
