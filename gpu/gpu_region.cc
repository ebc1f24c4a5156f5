// The whole path of one region: plan → print → build → allocate → upload constants; then, each run, upload inputs, launch every
// step, download outputs.

#include "gpu/gpu_region.h"

#include <algorithm>
#include <fstream>

#include "gpu/ptx_emitter.h"
#include "ir/check.h"
#include "ir/roofline.h"

namespace heddle::gpu {
namespace {

namespace fs = std::filesystem;
using ir::RunResult;
using ir::Tensor;
using ir::UserError;

absl::Status WriteText(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = path.string() + ".tmp";
  {
    std::ofstream out(temporary, std::ios::binary);
    out << text;
    if (!out) return UserError("E-GPU-030", "cannot write " + path.string(), "Check the output folder's permissions and free space.");
  }
  fs::rename(temporary, path, error);
  return error ? UserError("E-GPU-030", "cannot write " + path.string() + ": " + error.message()) : absl::OkStatus();
}

class GpuRegion : public ir::CompiledRegion {
 public:
  GpuRegion(std::shared_ptr<const ir::Graph> graph, const GpuConfig& config, std::shared_ptr<GpuRuntime> runtime, GpuPlan plan)
      : graph_(std::move(graph)), config_(config), runtime_(std::move(runtime)), plan_(std::move(plan)) {}

  absl::Status Prepare(const std::string& source) {
    HEDDLE_ASSIGN_OR_RETURN(program_, runtime_->Build(source, plan_.kernels));
    for (int64_t bytes : plan_.memory_bytes) {
      HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<GpuBuffer> block, runtime_->Allocate(bytes));
      memory_.push_back(std::move(block));
    }
    for (const PlanTensor& tensor : plan_.tensors) {
      if (tensor.contents) HEDDLE_RETURN_IF_ERROR(runtime_->Upload(MemoryOf(tensor), tensor.contents->data(), tensor.bytes));
    }
    return runtime_->Finish().status();
  }

  absl::StatusOr<RunResult> Run(const std::vector<Tensor>& inputs) override {
    HEDDLE_RETURN_IF_ERROR(CheckInputs(inputs));
    RunResult result;
    std::vector<std::string> commands;  // names, in the order of the runtime's times
    HEDDLE_RETURN_IF_ERROR(EnqueueUploads(inputs, commands));
    const size_t first_kernel = commands.size();
    for (const PlanStep& step : plan_.steps) {
      std::vector<const GpuBuffer*> arguments;
      for (int tensor : step.arguments) arguments.push_back(&MemoryOf(plan_.tensors[static_cast<size_t>(tensor)]));
      HEDDLE_RETURN_IF_ERROR(program_->Launch(step.kernel, arguments));
      commands.push_back(GroupName(step.group));
    }
    const size_t end_kernel = commands.size();
    HEDDLE_RETURN_IF_ERROR(EnqueueDownloads(inputs, commands, result));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<GpuTimes> times, runtime_->Finish());
    HEDDLE_CHECK(times.size() == commands.size(), "a time for each command");
    if (config_.is_measured) {
      ReportMeasured(commands, times, first_kernel, end_kernel, result);
    } else {
      ReportModelled(result);
    }
    result.counters["kernels"] = static_cast<int64_t>(plan_.steps.size());
    return result;
  }

 private:
  GpuBuffer& MemoryOf(const PlanTensor& tensor) { return *memory_[static_cast<size_t>(tensor.memory)]; }

  std::string GroupName(int group) const { return graph_->node(plan_.groups[static_cast<size_t>(group)].front()).name; }

  absl::Status CheckInputs(const std::vector<Tensor>& inputs) const {
    if (inputs.size() != graph_->inputs().size()) {
      return UserError("E-GPU-031", fmt::format("the region takes {} inputs, found {}", graph_->inputs().size(), inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::Value& value = graph_->value(graph_->inputs()[i]);
      if (inputs[i].type() != value.type.element || inputs[i].shape() != value.type.static_shape()) {
        return UserError("E-GPU-031", fmt::format("input '{}' must be {}, found {}[{}]", value.name, ir::TypeText(value.type),
                                                  ir::ElementTypeName(inputs[i].type()), ir::ShapeText(inputs[i].shape())));
      }
    }
    return absl::OkStatus();
  }

  absl::Status EnqueueUploads(const std::vector<Tensor>& inputs, std::vector<std::string>& commands) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (plan_.inputs[i] < 0 || inputs[i].bytes() == 0) continue;
      const PlanTensor& tensor = plan_.tensors[static_cast<size_t>(plan_.inputs[i])];
      HEDDLE_RETURN_IF_ERROR(runtime_->Upload(MemoryOf(tensor), inputs[i].data(), tensor.bytes));
      commands.push_back(tensor.name);
    }
    return absl::OkStatus();
  }

  // Outputs that no kernel computes are constants or inputs that pass through.
  absl::Status EnqueueDownloads(const std::vector<Tensor>& inputs, std::vector<std::string>& commands, RunResult& result) {
    for (size_t o = 0; o < graph_->outputs().size(); ++o) {
      const ir::ValueId id = graph_->outputs()[o];
      const ir::ValueType& type = graph_->type(id);
      result.outputs.emplace_back(type.element, type.static_shape());
      if (graph_->IsConstant(id)) result.outputs.back() = *graph_->value(id).constant;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (graph_->inputs()[i] == id) result.outputs.back() = inputs[i];
      }
    }
    for (size_t o = 0; o < graph_->outputs().size(); ++o) {
      if (plan_.outputs[o] < 0 || result.outputs[o].bytes() == 0) continue;
      const PlanTensor& tensor = plan_.tensors[static_cast<size_t>(plan_.outputs[o])];
      HEDDLE_RETURN_IF_ERROR(runtime_->Download(MemoryOf(tensor), result.outputs[o].data(), tensor.bytes));
      commands.push_back(tensor.name);
    }
    return absl::OkStatus();
  }

  void ReportMeasured(const std::vector<std::string>& commands, const std::vector<GpuTimes>& times, size_t first_kernel,
                      size_t end_kernel, RunResult& result) const {
    result.provenance = ir::Provenance::kMeasured;
    for (size_t c = 0; c < commands.size(); ++c) {
      const bool is_kernel = c >= first_kernel && c < end_kernel;
      result.events.push_back({is_kernel ? config_.name : config_.name + ".transfer", commands[c], times[c].start_us - times[0].start_us,
                               times[c].end_us - times[0].start_us});
    }
    if (end_kernel > first_kernel) result.time_us = times[end_kernel - 1].end_us - times[first_kernel].start_us;
  }

  // The device that runs the kernels here is not the one that the target describes: its times come from the model.
  void ReportModelled(RunResult& result) const {
    result.provenance = ir::Provenance::kModelled;
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      const double cost_us = RooflineCost(*graph_, plan_.groups[g], config_.roofline).time_us;
      result.events.push_back({config_.name, GroupName(static_cast<int>(g)), result.time_us, result.time_us + cost_us});
      result.time_us += cost_us;
    }
  }

  std::shared_ptr<const ir::Graph> graph_;
  GpuConfig config_;
  std::shared_ptr<GpuRuntime> runtime_;
  GpuPlan plan_;
  std::unique_ptr<GpuProgram> program_;
  std::vector<std::unique_ptr<GpuBuffer>> memory_;
};

}  // namespace

ScheduleOptions OptionsFor(const GpuCapabilities& capabilities) {
  ScheduleOptions options;
  options.max_lanes = capabilities.max_lanes;
  options.group_size = std::min<int64_t>(64, capabilities.max_group_size);
  return options;
}

absl::StatusOr<std::unique_ptr<ir::CompiledRegion>> CompileGpuRegion(std::shared_ptr<const ir::Graph> region,
                                                                     const ir::CompileRequest& request, const GpuConfig& config,
                                                                     std::shared_ptr<GpuRuntime> runtime) {
  HEDDLE_ASSIGN_OR_RETURN(GpuPlan plan, PlanRegion(*region, OptionsFor(runtime->capabilities())));
  HEDDLE_ASSIGN_OR_RETURN(const std::string source, runtime->Print(plan.kernels));
  if (!request.directory.empty()) {
    HEDDLE_RETURN_IF_ERROR(WriteText(request.directory / (request.name + "." + runtime->source_extension()), source));
    if (config.emit_ptx && runtime->source_extension() != "ptx") {
      HEDDLE_ASSIGN_OR_RETURN(const std::string ptx, EmitPtx(plan.kernels));
      HEDDLE_RETURN_IF_ERROR(WriteText(request.directory / (request.name + ".ptx"), ptx));
    }
  }
  if (request.progress) {
    request.progress(fmt::format("{} kernels for {} on {}", plan.kernels.size(), request.name, runtime->capabilities().device_name));
  }
  auto compiled = std::make_unique<GpuRegion>(std::move(region), config, std::move(runtime), std::move(plan));
  HEDDLE_RETURN_IF_ERROR(compiled->Prepare(source));
  return compiled;
}

}  // namespace heddle::gpu
