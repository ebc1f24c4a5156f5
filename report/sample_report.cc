// Figures are invented but fit together: the partitioner places the nodes, and the outcome deviates from its prediction
// by a few per cent that depend on the node's position only.
#include "report/sample_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/check.h"
#include "ir/partition/solve.h"
#include "report/fill_partition.h"

namespace heddle::report {
namespace {

namespace part = ir::partition;

constexpr double kClockMhz = 100;

struct Builder {
  part::Problem problem =
      part::Problem::WithDevices({{"cpu", "cpu"}, {"gpu", "gpu", 9.0}, {"accelerator", "accelerator", 4.0}});
  Report report;

  int Add(const std::string& name, const std::string& op, std::vector<int> inputs, int64_t macs,
          std::vector<part::Option> on, const std::string& fused = "") {
    Node node;
    node.name = name;
    node.op = op;
    node.fused = fused;
    node.macs = macs;
    node.shape = op == "Conv" || op == "Add" ? "i8[1,32,16,16]" : "i8[1,10]";
    node.output_bytes = op == "Conv" || op == "Add" ? 8192 : 10;
    node.parameters = macs / 200;
    const int index = problem.AddNode(name, std::move(on));
    problem.tensors.push_back({name + "_out", index, {}, false, static_cast<double>(node.output_bytes)});
    for (int input : inputs) problem.tensors[input].consumers.push_back(index);
    report.nodes.push_back(std::move(node));
    return index;
  }

  // A convolution that all three devices take.
  int Conv(const std::string& name, int input, int64_t macs) {
    std::vector<int> inputs;
    if (input >= 0) inputs.push_back(input);
    return Add(name, "Conv", inputs, macs,
               {part::Option::Cost(macs / 3e3, "measured"), part::Option::Cost(6 + macs / 12e3, "modelled"),
                part::Option::Cost(macs / (190 * kClockMhz), "modelled")},
               "Relu");
  }
};

void Network(Builder& b) {
  const int stem = b.Conv("stem/conv", -1, 600000);
  int last = stem;
  for (int block = 0; block < 3; ++block) {
    const int first = b.Conv(fmt::format("block{}/conv_a", block), last, 2359296);
    const int second = b.Conv(fmt::format("block{}/conv_b", block), first, 2359296);
    last = b.Add(fmt::format("block{}/add", block), "Add", {second, last}, 0,
                 {part::Option::Cost(2.1, "measured"), part::Option::Cost(6.1), part::Option::Cost(0.9)});
  }
  const int wide = b.Add("head/conv_9x9", "Conv", {last}, 42467328,
                         {part::Option::Cost(1400, "measured"), part::Option::Cost(310),
                          part::Option::Refused("E-ACC-003", "kernel 9x9: expected at most 7x7, found 9x9")});
  const int pool = b.Add("head/pool", "GlobalAveragePool", {wide}, 0,
                         {part::Option::Cost(1.2, "measured"), part::Option::Cost(6.2), part::Option::Cost(0.7)});
  const int dense = b.Add("head/dense", "Gemm", {pool}, 320,
                          {part::Option::Cost(0.4, "measured"), part::Option::Cost(6), part::Option::Cost(0.5)});
  const int softmax = b.Add("head/softmax", "Softmax", {dense}, 0,
                            {part::Option::Cost(0.6, "measured"), part::Option::Cost(6),
                             part::Option::Refused("E-ACC-001", "no Softmax in the accelerator's instruction set")});
  b.problem.tensors.push_back({"image", -1, {stem}, false, 3072});
  b.problem.tensors[softmax].to_host = true;
  b.problem.Connect(0, 1, {3, 4000});
  b.problem.Connect(0, 2, {1.5, 1200});
  b.problem.Connect(1, 2, {4, 1200});
}

double Outcome(double predicted, size_t position) { return predicted * (1 + ((position * 7) % 5 - 1.0) / 100); }

void FillOutcome(Builder& b) {
  Report& r = b.report;
  double now = 0;
  r.accelerator.emplace();
  size_t position = 0;
  size_t transfer = 0;
  auto device = [&](const std::string& name) -> DeviceUse& {
    for (DeviceUse& use : r.devices) {
      if (use.name == name) return use;
    }
    HEDDLE_CHECK(false, "no such device");
  };
  for (Region& region : r.partition.regions) {
    for (; transfer < r.partition.transfers.size() && r.partition.transfers[transfer].to == region.device; ++transfer) {
      const Transfer& t = r.partition.transfers[transfer];
      r.timeline.push_back({"link " + t.from + " to " + t.to, "link", t.tensor, now, now + t.us});
      now += t.us;
    }
    double total = 0;
    for (const part::Device& info : b.problem.devices) {
      if (info.name != region.device || info.launch_us == 0) continue;
      r.timeline.push_back({info.name, "launch", region.name, now, now + info.launch_us});
      total += info.launch_us;
      now += info.launch_us;
    }
    for (const std::string& name : region.nodes) {
      Node& node = *std::find_if(r.nodes.begin(), r.nodes.end(), [&](const Node& n) { return n.name == name; });
      const double us = Outcome(node.costs_us[node.device], position++);
      const bool simulated = node.device == "accelerator";
      node.actual_us = {us, simulated ? "simulated" : "measured"};
      const std::string row = simulated ? "accelerator.compute" : node.device;
      if (simulated) {
        node.cycles_estimated = std::llround(node.costs_us[node.device] * kClockMhz);
        node.cycles_simulated = std::llround(us * kClockMhz);
        r.timeline.push_back({"accelerator.load", "load", node.name, now, now + 0.4 * us});
        region.cycles_estimated += node.cycles_estimated;
        region.cycles_simulated += node.cycles_simulated;
        r.accelerator->macs += node.macs;
        const int64_t multiplying = node.macs / 256, waiting = node.cycles_estimated / 50;
        r.accelerator->layers.push_back({node.name, region.name, node.macs, node.cycles_estimated, node.cycles_simulated,
                                         {{"multiplying", multiplying},
                                          {"waiting_for_load", waiting},
                                          {"fill_and_drain", node.cycles_estimated - multiplying - waiting}}});
        LayerCycles& layer = r.accelerator->layers.back();
        layer.weight_bytes = node.parameters;
        layer.weights_resident = layer.weight_bytes < 5000;
        layer.dram_bytes = node.output_bytes / 4 + (layer.weights_resident ? 0 : layer.weight_bytes);
        for (const auto& [cause, cycles] : layer.by_cause) r.accelerator->cycles_by_cause[cause] += cycles;
        r.timeline.push_back({"accelerator.store", "store", node.name, now + 0.7 * us, now + us});
      }
      r.timeline.push_back({row, "compute", node.name, now, now + us});
      now += us;
      total += us;
      device(node.device).nodes += 1;
      device(node.device).macs += node.macs;
      device(node.device).bytes_moved += node.output_bytes;
      r.model.macs += node.macs;
      r.model.parameters += node.parameters;
    }
    region.actual_us = {total, region.device == "accelerator" ? "simulated" : "measured"};
    device(region.device).time_us = {device(region.device).time_us.value + total, region.actual_us->provenance};
    r.accelerator->cycles_estimated += region.cycles_estimated;
    r.accelerator->cycles_simulated += region.cycles_simulated;
  }
  r.latency_us = {now, "mixed"};
}

}  // namespace

Report SampleReport() {
  Builder b;
  Network(b);
  b.problem.objective = part::Objective::kLatency;
  const absl::StatusOr<part::Result> result = part::Solve(b.problem);
  HEDDLE_CHECK(result.ok(), "the sample has a plan");
  Report& r = b.report;
  r.heddle_version = "0.1.0";
  r.model.path = "models/residual_int8.onnx";
  r.model.sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
  r.target = {"edge-soc", "CPU, GPU and a 16x16 accelerator at 100 MHz"};
  r.devices = {{"cpu", "cpu"}, {"gpu", "gpu"}, {"accelerator", "accelerator"}};
  FillPartition(b.problem, *result, r);
  r.partition.solve_seconds = 0.004;
  r.steady = SteadyState{{r.partition.period_us, "modelled"}, r.partition.period_us, "accelerator", r.partition.latency_us * 2, 64, {{"accelerator", 100}, {"gpu", 40}}};
  FillOutcome(b);
  r.verdict = {
      true, true, true, {"reference interpreter", "cpu", "gpu", "hls c++", "rtl"}, {{"probabilities", 10, 0, 0}}};
  r.accelerator->clock_mhz = kClockMhz;
  r.accelerator->macs_per_cycle_peak = 256;
  r.accelerator->utilisation = static_cast<double>(r.accelerator->macs) / (r.accelerator->cycles_simulated * 256.0);
  r.accelerator->stall_cycles = {{"waiting_for_load", 9321}, {"waiting_for_store", 812}, {"drain", 2210}};
  r.accelerator->dram_bytes_read = 412000;
  r.accelerator->dram_bytes_written = 81920;
  r.accelerator->simulated_cycles_per_second = 412000;
  r.accelerator->estimated_cycles_per_second = 52000000;
  r.accelerator->knob = "16 bytes a cycle from the main memory instead of 8: 2,310 cycles less (1.9 %)";
  r.accelerator->memory_bytes_per_cycle = 8;
  r.accelerator->on_chip = {{"activations", "bytes", 61440, 98304}, {"weights", "words", 611, 1024, 480}, {"parameters", "blocks", 40, 256}};
  r.accelerator->spilled_bytes = 12544;
  r.accelerator->spilled_tensors = 2;
  r.resources = Resources{
      31240, 28811, 212, 96.5, 104.2, "modelled", {{"lut", 53200}, {"ff", 106400}, {"dsp", 220}, {"bram36", 140}}};
  r.notes = {"GPU times are of an OpenCL driver on this CPU."};
  return r;
}

}  // namespace heddle::report
