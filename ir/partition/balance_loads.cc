// Give each device and each link a price for its time, the prices summing to 1. The largest load of any plan is at least
// the sum of price times load, and the plan of the least such sum is a serial problem, which the dynamic programme solves
// exactly: its value is a bound. The prices with the largest bound are found by cutting planes (J. E. Kelley, "The
// Cutting-Plane Method for Solving Convex Programs", 1960): each plan found says how much each price is worth at most.
// The plans on the way spread the loads and are where the local search begins.
#include "ir/partition/balance_loads.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "ir/partition/cbc_model.h"
#include "ir/partition/dynamic_programme.h"
#include "ir/partition/evaluate.h"
#include "ir/partition/tasks.h"

namespace heddle::ir::partition {
namespace {

constexpr int kRounds = 200;
constexpr double kClose = 1e-6;  // relative

using Loads = std::vector<double>;  // by resource (tasks.h)

Loads LoadsOf(const Problem& problem, const Evaluation& evaluation) {
  Loads loads(ResourceCount(problem));
  for (const Region& region : evaluation.regions) loads[region.device] += region.node_us + region.launch_us;
  for (const Transfer& transfer : evaluation.transfers) loads[ResourceOfLink(problem, transfer.from, transfer.to)] += transfer.us;
  return loads;
}

class Pricing {
 public:
  Pricing(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters, int max_states)
      : problem_(problem), adjacency_(adjacency), clusters_(clusters), max_states_(max_states) {}

  std::optional<Bounded> Find(const Heuristic& start, double time_limit_seconds) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    Bounded result;
    result.best = start;
    plans_.push_back(LoadsOf(problem_, start.evaluation));
    double most = 0;  // what the prices are worth at most, as far as the plans so far say
    for (int round = 0; round < kRounds; ++round) {
      if (std::chrono::duration<double>(Clock::now() - begin).count() > time_limit_seconds) break;
      const std::optional<Loads> prices = BestPrices(most);
      if (!prices || result.lower_bound >= most * (1 - kClose)) break;
      if (result.lower_bound >= result.best->evaluation.cost * (1 - kClose)) break;
      if (!PriceOut(*prices, result)) {
        if (round == 0) return std::nullopt;
        break;
      }
    }
    return result;
  }

 private:
  // Prices p >= 0 with sum 1 of the largest t with t <= p x loads for all plans so far.
  std::optional<Loads> BestPrices(double& most) const {
    CbcModel model;
    const int resources = ResourceCount(problem_);
    std::vector<CbcModel::Term> sum;
    for (int resource = 0; resource < resources; ++resource) sum.emplace_back(model.AddContinuous(0, 1), 1);
    double largest = 1;
    for (const Loads& loads : plans_) largest = std::max(largest, *std::max_element(loads.begin(), loads.end()));
    const int worth = model.AddContinuous(-1, largest);
    model.AddRow(sum, 1, 1);
    for (const Loads& loads : plans_) {
      std::vector<CbcModel::Term> row = {{worth, -1}};
      for (int resource = 0; resource < resources; ++resource) row.emplace_back(resource, loads[resource]);
      model.AddRow(std::move(row), 0, std::numeric_limits<double>::max());
    }
    const CbcModel::Solution solution = model.Minimise({}, 10);
    if (solution.values.empty()) return std::nullopt;
    most = solution.values[worth];
    Loads prices(solution.values.begin(), solution.values.begin() + resources);
    double total = 0;
    for (double& price : prices) total += price = std::max(0.0, price);
    for (double& price : prices) price /= total;
    return prices;
  }

  Problem Priced(const Loads& prices) const {
    Problem priced = problem_;
    priced.objective = Objective::kSerial;
    for (int device = 0; device < static_cast<int>(priced.devices.size()); ++device) {
      priced.devices[device].launch_us *= prices[device];
      for (Node& node : priced.nodes) {
        if (node.on[device].cost_us) *node.on[device].cost_us *= prices[device];
      }
      for (int to = 0; to < static_cast<int>(priced.devices.size()); ++to) {
        const double price = prices[ResourceOfLink(problem_, device, to)];
        Link& link = priced.links[device][to];
        link.latency_us *= price;
        link.bandwidth_bytes_per_us = price > 0 ? link.bandwidth_bytes_per_us / price : 0;
      }
    }
    return priced;
  }

  // The plan of least priced load: a bound, a cut, and perhaps a better plan. False where the programme gave up.
  bool PriceOut(const Loads& prices, Bounded& result) {
    const Problem priced = Priced(prices);
    double known = 0;
    const Loads best_loads = LoadsOf(problem_, result.best->evaluation);
    for (size_t resource = 0; resource < prices.size(); ++resource) known += prices[resource] * best_loads[resource];
    Optimum optimum = SolveByDynamicProgramme(priced, adjacency_, clusters_, known * (1 + 1e-9), max_states_);
    if (optimum.gave_up || !optimum.feasible) return false;
    result.lower_bound = std::max(result.lower_bound, optimum.cost_us);
    // The order that the prices chose counts for the cut; the evaluation's own may spread launches otherwise.
    const Evaluation as_priced = Evaluate(priced, adjacency_, optimum.device_of);
    std::vector<Run> sequence;
    for (const Region& region : as_priced.regions) sequence.push_back({region.device, region.nodes});
    plans_.push_back(LoadsOf(problem_, EvaluateSequence(problem_, optimum.device_of, sequence)));
    Heuristic plan{optimum.device_of, Evaluate(problem_, adjacency_, optimum.device_of, 200)};
    if (!plan.evaluation.feasible) return true;
    if (plan.evaluation.cost < 1.02 * result.best->evaluation.cost) Improve(problem_, adjacency_, clusters_, plan);
    if (Score(problem_, plan.evaluation) < Score(problem_, result.best->evaluation)) result.best = std::move(plan);
    return true;
  }

  const Problem& problem_;
  const Adjacency& adjacency_;
  const Clusters& clusters_;
  const int max_states_;
  std::vector<Loads> plans_;
};

}  // namespace

std::optional<Bounded> BalanceLoads(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                                    const Heuristic& start, double time_limit_seconds, int max_states) {
  return Pricing(problem, adjacency, clusters, max_states).Find(start, time_limit_seconds);
}

}  // namespace heddle::ir::partition
