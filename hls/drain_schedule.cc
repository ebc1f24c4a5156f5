// The cycles in which the groups of a pixel use the multipliers, laid over those of a second pixel at every distance.

#include "hls/drain_schedule.h"

#include <algorithm>

#include "ir/check.h"

namespace heddle::hls {

DrainMode DrainModeOf(const ComputeFields& fields) {
  return {fields.wide != 0, fields.drain == Drain::kMultiply, fields.add_b != 0};
}

int64_t GroupIntervalCycles(const DrainMode& mode) { return (mode.wide ? 2 : 1) * (mode.multiply || mode.add ? 2 : 1); }

std::vector<bool> PixelConflicts(int64_t drain_cycles, const DrainMode& mode) {
  std::vector<int64_t> group = {0};
  if (mode.wide) group.push_back(1);
  if (mode.multiply) group.push_back(-kProductLead);
  if (mode.add) group.push_back(kAdditionLag);
  const int64_t interval = GroupIntervalCycles(mode);
  std::vector<int64_t> uses;
  for (int64_t g = 0; g < drain_cycles; ++g) {
    for (int64_t use : group) uses.push_back(g * interval + use);
  }
  std::sort(uses.begin(), uses.end());
  HEDDLE_CHECK(std::adjacent_find(uses.begin(), uses.end()) == uses.end(), "groups of one pixel meet in the drain");
  // A pixel waits for the drain's input until the last group of the one before has left it.
  const int64_t occupied = drain_cycles * interval;
  std::vector<bool> conflicts(static_cast<size_t>(std::max(occupied, uses.back() - uses.front() + 1)), false);
  std::fill(conflicts.begin(), conflicts.begin() + occupied, true);
  for (int64_t earlier : uses) {
    for (int64_t later : uses) {
      if (earlier > later) conflicts[static_cast<size_t>(earlier - later)] = true;
    }
  }
  return conflicts;
}

}  // namespace heddle::hls
