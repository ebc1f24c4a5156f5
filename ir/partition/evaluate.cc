// Adds up what an assignment costs, term by term as ir/partition/problem.h defines it.
#include "ir/partition/evaluate.h"

#include <algorithm>
#include <cmath>

#include "ir/partition/launch_order.h"

namespace heddle::ir::partition {

std::vector<Transfer> TransfersOf(const Problem& problem, int tensor_index, const Assignment& device_of) {
  const Tensor& tensor = problem.tensors[tensor_index];
  const int from = tensor.producer < 0 ? problem.host : device_of[tensor.producer];
  unsigned destinations = tensor.to_host ? 1u << problem.host : 0;
  for (int consumer : tensor.consumers) destinations |= 1u << device_of[consumer];
  std::vector<Transfer> transfers;
  for (int to = 0; to < static_cast<int>(problem.devices.size()); ++to) {
    if (to == from || !(destinations >> to & 1)) continue;
    transfers.push_back({tensor_index, from, to, tensor.bytes, problem.links[from][to].TransferUs(tensor.bytes)});
  }
  return transfers;
}

double TransferUs(const Problem& problem, int tensor, const Assignment& device_of) {
  double sum = 0;
  for (const Transfer& transfer : TransfersOf(problem, tensor, device_of)) sum += transfer.us;
  return sum;
}

bool WithinCapacity(const Problem& problem, const Assignment& device_of) {
  std::vector<double> used(problem.devices.size());
  for (size_t node = 0; node < device_of.size(); ++node) {
    used[device_of[node]] += problem.nodes[node].on[device_of[node]].size;
  }
  for (size_t device = 0; device < used.size(); ++device) {
    if (problem.devices[device].capacity && used[device] > *problem.devices[device].capacity) return false;
  }
  return true;
}

bool LaunchesMatter(const Problem& problem) {
  return std::any_of(problem.devices.begin(), problem.devices.end(),
                     [](const Device& device) { return device.launch_us > 0 || device.max_regions; });
}

std::vector<std::vector<int>> TensorsOfNodes(const Problem& problem) {
  std::vector<std::vector<int>> result(problem.nodes.size());
  for (size_t index = 0; index < problem.tensors.size(); ++index) {
    std::vector<int> nodes = problem.tensors[index].consumers;
    if (problem.tensors[index].producer >= 0) nodes.push_back(problem.tensors[index].producer);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    for (int node : nodes) result[node].push_back(static_cast<int>(index));
  }
  return result;
}

Evaluation Evaluate(const Problem& problem, const Adjacency& adjacency, const Assignment& device_of, int max_states) {
  Evaluation result;
  for (size_t node = 0; node < device_of.size(); ++node) {
    const std::optional<double>& cost_us = problem.nodes[node].on[device_of[node]].cost_us;
    if (!cost_us) return result;
    result.node_us += *cost_us;
  }
  if (!WithinCapacity(problem, device_of)) return result;
  for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
    for (Transfer& transfer : TransfersOf(problem, static_cast<int>(tensor), device_of)) {
      result.transfer_us += transfer.us;
      result.transfers.push_back(transfer);
    }
  }
  std::optional<LaunchOrder> order = BestLaunchOrder(problem, adjacency, device_of, max_states);
  if (!order || !std::isfinite(order->launch_us)) return result;
  for (Run& run : order->runs) {
    Region region{run.device, std::move(run.nodes), 0, problem.devices[run.device].launch_us};
    for (int node : region.nodes) region.node_us += *problem.nodes[node].on[run.device].cost_us;
    result.regions.push_back(std::move(region));
  }
  result.launch_us = order->launch_us;
  result.feasible = true;
  return result;
}

Evaluation Evaluate(const Problem& problem, const Assignment& device_of) {
  return Evaluate(problem, BuildAdjacency(problem), device_of);
}

}  // namespace heddle::ir::partition
