// Counterfactuals by single moves. The change of the plan's total when one node (with its group) moves is exact, and so
// are the thresholds, for this one move: the delta is linear in the node's cost there and in 1 / bandwidth of the links
// that the device uses. When many nodes could move together the plan may flip earlier than the single move says; the
// text therefore says "on its own".
#include "ir/partition/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/partition/evaluate.h"
#include "ir/partition/launch_order.h"

namespace heddle::ir::partition {
namespace {

// Three significant digits without an exponent: "1400", "12.3", "0.0123".
std::string Digits(double value) { return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value); }

class Mover {
 public:
  Mover(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters, const Assignment& device_of,
        const Evaluation& evaluation)
      : problem_(problem),
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
    scaling_us_ = 0;
    Place(cluster, device);
    result.feasible = WithinCapacity(problem_, moved_);
    result.transfer_delta_us = TransferDelta(cluster, device);
    if (result.feasible && launches_) {
      const std::optional<LaunchOrder> order = BestLaunchOrder(problem_, adjacency_, moved_, max_states_);
      result.feasible = order.has_value();
      if (order) result.launch_delta_us = order->launch_us - evaluation_.launch_us;
    }
    Place(cluster, home);
    result.delta_us = node_delta_us + result.transfer_delta_us + result.launch_delta_us;
    if (result.feasible) DescribeFlip(result, device);
    return result;
  }

 private:
  void Place(int cluster, int device) {
    for (int node : clusters_.nodes[cluster]) moved_[node] = device;
  }

  // Also sets scaling_us_: what the move adds to the time of bytes on the links of `device`, latency left out, which is
  // the part that scales with their bandwidth.
  double TransferDelta(int cluster, int device) {
    std::set<int> tensors;
    for (int node : clusters_.nodes[cluster]) tensors.insert(tensors_of_[node].begin(), tensors_of_[node].end());
    double delta_us = 0;
    links_.clear();
    for (int tensor : tensors) {
      for (int sign : {-1, 1}) {
        for (const Transfer& transfer : TransfersOf(problem_, tensor, sign < 0 ? device_of_ : moved_)) {
          delta_us += sign * transfer.us;
          const double bandwidth = problem_.links[transfer.from][transfer.to].bandwidth_bytes_per_us;
          if ((transfer.from != device && transfer.to != device) || bandwidth == 0) continue;
          scaling_us_ += sign * transfer.bytes / bandwidth;
          if (sign > 0) links_.insert({transfer.from, transfer.to});
        }
      }
    }
    return delta_us;
  }

  void DescribeFlip(Alternative& move, int device) const {
    if (move.delta_us < 0) return;
    const std::string& name = problem_.devices[device].name;
    std::vector<std::string> ways;
    // Bandwidth b x f: delta - scaling_us_ (1 - 1/f) < 0, so f > scaling_us_ / (scaling_us_ - delta).
    if (scaling_us_ > move.delta_us && !links_.empty()) {
      const double factor = scaling_us_ / (scaling_us_ - move.delta_us);
      double slowest = 0;
      for (const auto& [from, to] : links_) {
        const double bandwidth = problem_.links[from][to].bandwidth_bytes_per_us;
        slowest = slowest == 0 ? bandwidth : std::min(slowest, bandwidth);
      }
      move.flip_bandwidth_bytes_per_us = slowest * factor;
      ways.push_back(fmt::format("the link to {} gives more than {} GB/s ({} now)", name,
                                 Digits(slowest * factor / 1000), Digits(slowest / 1000)));
    }
    if (move.cost_us > move.delta_us) {
      move.flip_cost_us = move.cost_us - move.delta_us;
      ways.push_back(
          fmt::format("it takes less than {} us there ({} now)", Digits(*move.flip_cost_us), Digits(move.cost_us)));
    }
    if (ways.empty()) return;
    move.flips_if = fmt::format("moves to {} on its own if {}", name, ways[0]);
    if (ways.size() > 1) move.flips_if += ", or if " + ways[1];
  }

  const Problem& problem_;
  const Adjacency& adjacency_;
  const Clusters& clusters_;
  const Assignment& device_of_;
  Assignment moved_;
  const Evaluation& evaluation_;
  const bool launches_;
  const int max_states_;  // of each move's launch order: fewer in large graphs, to stay in the order of a second
  const std::vector<std::vector<int>> tensors_of_;
  double scaling_us_ = 0;
  std::set<std::pair<int, int>> links_;
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

}  // namespace heddle::ir::partition
