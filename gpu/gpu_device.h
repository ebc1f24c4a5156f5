// The GPU as the partitioner and the driver see it.
#ifndef HEDDLE_GPU_GPU_DEVICE_H_
#define HEDDLE_GPU_GPU_DEVICE_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "ir/device.h"

namespace heddle::gpu {

// From the device's object in a target file (keys: gpu_config.h). Kernels run on this machine's GPU or, through OpenCL, on whatever
// device is installed; a "modelled" GPU reports the target's times, a "measured" one those of this machine.
//   E-TARGET-003, E-TARGET-004 for the section; E-GPU-010 where no driver has a device of the wanted type.
absl::StatusOr<std::unique_ptr<ir::Device>> MakeGpuDevice(const nlohmann::json& section);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_GPU_DEVICE_H_
