// Two devices with additive costs: the exact optimum by maximum flow.
#ifndef HEDDLE_IR_PARTITION_MIN_CUT_H_
#define HEDDLE_IR_PARTITION_MIN_CUT_H_

#include <optional>

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

struct Cut {
  Assignment device_of;
  double value_us = 0;  // node costs + transfers
};

// The cheapest placement on the devices `a` and `b` alone, launches, capacities and region limits left out; so its
// value bounds every plan on these two devices from below. Absent where a cluster runs on neither.
std::optional<Cut> MinimumCut(const Problem& problem, const Clusters& clusters, int a, int b);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_MIN_CUT_H_
