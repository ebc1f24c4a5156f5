// Kernels on any OpenCL 1.2 driver.
#ifndef HEDDLE_GPU_OPENCL_RUNTIME_H_
#define HEDDLE_GPU_OPENCL_RUNTIME_H_

#include <memory>
#include <string>

#include "gpu/runtime.h"

namespace heddle::gpu {

// `device_type` is "gpu", "cpu" or "any" (a GPU where there is one, else whatever exists).
//   E-GPU-010 where no driver or no device of the type is installed; the text says what was found.
absl::StatusOr<std::unique_ptr<GpuRuntime>> MakeOpenClRuntime(const std::string& device_type);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_OPENCL_RUNTIME_H_
