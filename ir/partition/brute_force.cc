// Written for obviousness: loops over all device^nodes assignments; the launch overhead by dynamic programming over all
// sets of executed nodes and last devices, one node at a time, so that every topological order is covered.
#include "ir/partition/brute_force.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Progress {
  unsigned executed = 0;
  int last = -1;
  std::vector<int> regions;
  bool operator<(const Progress& other) const {
    return std::tie(executed, last, regions) < std::tie(other.executed, other.last, other.regions);
  }
};

bool MayRun(const Problem& problem, unsigned executed, int node) {
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.producer < 0 || (executed >> tensor.producer & 1)) continue;
    for (int consumer : tensor.consumers) {
      if (consumer == node) return false;
    }
  }
  return true;
}

double LeastLaunchUs(const Problem& problem, const std::vector<int>& device_of) {
  std::map<Progress, double> now = {{Progress{0, -1, std::vector<int>(problem.devices.size())}, 0.0}};
  for (size_t step = 0; step < device_of.size(); ++step) {
    std::map<Progress, double> next;
    for (const auto& [progress, us] : now) {
      for (size_t node = 0; node < device_of.size(); ++node) {
        if ((progress.executed >> node & 1) || !MayRun(problem, progress.executed, node)) continue;
        const int device = device_of[node];
        Progress after = progress;
        double after_us = us;
        after.executed |= 1u << node;
        if (device != after.last) {
          after.last = device;
          after_us += problem.devices[device].launch_us;
          if (problem.devices[device].max_regions) {
            if (++after.regions[device] > *problem.devices[device].max_regions) continue;
          }
        }
        const auto entry = next.try_emplace(after, after_us).first;
        entry->second = std::min(entry->second, after_us);
      }
    }
    now = std::move(next);
  }
  double least = kNever;
  for (const auto& [progress, us] : now) least = std::min(least, us);
  return least;
}

// All but the launches.
double AdditiveUs(const Problem& problem, const std::vector<int>& device_of) {
  double total = 0;
  std::vector<double> used(problem.devices.size());
  for (size_t node = 0; node < device_of.size(); ++node) {
    const Option& option = problem.nodes[node].on[device_of[node]];
    if (!option.cost_us) return kNever;
    total += *option.cost_us;
    used[device_of[node]] += option.size;
    for (size_t other = 0; other < node; ++other) {
      const int group = problem.nodes[node].group;
      if (group >= 0 && group == problem.nodes[other].group && device_of[node] != device_of[other]) return kNever;
    }
  }
  for (size_t device = 0; device < used.size(); ++device) {
    if (problem.devices[device].capacity && used[device] > *problem.devices[device].capacity) return kNever;
  }
  double area = 0;
  for (size_t device = 0; device < used.size(); ++device) {
    const bool in_use = std::find(device_of.begin(), device_of.end(), static_cast<int>(device)) != device_of.end();
    if (in_use && static_cast<int>(device) != problem.host) area += problem.devices[device].area;
  }
  if (problem.max_area && area > *problem.max_area) return kNever;
  for (const Tensor& tensor : problem.tensors) {
    const int from = tensor.producer < 0 ? problem.host : device_of[tensor.producer];
    for (int to = 0; to < static_cast<int>(problem.devices.size()); ++to) {
      bool needed = tensor.to_host && to == problem.host;
      for (int consumer : tensor.consumers) needed = needed || device_of[consumer] == to;
      if (needed && to != from) total += problem.links[from][to].TransferUs(tensor.bytes);
    }
  }
  return total;
}

}  // namespace

std::optional<double> BruteForceCostUs(const Problem& problem, const std::vector<int>& device_of) {
  const double additive_us = AdditiveUs(problem, device_of);
  if (additive_us == kNever) return std::nullopt;
  const double total_us = additive_us + LeastLaunchUs(problem, device_of);
  if (total_us == kNever) return std::nullopt;
  return total_us;
}

std::optional<BruteForceOptimum> BruteForce(const Problem& problem) {
  std::optional<BruteForceOptimum> best;
  std::vector<int> device_of(problem.nodes.size(), 0);
  while (true) {
    const double additive_us = AdditiveUs(problem, device_of);
    if (additive_us != kNever && (!best || additive_us < best->cost_us)) {
      const double total_us = additive_us + LeastLaunchUs(problem, device_of);
      if (total_us != kNever && (!best || total_us < best->cost_us)) best = BruteForceOptimum{total_us, device_of};
    }
    size_t digit = 0;
    while (digit < device_of.size() && ++device_of[digit] == static_cast<int>(problem.devices.size())) {
      device_of[digit++] = 0;
    }
    if (digit == device_of.size()) return best;
  }
}

}  // namespace heddle::ir::partition
