// A region compiled for one driver: device memory, constants uploaded, kernels built.
#ifndef HEDDLE_GPU_GPU_REGION_H_
#define HEDDLE_GPU_GPU_REGION_H_

#include <memory>

#include "gpu/gpu_config.h"
#include "gpu/gpu_plan.h"
#include "gpu/runtime.h"
#include "ir/device.h"

namespace heddle::gpu {

// Writes the kernels as <request.name>.cl (or .ptx) into request.directory. Errors: E-GPU-0…, E-OP-090.
absl::StatusOr<std::unique_ptr<ir::CompiledRegion>> CompileGpuRegion(std::shared_ptr<const ir::Graph> region,
                                                                     const ir::CompileRequest& request, const GpuConfig& config,
                                                                     std::shared_ptr<GpuRuntime> runtime);

// Options that suit a device.
ScheduleOptions OptionsFor(const GpuCapabilities& capabilities);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_GPU_REGION_H_
