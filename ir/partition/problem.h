// The placement problem, free of any graph IR: which device runs which node so that one inference costs least.
//
// A plan is a sequence of *regions*: a device and the nodes that it runs in one go, in a topological order of the whole.
// Each region costs its device's launch overhead. A region is convex by construction, so a set of nodes that a path
// leaves and enters again is paid for, and limited by `max_regions`, as two regions. A tensor is moved once to each
// device that reads it and did not make it, whatever the number of readers there.
//
// Objectives; the sequence is part of the solution, the cheapest counts:
//
// * kLatency: the end of the last task of one inference (us). Devices and links work side by side. Each device runs one
//   region at a time and each link carries, in each direction, one tensor at a time, in the order of the sequence: a
//   region's missing inputs are queued before it (in the order of its nodes, then of tensors), outputs of the graph
//   after it. A transfer starts when its tensor is there and the link is free; a region starts when all its inputs are
//   there and the device is free, takes its launch overhead and its nodes, and makes its results available at its end.
// * kThroughput: the steady state of many inferences on the same plan (us per inference): the largest load of a device
//   (nodes and launches) or of one direction of a link (transfers).
// * kEnergy: the sum of the energies of nodes, launches and transfers (uJ).
// * kSerial: the sum of the times of nodes, launches and transfers (us): one inference, one task at a time.
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

enum class Objective { kSerial, kLatency, kThroughput, kEnergy };

// One node on one device: a cost, or the reason why the device refuses it.
struct Option {
  std::optional<double> cost_us;  // absent: refused; else finite and >= 0
  std::string provenance;         // of cost_us: measured, simulated, modelled or assumed
  std::string refusal_code;       // "E-ACCEL-003"; may be empty where cost_us is given
  std::string refusal_text;       // names the violated constraint: expected and found
  double size = 0;                // what the node takes of Device::capacity; any unit, the same as the capacity's
  double energy_uj = 0;           // of one run of the node there

  static Option Cost(double us, std::string provenance = "modelled", double size = 0) {
    return {us, std::move(provenance), "", "", size, 0};
  }
  static Option Refused(std::string code, std::string text) {
    return {std::nullopt, "", std::move(code), std::move(text), 0, 0};
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
  double launch_uj = 0;            // energy of a launch
  double area = 0;                 // what the device takes of Problem::max_area as soon as one node runs on it
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
  double uj_per_byte = 0;             // energy of a transfer
  double TransferUs(double bytes) const {
    return latency_us + (bandwidth_bytes_per_us > 0 ? bytes / bandwidth_bytes_per_us : 0);
  }
};

struct Problem {
  Objective objective = Objective::kSerial;
  std::vector<Device> devices;           // 1 to 8
  int host = 0;                          // the device where graph inputs lie and graph outputs are read
  std::vector<std::vector<Link>> links;  // [from][to], square; the diagonal is not read
  std::optional<double> max_area;        // the areas of the devices in use sum to at most this; the host is free
  std::vector<Node> nodes;
  std::vector<Tensor> tensors;  // the edges producer → consumer of all tensors form an acyclic graph

  // A problem with these devices, host 0 and free links.
  static Problem WithDevices(std::vector<Device> devices);
  // Sets both directions.
  void Connect(int a, int b, const Link& link);
  // The same plans with the sum of energies as the sum of times: its kSerial optimum is this problem's kEnergy optimum.
  Problem EnergiesAsTimes() const;
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
