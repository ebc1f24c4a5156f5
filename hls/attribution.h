// Where an accelerator's cycles go, in words for reports, and which change would save most: both by the fast model.
#ifndef HEDDLE_HLS_ATTRIBUTION_H_
#define HEDDLE_HLS_ATTRIBUTION_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hls/program.h"

namespace heddle::hls {

// The kinds by name; they add up to kinds.total_cycles() exactly. Steps that multiply are split in whole cycles:
//   multiplying             macs / peak: what the network's products cost with every lane in use
//   idle_output_lanes       columns without a channel: channels that the lanes do not divide
//   idle_contraction_lanes  rows without a tap: kernel taps x channels that the lanes do not divide, depthwise
// and beside them: other_steps (pooling, element-wise, copies), operand_b, waiting_for_drain, waiting_for_bank,
// waiting_for_load, waiting_for_store, waiting_for_fetch, fill_and_drain, finishing.
std::map<std::string, int64_t> CyclesByCause(const CycleKinds& kinds, int64_t macs, const AcceleratorParams& params);

// A change of one parameter and the cycles that the same program then takes less.
struct Knob {
  std::string change;  // "16 requantise lanes instead of 4"
  int64_t saved_cycles = 0;
};
// Those that save something, most first. The program is not made anew: a compiler that knew could do better.
absl::StatusOr<std::vector<Knob>> TryKnobs(const CompiledProgram& program);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_ATTRIBUTION_H_
