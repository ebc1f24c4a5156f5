// What an assignment costs, and what the solver hands back about it.
#ifndef HEDDLE_IR_PARTITION_PLAN_H_
#define HEDDLE_IR_PARTITION_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/partition/problem.h"

namespace heddle::ir::partition {

using Assignment = std::vector<int>;  // device of each node

struct Transfer {
  int tensor = 0;
  int from = 0;
  int to = 0;
  double bytes = 0;
  double us = 0;
};

// Consecutive nodes of one device in the order of execution; convex.
struct Region {
  int device = 0;
  std::vector<int> nodes;  // in the order of execution
  double node_us = 0;
  double launch_us = 0;
};

// The exact cost of one assignment. `feasible` is false where a node is refused, a capacity is exceeded or no order of
// execution keeps to max_regions; the sums are then not defined.
struct Evaluation {
  bool feasible = false;
  double node_us = 0;
  double transfer_us = 0;
  double launch_us = 0;
  double TotalUs() const { return node_us + transfer_us + launch_us; }
  std::vector<Transfer> transfers;  // by tensor, then destination
  std::vector<Region> regions;      // in the order of execution
};
Evaluation Evaluate(const Problem& problem, const Assignment& device_of);

// What would change if this node (with its group) alone moved to `device`.
struct Alternative {
  int device = 0;
  bool supported = false;  // false: see the node's Option for code and text
  bool feasible = false;   // supported, and within capacity and max_regions
  double cost_us = 0;      // of the node itself there
  double transfer_delta_us = 0;
  double launch_delta_us = 0;
  double delta_us = 0;  // change of the plan's total; >= 0 in an optimal plan
  // The smallest change that makes this single move pay, other nodes staying where they are; empty where none does.
  std::string flips_if;
  std::optional<double> flip_bandwidth_bytes_per_us;  // of the links between `device` and the devices it talks to
  std::optional<double> flip_cost_us;                 // the node's cost on `device` below which the move pays
};

struct Result {
  Assignment device_of;
  Evaluation evaluation;
  double cost_us = 0;         // = evaluation.TotalUs()
  double lower_bound_us = 0;  // no assignment costs less
  double gap_percent = 0;     // (cost - bound) / cost x 100; 0 is a proof of optimality
  std::string solver;         // "minimum cut", "dynamic programme", "integer programme", "single device"
  double solve_seconds = 0;
  std::vector<std::vector<Alternative>> alternatives;  // [node], one for each other device in the order of devices
  // Total if everything ran on one device, where that is possible; one for each device.
  std::vector<std::optional<double>> single_device_us;
};

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLAN_H_
