// What a region becomes on a GPU before any driver is asked: distinct kernels, the steps that launch them, and the device
// memory that they share.
#ifndef HEDDLE_GPU_GPU_PLAN_H_
#define HEDDLE_GPU_GPU_PLAN_H_

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "gpu/kernel_schedule.h"
#include "ir/graph.h"

namespace heddle::gpu {

// A tensor in device memory.
struct PlanTensor {
  std::string name;
  int64_t bytes = 0;
  ir::ValueId value = ir::kNoValue;             // the graph value it holds, if any
  std::shared_ptr<const ir::Tensor> contents;   // of constants and tables
  int first_step = -1, last_step = -1;          // between which it must be kept; constants: always
  int memory = -1;                              // index into GpuPlan::memory_bytes; tensors that never live together share
};

struct PlanStep {
  int kernel = 0;               // index into GpuPlan::kernels
  std::vector<int> arguments;   // indices into GpuPlan::tensors, in the order of the kernel's parameters
  int group = 0;                // index into GpuPlan::groups
};

struct GpuPlan {
  std::vector<ir::loops::Function> kernels;       // distinct code; equal steps share one
  std::vector<PlanStep> steps;                    // in the order in which they run
  std::vector<std::vector<ir::NodeId>> groups;    // fusion groups, in order
  std::vector<PlanTensor> tensors;
  std::vector<int64_t> memory_bytes;              // device allocations
  // Tensors of the graph's inputs and outputs, -1 where no kernel reads or writes them.
  std::vector<int> inputs, outputs;
};

// Types of the region are inferred and static. E-OP-090 where an op has no definition in loops.
absl::StatusOr<GpuPlan> PlanRegion(const ir::Graph& region, const ScheduleOptions& options);

// The kernels of some nodes as one fusion group, without memory: to see what they need of a device.
absl::StatusOr<std::vector<Kernel>> KernelsOfGroup(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes,
                                                   const ScheduleOptions& options);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_GPU_PLAN_H_
