// Groups become the problem's nodes, values that cross groups its tensors.

#include "driver/partition_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/check.h"

namespace heddle::driver {
namespace {

namespace part = ir::partition;

// Groups in topological order of their last nodes (groups are convex, so that this is an order of the groups).
std::vector<std::vector<ir::NodeId>> Groups(const ir::Graph& graph, const std::vector<ir::NodeId>& order) {
  std::map<int, size_t> last_of_group;
  for (size_t i = 0; i < order.size(); ++i) {
    const int group = graph.node(order[i]).fusion_group;
    if (group >= 0) last_of_group[group] = i;
  }
  std::map<size_t, std::vector<ir::NodeId>> by_last;
  for (size_t i = 0; i < order.size(); ++i) {
    const int group = graph.node(order[i]).fusion_group;
    by_last[group >= 0 ? last_of_group[group] : i].push_back(order[i]);
  }
  std::vector<std::vector<ir::NodeId>> groups;
  for (auto& [last, nodes] : by_last) groups.push_back(std::move(nodes));
  return groups;
}

// A refusal's text alone: without the code, which has its own place, and without the next step, which a report has no use for.
ir::Support Refusal(const std::string& code, std::string text) {
  if (!code.empty() && text.starts_with(code + ": ")) text.erase(0, code.size() + 2);
  return ir::Support::No(code, text.substr(0, text.find('\n')));
}

class Builder {
 public:
  Builder(const ir::Graph& graph, const DeviceList& devices, const Target& target)
      : graph_(graph), devices_(devices), target_(target) {}

  absl::StatusOr<PartitionModel> Build(const std::string& objective, const std::function<void(const std::string&)>& progress) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::NodeId> order, graph_.TopologicalOrder());
    HEDDLE_RETURN_IF_ERROR(ReadPowers(objective == "energy"));
    AddDevices();
    HEDDLE_ASSIGN_OR_RETURN(model_.problem.objective, ObjectiveCalled(objective));
    model_.members = Groups(graph_, order);
    model_.support.resize(static_cast<size_t>(graph_.num_node_slots()));
    for (size_t i = 0; i < model_.members.size(); ++i) {
      if (progress) progress(fmt::format("costs of {}", graph_.node(model_.members[i][0]).name));
      HEDDLE_RETURN_IF_ERROR(AddGroup(i));
    }
    AddTensors();
    HEDDLE_RETURN_IF_ERROR(part::Validate(model_.problem));
    return std::move(model_);
  }

 private:
  static absl::StatusOr<part::Objective> ObjectiveCalled(const std::string& name) {
    for (part::Objective objective : {part::Objective::kLatency, part::Objective::kThroughput, part::Objective::kEnergy}) {
      if (part::NameOf(objective) == name) return objective;
    }
    return ir::UserError("E-USAGE-005", fmt::format("objective '{}' is not supported", name), "use latency, throughput or energy");
  }

  absl::Status ReadPowers(bool needed) {
    model_.has_energy = true;
    for (const auto& device : devices_) {
      const TargetDevice* description = nullptr;
      for (const TargetDevice& candidate : target_.devices) {
        if (candidate.name == device->name()) description = &candidate;
      }
      const bool known = description != nullptr && description->active_w.has_value();
      active_w_.push_back(known ? *description->active_w : 0);
      model_.has_energy = model_.has_energy && known;
      if (known || !needed) continue;
      return ir::UserError("E-TARGET-006", fmt::format("target {} does not say what device '{}' draws: expected active_w, found none", target_.name, device->name()),
                           "add active_w and power_source to the device (docs/targets.md)");
    }
    return absl::OkStatus();
  }

  void AddDevices() {
    std::vector<part::Device> devices;
    for (const auto& device : devices_) {
      part::Device info{device->name(), device->kind(), device->launch_overhead_us()};
      info.launch_uj = active_w_[devices.size()] * info.launch_us;  // 1 W for 1 us is 1 uJ
      devices.push_back(std::move(info));
    }
    model_.problem = part::Problem::WithDevices(std::move(devices));
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i]->kind() == "cpu") {
        model_.problem.host = static_cast<int>(i);
        break;
      }
    }
    for (size_t a = 0; a < devices_.size(); ++a) {
      for (size_t b = a + 1; b < devices_.size(); ++b) {
        const TargetLink link = target_.LinkBetween(devices_[a]->name(), devices_[b]->name());
        model_.problem.Connect(static_cast<int>(a), static_cast<int>(b), {link.latency_us, link.gb_per_s * 1e3, link.pj_per_byte * 1e-6});
      }
    }
  }

  // The first refusal among the group's nodes decides for the group.
  ir::Support GroupSupport(const std::vector<ir::NodeId>& group, size_t device) {
    ir::Support result;
    for (ir::NodeId id : group) {
      ir::Support support = devices_[device]->Supports(graph_, graph_.node(id));
      if (!support.supported) support = Refusal(support.code, support.text);
      auto& row = model_.support[static_cast<size_t>(id)];
      row.resize(devices_.size());
      row[device] = support;
      if (!support.supported && result.supported) result = support;
    }
    if (!result.supported && group.size() > 1) {
      for (ir::NodeId id : group) {
        ir::Support& mine = model_.support[static_cast<size_t>(id)][device];
        if (mine.supported) mine = ir::Support::No(result.code, "fused with a node that is refused: " + result.text);
      }
    }
    return result;
  }

  absl::Status AddGroup(size_t index) {
    const std::vector<ir::NodeId>& group = model_.members[index];
    std::vector<part::Option> options;
    std::vector<ir::Cost> costs(devices_.size());
    for (size_t d = 0; d < devices_.size(); ++d) {
      const ir::Support support = GroupSupport(group, d);
      if (!support.supported) {
        options.push_back(part::Option::Refused(support.code, support.text));
        continue;
      }
      auto cost = devices_[d]->EstimateCost(graph_, group);
      if (!cost.ok()) {
        const ir::Support refusal = Refusal(ir::ErrorCode(cost.status()), std::string(cost.status().message()));
        options.push_back(part::Option::Refused(refusal.code, refusal.text));
        for (ir::NodeId id : group) model_.support[static_cast<size_t>(id)][d] = refusal;
        continue;
      }
      options.push_back(part::Option::Cost(cost->time_us, std::string(ir::ProvenanceName(cost->provenance))));
      options.back().energy_uj = active_w_[d] * cost->time_us;
      costs[d] = *std::move(cost);
    }
    for (ir::NodeId id : group) node_of_[id] = static_cast<int>(index);
    model_.problem.AddNode(graph_.node(group.back()).name, std::move(options));
    model_.costs.push_back(std::move(costs));
    return absl::OkStatus();
  }

  void AddTensors() {
    for (ir::ValueId id : graph_.ValueIds()) {
      const ir::Value& value = graph_.value(id);
      if (value.constant) continue;
      part::Tensor tensor;
      tensor.name = value.name;
      tensor.producer = value.producer == ir::kNoNode ? -1 : node_of_.at(value.producer);
      tensor.bytes = static_cast<double>(value.type.bytes());
      tensor.to_host = graph_.IsOutput(id);
      std::set<int> consumers;
      for (const ir::Use& use : value.uses) consumers.insert(node_of_.at(use.node));
      consumers.erase(tensor.producer);
      tensor.consumers.assign(consumers.begin(), consumers.end());
      if (!tensor.consumers.empty() || tensor.to_host) model_.problem.tensors.push_back(std::move(tensor));
    }
  }

  const ir::Graph& graph_;
  const DeviceList& devices_;
  const Target& target_;
  PartitionModel model_;
  std::map<ir::NodeId, int> node_of_;
  std::vector<double> active_w_;  // by device
};

}  // namespace

absl::StatusOr<PartitionModel> BuildPartitionModel(const ir::Graph& graph, const DeviceList& devices, const Target& target,
                                                   const std::string& objective, const std::function<void(const std::string&)>& progress) {
  return Builder(graph, devices, target).Build(objective, progress);
}

std::vector<PlannedRegion> RegionsOf(const PartitionModel& model, const ir::partition::Result& result) {
  std::vector<PlannedRegion> regions;
  for (const part::Region& region : result.evaluation.regions) {
    PlannedRegion planned{region.device, {}, region.node_us, region.launch_us};
    for (int node : region.nodes) {
      const auto& members = model.members[static_cast<size_t>(node)];
      planned.nodes.insert(planned.nodes.end(), members.begin(), members.end());
    }
    regions.push_back(std::move(planned));
  }
  return regions;
}

}  // namespace heddle::driver
