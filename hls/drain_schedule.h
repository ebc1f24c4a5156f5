// When pixels may follow each other in the drain: each of its lanes has two multipliers, which a result needs several times.
#ifndef HEDDLE_HLS_DRAIN_SCHEDULE_H_
#define HEDDLE_HLS_DRAIN_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "hls/isa.h"

namespace heddle::hls {

// Cycles from the multiplication of two operands to that of the sum which it becomes, and from a sum to the addition behind it.
// The lag is a prime above the length of the pipeline between the two: pixels of p steps meet an addition before them only where
// p divides it.
inline constexpr int kProductLead = 3;
inline constexpr int kAdditionLag = 11;

// What a result needs of its lane's multipliers. At most one of multiply and add; wide not with multiply.
struct DrainMode {
  bool wide = false, multiply = false, add = false;
};
inline constexpr DrainMode kDrainModes[] = {{false, false, false}, {true, false, false}, {false, true, false}, {false, false, true}, {true, false, true}};

DrainMode DrainModeOf(const ComputeFields& fields);

// Cycles from one group of requantise_lanes results of a pixel to the next.
int64_t GroupIntervalCycles(const DrainMode& mode);

// [d]: whether no pixel may be completed d cycles after another one, whose drain_cycles groups would meet its own in the drain.
// Distances from the size on are free.
std::vector<bool> PixelConflicts(int64_t drain_cycles, const DrainMode& mode);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_DRAIN_SCHEDULE_H_
