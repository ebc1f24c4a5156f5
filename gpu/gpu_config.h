// The GPU's section of a target file.
#ifndef HEDDLE_GPU_GPU_CONFIG_H_
#define HEDDLE_GPU_GPU_CONFIG_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "ir/roofline.h"
#include "ir/status.h"

namespace heddle::gpu {

struct GpuConfig {
  std::string name = "gpu";
  bool is_measured = false;  // "timing": "measured" runs nodes to learn their times; "modelled" uses the roofline
  ir::Roofline roofline;     // of "modelled"
  double launch_overhead_us = 0;
  std::string opencl_device_type = "any";  // "gpu", "cpu", "any"
  bool emit_ptx = false;                   // write the kernels as PTX too, for inspection
  std::string api = "any";                 // "opencl", "cuda", "any": CUDA where its driver has a device, else OpenCL
};

// Keys: name, kind, optional, timing, float_gmacs_per_s, int8_gmacs_per_s, other_gops_per_s, memory_gb_per_s, node_overhead_us,
// launch_overhead_us, opencl_device_type, api, emit_ptx. All but "name" may be left out; a modelled GPU needs the four rates.
//   E-TARGET-003 for an unknown key, E-TARGET-004 for a value out of its range or a missing rate.
absl::StatusOr<GpuConfig> ParseGpuConfig(const nlohmann::json& section);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_GPU_CONFIG_H_
