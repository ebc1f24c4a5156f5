// A device's own clock counts where the target's device is what ran: RTL cycles always, wall time only where the device's
// costs are measured on this machine. Elsewhere the model's figure stands for the target's processor, and says so.

#include "driver/fill_report.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "driver/memory_facts.h"
#include "driver/timeline.h"
#include "hls/attribution.h"
#include "hls/resources.h"
#include "ir/op.h"
#include "ir/roofline.h"
#include "report/fill_partition.h"
#include "report/format.h"
#include "sim/accelerator_device.h"

namespace heddle::driver {
namespace {

std::string DeviceDetail(const ir::Device& device) {
  const auto* accelerator = dynamic_cast<const sim::AcceleratorDevice*>(&device);
  if (!accelerator) return "";
  const hls::AcceleratorParams& p = accelerator->params();
  return fmt::format("{}x{} MACs at {:g} MHz", p.contraction_lanes, p.output_lanes, p.clock_mhz);
}

int64_t ParametersOf(const ir::Graph& graph, const ir::Node& node) {
  int64_t count = 0;
  for (ir::ValueId input : node.inputs) {
    if (graph.IsConstant(input)) count += graph.type(input).elements();
  }
  return count;
}

std::vector<std::string> ProducersOf(const ir::Graph& graph, const ir::Node& node) {
  std::vector<std::string> names;
  for (ir::ValueId input : node.inputs) {
    const ir::NodeId producer = graph.ProducerOf(input);
    if (producer == ir::kNoNode) continue;
    const std::string& name = graph.node(producer).name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

class Filler {
 public:
  Filler(const RunFacts& facts, report::Report& report) : facts_(facts), report_(report) {}

  void Fill() {
    AddDevices();
    AddGroupNodes();
    report::FillPartition(facts_.model.problem, facts_.result, report_);
    ExpandGroups();
    FillRegions();
    FillAccelerator();
    FillResources();
    FillDevices();
    FillVerdict();
    BuildTimeline(facts_, report_);
  }

 private:
  void AddDevices() {
    for (const auto& device : facts_.devices) {
      report::DeviceUse use;
      use.name = device->name();
      use.kind = device->kind();
      use.detail = DeviceDetail(*device);
      report_.devices.push_back(std::move(use));
    }
  }

  report::Node Describe(ir::NodeId id) const {
    const ir::Graph& graph = facts_.graph;
    const ir::Node& node = graph.node(id);
    report::Node out;
    out.name = node.name;
    out.op = node.op;
    out.shape = node.outputs.empty() ? "" : ir::TypeText({graph.type(node.outputs[0]).element, graph.type(node.outputs[0]).static_shape()});
    out.inputs = ProducersOf(graph, node);
    out.sources = node.source_names;
    const ir::OpWork work = ir::TotalWork(graph, {id});
    out.macs = work.macs;
    out.output_bytes = work.output_bytes;
    out.parameters = ParametersOf(graph, node);
    return out;
  }

  // The partitioner's nodes first: it finds them by name.
  void AddGroupNodes() {
    for (const auto& members : facts_.model.members) report_.nodes.push_back(Describe(members.back()));
  }

  // Then every member of a group gets an entry of its own, with its true inputs; the group's cost stands at its last node.
  void ExpandGroups() {
    std::map<std::string, report::Node> heads;
    for (report::Node& node : report_.nodes) heads[node.name] = std::move(node);
    std::vector<report::Node> all;
    for (size_t g = 0; g < facts_.model.members.size(); ++g) {
      const auto& members = facts_.model.members[g];
      const report::Node& head = heads.at(facts_.graph.node(members.back()).name);
      for (ir::NodeId id : members) {
        report::Node node = Describe(id);
        if (id == members.back()) {
          node = head;
          node.inputs = ProducersOf(facts_.graph, facts_.graph.node(id));
          node.fused = FusedNames(members);
        } else {
          node.device = head.device;
          node.region = head.region;
          node.why = fmt::format("Computed together with {}, whose entry has the cost of both.", head.name);
        }
        FillRefusals(id, node);
        all.push_back(std::move(node));
      }
    }
    report_.nodes = std::move(all);
  }

  std::string FusedNames(const std::vector<ir::NodeId>& members) const {
    std::string names;
    for (size_t i = 0; i + 1 < members.size(); ++i) names += fmt::format("{}{}", i ? ", " : "", facts_.graph.node(members[i]).name);
    return names;
  }

  void FillRefusals(ir::NodeId id, report::Node& node) const {
    const auto& support = facts_.model.support[static_cast<size_t>(id)];
    for (size_t d = 0; d < support.size(); ++d) {
      if (!support[d].supported) node.not_on[facts_.devices[d]->name()] = {support[d].code, support[d].text};
    }
  }

  const ir::Device& DeviceOf(const CompiledPlanRegion& region) const { return *facts_.devices[static_cast<size_t>(region.planned.device)]; }

  void FillRegions() {
    for (size_t i = 0; i < facts_.regions.size() && i < report_.partition.regions.size(); ++i) {
      const CompiledPlanRegion& region = facts_.regions[i];
      report::Region& out = report_.partition.regions[i];
      out.macs = ir::TotalWork(facts_.graph, region.planned.nodes).macs;
      out.nodes.clear();
      for (ir::NodeId id : region.planned.nodes) out.nodes.push_back(facts_.graph.node(id).name);
      if (facts_.run) out.actual_us = ActualTime(facts_, i);
      if (const auto* accelerator = dynamic_cast<const sim::AcceleratorRegion*>(region.code.get())) FillLayers(i, *accelerator, out);
    }
  }

  void FillLayers(size_t index, const sim::AcceleratorRegion& region, report::Region& out) {
    out.cycles_estimated = region.program().cycles_estimated;
    // The compiled region's own prediction: its layers keep activations on chip, which the sum of single costs cannot know.
    out.predicted_us = {static_cast<double>(out.cycles_estimated) / region.program().params.clock_mhz + facts_.regions[index].planned.launch_us, "modelled"};
    std::map<std::string, std::pair<int64_t, int64_t>> cycles;  // node → estimated, simulated
    for (size_t l = 0; l < region.program().layers.size(); ++l) {
      const hls::ProgramLayer& layer = region.program().layers[l];
      if (layer.nodes.empty()) continue;
      auto& entry = cycles[layer.nodes.back()];
      entry.first += layer.cycles_estimated;
      if (facts_.run && l < facts_.run->regions[index].layers.size()) entry.second += facts_.run->regions[index].layers[l].cycles_simulated;
    }
    if (facts_.run) out.cycles_simulated = facts_.run->regions[index].counters.count("cycles") ? facts_.run->regions[index].counters.at("cycles") : 0;
    const double clock_mhz = region.program().params.clock_mhz;
    for (report::Node& node : report_.nodes) {
      auto it = cycles.find(node.name);
      if (it == cycles.end()) continue;
      node.cycles_estimated = it->second.first;
      node.cycles_simulated = it->second.second;
      if (it->second.second) node.actual_us = report::Quantity{static_cast<double>(it->second.second) / clock_mhz, "simulated"};
    }
  }

  void FillAccelerator() {
    for (size_t i = 0; i < facts_.regions.size(); ++i) {
      const auto* region = dynamic_cast<const sim::AcceleratorRegion*>(facts_.regions[i].code.get());
      if (!region) continue;
      if (!report_.accelerator) report_.accelerator.emplace();
      report::Accelerator& out = *report_.accelerator;
      const hls::AcceleratorParams& params = region->program().params;
      out.clock_mhz = params.clock_mhz;
      out.macs_per_cycle_peak = params.peak_macs_per_cycle();
      out.macs += report_.partition.regions[i].macs;
      out.cycles_estimated += region->program().cycles_estimated;
      AddLayers(i, region->program(), out);
      AddKnobs(region->program());
      AddMemoryFacts(region->program(), out);
      if (facts_.run) AddCounters(facts_.run->regions[i], out);
      const auto& device = static_cast<const sim::AcceleratorDevice&>(DeviceOf(facts_.regions[i]));
      if (device.simulated_seconds() > 0) out.simulated_cycles_per_second = static_cast<double>(device.simulated_cycles()) / device.simulated_seconds();
    }
    if (!report_.accelerator) return;
    report::Accelerator& out = *report_.accelerator;
    const int64_t cycles = out.cycles_simulated ? out.cycles_simulated : out.cycles_estimated;
    for (const report::LayerCycles& layer : out.layers) {
      for (const auto& [cause, count] : layer.by_cause) out.cycles_by_cause[cause] += count;
    }
    SetKnob(out);
    if (cycles > 0) out.utilisation = static_cast<double>(out.macs) / (static_cast<double>(cycles) * static_cast<double>(out.macs_per_cycle_peak));
  }

  void AddLayers(size_t index, const hls::CompiledProgram& program, report::Accelerator& out) const {
    const std::vector<ir::LayerCycles>* simulated = facts_.run ? &facts_.run->regions[index].layers : nullptr;
    const std::vector<int64_t> dram_bytes = DramBytesByLayer(program);
    for (size_t l = 0; l < program.layers.size(); ++l) {
      const hls::ProgramLayer& layer = program.layers[l];
      report::LayerCycles cycles{layer.name, report_.partition.regions[index].name, layer.macs, layer.cycles_estimated, 0,
                                 hls::CyclesByCause(layer.kinds, layer.macs, program.params), dram_bytes[l], layer.weight_bytes, layer.weights_resident};
      if (simulated && l < simulated->size()) cycles.cycles_simulated = (*simulated)[l].cycles_simulated;
      out.layers.push_back(std::move(cycles));
    }
  }

  // What the same programs would save with one parameter changed; and, since it runs it anyway, the fast model's speed.
  void AddKnobs(const hls::CompiledProgram& program) {
    const auto start = std::chrono::steady_clock::now();
    const auto timing = hls::EstimateProgram(program.params, program.memory, program.run, {.program_address = program.run_address, .layer_names = {}});
    estimate_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto knobs = hls::TryKnobs(program);
    if (!timing.ok() || !knobs.ok()) return;  // a program that stops was refused when it was compiled
    for (const hls::Knob& knob : *knobs) saved_cycles_[knob.change] += knob.saved_cycles;
  }

  void SetKnob(report::Accelerator& out) const {
    if (estimate_seconds_ > 0) out.estimated_cycles_per_second = static_cast<double>(out.cycles_estimated) / estimate_seconds_;
    if (out.cycles_estimated == 0) return;
    const auto share = [&out](int64_t cycles) { return report::FormatPercent(100.0 * static_cast<double>(cycles) / static_cast<double>(out.cycles_estimated)); };
    const auto best = std::max_element(saved_cycles_.begin(), saved_cycles_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const int64_t saved = best == saved_cycles_.end() ? 0 : best->second;
    if (saved > 0) out.knob = fmt::format("{}: {} cycles less ({})", best->first, report::FormatThousands(saved), share(saved));
    for (const char* lanes : {"idle_output_lanes", "idle_contraction_lanes"}) {
      const auto idle = out.cycles_by_cause.find(lanes);
      if (idle == out.cycles_by_cause.end() || idle->second <= saved || idle->second * 10 < out.cycles_estimated) continue;
      out.knob = fmt::format("another shape of lanes: {} take {} cycles ({}){}", report::Words(lanes), report::FormatThousands(idle->second), share(idle->second),
                             out.knob.empty() ? "" : "; " + out.knob);
      break;
    }
  }

  static void AddCounters(const ir::RunResult& run, report::Accelerator& out) {
    for (const auto& [name, value] : run.counters) {
      if (name == "cycles") out.cycles_simulated += value;
      if (name == "dram_bytes_read") out.dram_bytes_read += value;
      if (name == "dram_bytes_written") out.dram_bytes_written += value;
      // Only the compute unit's waits lengthen a run; those of the other units mostly pass beside its work (sim/counters.json).
      if (name.starts_with("compute_wait_") || name == "compute_empty") out.stall_cycles[name] += value;
    }
  }

  void FillResources() {
    for (const auto& device : facts_.devices) {
      const auto* accelerator = dynamic_cast<const sim::AcceleratorDevice*>(device.get());
      if (!accelerator) continue;
      const hls::Resources estimate = hls::EstimateResources(accelerator->params());
      report::Resources out;
      out.lut = estimate.lut;
      out.ff = estimate.ff;
      out.dsp = estimate.dsp;
      out.bram36 = static_cast<double>(estimate.bram36());
      out.fmax_mhz = accelerator->params().clock_mhz;
      if (facts_.target.max_lut) out.available["lut"] = static_cast<double>(*facts_.target.max_lut);
      if (facts_.target.max_dsp) out.available["dsp"] = static_cast<double>(*facts_.target.max_dsp);
      if (facts_.target.max_bram36) out.available["bram36"] = static_cast<double>(*facts_.target.max_bram36);
      if (facts_.synthesis) FillSynthesis(*facts_.synthesis, out.available);
      report_.resources = std::move(out);
    }
  }

  void FillSynthesis(const hls::Synthesis& synthesis, const std::map<std::string, double>& available) {
    report::Resources out;
    out.lut = synthesis.total.lut;
    out.ff = synthesis.total.ff;
    out.dsp = synthesis.total.dsp;
    out.bram36 = static_cast<double>(synthesis.total.bram18) / 2;
    out.provenance = synthesis.tool;
    out.available = available;
    report_.synthesis = std::move(out);
  }

  void FillDevices() {
    std::map<std::string, report::DeviceUse*> by_name;
    for (report::DeviceUse& use : report_.devices) by_name[use.name] = &use;
    for (size_t i = 0; i < facts_.regions.size(); ++i) {
      report::DeviceUse& use = *by_name.at(DeviceOf(facts_.regions[i]).name());
      const report::Region& region = report_.partition.regions[i];
      use.nodes += static_cast<int64_t>(region.nodes.size());
      use.macs += region.macs;
      const report::Quantity time = region.actual_us ? *region.actual_us : report::Quantity{region.predicted_us.value, region.predicted_us.provenance};
      use.time_us.provenance = use.time_us.value == 0 || use.time_us.provenance == time.provenance ? time.provenance : "mixed";
      use.time_us.value += time.value;
    }
    for (size_t g = 0; g < facts_.model.members.size(); ++g) {
      const int device = facts_.result.device_of[g];
      by_name.at(facts_.devices[static_cast<size_t>(device)]->name())->bytes_moved += facts_.model.costs[g][static_cast<size_t>(device)].bytes_moved;
    }
  }

  void FillVerdict() {
    if (facts_.checks.empty()) return;
    report::Verdict& verdict = report_.verdict;
    verdict.compared = verdict.bit_exact = verdict.within_bounds = true;
    verdict.compared_against.push_back("reference interpreter");
    for (const CrossCheck& check : facts_.checks) {
      verdict.compared_against.push_back(check.against);
      verdict.bit_exact = verdict.bit_exact && check.bit_exact();
      verdict.within_bounds = verdict.within_bounds && check.within_bounds();
    }
    verdict.outputs = facts_.checks[0].outputs;
  }

  const RunFacts& facts_;
  report::Report& report_;
  std::map<std::string, int64_t> saved_cycles_;  // by knob
  double estimate_seconds_ = 0;
};

}  // namespace

void FillReport(const RunFacts& facts, report::Report& report) { Filler(facts, report).Fill(); }

}  // namespace heddle::driver
