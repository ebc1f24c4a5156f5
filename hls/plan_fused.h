// Groups of fused layers: which layers may run together row by row, their steps, and the rolling buffers between them.
#ifndef HEDDLE_HLS_PLAN_FUSED_H_
#define HEDDLE_HLS_PLAN_FUSED_H_

#include "hls/plan.h"

namespace heddle::hls {

// Whether layer l and the next may be in one group at all, and whether a tensor would roll in a group [first, last].
bool CanFuseWithNext(const Network& network, int l);
bool CanRoll(const Network& network, int first, int last, int root);

// From the layer that writes a tensor to the last one that reads it; false where it has not one writer or no reader.
bool FusionSpan(const Network& network, int root, int& first, int& last);
void FuseGroup(const Network& network, int first, int last, Plan& plan);

// The first and the last layer of l's group.
int GroupFirst(const Plan& plan, int l);
int GroupLast(const Plan& plan, int l);

// Appends the steps of the group [first, last] (more than one layer; mappings and strides are set), sets rolling_rows of the
// storages that roll in it, and the layers' first and last steps.
void EnumerateFused(const Network& network, int first, int last, Plan& plan);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PLAN_FUSED_H_
