// The objectives as docs/partitioning.md states them, term by term.
#include "ir/partition/placement/evaluate_placement.h"

#include <algorithm>

namespace heddle::ir::partition {
namespace {

// Stages in an order in which each waits only for earlier ones; fewer than `count` where there is a cycle.
std::vector<int> OrderOf(int count, std::vector<std::vector<int>> successors) {
  std::vector<int> waiting_for(count), ready, order;
  for (std::vector<int>& list : successors) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    for (int next : list) ++waiting_for[next];
  }
  for (int stage = 0; stage < count; ++stage) {
    if (waiting_for[stage] == 0) ready.push_back(stage);
  }
  while (!ready.empty()) {
    const int stage = ready.back();
    ready.pop_back();
    order.push_back(stage);
    for (int next : successors[stage]) {
      if (--waiting_for[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

// An accelerator's time for its transfers: results from outside that it reads, and its own that are read outside.
std::vector<double> ReceiveUs(const PlacementGraph& graph, const Placement& placement) {
  std::vector<double> result(graph.accelerators);
  std::vector<int> last(graph.accelerators, -1);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    for (int next : graph.nodes[node].successors) {
      const int to = placement[next];
      if (to == placement[node] || to >= graph.accelerators || last[to] == static_cast<int>(node)) continue;
      last[to] = static_cast<int>(node);
      result[to] += graph.nodes[node].send_us;
    }
  }
  return result;
}

std::vector<double> SendUs(const PlacementGraph& graph, const Placement& placement) {
  std::vector<double> result(graph.accelerators);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const int from = placement[node];
    if (from >= graph.accelerators) continue;
    const std::vector<int>& readers = graph.nodes[node].successors;
    if (std::any_of(readers.begin(), readers.end(), [&](int next) { return placement[next] != from; })) {
      result[from] += graph.nodes[node].send_us;
    }
  }
  return result;
}

}  // namespace

bool KeepsLimits(const PlacementGraph& graph, const Placement& placement) {
  std::vector<int> device_of_colour(graph.colours, -1);
  std::vector<double> used(graph.accelerators);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const PlacementNode& info = graph.nodes[node];
    const int device = placement[node];
    if (device < 0 || device >= graph.accelerators + graph.cpus) return false;
    if (info.colour >= 0) {
      int& known = device_of_colour[info.colour];
      if (known >= 0 && known != device) return false;
      known = device;
    }
    if (device >= graph.accelerators) continue;
    if (!info.accelerator_supported) return false;
    used[device] += info.size;
  }
  return std::all_of(used.begin(), used.end(), [&](double size) { return size <= graph.accelerator_capacity; });
}

std::vector<double> DeviceLoads(const PlacementGraph& graph, const Placement& placement) {
  std::vector<double> loads = ReceiveUs(graph, placement);
  const std::vector<double> sends = SendUs(graph, placement);
  for (size_t device = 0; device < loads.size(); ++device) loads[device] += sends[device];
  loads.resize(graph.accelerators + graph.cpus);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const bool on_cpu = placement[node] >= graph.accelerators;
    loads[placement[node]] += on_cpu ? graph.nodes[node].cpu_us : graph.nodes[node].accelerator_us;
  }
  return loads;
}

double MaxLoadUs(const PlacementGraph& graph, const Placement& placement) {
  const std::vector<double> loads = DeviceLoads(graph, placement);
  return *std::max_element(loads.begin(), loads.end());
}

bool IsPipeline(const PlacementGraph& graph, const Placement& placement) {
  const int devices = graph.accelerators + graph.cpus;
  std::vector<std::vector<int>> successors(devices);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].backward) continue;
    for (int next : graph.nodes[node].successors) {
      if (graph.nodes[next].backward || placement[next] == placement[node]) continue;
      successors[placement[node]].push_back(placement[next]);
    }
  }
  return static_cast<int>(OrderOf(devices, std::move(successors)).size()) == devices;
}

std::optional<double> LatencyUs(const PlacementGraph& graph, const Placement& placement) {
  // Stages: one for each accelerator, then one for each node on a CPU.
  const int nodes = static_cast<int>(graph.nodes.size());
  const int stages = graph.accelerators + nodes;
  auto stage_of = [&](int node) { return placement[node] < graph.accelerators ? placement[node] : graph.accelerators + node; };
  std::vector<std::vector<int>> successors(stages);
  std::vector<double> duration = ReceiveUs(graph, placement);
  const std::vector<double> sends = SendUs(graph, placement);
  for (int device = 0; device < graph.accelerators; ++device) duration[device] += sends[device];
  duration.resize(stages);
  for (int node = 0; node < nodes; ++node) {
    const int stage = stage_of(node);
    duration[stage] += stage < graph.accelerators ? graph.nodes[node].accelerator_us : graph.nodes[node].cpu_us;
    for (int next : graph.nodes[node].successors) {
      if (stage_of(next) != stage) successors[stage].push_back(stage_of(next));
    }
  }
  const std::vector<int> order = OrderOf(stages, successors);
  if (static_cast<int>(order.size()) < stages) return std::nullopt;
  std::vector<double> start(stages);
  double latest = 0;
  for (int stage : order) {
    const double end = start[stage] + duration[stage];
    latest = std::max(latest, end);
    for (int next : successors[stage]) start[next] = std::max(start[next], end);
  }
  return latest;
}

}  // namespace heddle::ir::partition
