// A region as a whole takes another time than its nodes one by one: layers keep tensors on chip, weights are loaded ahead,
// programs are searched. What the compiled regions say replaces the sums.
#ifndef HEDDLE_DRIVER_REFINE_COSTS_H_
#define HEDDLE_DRIVER_REFINE_COSTS_H_

#include <vector>

#include "driver/execute.h"
#include "driver/partition_model.h"

namespace heddle::driver {

// Gives the nodes of each compiled region that predicts its time (ir::CompiledRegion::PredictedUs) their parts of it as
// costs on its device. False where no cost changes.
bool RefineCosts(const std::vector<CompiledPlanRegion>& regions, const ir::Graph& graph, PartitionModel& model);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_REFINE_COSTS_H_
