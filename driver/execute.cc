// Execution of a plan. Values are kept by name until the run ends: names are the same in the whole graph and its regions.

#include "driver/execute.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/check.h"
#include "ir/region.h"
#include "report/format.h"
#include "sim/accelerator_device.h"

namespace heddle::driver {
namespace {

// Of a verilated accelerator of some hundred lanes on one core; a guess for the progress line alone.
constexpr double kUsualCyclesPerSecond = 200'000;

absl::StatusOr<std::vector<ir::Tensor>> Collect(const ir::Graph& graph, const std::vector<ir::ValueId>& ids, const NamedTensors& values) {
  std::vector<ir::Tensor> tensors;
  for (ir::ValueId id : ids) {
    if (const ir::Tensor* constant = graph.ConstantOrNull(id)) {
      tensors.push_back(*constant);
      continue;
    }
    auto it = values.find(graph.value(id).name);
    HEDDLE_CHECK(it != values.end(), "a plan needs a value before it is computed: " + graph.value(id).name);
    tensors.push_back(it->second);
  }
  return tensors;
}

// How long a simulation is, so that who waits knows: the RTL's cycles are known before.
std::string ToSimulate(const CompiledPlanRegion& region) {
  const auto* accelerator = dynamic_cast<const sim::AcceleratorRegion*>(region.code.get());
  if (!accelerator) return "";
  const double cycles = static_cast<double>(accelerator->program().cycles_estimated);
  return fmt::format(": simulating {} cycles, about {:.0f} s in RTL", report::FormatThousands(accelerator->program().cycles_estimated),
                     std::ceil(cycles / kUsualCyclesPerSecond));
}

}  // namespace

absl::StatusOr<std::vector<CompiledPlanRegion>> CompilePlan(const ir::Graph& graph, const std::vector<PlannedRegion>& plan,
                                                            DeviceList& devices, const std::filesystem::path& directory,
                                                            const std::function<void(const std::string&)>& progress) {
  std::vector<CompiledPlanRegion> regions;
  for (size_t i = 0; i < plan.size(); ++i) {
    CompiledPlanRegion region;
    region.planned = plan[i];
    region.name = fmt::format("region_{:03}", i);
    region.graph = std::make_shared<const ir::Graph>(ir::ExtractRegion(graph, plan[i].nodes));
    ir::Device& device = *devices[static_cast<size_t>(plan[i].device)];
    if (progress) progress(fmt::format("{} on {} ({} nodes)", region.name, device.name(), plan[i].nodes.size()));
    ir::CompileRequest request{region.name, {}, progress};
    if (!directory.empty()) request.directory = directory / device.kind() / region.name;
    HEDDLE_ASSIGN_OR_RETURN(region.code, device.Compile(region.graph, request));
    regions.push_back(std::move(region));
  }
  return regions;
}

absl::StatusOr<PlanRun> RunPlan(const ir::Graph& graph, std::vector<CompiledPlanRegion>& plan, const std::vector<ir::Tensor>& inputs,
                                const std::function<void(const std::string&)>& progress) {
  NamedTensors values;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.value(graph.inputs()[i]).name] = inputs[i];
  PlanRun run;
  for (CompiledPlanRegion& region : plan) {
    if (progress) progress(region.name + ToSimulate(region));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::Tensor> arguments, Collect(*region.graph, region.graph->inputs(), values));
    HEDDLE_ASSIGN_OR_RETURN(ir::RunResult result, region.code->Run(arguments));
    HEDDLE_CHECK(result.outputs.size() == region.graph->outputs().size(), "a region gave the wrong number of outputs");
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      values[region.graph->value(region.graph->outputs()[i]).name] = result.outputs[i];
    }
    run.regions.push_back(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(run.outputs, Collect(graph, graph.outputs(), values));
  return run;
}

}  // namespace heddle::driver
