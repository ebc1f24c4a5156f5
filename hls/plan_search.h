// Better plans by trial: changes of one decision at a time, kept where the estimate says so.
#ifndef HEDDLE_HLS_PLAN_SEARCH_H_
#define HEDDLE_HLS_PLAN_SEARCH_H_

#include <functional>

#include "hls/plan.h"

namespace heddle::hls {

// Cycles of a plan.
using PlanCost = std::function<absl::StatusOr<int64_t>(const Plan& plan)>;

// A plan that is at least as good as `plan`.
absl::StatusOr<Plan> ImprovePlan(const Network& network, const AcceleratorParams& params, const PlanOptions& options, Plan plan,
                                 const PlanCost& cost);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PLAN_SEARCH_H_
