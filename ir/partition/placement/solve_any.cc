// Throughput where a device may have any items.
#include <limits>
#include <numeric>

#include "ir/partition/placement/balance.h"
#include "ir/partition/placement/evaluate_placement.h"
#include "ir/partition/placement/merge_items.h"
#include "ir/partition/placement/pipeline_programme.h"
#include "ir/partition/placement/throughput.h"

namespace heddle::ir::partition {
namespace {

constexpr int64_t kSteps = 1'500'000;

}  // namespace

BoundedPlacement SolveAnyThroughput(const PlacementGraph& graph, const Deadline& deadline) {
  BoundedPlacement result = SolvePipeline(graph, deadline);
  const Fleet fleet{graph.accelerators, graph.cpus, graph.accelerator_capacity};
  const ItemGraph items = MergeFreeItems(BuildItems(graph, Order::kNone), 0);
  result.solver = "simulated annealing";
  result.lower_bound_us = EvenLoadUs(items, fleet);
  std::vector<int> movable(items.items.size());
  std::iota(movable.begin(), movable.end(), 0);
  std::vector<int> start(items.items.size(), -1);
  if (result.device_of) {
    for (size_t node = 0; node < graph.nodes.size(); ++node) start[items.item_of[node]] = (*result.device_of)[node];
  }
  for (unsigned seed = 1; seed <= 4 && !deadline.Passed(); ++seed) {
    const std::vector<int> plan = BalanceLoads(items, fleet, start, movable, result.lower_bound_us, kSteps, seed, deadline);
    Placement placement;
    for (int item : items.item_of) placement.push_back(plan[item]);
    if (!KeepsLimits(graph, placement)) continue;
    const double cost_us = MaxLoadUs(graph, placement);
    if (result.device_of && result.cost_us <= cost_us) continue;
    result.device_of = std::move(placement);
    result.cost_us = cost_us;
  }
  return result;
}

}  // namespace heddle::ir::partition
