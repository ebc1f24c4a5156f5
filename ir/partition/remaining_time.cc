// From the last node to the first: a node's tail on a device is its cost there and the largest, over its readers, of
// the least way on: stay (no launch: one region may hold both), or move to another device and launch there.
//
// Prices: the dual of the linear programme that spreads nodes over devices in fractions. With v(node) the node's least
// priced cost, the sum of v is a bound on the largest load; the prices are those of the largest sum.
#include "ir/partition/remaining_time.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/partition/cbc_model.h"

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<int> TopologicalOrder(const Problem& problem, const Adjacency& adjacency) {
  std::vector<int> waiting_for, order;
  for (const std::vector<int>& before : adjacency.predecessors) waiting_for.push_back(static_cast<int>(before.size()));
  for (int node = 0; node < static_cast<int>(problem.nodes.size()); ++node) {
    if (waiting_for[node] == 0) order.push_back(node);
  }
  for (size_t at = 0; at < order.size(); ++at) {
    for (int next : adjacency.successors[order[at]]) {
      if (--waiting_for[next] == 0) order.push_back(next);
    }
  }
  return order;
}

// Absent where the linear programme fails.
std::optional<std::vector<double>> BestPrices(const Problem& problem, const RemainingTime& remaining,
                                              const std::vector<int>& nodes) {
  const int devices = static_cast<int>(problem.devices.size());
  CbcModel model;
  std::vector<CbcModel::Term> sum;
  for (int device = 0; device < devices; ++device) sum.emplace_back(model.AddContinuous(0, 1), 1);
  model.AddRow(sum, 1, 1);
  for (int node : nodes) {
    if (remaining.least_us[node] == kNever) return std::nullopt;
    double largest_us = 0;
    for (int device = 0; device < devices; ++device)
      largest_us = std::max(largest_us, problem.nodes[node].on[device].cost_us.value_or(0));
    const int value = model.AddContinuous(-1, largest_us);
    for (int device = 0; device < devices; ++device) {
      if (remaining.tail_us[node][device] == kNever) continue;
      model.AddRow({{device, *problem.nodes[node].on[device].cost_us}, {value, -1}}, 0,
                   std::numeric_limits<double>::max());
    }
  }
  const CbcModel::Solution solution = model.Minimise({}, 10);
  if (solution.values.empty()) return std::nullopt;
  std::vector<double> prices(solution.values.begin(), solution.values.begin() + devices);
  double total = 0;
  for (double& price : prices) total += price = std::max(0.0, price);
  for (double& price : prices) price /= total;
  return prices;
}

void AddPrices(const Problem& problem, std::vector<double> of_device, RemainingTime& remaining) {
  RemainingTime::Prices prices{std::move(of_device), std::vector<double>(problem.nodes.size(), kNever)};
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    for (size_t device = 0; device < prices.of_device.size(); ++device) {
      if (remaining.tail_us[node][device] == kNever) continue;
      prices.least_us[node] =
          std::min(prices.least_us[node], prices.of_device[device] * *problem.nodes[node].on[device].cost_us);
    }
  }
  remaining.prices.push_back(std::move(prices));
}

}  // namespace

RemainingTime BoundRemainingTime(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters) {
  const int devices = static_cast<int>(problem.devices.size());
  RemainingTime result{std::vector<std::vector<double>>(problem.nodes.size(), std::vector<double>(devices, kNever)),
                       std::vector<double>(problem.nodes.size(), kNever),
                       {}};
  std::vector<std::vector<int>> makes(problem.nodes.size());
  for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
    if (problem.tensors[tensor].producer >= 0)
      makes[problem.tensors[tensor].producer].push_back(static_cast<int>(tensor));
  }
  const auto way_on = [&](const Tensor& tensor, int reader, int device) {
    double least_us = result.tail_us[reader][device];
    for (int other = 0; other < devices; ++other) {
      if (other == device) continue;
      least_us = std::min(least_us, problem.links[device][other].TransferUs(tensor.bytes) +
                                        problem.devices[other].launch_us + result.tail_us[reader][other]);
    }
    return least_us;
  };
  const std::vector<int> order = TopologicalOrder(problem, adjacency);
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (int device = 0; device < devices; ++device) {
      if (!clusters.CostUs(problem, clusters.cluster_of[*node], device)) continue;
      const double own_us = *problem.nodes[*node].on[device].cost_us;
      double rest_us = 0;
      for (int index : makes[*node]) {
        const Tensor& tensor = problem.tensors[index];
        for (int reader : tensor.consumers) rest_us = std::max(rest_us, way_on(tensor, reader, device));
        if (tensor.to_host && device != problem.host) {
          rest_us = std::max(rest_us, problem.links[device][problem.host].TransferUs(tensor.bytes));
        }
      }
      result.tail_us[*node][device] = own_us + rest_us;
      result.least_us[*node] = std::min(result.least_us[*node], own_us);
    }
  }
  AddPrices(problem, std::vector<double>(devices, 1.0 / devices), result);
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    const std::vector<int> last(order.begin() + static_cast<std::ptrdiff_t>(order.size() * quarter / 4), order.end());
    if (std::optional<std::vector<double>> prices = BestPrices(problem, result, last))
      AddPrices(problem, *std::move(prices), result);
  }
  return result;
}

}  // namespace heddle::ir::partition
