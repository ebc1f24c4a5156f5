// A quick estimate for comparing plans; the fast model (hls/timing.h) is exact and slower.
#ifndef HEDDLE_HLS_PLAN_ESTIMATE_H_
#define HEDDLE_HLS_PLAN_ESTIMATE_H_

#include <cstdint>
#include <vector>

#include "hls/isa.h"
#include "hls/memory_model.h"
#include "hls/params.h"

namespace heddle::hls {

// Cycles of a program whose tokens are in order.
int64_t QuickProgramCycles(const AcceleratorParams& params, const MemoryModel& memory, const std::vector<Instruction>& program);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PLAN_ESTIMATE_H_
