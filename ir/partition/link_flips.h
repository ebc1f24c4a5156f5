// Which faster link would move which node: found by solving again.
#ifndef HEDDLE_IR_PARTITION_LINK_FLIPS_H_
#define HEDDLE_IR_PARTITION_LINK_FLIPS_H_

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"
#include "ir/partition/solve.h"

namespace heddle::ir::partition {

// The problem with all links of `device` so many times as fast (their latencies stay).
Problem WithFasterLinks(const Problem& problem, int device, double factor);

// Sets the flip_link_factor of result.alternatives, for kSerial and kLatency. Nothing is set where the plan, or a plan on
// the way, is not proven; in large graphs, where each solution takes long, only the lowest thresholds are found, or none.
void FindLinkFlips(const Problem& problem, const SolveOptions& options, Result& result);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_LINK_FLIPS_H_
