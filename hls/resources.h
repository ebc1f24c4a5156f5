// How large an accelerator is, from its parameters alone: one formula a unit.
#ifndef HEDDLE_HLS_RESOURCES_H_
#define HEDDLE_HLS_RESOURCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "hls/params.h"

namespace heddle::hls {

struct UnitResources {
  std::string unit;  // "array", "drain", "activation_memory", …
  int64_t lut = 0, ff = 0, dsp = 0, bram36 = 0;
};

struct Resources {
  int64_t lut = 0, ff = 0, dsp = 0, bram36 = 0;  // sums over units
  std::vector<UnitResources> units;
};

// For a 7-series FPGA (6-input LUT, DSP48E1 25x18, RAMB36).
Resources EstimateResources(const AcceleratorParams& params);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_RESOURCES_H_
