// Compilation of a whole graph: lower and schedule each fused group, compile each distinct function once, lay out constants,
// give values addresses so that memory is reused as soon as a value is dead.

#include "cpu_fallback/program.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>

#include "cpu_fallback/cpu_target.h"
#include "cpu_fallback/jit.h"
#include "cpu_fallback/schedule_cpu.h"
#include "ir/check.h"
#include "ir/loops/lower_group.h"
#include "ir/loops/printer.h"
#include "ir/op.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

using ir::NodeId;
using ir::Tensor;
using ir::ValueId;
namespace loops = ir::loops;

constexpr int64_t kAlignment = 64;
using Clock = std::chrono::steady_clock;

double Microseconds(Clock::time_point since) { return std::chrono::duration<double, std::micro>(Clock::now() - since).count(); }

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Memory that is free in an arena that grows: first fit.
class Arena {
 public:
  int64_t Allocate(int64_t bytes) {
    bytes = Aligned(std::max<int64_t>(bytes, 1));
    int64_t offset = 0;
    for (const auto& [begin, end] : used_) {
      if (begin - offset >= bytes) break;
      offset = end;
    }
    used_[offset] = offset + bytes;
    size_ = std::max(size_, offset + bytes);
    return offset;
  }
  void Release(int64_t offset) { used_.erase(offset); }
  int64_t size() const { return size_; }

 private:
  std::map<int64_t, int64_t> used_;  // begin -> end
  int64_t size_ = 0;
};

// What to run for one group.
struct Step {
  std::string name;
  int function = -1;                  // of the compiled module; -1: reference kernels
  std::vector<NodeId> nodes;          // of the group
  std::vector<ValueId> values;        // for each parameter: the graph value, or kNoValue for a packed constant
  std::vector<int> packed;            // for each parameter: index of the packed constant, or -1
};

class CompiledProgram : public Program {
 public:
  explicit CompiledProgram(const ir::Graph& graph) : graph_(graph) {}

  absl::Status Compile(const std::function<void(const std::string&)>& progress);
  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs, ThreadPool* pool,
                                          std::vector<GroupTime>* times) override;
  const ProgramStats& stats() const override { return stats_; }
  std::string LoopText() const override { return loop_text_; }
  const std::string& object() const override { return module_->object(); }

 private:
  absl::Status LowerStep(const std::vector<NodeId>& nodes);
  absl::Status RunPacks();
  void PlanMemory();
  absl::Status Interpret(const Step& step);
  std::byte* Address(ValueId id) { return arena_.get() + offsets_.at(id); }
  void* Argument(const Step& step, size_t param);

  struct PendingPack {
    int function = -1;  // of the pack module
    std::vector<ValueId> constants;
    int packed = -1;
  };

  struct FreeDeleter {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  const ir::Graph& graph_;
  std::vector<Step> steps_;
  loops::Module code_, pack_code_;
  std::map<std::string, int> functions_, pack_functions_;                    // canonical text -> function
  std::map<std::pair<int, std::vector<ValueId>>, int> packed_index_;
  std::vector<PendingPack> pending_;
  std::vector<Tensor> packed_;
  std::unique_ptr<CompiledModule> module_;
  std::unique_ptr<std::byte, FreeDeleter> arena_;
  std::map<ValueId, int64_t> offsets_;
  int64_t workspace_offset_ = 0;
  ProgramStats stats_;
  std::string loop_text_;
};

// The function's index in the module, added where no equal one is there yet.
int AddFunction(loops::Module& module, std::map<std::string, int>& known, loops::Function function, const char* prefix) {
  auto [it, is_new] = known.try_emplace(CanonicalKey(function), static_cast<int>(module.functions.size()));
  if (is_new) {
    function.name = fmt::format("{}{}", prefix, it->second);
    module.functions.push_back(std::move(function));
  }
  return it->second;
}

absl::Status CompiledProgram::LowerStep(const std::vector<NodeId>& nodes) {
  Step step;
  step.nodes = nodes;
  step.name = graph_.node(nodes.back()).name;
  auto lowered = loops::LowerGroup(graph_, nodes);
  if (!lowered.ok()) {
    // No definition in loops: the reference kernels, which exist for every op.
    if (ir::ErrorCode(lowered.status()) != "E-OP-090") return lowered.status();
    stats_.interpreted_nodes += static_cast<int>(nodes.size());
    steps_.push_back(std::move(step));
    return absl::OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(ScheduledGroup group, ScheduleForCpu("group", lowered->stages, lowered->params, HostCpu()));
  std::vector<int> packed;
  for (PackStep& pack : group.packs) {
    PendingPack pending;
    for (int source : pack.sources) pending.constants.push_back(lowered->param_values[static_cast<size_t>(source)]);
    const loops::Buffer output = pack.pack.params.back().buffer;
    pending.function = AddFunction(pack_code_, pack_functions_, std::move(pack.pack), "pack");
    auto [it, is_new] = packed_index_.try_emplace({pending.function, pending.constants}, static_cast<int>(packed_.size()));
    if (is_new) {
      pending.packed = it->second;
      packed_.emplace_back(output.type(), output.shape());
      pending_.push_back(pending);
    }
    packed.push_back(it->second);
  }
  for (int source : group.param_sources) {
    step.values.push_back(source >= 0 ? lowered->param_values[static_cast<size_t>(source)] : ir::kNoValue);
    step.packed.push_back(source >= 0 ? -1 : packed[static_cast<size_t>(-1 - source)]);
  }
  step.function = AddFunction(code_, functions_, std::move(group.function), "group");
  steps_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status CompiledProgram::RunPacks() {
  if (pending_.empty()) return absl::OkStatus();
  CompileOptions options;
  options.optimisation_level = 1;  // each runs once
  HEDDLE_ASSIGN_OR_RETURN(const CompiledModule module, cpu::Compile(pack_code_, options));
  for (const PendingPack& pack : pending_) {
    std::vector<void*> buffers;
    for (ValueId id : pack.constants) {
      buffers.push_back(const_cast<std::byte*>(graph_.value(id).constant->data()));  // read only
    }
    Tensor& output = packed_[static_cast<size_t>(pack.packed)];
    buffers.push_back(output.data());
    module.Run(pack.function, buffers);
    stats_.packed_bytes += output.bytes();
  }
  return absl::OkStatus();
}

// Values live from the step that writes them (inputs: from the start) to the last step that reads them.
void CompiledProgram::PlanMemory() {
  std::map<ValueId, int> last_use;
  std::vector<std::vector<ValueId>> written(steps_.size());
  std::map<NodeId, int> step_of;
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (NodeId id : steps_[s].nodes) step_of[id] = static_cast<int>(s);
  }
  auto lives_outside = [&](const ir::Value& value, int step) {
    return graph_.IsOutput(value.id) || std::any_of(value.uses.begin(), value.uses.end(),
                                                    [&](const ir::Use& use) { return step_of.at(use.node) != step; });
  };
  const int end = static_cast<int>(steps_.size());
  auto note = [&](ValueId id, int step, bool always) {
    const ir::Value& value = graph_.value(id);
    if (!always && !lives_outside(value, step)) return false;
    int last = graph_.IsOutput(id) ? end : step;
    for (const ir::Use& use : value.uses) last = std::max(last, step_of.at(use.node));
    last_use[id] = last;
    return true;
  };
  Arena arena;
  std::vector<std::vector<ValueId>> dying(steps_.size() + 1);
  auto place = [&](ValueId id) {
    offsets_[id] = arena.Allocate(graph_.type(id).bytes());
    dying[static_cast<size_t>(last_use.at(id))].push_back(id);
  };
  for (ValueId id : graph_.inputs()) {
    note(id, 0, true);
    place(id);
  }
  for (int s = 0; s < end; ++s) {
    const Step& step = steps_[static_cast<size_t>(s)];
    for (NodeId node : step.nodes) {
      for (ValueId id : graph_.node(node).outputs) {
        if (id != ir::kNoValue && note(id, s, step.function < 0) && !offsets_.contains(id)) place(id);
      }
    }
    for (ValueId id : dying[static_cast<size_t>(s)]) arena.Release(offsets_.at(id));
  }
  int64_t workspace = 0;
  for (const Step& step : steps_) {
    if (step.function >= 0) workspace = std::max(workspace, module_->WorkspaceBytes(step.function));
  }
  workspace_offset_ = arena.size();
  stats_.arena_bytes = arena.size() + Aligned(workspace + 1);
  arena_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(stats_.arena_bytes))));
}

absl::Status CompiledProgram::Compile(const std::function<void(const std::string&)>& progress) {
  const Clock::time_point start = Clock::now();
  HEDDLE_ASSIGN_OR_RETURN(const auto groups, loops::FusionGroups(graph_));
  for (const auto& nodes : groups) HEDDLE_RETURN_IF_ERROR(LowerStep(nodes));
  stats_.groups = static_cast<int>(groups.size());
  stats_.functions = static_cast<int>(code_.functions.size());
  if (progress) progress(fmt::format("{} groups, {} distinct functions for {}", stats_.groups, stats_.functions, HostCpu().name));
  HEDDLE_ASSIGN_OR_RETURN(CompiledModule module, cpu::Compile(code_));
  module_ = std::make_unique<CompiledModule>(std::move(module));
  HEDDLE_RETURN_IF_ERROR(RunPacks());
  PlanMemory();
  loop_text_ = ToText(code_);
  stats_.compile_seconds = Microseconds(start) * 1e-6;
  return absl::OkStatus();
}

void* CompiledProgram::Argument(const Step& step, size_t param) {
  if (step.packed[param] >= 0) return packed_[static_cast<size_t>(step.packed[param])].data();
  const ValueId id = step.values[param];
  if (const Tensor* constant = graph_.ConstantOrNull(id)) return const_cast<std::byte*>(constant->data());  // read only
  return Address(id);
}

absl::Status CompiledProgram::Interpret(const Step& step) {
  for (NodeId id : step.nodes) {
    const ir::Node& node = graph_.node(id);
    std::vector<Tensor> copies(node.inputs.size());
    std::vector<const Tensor*> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId value = node.inputs[i];
      if (value == ir::kNoValue) {
        inputs.push_back(nullptr);
      } else if (const Tensor* constant = graph_.ConstantOrNull(value)) {
        inputs.push_back(constant);
      } else {
        copies[i] = Tensor(graph_.type(value).element, graph_.type(value).static_shape());
        std::memcpy(copies[i].data(), Address(value), static_cast<size_t>(copies[i].bytes()));
        inputs.push_back(&copies[i]);
      }
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs, ir::FindOp(node.op)->Evaluate(ir::NodeContext(graph_, node), inputs));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (offsets_.contains(node.outputs[i])) {
        std::memcpy(Address(node.outputs[i]), outputs[i].data(), static_cast<size_t>(outputs[i].bytes()));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> CompiledProgram::Run(const std::vector<Tensor>& inputs, ThreadPool* pool,
                                                         std::vector<GroupTime>* times) {
  if (inputs.size() != graph_.inputs().size()) {
    return ir::UserError("E-RUN-001", fmt::format("the graph has {} inputs, {} were given", graph_.inputs().size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& value = graph_.value(graph_.inputs()[i]);
    if (inputs[i].type() != value.type.element || inputs[i].shape() != value.type.static_shape()) {
      return ir::UserError("E-RUN-001", fmt::format("input '{}': expected {}, found {}[{}]", value.name, TypeText(value.type),
                                                    ElementTypeName(inputs[i].type()), ir::ShapeText(inputs[i].shape())));
    }
    std::memcpy(Address(value.id), inputs[i].data(), static_cast<size_t>(inputs[i].bytes()));
  }
  const Clock::time_point start = Clock::now();
  std::vector<void*> buffers;
  for (const Step& step : steps_) {
    const double begin = times ? Microseconds(start) : 0;
    if (step.function < 0) {
      HEDDLE_RETURN_IF_ERROR(Interpret(step));
    } else {
      buffers.clear();
      for (size_t p = 0; p < step.values.size(); ++p) buffers.push_back(Argument(step, p));
      module_->Run(step.function, buffers, arena_.get() + workspace_offset_, pool);
    }
    if (times) times->push_back({step.name, begin, Microseconds(start)});
  }
  std::vector<Tensor> outputs;
  for (ValueId id : graph_.outputs()) {
    if (const Tensor* constant = graph_.ConstantOrNull(id)) {
      outputs.push_back(*constant);
      continue;
    }
    outputs.emplace_back(graph_.type(id).element, graph_.type(id).static_shape());
    std::memcpy(outputs.back().data(), Address(id), static_cast<size_t>(outputs.back().bytes()));
  }
  return outputs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> CompileProgram(const ir::Graph& graph,
                                                        const std::function<void(const std::string&)>& progress) {
  auto program = std::make_unique<CompiledProgram>(graph);
  HEDDLE_RETURN_IF_ERROR(program->Compile(progress));
  return std::unique_ptr<Program>(std::move(program));
}

}  // namespace heddle::cpu
