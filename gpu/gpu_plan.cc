// Planning: fusion groups to kernels, equal kernels once, and memory by liveness: tensors are given, in the order in which they
// come to life, the smallest free block that fits (best fit), else the largest free one grown, else a new one.

#include "gpu/gpu_plan.h"

#include <algorithm>
#include <unordered_map>

#include "ir/check.h"
#include "ir/loops/lower_group.h"
#include "ir/loops/names.h"
#include "ir/loops/printer.h"
#include "ir/status.h"

namespace heddle::gpu {
namespace {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using ir::NodeId;
using ir::ValueId;

bool IsEmpty(const Function& function) {
  if (function.body->kind == StmtKind::kBlock && function.body->statements.empty()) return true;
  return GridOf(function).is_empty();
}

std::string KernelName(const ir::Graph& graph, const std::vector<NodeId>& nodes, size_t group, size_t stage) {
  return fmt::format("k{}_{}_{}", group, stage, ToIdentifier(graph.node(nodes.front()).name));
}

class Planner {
 public:
  Planner(const ir::Graph& region, const ScheduleOptions& options) : region_(region), options_(options) {}

  absl::StatusOr<GpuPlan> Run() {
    HEDDLE_ASSIGN_OR_RETURN(plan_.groups, FusionGroups(region_));
    for (size_t g = 0; g < plan_.groups.size(); ++g) HEDDLE_RETURN_IF_ERROR(AddGroup(g));
    FindInterface();
    AssignMemory();
    return std::move(plan_);
  }

 private:
  int AddTensor(PlanTensor tensor) {
    plan_.tensors.push_back(std::move(tensor));
    return static_cast<int>(plan_.tensors.size()) - 1;
  }

  int TensorOfValue(ValueId id) {
    auto [it, is_new] = tensor_of_value_.try_emplace(id, -1);
    if (is_new) {
      const ir::Value& value = region_.value(id);
      it->second = AddTensor({.name = value.name, .bytes = value.type.bytes(), .value = id, .contents = value.constant});
    }
    return it->second;
  }

  int TensorOfBuffer(const Buffer& buffer, std::unordered_map<const BufferNode*, int>& in_group) {
    auto [it, is_new] = in_group.try_emplace(buffer.get(), -1);
    if (is_new) it->second = AddTensor({.name = buffer->name, .bytes = buffer->bytes(), .contents = buffer->contents});
    return it->second;
  }

  absl::Status AddGroup(size_t g) {
    const std::vector<NodeId>& nodes = plan_.groups[g];
    HEDDLE_ASSIGN_OR_RETURN(const LoweredGroup group, LowerGroup(region_, nodes));
    std::unordered_map<const BufferNode*, int> tensors;
    for (size_t p = 0; p < group.params.size(); ++p) tensors[group.params[p].buffer.get()] = TensorOfValue(group.param_values[p]);
    for (size_t s = 0; s < group.stages.size(); ++s) {
      Kernel kernel = ScheduleStage(group.stages[s], KernelName(region_, nodes, g, s), options_);
      buffers_.insert(buffers_.end(), kernel.arguments.begin(), kernel.arguments.end());
      if (IsEmpty(kernel.function)) continue;
      PlanStep step{.kernel = KernelIndex(std::move(kernel.function)), .group = static_cast<int>(g)};
      for (const Buffer& argument : kernel.arguments) {
        const int tensor = TensorOfBuffer(argument, tensors);
        PlanTensor& used = plan_.tensors[static_cast<size_t>(tensor)];
        const int now = static_cast<int>(plan_.steps.size());
        if (used.first_step < 0) used.first_step = now;
        used.last_step = now;
        step.arguments.push_back(tensor);
      }
      plan_.steps.push_back(std::move(step));
    }
    return absl::OkStatus();
  }

  int KernelIndex(Function function) {
    auto [it, is_new] = kernel_of_key_.try_emplace(CanonicalKey(function), static_cast<int>(plan_.kernels.size()));
    if (is_new) plan_.kernels.push_back(std::move(function));
    return it->second;
  }

  void FindInterface() {
    auto tensor_of = [&](ValueId id) {
      auto it = tensor_of_value_.find(id);
      return it == tensor_of_value_.end() ? -1 : it->second;
    };
    const int end = static_cast<int>(plan_.steps.size());
    for (ValueId id : region_.inputs()) {
      plan_.inputs.push_back(tensor_of(id));
      if (plan_.inputs.back() >= 0) plan_.tensors[static_cast<size_t>(plan_.inputs.back())].first_step = -1;  // uploaded before all
    }
    for (ValueId id : region_.outputs()) {
      const bool is_computed = region_.ProducerOf(id) != ir::kNoNode;
      plan_.outputs.push_back(is_computed ? tensor_of(id) : -1);
      if (plan_.outputs.back() >= 0) plan_.tensors[static_cast<size_t>(plan_.outputs.back())].last_step = end;
    }
  }

  void AssignMemory() {
    std::vector<int> order;
    for (size_t t = 0; t < plan_.tensors.size(); ++t) order.push_back(static_cast<int>(t));
    auto tensor = [&](int t) -> PlanTensor& { return plan_.tensors[static_cast<size_t>(t)]; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return tensor(a).first_step < tensor(b).first_step; });
    std::vector<int> free_after;  // of each block: the last step of its present tensor; constants hold theirs for ever
    for (int t : order) {
      int best = -1;
      for (size_t m = 0; m < plan_.memory_bytes.size() && !tensor(t).contents; ++m) {
        if (free_after[m] >= tensor(t).first_step) continue;
        const int64_t size = plan_.memory_bytes[m], wanted = tensor(t).bytes;
        const int64_t best_size = best < 0 ? 0 : plan_.memory_bytes[static_cast<size_t>(best)];
        const bool better = best < 0 || (best_size < wanted ? size > best_size : size >= wanted && size < best_size);
        if (better) best = static_cast<int>(m);
      }
      if (best < 0) {
        best = static_cast<int>(plan_.memory_bytes.size());
        plan_.memory_bytes.push_back(0);
        free_after.push_back(0);
      }
      const size_t m = static_cast<size_t>(best);
      plan_.memory_bytes[m] = std::max(plan_.memory_bytes[m], tensor(t).bytes);
      free_after[m] = tensor(t).contents ? static_cast<int>(plan_.steps.size()) + 1 : tensor(t).last_step;
      tensor(t).memory = best;
    }
  }

  const ir::Graph& region_;
  const ScheduleOptions& options_;
  GpuPlan plan_;
  std::unordered_map<ValueId, int> tensor_of_value_;
  std::unordered_map<std::string, int> kernel_of_key_;
  std::vector<Buffer> buffers_;  // keeps the keys of the groups' maps alive
};

}  // namespace

absl::StatusOr<GpuPlan> PlanRegion(const ir::Graph& region, const ScheduleOptions& options) { return Planner(region, options).Run(); }

absl::StatusOr<std::vector<Kernel>> KernelsOfGroup(const ir::Graph& graph, const std::vector<NodeId>& nodes,
                                                   const ScheduleOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const LoweredGroup group, LowerGroup(graph, nodes));
  std::vector<Kernel> kernels;
  for (size_t s = 0; s < group.stages.size(); ++s) {
    kernels.push_back(ScheduleStage(group.stages[s], KernelName(graph, nodes, 0, s), options));
  }
  return kernels;
}

}  // namespace heddle::gpu
