// Kernels as PTX on an NVIDIA GPU, through the CUDA driver library, which is opened when it is asked for: Heddle is not linked to it.
#ifndef HEDDLE_GPU_CUDA_RUNTIME_H_
#define HEDDLE_GPU_CUDA_RUNTIME_H_

#include <memory>
#include <string>

#include "gpu/runtime.h"

namespace heddle::gpu {

// `library` is the driver library's file name.
//   E-GPU-011 where it is absent or lacks a function, E-GPU-012 where it has no device.
absl::StatusOr<std::unique_ptr<GpuRuntime>> MakeCudaRuntime(const std::string& library = "libcuda.so.1");

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_CUDA_RUNTIME_H_
