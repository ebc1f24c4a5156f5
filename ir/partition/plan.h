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

// One element of the plan's sequence; convex.
struct Region {
  int device = 0;
  std::vector<int> nodes;  // in the order of execution
  double node_us = 0;
  double launch_us = 0;
};

// What one plan costs. `feasible` is false where a node is refused, a capacity or the area is exceeded or no order of
// execution keeps to max_regions; nothing else is then defined.
struct Evaluation {
  bool feasible = false;
  double cost = 0;  // in the objective's unit (UnitOf): one of the three below or, for kSerial, BusyUs()
  double latency_us = 0;
  double period_us = 0;
  double energy_uj = 0;
  double node_us = 0;  // sums over the whole plan
  double transfer_us = 0;
  double launch_us = 0;
  double BusyUs() const { return node_us + transfer_us + launch_us; }
  std::vector<Transfer> transfers;  // by tensor, then destination
  std::vector<Region> regions;      // the plan's sequence
};

// "us" or "uJ".
std::string UnitOf(Objective objective);
// "latency", "throughput", "energy", "serial".
std::string NameOf(Objective objective);

// What would change if this node (with its group) alone moved to `device`.
struct Alternative {
  int device = 0;
  bool supported = false;  // false: see the node's Option for code and text
  bool feasible = false;   // supported, and within capacity and max_regions
  double cost_us = 0;      // of the node itself there
  double transfer_delta_us = 0;
  double launch_delta_us = 0;
  double delta = 0;  // change of the plan's cost, in the objective's unit; >= 0 in an optimal plan
  // The smallest change that moves the node, in words; empty where none does.
  std::string flips_if;
  // How many times as fast all links of `device` must be for the best plan to have the node there: above it does, just
  // below it does not. Found by solving again, so that groups of nodes that move together are seen.
  std::optional<double> flip_link_factor;
  bool link_flip_sought = false;  // false where solving again took too long to know whether there is such a factor
  std::optional<double> flip_bandwidth_bytes_per_us;  // the same as the bandwidth of the slowest of these links
  // The node's cost on `device` below which the move pays on its own, the other nodes staying where they are.
  std::optional<double> flip_cost_us;
};

struct Result {
  Assignment device_of;
  Evaluation evaluation;
  double cost = 0;         // = evaluation.cost
  double lower_bound = 0;  // no plan costs less; same unit
  double gap_percent = 0;  // (cost - bound) / cost x 100; 0 is a proof of optimality
  std::string solver;      // "minimum cut", "dynamic programme", "schedule programme", "priced dynamic programme",
                           // "integer programme", "single device"
  double solve_seconds = 0;
  std::vector<std::vector<Alternative>> alternatives;  // [node], one for each other device in the order of devices
  // Latency of everything on one device (kSerial: its sum), where that is possible; one for each device.
  std::vector<std::optional<double>> single_device_us;
};

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLAN_H_
