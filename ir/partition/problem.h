// The placement problem, free of any graph IR: which device runs which node so that one inference costs least.
//
// Objective (kLatency): the plan runs serially, one node after the other in some topological order, and costs
//
//     sum of node costs  +  sum of transfers  +  sum of launch overheads
//
// * A tensor is moved once to each device that reads it and did not make it, whatever the number of readers there:
//   link latency + bytes / bandwidth of the link from its producer.
// * Consecutive nodes of one device in that order form one *region* (a launch), and each region costs its device's
//   launch overhead. The order is part of the solution: the one with the least overhead counts. A run of consecutive
//   nodes in a topological order is convex by construction, so a set of nodes that a path leaves and enters again is
//   paid for, and limited by `max_regions`, as two regions.
//
// Example: a chain a → b → c on devices {cpu, accelerator} with an overhead of 5 us on the accelerator; cpu-acc-cpu has
// the regions {a}, {b}, {c} and pays 5 us once.
#ifndef HEDDLE_IR_PARTITION_PROBLEM_H_
#define HEDDLE_IR_PARTITION_PROBLEM_H_

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle::ir::partition {

enum class Objective { kLatency };

// One node on one device: a cost, or the reason why the device refuses it.
struct Option {
  std::optional<double> cost_us;  // absent: refused; else finite and >= 0
  std::string provenance;         // of cost_us: measured, simulated, modelled or assumed
  std::string refusal_code;       // "E-ACCEL-003"; may be empty where cost_us is given
  std::string refusal_text;       // names the violated constraint: expected and found
  double size = 0;                // what the node takes of Device::capacity; any unit, the same as the capacity's

  static Option Cost(double us, std::string provenance = "modelled", double size = 0) {
    return {us, std::move(provenance), "", "", size};
  }
  static Option Refused(std::string code, std::string text) {
    return {std::nullopt, "", std::move(code), std::move(text), 0};
  }
};

struct Node {
  std::string name;
  std::vector<Option> on;  // one for each device, in the order of Problem::devices
  int group = -1;          // nodes of one group (>= 0) run on one device; -1: free
};

struct Device {
  std::string name;                // unique: "cpu", "gpu", "accelerator"
  std::string kind;                // cpu, gpu, accelerator
  double launch_us = 0;            // each region on this device costs so much on top of its nodes
  std::optional<double> capacity;  // the sizes of its nodes sum to at most this
  std::optional<int> max_regions;  // 1: everything on this device is one convex region
};

// One tensor with its readers (a hyper-edge).
struct Tensor {
  std::string name;
  int producer = -1;           // index of the node; -1: an input of the graph, which lies on the host
  std::vector<int> consumers;  // indices of nodes
  bool to_host = false;        // an output of the graph: the host reads it too
  double bytes = 0;
};

// Time to move n bytes: latency_us + n / bandwidth_bytes_per_us (1 GB/s = 1000 bytes/us).
struct Link {
  double latency_us = 0;
  double bandwidth_bytes_per_us = 0;  // 0: bytes are free, only the latency counts
  double TransferUs(double bytes) const {
    return latency_us + (bandwidth_bytes_per_us > 0 ? bytes / bandwidth_bytes_per_us : 0);
  }
};

struct Problem {
  Objective objective = Objective::kLatency;
  std::vector<Device> devices;           // 1 to 8
  int host = 0;                          // the device where graph inputs lie and graph outputs are read
  std::vector<std::vector<Link>> links;  // [from][to], square; the diagonal is not read
  std::vector<Node> nodes;
  std::vector<Tensor> tensors;  // the edges producer → consumer of all tensors form an acyclic graph

  // A problem with these devices, host 0 and free links.
  static Problem WithDevices(std::vector<Device> devices);
  // Sets both directions.
  void Connect(int a, int b, const Link& link);
  // Adds a node and returns its index.
  int AddNode(std::string name, std::vector<Option> on, int group = -1);
};

// E-PARTITION-001 malformed (indices, counts, negative or not finite numbers), E-PARTITION-002 a cycle,
// E-PARTITION-003 a node or a group that no device takes (names every one of them with all reasons).
absl::Status Validate(const Problem& problem);

// Predecessor and successor nodes of each node, each pair once, ascending.
struct Adjacency {
  std::vector<std::vector<int>> predecessors;
  std::vector<std::vector<int>> successors;
};
Adjacency BuildAdjacency(const Problem& problem);

// Nodes that must be placed together: cluster_of[node], and the nodes of each cluster, ascending.
struct Clusters {
  std::vector<int> cluster_of;
  std::vector<std::vector<int>> nodes;
  // Sum of the costs of a cluster's nodes on a device; absent where one of them is refused.
  std::optional<double> CostUs(const Problem& problem, int cluster, int device) const;
  double Size(const Problem& problem, int cluster, int device) const;
};
Clusters BuildClusters(const Problem& problem);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PROBLEM_H_
