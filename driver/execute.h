// Runs a plan: region after region in the order of execution, values handed from device to device by name.
#ifndef HEDDLE_DRIVER_EXECUTE_H_
#define HEDDLE_DRIVER_EXECUTE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/partition_model.h"
#include "ir/device.h"

namespace heddle::driver {

using NamedTensors = std::map<std::string, ir::Tensor>;

struct CompiledPlanRegion {
  PlannedRegion planned;
  std::string name;  // region_000
  std::shared_ptr<const ir::Graph> graph;
  std::unique_ptr<ir::CompiledRegion> code;
};

struct PlanRun {
  std::vector<ir::RunResult> regions;  // as in the plan
  std::vector<ir::Tensor> outputs;     // of the whole graph
};

// Compiles every region for its device; artefacts go to DIRECTORY/{cpu,gpu,accelerator}/region_NNN (none where empty).
absl::StatusOr<std::vector<CompiledPlanRegion>> CompilePlan(const ir::Graph& graph, const std::vector<PlannedRegion>& plan,
                                                            DeviceList& devices, const std::filesystem::path& directory,
                                                            const std::function<void(const std::string&)>& progress);

// `inputs`: one per graph input.
absl::StatusOr<PlanRun> RunPlan(const ir::Graph& graph, std::vector<CompiledPlanRegion>& plan,
                                const std::vector<ir::Tensor>& inputs,
                                const std::function<void(const std::string&)>& progress);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_EXECUTE_H_
