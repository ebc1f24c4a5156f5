// Throughput where a device may have any items: a plan by simulated annealing from the contiguous one and from nothing,
// a bound by prices on the items (price_bound.h), tried at the plan's load first and then further and further below.
#include <algorithm>
#include <limits>
#include <numeric>

#include "ir/partition/placement/balance.h"
#include "ir/partition/placement/evaluate_placement.h"
#include "ir/partition/placement/merge_items.h"
#include "ir/partition/placement/pipeline_programme.h"
#include "ir/partition/placement/price_bound.h"
#include "ir/partition/placement/throughput.h"

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kSteps = 1'200'000;
constexpr int64_t kStepsPerItem = 4'000;

class AnySolver {
 public:
  AnySolver(const PlacementGraph& graph, const Deadline& deadline)
      : graph_(graph),
        deadline_(deadline),
        fleet_{graph.accelerators, graph.cpus, graph.accelerator_capacity},
        items_(MergeFreeItems(BuildItems(graph, Order::kNone), 0)) {}

  BoundedPlacement Run() {
    result_ = SolvePipeline(graph_, deadline_.AtMost(deadline_.SecondsLeft() / 3));
    result_.solver = "simulated annealing, prices";
    result_.lower_bound_us = EvenLoadUs(items_, fleet_);
    for (unsigned seed = 1; seed <= 6 && !deadline_.Passed() && !Closed(); ++seed) Improve(seed);
    if (result_.device_of && !Closed()) RaiseBound();
    return std::move(result_);
  }

 private:
  bool Closed() const { return result_.device_of && result_.cost_us <= result_.lower_bound_us * (1 + 1e-7); }

  void Improve(unsigned seed) {
    std::vector<int> start(items_.items.size(), -1), movable(items_.items.size());
    std::iota(movable.begin(), movable.end(), 0);
    if (result_.device_of && seed % 3 != 0) {
      for (size_t node = 0; node < graph_.nodes.size(); ++node) start[items_.item_of[node]] = (*result_.device_of)[node];
    }
    const Deadline deadline = deadline_.AtMost(deadline_.SecondsLeft() / 8);
    const std::vector<int> plan = BalanceLoads(items_, fleet_, start, movable, result_.lower_bound_us,
                                               std::min(kSteps, kStepsPerItem * static_cast<int64_t>(movable.size())), seed, deadline);
    Placement placement;
    for (int item : items_.item_of) placement.push_back(plan[item]);
    if (!KeepsLimits(graph_, placement)) return;
    const double cost_us = MaxLoadUs(graph_, placement);
    if (result_.device_of && result_.cost_us <= cost_us) return;
    result_.device_of = std::move(placement);
    result_.cost_us = cost_us;
  }

  void RaiseBound() {
    ItemGraph graph = MergeFreeItems(BuildItems(graph_, Order::kNone), kNever);
    if (graph_.cpus <= 1) graph = JoinHeavyNets(graph, result_.cost_us);
    result_.lower_bound_us = std::max(result_.lower_bound_us, std::min(result_.cost_us, EvenLoadUs(graph, fleet_)));
    PriceBound bound(graph, fleet_, deadline_);
    if (!bound.usable()) return;
    double excluded = result_.lower_bound_us, possible = result_.cost_us;
    for (double below : {1e-8, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6}) {
      const double load_us = result_.cost_us * (1 - below);
      if (load_us <= excluded || deadline_.Passed()) break;
      if (bound.Excludes(load_us, deadline_.AtMost(deadline_.SecondsLeft() / 3))) {
        excluded = load_us;
        break;
      }
      possible = load_us;
    }
    for (int round = 0; round < 5 && possible < result_.cost_us && possible - excluded > 0.001 * possible; ++round) {
      const double middle = (possible + excluded) / 2;
      if (deadline_.Passed()) break;
      (bound.Excludes(middle, deadline_.AtMost(deadline_.SecondsLeft() / 3)) ? excluded : possible) = middle;
    }
    result_.lower_bound_us = std::max(result_.lower_bound_us, excluded);
  }

  const PlacementGraph& graph_;
  const Deadline deadline_;
  const Fleet fleet_;
  const ItemGraph items_;
  BoundedPlacement result_;
};

}  // namespace

BoundedPlacement SolveAnyThroughput(const PlacementGraph& graph, const Deadline& deadline) {
  return AnySolver(graph, deadline).Run();
}

}  // namespace heddle::ir::partition
