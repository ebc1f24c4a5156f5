// When weights, parameters and tables that do not stay on chip are loaded.
#ifndef HEDDLE_HLS_PLAN_LOADS_H_
#define HEDDLE_HLS_PLAN_LOADS_H_

#include <vector>

#include "hls/plan.h"

namespace heddle::hls {

// `loads`: indices into plan.loads whose `step` is the one that needs them. Moves each to the step at whose start it must be asked
// for to be there in time, and its buffer's first step with it.
void ScheduleConstantLoads(const Network& network, const AcceleratorParams& params, const PlanOptions& options, std::vector<int> loads,
                           Plan& plan);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PLAN_LOADS_H_
