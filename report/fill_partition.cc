// Words for the partitioner's numbers: where each node runs, why, why not elsewhere, and what would move it.
#include "report/fill_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "report/format.h"

namespace heddle::report {
namespace {

namespace part = ir::partition;

std::string SumProvenance(const std::set<std::string>& kinds) {
  if (kinds.empty()) return "modelled";
  return kinds.size() == 1 ? *kinds.begin() : "mixed";
}

class Filler {
 public:
  Filler(const part::Problem& problem, const part::Result& result, Report& report)
      : problem_(problem), result_(result), report_(report) {}

  void Fill() {
    FillSums();
    FillNodes();
    FillRegions();
    FillTransfers();
    for (size_t device = 0; device < problem_.devices.size(); ++device) FillAlone(device);
  }

 private:
  const std::string& DeviceName(int device) const { return problem_.devices[device].name; }

  void FillSums() {
    Partition& partition = report_.partition;
    const bool energy = problem_.objective == part::Objective::kEnergy;
    partition.objective = part::NameOf(problem_.objective);
    partition.cost_us = energy ? result_.evaluation.latency_us : result_.cost;
    partition.latency_us = result_.evaluation.latency_us;
    partition.period_us = result_.evaluation.period_us;
    if (energy) partition.cost_uj = result_.cost;
    if (energy) partition.lower_bound_uj = result_.lower_bound;
    if (result_.evaluation.energy_uj > 0) partition.energy_uj = result_.evaluation.energy_uj;
    partition.node_us = result_.evaluation.node_us;
    partition.transfer_us = result_.evaluation.transfer_us;
    partition.launch_us = result_.evaluation.launch_us;
    partition.lower_bound_us = energy ? 0 : result_.lower_bound;
    partition.gap_percent = result_.gap_percent;
    partition.solver = result_.solver;
    partition.solve_seconds = result_.solve_seconds;
    partition.regions.clear();
    partition.transfers.clear();
  }

  void FillNodes() {
    std::map<std::string, int> known;
    for (size_t index = 0; index < report_.nodes.size(); ++index) known[report_.nodes[index].name] = index;
    for (size_t index = 0; index < problem_.nodes.size(); ++index) {
      const part::Node& from = problem_.nodes[index];
      const auto [entry, inserted] = known.try_emplace(from.name, report_.nodes.size());
      if (inserted) report_.nodes.emplace_back().name = from.name;
      node_of_.push_back(entry->second);
    }
    for (size_t index = 0; index < problem_.nodes.size(); ++index) FillNode(index);
    for (const part::Tensor& tensor : problem_.tensors) {
      if (tensor.producer < 0) continue;
      for (int consumer : tensor.consumers) {
        std::vector<std::string>& inputs = report_.nodes[node_of_[consumer]].inputs;
        const std::string& name = problem_.nodes[tensor.producer].name;
        if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) inputs.push_back(name);
      }
    }
  }

  void FillNode(size_t index) {
    const part::Node& from = problem_.nodes[index];
    Node& node = report_.nodes[node_of_[index]];
    node.device = DeviceName(result_.device_of[index]);
    node.costs_us.clear();
    node.not_on.clear();
    node.inputs.clear();
    node.alternatives.clear();
    node.flips_if.clear();
    for (size_t device = 0; device < problem_.devices.size(); ++device) {
      const part::Option& option = from.on[device];
      if (option.cost_us) {
        node.costs_us[DeviceName(device)] = *option.cost_us;
        node.provenance[DeviceName(device)] = option.provenance;
      } else {
        node.not_on[DeviceName(device)] = {option.refusal_code, option.refusal_text};
      }
    }
    if (index < result_.alternatives.size()) {
      for (const part::Alternative& move : result_.alternatives[index]) FillMove(index, move, node);
    }
    node.why = Why(node);
  }

  void FillMove(size_t index, const part::Alternative& move, Node& node) {
    const std::string& device = DeviceName(move.device);
    if (!move.supported) {
      if (problem_.nodes[index].on[move.device].cost_us) {
        node.not_on[device] = {"", "a node that must run on the same device is refused there"};
      }
      return;
    }
    if (!move.feasible) {
      node.not_on[device] = {"", "the device's capacity or its limit of regions is used up by the other nodes"};
      return;
    }
    Alternative other{device, move.cost_us, move.transfer_delta_us, move.launch_delta_us, move.delta, std::nullopt};
    if (problem_.objective == part::Objective::kEnergy) {
      other.delta_uj = move.delta;
      other.delta_us = move.cost_us - node.costs_us[node.device] + move.transfer_delta_us + move.launch_delta_us;
    }
    node.alternatives.push_back(std::move(other));
    std::string text = move.flips_if;
    if (text.empty() && move.link_flip_sought) text = "no faster link to " + device + " and no shorter time there would be enough";
    if (text.empty()) text = "no shorter time on " + device + " would be enough; what faster links would do was not found in the time allowed";
    Flip flip{device, text, std::nullopt, move.flip_cost_us};
    if (move.flip_bandwidth_bytes_per_us) flip.bandwidth_gb_s = *move.flip_bandwidth_bytes_per_us / 1000;
    node.flips_if.push_back(std::move(flip));
  }

  // In the objective's unit.
  static double Delta(const Alternative& other) { return other.delta_uj.value_or(other.delta_us); }

  std::string Cost(const Alternative& other) const {
    if (other.delta_uj) return fmt::format("one inference would cost {} more", FormatUj(*other.delta_uj));
    const bool stream = problem_.objective == part::Objective::kThroughput;
    return fmt::format("{} would take {} longer", stream ? "each inference of a stream" : "the plan", FormatUs(other.delta_us));
  }

  std::string Why(const Node& node) const {
    if (node.alternatives.empty()) {
      return fmt::format("Only {} takes it{}.", node.device, node.not_on.empty() ? "; there is no other device" : "");
    }
    const Alternative& next =
        *std::min_element(node.alternatives.begin(), node.alternatives.end(),
                          [](const Alternative& a, const Alternative& b) { return Delta(a) < Delta(b); });
    const auto own = node.costs_us.find(node.device);
    const double own_us = own == node.costs_us.end() ? 0 : own->second;
    if (Delta(next) < 1e-9) {
      return fmt::format("{} and {} cost the plan the same.", node.device, next.device);
    }
    std::string text = fmt::format("Here it takes {}; on {} {}", FormatUs(own_us), next.device, FormatUs(next.cost_us));
    const char* separator = ", with";
    for (const auto& [delta_us, what] :
         {std::pair{next.transfer_delta_us, "transfers"}, {next.launch_delta_us, "launches"}}) {
      if (std::abs(delta_us) < 1e-9) continue;
      text +=
          fmt::format("{} {} {} of {}", separator, FormatUs(std::abs(delta_us)), delta_us > 0 ? "more" : "less", what);
      separator = " and";
    }
    return text + ": " + Cost(next) + ".";
  }

  void FillRegions() {
    for (const part::Region& from : result_.evaluation.regions) {
      Region region;
      region.name = fmt::format("region_{:03}", report_.partition.regions.size());
      region.device = DeviceName(from.device);
      std::set<std::string> kinds;
      for (int index : from.nodes) {
        Node& node = report_.nodes[node_of_[index]];
        node.region = region.name;
        region.nodes.push_back(node.name);
        region.macs += node.macs;
        kinds.insert(problem_.nodes[index].on[from.device].provenance);
      }
      region.predicted_us = {from.node_us + from.launch_us, SumProvenance(kinds)};
      report_.partition.regions.push_back(std::move(region));
    }
  }

  // In the order in which the tensors are made.
  void FillTransfers() {
    std::vector<int> position(problem_.nodes.size());
    int next = 0;
    for (const part::Region& region : result_.evaluation.regions) {
      for (int node : region.nodes) position[node] = ++next;
    }
    auto made = [&](const part::Transfer& transfer) {
      const int producer = problem_.tensors[transfer.tensor].producer;
      return producer < 0 ? 0 : position[producer];
    };
    std::vector<part::Transfer> transfers = result_.evaluation.transfers;
    std::stable_sort(transfers.begin(), transfers.end(),
                     [&](const part::Transfer& a, const part::Transfer& b) { return made(a) < made(b); });
    for (const part::Transfer& from : transfers) {
      report_.partition.transfers.push_back({problem_.tensors[from.tensor].name, DeviceName(from.from),
                                             DeviceName(from.to), std::llround(from.bytes), from.us});
    }
  }

  void FillAlone(size_t device) {
    if (!result_.single_device_us[device]) return;
    std::set<std::string> kinds;
    for (const part::Node& node : problem_.nodes) kinds.insert(node.on[device].provenance);
    for (DeviceUse& use : report_.devices) {
      if (use.name == DeviceName(device)) use.alone_us = {*result_.single_device_us[device], SumProvenance(kinds)};
    }
  }

  const part::Problem& problem_;
  const part::Result& result_;
  Report& report_;
  std::vector<size_t> node_of_;  // index in report.nodes
};

}  // namespace

void FillPartition(const part::Problem& problem, const part::Result& result, Report& report) {
  Filler(problem, result, report).Fill();
}

}  // namespace heddle::report
