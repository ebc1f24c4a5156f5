// A transfer stands before the first region on its destination that reads the tensor; the outputs' way home stands last.

#include "driver/timeline.h"

#include <set>

namespace heddle::driver {
namespace {

class Timeline {
 public:
  Timeline(const RunFacts& facts, report::Report& report) : facts_(facts), report_(report) {}

  void Build() {
    const std::string& host = facts_.model.problem.devices[static_cast<size_t>(facts_.model.problem.host)].name;
    for (size_t i = 0; i < facts_.regions.size(); ++i) {
      const CompiledPlanRegion& region = facts_.regions[i];
      const ir::Device& device = *facts_.devices[static_cast<size_t>(region.planned.device)];
      std::set<std::string> reads;
      for (ir::ValueId id : region.graph->inputs()) reads.insert(region.graph->value(id).name);
      AddTransfers(device.name(), reads);
      if (region.planned.launch_us > 0) Add(device.name(), "launch", "launch " + region.name, region.planned.launch_us);
      AddRegion(i, device);
    }
    std::set<std::string> outputs;
    for (ir::ValueId id : facts_.graph.outputs()) outputs.insert(facts_.graph.value(id).name);
    AddTransfers(host, outputs);
    report_.latency_us = {now_us_, provenances_.size() == 1 ? *provenances_.begin() : "mixed"};
  }

 private:
  void Add(const std::string& resource, const std::string& kind, const std::string& name, double us) {
    report_.timeline.push_back({resource, kind, name, now_us_, now_us_ + us});
    now_us_ += us;
  }

  void AddTransfers(const std::string& to, const std::set<std::string>& tensors) {
    for (size_t t = 0; t < report_.partition.transfers.size(); ++t) {
      const report::Transfer& transfer = report_.partition.transfers[t];
      if (done_.contains(t) || transfer.to != to || !tensors.contains(transfer.tensor)) continue;
      done_.insert(t);
      provenances_.insert("modelled");
      Add(fmt::format("link {}→{}", transfer.from, transfer.to), "link", transfer.tensor, transfer.us);
    }
  }

  void AddRegion(size_t index, const ir::Device& device) {
    const std::optional<report::Quantity> actual = facts_.run ? ActualTime(facts_, index) : std::nullopt;
    if (actual) {
      provenances_.insert(actual->provenance);
      for (const ir::TimelineEvent& event : facts_.run->regions[index].events) {
        report_.timeline.push_back({event.resource, KindOf(event.resource), event.name, now_us_ + event.start_us, now_us_ + event.end_us});
      }
      if (facts_.run->regions[index].events.empty()) {
        report_.timeline.push_back({device.name(), "compute", facts_.regions[index].name, now_us_, now_us_ + actual->value});
      }
      now_us_ += actual->value;
      return;
    }
    provenances_.insert("modelled");
    AddModelled(index, device);
  }

  // One event for each group, in the order of execution.
  void AddModelled(size_t index, const ir::Device& device) {
    const std::set<ir::NodeId> nodes(facts_.regions[index].planned.nodes.begin(), facts_.regions[index].planned.nodes.end());
    for (size_t g = 0; g < facts_.model.members.size(); ++g) {
      const ir::NodeId last = facts_.model.members[g].back();
      if (!nodes.contains(last)) continue;
      const ir::Cost& cost = facts_.model.costs[g][static_cast<size_t>(facts_.regions[index].planned.device)];
      Add(device.name(), "compute", facts_.graph.node(last).name, cost.time_us);
    }
  }

  static std::string KindOf(const std::string& resource) {
    if (resource.ends_with(".load")) return "load";
    if (resource.ends_with(".store")) return "store";
    if (resource.ends_with(".transfer")) return "link";
    return "compute";
  }

  const RunFacts& facts_;
  report::Report& report_;
  double now_us_ = 0;
  std::set<size_t> done_;
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
