// How large an accelerator is, from its parameters alone: one formula a module of the RTL. What Yosys makes of the RTL is in
// synthesis.h; docs/accelerator.md states what of the formulas was checked against it.
#ifndef HEDDLE_HLS_RESOURCES_H_
#define HEDDLE_HLS_RESOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "hls/params.h"

namespace heddle::hls {

struct UnitResources {
  std::string unit;  // "array", "drain", "activation_memory", …
  int64_t lut = 0, ff = 0, dsp = 0;
  int64_t bram18 = 0;  // 18 Kibit block RAMs; a RAMB36 counts as two
};

struct Resources {
  int64_t lut = 0, ff = 0, dsp = 0, bram18 = 0;  // sums over units
  int64_t bram36() const { return (bram18 + 1) / 2; }
  std::vector<UnitResources> units;
};

// For a 7-series FPGA (6-input LUT, DSP48E1 25x18, RAMB36).
Resources EstimateResources(const AcceleratorParams& params);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_RESOURCES_H_
