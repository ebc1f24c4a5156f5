// Adds up what an assignment costs, term by term as ir/partition/problem.h defines it.
#include "ir/partition/evaluate.h"

#include <algorithm>
#include <cmath>

#include "ir/partition/launch_order.h"
#include "ir/partition/tasks.h"

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
  if (!problem.max_area) return true;
  double area = 0;
  for (int device = 0; device < static_cast<int>(problem.devices.size()); ++device) {
    const bool in_use = std::find(device_of.begin(), device_of.end(), device) != device_of.end();
    if (in_use && device != problem.host) area += problem.devices[device].area;
  }
  return area <= *problem.max_area;
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

std::vector<std::vector<int>> ReadsOfNodes(const Problem& problem) {
  std::vector<std::vector<int>> result(problem.nodes.size());
  for (size_t index = 0; index < problem.tensors.size(); ++index) {
    for (int node : problem.tensors[index].consumers) {
      if (result[node].empty() || result[node].back() != static_cast<int>(index)) result[node].push_back(static_cast<int>(index));
    }
  }
  return result;
}

std::string UnitOf(Objective objective) { return objective == Objective::kEnergy ? "uJ" : "us"; }

std::string NameOf(Objective objective) {
  switch (objective) {
    case Objective::kSerial: return "serial";
    case Objective::kLatency: return "latency";
    case Objective::kThroughput: return "throughput";
    case Objective::kEnergy: return "energy";
  }
  return "";
}

double Score(const Problem& problem, double cost, double busy_us) {
  // So small that it decides only between costs that differ by less than what Solve takes for equal.
  return problem.objective == Objective::kSerial ? cost : cost + 1e-7 * busy_us;
}

double Score(const Problem& problem, const Evaluation& evaluation) {
  return Score(problem, evaluation.cost, evaluation.BusyUs());
}

namespace {

double CostOf(const Problem& problem, const Evaluation& evaluation) {
  switch (problem.objective) {
    case Objective::kSerial: return evaluation.BusyUs();
    case Objective::kLatency: return evaluation.latency_us;
    case Objective::kThroughput: return evaluation.period_us;
    case Objective::kEnergy: return evaluation.energy_uj;
  }
  return 0;
}

// Whether every node runs where it may, with its group, and everything fits.
bool IsAllowed(const Problem& problem, const Assignment& device_of) {
  for (size_t node = 0; node < device_of.size(); ++node) {
    if (!problem.nodes[node].on[device_of[node]].cost_us) return false;
  }
  return WithinCapacity(problem, device_of);
}

bool WithinRegionLimits(const Problem& problem, const std::vector<Region>& regions) {
  for (int device = 0; device < static_cast<int>(problem.devices.size()); ++device) {
    const auto& limit = problem.devices[device].max_regions;
    if (limit && std::count_if(regions.begin(), regions.end(), [&](const Region& r) { return r.device == device; }) > *limit) {
      return false;
    }
  }
  return true;
}

void AddRegions(const Problem& problem, const std::vector<Run>& sequence, Evaluation& result) {
  for (const Run& run : sequence) {
    Region region{run.device, run.nodes, 0, problem.devices[run.device].launch_us};
    for (int node : region.nodes) {
      const Option& option = problem.nodes[node].on[run.device];
      region.node_us += *option.cost_us;
      result.energy_uj += option.energy_uj;
    }
    result.energy_uj += problem.devices[run.device].launch_uj;
    result.node_us += region.node_us;
    result.launch_us += region.launch_us;
    result.regions.push_back(std::move(region));
  }
}

}  // namespace

Evaluation EvaluateSequence(const Problem& problem, const Assignment& device_of, const std::vector<Run>& sequence) {
  Evaluation result;
  if (!IsAllowed(problem, device_of)) return result;
  for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
    for (Transfer& transfer : TransfersOf(problem, static_cast<int>(tensor), device_of)) {
      result.transfer_us += transfer.us;
      result.energy_uj += transfer.bytes * problem.links[transfer.from][transfer.to].uj_per_byte;
      result.transfers.push_back(transfer);
    }
  }
  AddRegions(problem, sequence, result);
  if (!WithinRegionLimits(problem, result.regions)) return result;
  if (problem.objective != Objective::kSerial) {
    std::vector<Task> tasks = PlanTasks(problem, result);
    result.latency_us = Time(tasks);
    result.period_us = LargestLoadUs(tasks);
  }
  result.cost = CostOf(problem, result);
  result.feasible = true;
  return result;
}

Evaluation Evaluate(const Problem& problem, const Adjacency& adjacency, const Assignment& device_of, int max_states) {
  if (!IsAllowed(problem, device_of)) return {};
  const std::optional<LaunchOrder> order = BestLaunchOrder(problem, adjacency, device_of, max_states);
  if (!order || !std::isfinite(order->cost_us)) return {};
  return EvaluateSequence(problem, device_of, order->runs);
}

}  // namespace heddle::ir::partition
