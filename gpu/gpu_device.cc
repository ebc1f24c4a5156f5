// Support, cost and compilation. Reasons for refusing a node: E-GPU-001 no definition in loops, E-GPU-002 shapes that are not
// constant, E-GPU-003 64-bit floats, E-GPU-004 exactly rounded division, E-GPU-005 memory.

#include "gpu/gpu_device.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "gpu/cuda_runtime.h"
#include "gpu/gpu_config.h"
#include "gpu/gpu_region.h"
#include "gpu/opencl_runtime.h"
#include "ir/loops/printer.h"
#include "ir/op.h"
#include "ir/region.h"

namespace heddle::gpu {
namespace {

using ir::Cost;
using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Support;
using ir::Tensor;
using ir::ValueId;

// Runs of a region that is timed, after one that warms up; the fastest counts.
constexpr int kTimedRuns = 3;

// Values for a timing run: small, so that no denormal and no index out of the ordinary slows it down.
Tensor TimingInput(const ir::ValueType& type, std::mt19937& random) {
  Tensor tensor(type.element, type.static_shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (ir::IsFloat(type.element)) {
      tensor.set_double(i, static_cast<double>(random() % 2048) / 1024.0 - 1.0);
    } else {
      tensor.set_int(i, static_cast<int64_t>(random() % 2));
    }
  }
  return tensor;
}

class GpuDevice : public ir::Device {
 public:
  GpuDevice(GpuConfig config, std::shared_ptr<GpuRuntime> runtime) : config_(std::move(config)), runtime_(std::move(runtime)) {}

  std::string name() const override { return config_.name; }
  std::string kind() const override { return "gpu"; }
  double launch_overhead_us() const override { return config_.launch_overhead_us; }

  Support Supports(const Graph& graph, const Node& node) const override {
    const GpuCapabilities& device = runtime_->capabilities();
    if (ir::FindOp(node.op) == nullptr) return Support::No("E-GPU-001", "op " + node.op + " is not known");
    int64_t bytes = 0;
    for (const std::vector<ValueId>& values : {node.inputs, node.outputs}) {
      for (ValueId id : values) {
        if (id == ir::kNoValue) continue;
        const ir::ValueType& type = graph.type(id);
        if (!type.is_static()) return Support::No("E-GPU-002", fmt::format("'{}' has no constant shape: {}", graph.value(id).name, TypeText(type)));
        if (type.bytes() > device.max_buffer_bytes) {
          return Support::No("E-GPU-005", fmt::format("'{}' has {} bytes, {} allows {} in one buffer", graph.value(id).name, type.bytes(),
                                                      device.device_name, device.max_buffer_bytes));
        }
        bytes += type.bytes();
      }
    }
    if (bytes > device.memory_bytes) {
      return Support::No("E-GPU-005", fmt::format("needs {} bytes, {} has {}", bytes, device.device_name, device.memory_bytes));
    }
    const auto kernels = KernelsOfGroup(graph, {node.id}, OptionsFor(device));
    if (!kernels.ok()) return Support::No("E-GPU-001", std::string(kernels.status().message()));
    for (const Kernel& kernel : *kernels) {
      const KernelNeeds needs = NeedsOf(kernel.function);
      if (needs.fp64 && !device.fp64) return Support::No("E-GPU-003", "needs 64-bit floats, which " + device.device_name + " lacks");
      if (needs.exact_division && !device.exact_division) {
        return Support::No("E-GPU-004", "needs correctly rounded division, which " + device.device_name + " lacks");
      }
    }
    return Support::Yes();
  }

  absl::StatusOr<Cost> EstimateCost(const Graph& graph, const std::vector<NodeId>& nodes) const override {
    Cost cost = RooflineCost(graph, nodes, config_.roofline);
    if (!config_.is_measured) return cost;
    auto region = std::make_shared<const Graph>(ExtractRegion(graph, nodes));
    HEDDLE_ASSIGN_OR_RETURN(cost.time_us, MeasureUs(region));
    cost.provenance = ir::Provenance::kMeasured;
    cost.source = fmt::format("run on {}, fastest of {}", runtime_->capabilities().device_name, kTimedRuns);
    return cost;
  }

  absl::StatusOr<std::unique_ptr<ir::CompiledRegion>> Compile(std::shared_ptr<const Graph> region,
                                                              const ir::CompileRequest& request) override {
    return CompileGpuRegion(std::move(region), request, config_, runtime_);
  }

 private:
  absl::StatusOr<double> MeasureUs(const std::shared_ptr<const Graph>& region) const {
    HEDDLE_ASSIGN_OR_RETURN(const GpuPlan plan, PlanRegion(*region, OptionsFor(runtime_->capabilities())));
    std::string key;  // equal kernels in equal order take equal time
    for (const PlanStep& step : plan.steps) key += CanonicalKey(plan.kernels[static_cast<size_t>(step.kernel)]);
    if (auto it = measured_us_.find(key); it != measured_us_.end()) return it->second;
    HEDDLE_ASSIGN_OR_RETURN(auto compiled, CompileGpuRegion(region, {.name = "timing"}, config_, runtime_));
    std::mt19937 random(1);
    std::vector<Tensor> inputs;
    for (ValueId id : region->inputs()) inputs.push_back(TimingInput(region->type(id), random));
    double best_us = 0;
    for (int run = 0; run <= kTimedRuns; ++run) {
      HEDDLE_ASSIGN_OR_RETURN(const ir::RunResult result, compiled->Run(inputs));
      if (run == 1 || (run > 1 && result.time_us < best_us)) best_us = result.time_us;
    }
    measured_us_[key] = best_us;
    return best_us;
  }

  GpuConfig config_;
  std::shared_ptr<GpuRuntime> runtime_;
  mutable std::map<std::string, double> measured_us_;
};

// CUDA where its driver has a device and nothing else is asked for, else OpenCL.
absl::StatusOr<std::unique_ptr<GpuRuntime>> MakeRuntime(const GpuConfig& config) {
  if (config.api == "cuda") return MakeCudaRuntime();
  if (config.api == "any" && config.opencl_device_type != "cpu") {
    if (auto runtime = MakeCudaRuntime(); runtime.ok()) return runtime;
  }
  return MakeOpenClRuntime(config.opencl_device_type);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Device>> MakeGpuDevice(const nlohmann::json& section) {
  HEDDLE_ASSIGN_OR_RETURN(GpuConfig config, ParseGpuConfig(section));
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<GpuRuntime> runtime, MakeRuntime(config));
  return std::make_unique<GpuDevice>(std::move(config), std::move(runtime));
}

}  // namespace heddle::gpu
