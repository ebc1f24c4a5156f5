// Written for obviousness.
#include "ir/partition/placement/brute_force_placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace heddle::ir::partition {
namespace {

double AcceleratorLoad(const PlacementGraph& graph, const Placement& placement, int device) {
  double load = 0;
  const int nodes = static_cast<int>(graph.nodes.size());
  for (int u = 0; u < nodes; ++u) {
    bool feeds = false, leaves = false;
    for (int v : graph.nodes[u].successors) {
      if (placement[v] == device) feeds = true;
      if (placement[v] != device) leaves = true;
    }
    if (placement[u] == device) {
      load += graph.nodes[u].accelerator_us;
      if (leaves) load += graph.nodes[u].send_us;
    } else if (feeds) {
      load += graph.nodes[u].send_us;
    }
  }
  return load;
}

bool Allowed(const PlacementGraph& graph, const Placement& placement) {
  std::map<int, int> colour;
  std::map<int, double> used;
  for (size_t u = 0; u < graph.nodes.size(); ++u) {
    const PlacementNode& node = graph.nodes[u];
    if (node.colour >= 0 && !colour.emplace(node.colour, placement[u]).second && colour[node.colour] != placement[u]) return false;
    if (placement[u] >= graph.accelerators) continue;
    if (!node.accelerator_supported) return false;
    used[placement[u]] += node.size;
  }
  return std::all_of(used.begin(), used.end(), [&](const auto& entry) { return entry.second <= graph.accelerator_capacity; });
}

// Devices that wait for one another in a circle, by edges between forward nodes.
bool HasCircle(const PlacementGraph& graph, const Placement& placement) {
  const int devices = graph.accelerators + graph.cpus;
  std::vector<std::vector<bool>> before(devices, std::vector<bool>(devices));
  for (size_t u = 0; u < graph.nodes.size(); ++u) {
    for (int v : graph.nodes[u].successors) {
      if (!graph.nodes[u].backward && !graph.nodes[v].backward && placement[u] != placement[v]) before[placement[u]][placement[v]] = true;
    }
  }
  for (int middle = 0; middle < devices; ++middle) {
    for (int a = 0; a < devices; ++a) {
      for (int b = 0; b < devices; ++b) {
        if (before[a][middle] && before[middle][b]) before[a][b] = true;
      }
    }
  }
  for (int device = 0; device < devices; ++device) {
    if (before[device][device]) return true;
  }
  return false;
}

// Ends are raised until nothing changes; more rounds than nodes means that blocks wait for each other.
std::optional<double> Latency(const PlacementGraph& graph, const Placement& placement) {
  const int nodes = static_cast<int>(graph.nodes.size());
  std::vector<double> end(nodes, 0);
  for (int round = 0; round <= 2 * nodes + 2; ++round) {
    std::vector<double> next(nodes, 0);
    for (int v = 0; v < nodes; ++v) {
      if (placement[v] >= graph.accelerators) {
        for (int u : graph.nodes[v].predecessors) next[v] = std::max(next[v], end[u]);
        next[v] += graph.nodes[v].cpu_us;
        continue;
      }
      double start = 0;
      for (int w = 0; w < nodes; ++w) {
        if (placement[w] != placement[v]) continue;
        for (int u : graph.nodes[w].predecessors) {
          if (placement[u] != placement[v]) start = std::max(start, end[u]);
        }
      }
      next[v] = start + AcceleratorLoad(graph, placement, placement[v]);
    }
    if (next == end) return *std::max_element(end.begin(), end.end());
    end = next;
  }
  // Loads of 0 in a circle would settle: a circle is one whatever its times.
  return std::nullopt;
}

// A circle among blocks and CPU nodes, also where it takes no time.
bool BlocksWait(const PlacementGraph& graph, const Placement& placement) {
  const int nodes = static_cast<int>(graph.nodes.size());
  auto unit = [&](int u) { return placement[u] < graph.accelerators ? placement[u] : graph.accelerators + u; };
  std::set<std::pair<int, int>> before;
  for (int u = 0; u < nodes; ++u) {
    for (int v : graph.nodes[u].successors) {
      if (unit(u) != unit(v)) before.emplace(unit(u), unit(v));
    }
  }
  const int units = graph.accelerators + nodes;
  for (int middle = 0; middle < units; ++middle) {
    for (int a = 0; a < units; ++a) {
      for (int b = 0; b < units; ++b) {
        if (before.contains({a, middle}) && before.contains({middle, b})) before.emplace(a, b);
      }
    }
  }
  for (int u = 0; u < units; ++u) {
    if (before.contains({u, u})) return true;
  }
  return false;
}

void Search(const PlacementGraph& graph, OracleObjective objective, Placement& placement, size_t node, int used_accelerators,
            int used_cpus, std::optional<double>& best) {
  if (node == graph.nodes.size()) {
    const std::optional<double> cost = OracleCost(graph, objective, placement);
    if (cost && (!best || *cost < *best)) best = cost;
    return;
  }
  const int cpus = objective == OracleObjective::kLatency ? std::min(1, graph.cpus) : graph.cpus;
  for (int device = 0; device < std::min(graph.accelerators, used_accelerators + 1); ++device) {
    placement[node] = device;
    Search(graph, objective, placement, node + 1, std::max(used_accelerators, device + 1), used_cpus, best);
  }
  for (int cpu = 0; cpu < std::min(cpus, used_cpus + 1); ++cpu) {
    placement[node] = graph.accelerators + cpu;
    Search(graph, objective, placement, node + 1, used_accelerators, std::max(used_cpus, cpu + 1), best);
  }
}

}  // namespace

std::optional<double> OracleCost(const PlacementGraph& graph, OracleObjective objective, const Placement& placement) {
  if (!Allowed(graph, placement)) return std::nullopt;
  if (objective == OracleObjective::kLatency) {
    if (BlocksWait(graph, placement)) return std::nullopt;
    return Latency(graph, placement);
  }
  if (objective == OracleObjective::kPipeline && HasCircle(graph, placement)) return std::nullopt;
  double most = 0;
  for (int device = 0; device < graph.accelerators; ++device) most = std::max(most, AcceleratorLoad(graph, placement, device));
  for (int cpu = 0; cpu < graph.cpus; ++cpu) {
    double load = 0;
    for (size_t u = 0; u < graph.nodes.size(); ++u) {
      if (placement[u] == graph.accelerators + cpu) load += graph.nodes[u].cpu_us;
    }
    most = std::max(most, load);
  }
  return most;
}

std::optional<double> OracleBest(const PlacementGraph& graph, OracleObjective objective) {
  Placement placement(graph.nodes.size());
  std::optional<double> best;
  Search(graph, objective, placement, 0, 0, 0, best);
  return best;
}

}  // namespace heddle::ir::partition
