#include "driver/refine_costs.h"

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace heddle::driver {
namespace {

constexpr double kSame = 1e-9;  // relative

// Energies are in proportion to times (partition_model.cc).
bool SetCost(double us, size_t node, size_t device, PartitionModel& model) {
  ir::partition::Option& option = model.problem.nodes[node].on[device];
  if (!option.cost_us || std::abs(*option.cost_us - us) <= kSame * us) return false;
  option.energy_uj = *option.cost_us > 0 ? option.energy_uj * us / *option.cost_us : 0;
  option.cost_us = us;
  model.costs[node][device].time_us = us;
  model.costs[node][device].source = "fast model of the compiled region";
  return true;
}

}  // namespace

bool RefineCosts(const std::vector<CompiledPlanRegion>& regions, const ir::Graph& graph, PartitionModel& model) {
  bool changed = false;
  for (const CompiledPlanRegion& region : regions) {
    const std::map<std::string, double> predicted = region.code->PredictedUs();
    if (predicted.empty()) continue;
    const std::set<ir::NodeId> in_region(region.planned.nodes.begin(), region.planned.nodes.end());
    for (size_t node = 0; node < model.members.size(); ++node) {
      if (!in_region.contains(model.members[node].front())) continue;
      double us = 0;
      for (ir::NodeId id : model.members[node]) {
        if (auto part = predicted.find(graph.node(id).name); part != predicted.end()) us += part->second;
      }
      changed = SetCost(us, node, static_cast<size_t>(region.planned.device), model) || changed;
    }
  }
  return changed;
}

}  // namespace heddle::driver
