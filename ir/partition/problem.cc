// Checks of a placement problem and the views of it that every solver needs (neighbours, clusters).
#include "ir/partition/problem.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

bool IsQuantity(double value) { return std::isfinite(value) && value >= 0; }

absl::Status Malformed(const std::string& message) {
  return UserError("E-PARTITION-001", message, "Correct the description of the placement problem.");
}

absl::Status ValidateDevices(const Problem& problem) {
  const size_t count = problem.devices.size();
  if (count < 1 || count > 8) return Malformed(fmt::format("expected 1 to 8 devices, found {}", count));
  if (problem.host < 0 || problem.host >= static_cast<int>(count)) {
    return Malformed(fmt::format("host is device {}, expected 0 to {}", problem.host, count - 1));
  }
  if (problem.links.size() != count) return Malformed("expected one row of links for each device");
  for (size_t from = 0; from < count; ++from) {
    if (problem.links[from].size() != count) return Malformed("expected one link for each pair of devices");
    for (const Link& link : problem.links[from]) {
      if (!IsQuantity(link.latency_us) || !IsQuantity(link.bandwidth_bytes_per_us) || !IsQuantity(link.uj_per_byte)) {
        return Malformed(fmt::format("a link of device '{}' has a negative or infinite latency, bandwidth or energy",
                                     problem.devices[from].name));
      }
    }
    const Device& device = problem.devices[from];
    if (!IsQuantity(device.launch_us) || !IsQuantity(device.launch_uj) || !IsQuantity(device.area) || (device.capacity && !IsQuantity(*device.capacity)) ||
        (device.max_regions && *device.max_regions < 0)) {
      return Malformed(fmt::format("device '{}' has a negative or infinite overhead or limit", device.name));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateNodesAndTensors(const Problem& problem) {
  const int count = static_cast<int>(problem.nodes.size());
  for (const Node& node : problem.nodes) {
    if (node.on.size() != problem.devices.size()) {
      return Malformed(
          fmt::format("node '{}' has {} options, expected {}", node.name, node.on.size(), problem.devices.size()));
    }
    for (const Option& option : node.on) {
      if ((option.cost_us && !IsQuantity(*option.cost_us)) || !IsQuantity(option.size) || !IsQuantity(option.energy_uj)) {
        return Malformed(fmt::format("node '{}' has a negative or infinite cost, energy or size", node.name));
      }
    }
  }
  for (const Tensor& tensor : problem.tensors) {
    bool ok = tensor.producer >= -1 && tensor.producer < count && IsQuantity(tensor.bytes);
    for (int consumer : tensor.consumers) ok = ok && consumer >= 0 && consumer < count;
    if (!ok) return Malformed(fmt::format("tensor '{}' names a node that is not there, or a bad size", tensor.name));
  }
  return absl::OkStatus();
}

absl::Status ValidateAcyclic(const Problem& problem) {
  const Adjacency adjacency = BuildAdjacency(problem);
  std::vector<int> waiting_for(problem.nodes.size());
  std::vector<int> ready;
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    waiting_for[node] = static_cast<int>(adjacency.predecessors[node].size());
    if (waiting_for[node] == 0) ready.push_back(static_cast<int>(node));
  }
  size_t done = 0;
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    ++done;
    for (int next : adjacency.successors[node]) {
      if (--waiting_for[next] == 0) ready.push_back(next);
    }
  }
  if (done == problem.nodes.size()) return absl::OkStatus();
  const size_t stuck =
      std::find_if(waiting_for.begin(), waiting_for.end(), [](int n) { return n > 0; }) - waiting_for.begin();
  return UserError("E-PARTITION-002",
                   fmt::format("node '{}' waits, by a cycle, for its own result", problem.nodes[stuck].name));
}

absl::Status ValidatePlaceable(const Problem& problem) {
  const Clusters clusters = BuildClusters(problem);
  std::string text;
  for (size_t cluster = 0; cluster < clusters.nodes.size(); ++cluster) {
    bool placeable = false;
    for (size_t device = 0; device < problem.devices.size(); ++device) {
      placeable = placeable || clusters.CostUs(problem, cluster, device).has_value();
    }
    if (placeable) continue;
    for (int node : clusters.nodes[cluster]) {
      text += fmt::format("\n  '{}'{}:", problem.nodes[node].name,
                          clusters.nodes[cluster].size() > 1 ? " (with its group)" : "");
      for (size_t device = 0; device < problem.devices.size(); ++device) {
        const Option& option = problem.nodes[node].on[device];
        text += fmt::format(" {}: {};", problem.devices[device].name,
                            option.cost_us ? "supported" : option.refusal_code + " " + option.refusal_text);
      }
    }
  }
  if (text.empty()) return absl::OkStatus();
  return UserError("E-PARTITION-003", "no device takes these nodes:" + text, "Allow one more device with --devices.");
}

}  // namespace

Problem Problem::WithDevices(std::vector<Device> devices) {
  Problem problem;
  problem.links.assign(devices.size(), std::vector<Link>(devices.size()));
  problem.devices = std::move(devices);
  return problem;
}

void Problem::Connect(int a, int b, const Link& link) { links[a][b] = links[b][a] = link; }

Problem Problem::EnergiesAsTimes() const {
  Problem problem = *this;
  problem.objective = Objective::kSerial;
  for (Device& device : problem.devices) device.launch_us = device.launch_uj;
  for (auto& row : problem.links) {
    for (Link& link : row) link = {0, link.uj_per_byte > 0 ? 1 / link.uj_per_byte : 0, link.uj_per_byte};
  }
  for (Node& node : problem.nodes) {
    for (Option& option : node.on) {
      if (option.cost_us) option.cost_us = option.energy_uj;
    }
  }
  return problem;
}

int Problem::AddNode(std::string name, std::vector<Option> on, int group) {
  nodes.push_back({std::move(name), std::move(on), group});
  return static_cast<int>(nodes.size()) - 1;
}

absl::Status Validate(const Problem& problem) {
  HEDDLE_RETURN_IF_ERROR(ValidateDevices(problem));
  HEDDLE_RETURN_IF_ERROR(ValidateNodesAndTensors(problem));
  HEDDLE_RETURN_IF_ERROR(ValidateAcyclic(problem));
  return ValidatePlaceable(problem);
}

Adjacency BuildAdjacency(const Problem& problem) {
  Adjacency result{std::vector<std::vector<int>>(problem.nodes.size()),
                   std::vector<std::vector<int>>(problem.nodes.size())};
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.producer < 0) continue;
    for (int consumer : tensor.consumers) {
      result.successors[tensor.producer].push_back(consumer);
      result.predecessors[consumer].push_back(tensor.producer);
    }
  }
  for (auto* lists : {&result.predecessors, &result.successors}) {
    for (std::vector<int>& list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }
  return result;
}

std::optional<double> Clusters::CostUs(const Problem& problem, int cluster, int device) const {
  double sum = 0;
  for (int node : nodes[cluster]) {
    const std::optional<double>& cost_us = problem.nodes[node].on[device].cost_us;
    if (!cost_us) return std::nullopt;
    sum += *cost_us;
  }
  return sum;
}

double Clusters::Size(const Problem& problem, int cluster, int device) const {
  double sum = 0;
  for (int node : nodes[cluster]) sum += problem.nodes[node].on[device].size;
  return sum;
}

Clusters BuildClusters(const Problem& problem) {
  Clusters result;
  std::map<int, int> cluster_of_group;
  for (size_t node = 0; node < problem.nodes.size(); ++node) {
    const int group = problem.nodes[node].group;
    int cluster = static_cast<int>(result.nodes.size());
    if (group >= 0) cluster = cluster_of_group.try_emplace(group, cluster).first->second;
    if (cluster == static_cast<int>(result.nodes.size())) result.nodes.emplace_back();
    result.nodes[cluster].push_back(static_cast<int>(node));
    result.cluster_of.push_back(cluster);
  }
  return result;
}

}  // namespace heddle::ir::partition
