// Finds the cheapest plan with a proof: minimum cut, dynamic programmes over execution states and schedules, or integer
// programme.
#ifndef HEDDLE_IR_PARTITION_SOLVE_H_
#define HEDDLE_IR_PARTITION_SOLVE_H_

#include <absl/status/statusor.h>

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// Of kSerial and kEnergy; kLatency has the schedule programme, kThroughput the integer programme.
enum class Solver {
  kAuto,
  kMinimumCut,        // two devices, no launch overhead, capacity or region limit
  kDynamicProgramme,  // any number of devices, no capacity; gives up on wide graphs
  kIntegerProgramme,  // everything
};

struct SolveOptions {
  Solver solver = Solver::kAuto;
  double time_limit_seconds = 10;  // past it: the best plan found, with its gap
  int max_states = 400'000;        // of the dynamic programme, then it gives up
  bool alternatives = true;        // fill Result::alternatives
};

// Errors: those of Validate; E-PARTITION-004 no placement keeps to capacities and region limits; E-PARTITION-005 the
// solver asked for by name does not apply to this problem.
absl::StatusOr<Result> Solve(const Problem& problem, const SolveOptions& options = {});

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_SOLVE_H_
