// From decisions (what is spilled, how layers are cut, what is resident) to steps, buffers and transfers; used by plan.cc.
#ifndef HEDDLE_HLS_PLAN_SCHEDULE_H_
#define HEDDLE_HLS_PLAN_SCHEDULE_H_

#include <vector>

#include "hls/plan.h"

namespace heddle::hls {

// Fills strides, DRAM addresses, mappings, steps, buffers and transfers of `plan` from the decisions that stand in it
// (StoragePlan::spilled; LayerPlan's rows_per_tile, blocks_per_tile and …_resident; 0 means all).
void ScheduleNetwork(const Network& network, const AcceleratorParams& params, const PlanOptions& options, Plan& plan);

// Rows of the operand's root storage (n * height + h) that a piece of the layer touches: [first, last].
void PieceRows(const Network& network, const Layer& layer, const Operand& operand, const Piece& piece, int64_t& first, int64_t& last);

// Gives every buffer an address; false with the buffer that found no room.
bool PlaceBuffers(const AcceleratorParams& params, Plan& plan, int& failed);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PLAN_SCHEDULE_H_
