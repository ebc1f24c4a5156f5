// Counterfactuals by single moves. The change of the plan's cost when one node (with its group) moves is that of the
// best order of execution after the move (kLatency: of the best schedule, in large graphs of a good one). What the node
// would have to cost there for the move to pay follows from it and, where it is not a sum, is checked by an evaluation.
#include "ir/partition/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/partition/evaluate.h"
#include "ir/partition/launch_order.h"
#include "ir/partition/schedule_programme.h"

namespace heddle::ir::partition {
namespace {

constexpr size_t kExactMoves = 64;  // nodes up to which a move's schedule is the best one
constexpr double kScheduleSeconds = 0.5;

// Three significant digits without an exponent: "1400", "12.3", "0.0123".
std::string Digits(double value) { return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value); }

// The same with four digits, not below the value: who turns a knob to it has turned it far enough.
std::string DigitsAbove(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  const double above = std::ceil(value / unit) * unit;
  return value >= 1000 ? fmt::format("{:.0f}", above) : fmt::format("{:.4g}", above);
}

class Mover {
 public:
  Mover(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters, const Assignment& device_of,
        const Evaluation& evaluation)
      : problem_(problem),
        changed_(problem),
        adjacency_(adjacency),
        clusters_(clusters),
        device_of_(device_of),
        moved_(device_of),
        evaluation_(evaluation),
        launches_(LaunchesMatter(problem)),
        max_states_(problem.nodes.size() > 200 ? 50 : 4000),
        tensors_of_(TensorsOfNodes(problem)) {}

  Alternative Move(int cluster, int device) {
    Alternative result;
    result.device = device;
    const std::optional<double> cost_us = clusters_.CostUs(problem_, cluster, device);
    if (!cost_us) return result;
    const int home = device_of_[clusters_.nodes[cluster].front()];
    result.supported = true;
    result.cost_us = *cost_us;
    const double node_delta_us = *cost_us - *clusters_.CostUs(problem_, cluster, home);
    Place(cluster, device);
    result.feasible = WithinCapacity(problem_, moved_);
    result.transfer_delta_us = TransferDelta(cluster);
    if (result.feasible && problem_.objective == Objective::kSerial) {
      if (launches_) AddLaunchDelta(result);
      result.delta = node_delta_us + result.transfer_delta_us + result.launch_delta_us;
      if (result.cost_us > result.delta) result.flip_cost_us = result.cost_us - result.delta;
    } else if (result.feasible) {
      MeasureMove(cluster, device, result);
    }
    Place(cluster, home);
    if (!result.feasible || result.delta < 0) result.flip_cost_us.reset();
    return result;
  }

 private:
  void Place(int cluster, int device) {
    for (int node : clusters_.nodes[cluster]) moved_[node] = device;
  }

  double TransferDelta(int cluster) const {
    std::set<int> tensors;
    for (int node : clusters_.nodes[cluster]) tensors.insert(tensors_of_[node].begin(), tensors_of_[node].end());
    double delta_us = 0;
    for (int tensor : tensors) delta_us += TransferUs(problem_, tensor, moved_) - TransferUs(problem_, tensor, device_of_);
    return delta_us;
  }

  void AddLaunchDelta(Alternative& move) const {
    const std::optional<LaunchOrder> order = BestLaunchOrder(problem_, adjacency_, moved_, max_states_);
    move.feasible = order.has_value();
    if (order) move.launch_delta_us = order->cost_us - evaluation_.launch_us;
  }

  void MeasureMove(int cluster, int device, Alternative& move) {
    const Evaluation after = EvaluateMoved();
    move.feasible = after.feasible;
    if (!after.feasible) return;
    move.launch_delta_us = after.launch_us - evaluation_.launch_us;
    move.delta = after.cost - evaluation_.cost;
    if (problem_.objective == Objective::kEnergy || move.cost_us <= move.delta) return;
    const double threshold_us = move.cost_us - move.delta;
    SetCost(cluster, device, threshold_us * (1 - 1e-6) / move.cost_us);
    if (EvaluateMoved().cost < evaluation_.cost) move.flip_cost_us = threshold_us;
    SetCost(cluster, device, 1);
  }

  // Scales the cluster's cost on the device in `changed_`.
  void SetCost(int cluster, int device, double factor) {
    for (int node : clusters_.nodes[cluster]) {
      changed_.nodes[node].on[device].cost_us = *problem_.nodes[node].on[device].cost_us * factor;
    }
  }

  Evaluation EvaluateMoved() const {
    Evaluation result = Evaluate(changed_, adjacency_, moved_, max_states_);
    if (problem_.objective != Objective::kLatency) return result;
    if (problem_.nodes.size() <= kExactMoves) return BestSchedule(result);
    const Evaluation in_place = EvaluateSequence(changed_, moved_, SequenceInPlace());
    return in_place.feasible && (!result.feasible || in_place.cost < result.cost) ? in_place : result;
  }

  Evaluation BestSchedule(const Evaluation& known) const {
    Problem fixed = changed_;
    for (size_t node = 0; node < fixed.nodes.size(); ++node) {
      for (int device = 0; device < static_cast<int>(fixed.devices.size()); ++device) {
        if (device != moved_[node]) fixed.nodes[node].on[device].cost_us.reset();
      }
    }
    std::optional<Heuristic> start;
    if (known.feasible) start = Heuristic{moved_, known};
    const Bounded best = SolveBySchedules(fixed, adjacency_, clusters_, start, kScheduleSeconds);
    return best.best ? best.best->evaluation : Evaluation{};
  }

  // The plan's own order, cut anew into runs of one device.
  std::vector<Run> SequenceInPlace() const {
    std::vector<Run> sequence;
    for (const Region& region : evaluation_.regions) {
      bool fresh = true;
      for (int node : region.nodes) {
        if (sequence.empty() || sequence.back().device != moved_[node] || (fresh && moved_[node] == region.device)) {
          sequence.push_back({moved_[node], {}});
        }
        sequence.back().nodes.push_back(node);
        fresh = false;
      }
    }
    return sequence;
  }

  const Problem& problem_;
  Problem changed_;  // the same, but for the costs that are being tried
  const Adjacency& adjacency_;
  const Clusters& clusters_;
  const Assignment& device_of_;
  Assignment moved_;
  const Evaluation& evaluation_;
  const bool launches_;
  const int max_states_;  // of each move's launch order: fewer in large graphs, to stay in the order of a second
  const std::vector<std::vector<int>> tensors_of_;
};

}  // namespace

std::vector<std::vector<Alternative>> SingleMoves(const Problem& problem, const Adjacency& adjacency,
                                                  const Clusters& clusters, const Assignment& device_of,
                                                  const Evaluation& evaluation) {
  std::vector<std::vector<Alternative>> result(problem.nodes.size());
  Mover mover(problem, adjacency, clusters, device_of, evaluation);
  for (int cluster = 0; cluster < static_cast<int>(clusters.nodes.size()); ++cluster) {
    const int home = device_of[clusters.nodes[cluster].front()];
    for (int device = 0; device < static_cast<int>(problem.devices.size()); ++device) {
      if (device == home) continue;
      const Alternative move = mover.Move(cluster, device);
      for (int node : clusters.nodes[cluster]) result[node].push_back(move);
    }
  }
  return result;
}

void DescribeFlips(const Problem& problem, std::vector<std::vector<Alternative>>& alternatives) {
  for (std::vector<Alternative>& moves : alternatives) {
    for (Alternative& move : moves) {
      const std::string& name = problem.devices[move.device].name;
      std::vector<std::string> ways;
      if (move.flip_link_factor) {
        ways.push_back(fmt::format("if the link to {} gives more than {} GB/s ({} now)", name,
                                   DigitsAbove(*move.flip_bandwidth_bytes_per_us / 1000),
                                   Digits(*move.flip_bandwidth_bytes_per_us / *move.flip_link_factor / 1000)));
      }
      if (move.flip_cost_us) {
        ways.push_back(fmt::format("on its own if it takes less than {} us there ({} now)", Digits(*move.flip_cost_us),
                                   Digits(move.cost_us)));
      }
      if (!ways.empty()) move.flips_if = fmt::format("moves to {} {}", name, fmt::join(ways, ", or "));
    }
  }
}

}  // namespace heddle::ir::partition
