// The partitioner's tasks (ir/partition/tasks.h), each with the time that its region took where that is known, played once
// for the timeline and many times for the steady state.

#include "driver/timeline.h"

#include <algorithm>
#include <set>

#include "ir/partition/tasks.h"

namespace heddle::driver {
namespace {

namespace part = ir::partition;

constexpr int kInferences = 64;  // of the steady state

class Timeline {
 public:
  Timeline(const RunFacts& facts, report::Report& report)
      : facts_(facts), report_(report), tasks_(part::PlanTasks(facts.model.problem, facts.result.evaluation)) {}

  void Build() {
    for (part::Task& task : tasks_) SetTime(task);
    const double latency_us = part::Time(tasks_);
    for (const part::Task& task : tasks_) {
      if (task.is_transfer) {
        Add(NameOf(task), "link", TensorName(task), task.start_us, task.us);
      } else {
        AddRegion(task);
      }
    }
    report_.latency_us = {latency_us, Provenance()};
    FillSteady();
  }

 private:
  const part::Transfer& TransferOf(const part::Task& task) const {
    return facts_.result.evaluation.transfers[static_cast<size_t>(task.index)];
  }
  const std::string& TensorName(const part::Task& task) const {
    return facts_.model.problem.tensors[static_cast<size_t>(TransferOf(task).tensor)].name;
  }
  const std::string& DeviceName(int device) const { return facts_.model.problem.devices[static_cast<size_t>(device)].name; }

  std::string NameOf(const part::Task& task) const {
    if (!task.is_transfer) return DeviceName(task.resource);
    return fmt::format("link {}→{}", DeviceName(TransferOf(task).from), DeviceName(TransferOf(task).to));
  }

  std::string Provenance() const { return provenances_.size() == 1 ? *provenances_.begin() : "mixed"; }

  // Regions are the same, in the same order, in the evaluation and among the compiled ones.
  void SetTime(part::Task& task) {
    std::optional<report::Quantity> actual;
    if (!task.is_transfer && facts_.run) actual = ActualTime(facts_, static_cast<size_t>(task.index));
    provenances_.insert(actual ? actual->provenance : "modelled");
    if (actual) task.us = actual->value + facts_.regions[static_cast<size_t>(task.index)].planned.launch_us;
  }

  void Add(const std::string& resource, const std::string& kind, const std::string& name, double start_us, double us) {
    report_.timeline.push_back({resource, kind, name, start_us, start_us + us});
  }

  void AddRegion(const part::Task& task) {
    const auto index = static_cast<size_t>(task.index);
    const CompiledPlanRegion& region = facts_.regions[index];
    const std::string& device = DeviceName(task.resource);
    const double launch_us = region.planned.launch_us;
    if (launch_us > 0) Add(device, "launch", "launch " + region.name, task.start_us, launch_us);
    const double start_us = task.start_us + launch_us;
    if (!facts_.run || !ActualTime(facts_, index)) return AddModelled(region, device, start_us);
    const std::vector<ir::TimelineEvent>& events = facts_.run->regions[index].events;
    for (const ir::TimelineEvent& event : events) {
      Add(event.resource, KindOf(event.resource), event.name, start_us + event.start_us, event.end_us - event.start_us);
    }
    if (events.empty()) Add(device, "compute", region.name, start_us, task.us - launch_us);
  }

  // One event for each group, in the order of execution.
  void AddModelled(const CompiledPlanRegion& region, const std::string& device, double start_us) {
    const std::set<ir::NodeId> nodes(region.planned.nodes.begin(), region.planned.nodes.end());
    for (size_t g = 0; g < facts_.model.members.size(); ++g) {
      const ir::NodeId last = facts_.model.members[g].back();
      if (!nodes.contains(last)) continue;
      const double us = facts_.model.costs[g][static_cast<size_t>(region.planned.device)].time_us;
      Add(device, "compute", facts_.graph.node(last).name, start_us, us);
      start_us += us;
    }
  }

  void FillSteady() {
    if (tasks_.empty()) return;
    const part::Steady steady = part::Simulate(tasks_, kInferences);
    report::SteadyState out;
    out.period_us = {steady.period_us, Provenance()};
    out.latency_us = steady.last_latency_us;
    out.inferences = steady.inferences;
    out.bound_us = part::LargestLoadUs(tasks_);
    std::map<std::string, double> busy_us;
    for (const part::Task& task : tasks_) busy_us[NameOf(task)] += task.us;
    const auto busiest = std::max_element(busy_us.begin(), busy_us.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    out.bottleneck = busiest->first;
    for (const auto& [name, us] : busy_us) out.busy_percent[name] = steady.period_us > 0 ? 100 * us / steady.period_us : 0;
    report_.steady = std::move(out);
  }

  static std::string KindOf(const std::string& resource) {
    if (resource.ends_with(".load")) return "load";
    if (resource.ends_with(".store")) return "store";
    if (resource.ends_with(".transfer")) return "link";
    return "compute";
  }

  const RunFacts& facts_;
  report::Report& report_;
  std::vector<part::Task> tasks_;
  std::set<std::string> provenances_;
};

}  // namespace

std::optional<report::Quantity> ActualTime(const RunFacts& facts, size_t index) {
  const ir::RunResult& run = facts.run->regions[index];
  if (run.provenance == ir::Provenance::kSimulated) return report::Quantity{run.time_us, "simulated"};
  if (run.provenance != ir::Provenance::kMeasured) return std::nullopt;
  // Wall time is the target's only where its costs are measured here too.
  for (size_t g = 0; g < facts.model.members.size(); ++g) {
    if (facts.model.members[g].back() != facts.regions[index].planned.nodes.back()) continue;
    const ir::Cost& cost = facts.model.costs[g][static_cast<size_t>(facts.regions[index].planned.device)];
    if (cost.provenance == ir::Provenance::kMeasured) return report::Quantity{run.time_us, "measured"};
  }
  return std::nullopt;
}

void BuildTimeline(const RunFacts& facts, report::Report& report) { Timeline(facts, report).Build(); }

}  // namespace heddle::driver
