// What a device answers. The partitioner, the driver and the report know devices only through this interface; adding
// one is a folder that implements it and a line in driver/devices.cc.
#ifndef HEDDLE_IR_DEVICE_H_
#define HEDDLE_IR_DEVICE_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// Where a number comes from: wall clock of this machine, RTL simulation, a model, or an assumption of the target file.
enum class Provenance { kMeasured, kSimulated, kModelled, kAssumed };
std::string_view ProvenanceName(Provenance provenance);  // "measured", "simulated", "modelled", "assumed"

// Whether a device can run a node. Where not: a code ("E-ACC-012") and the violated constraint, expected and found.
struct Support {
  bool supported = true;
  std::string code;
  std::string text;
  static Support Yes() { return {}; }
  static Support No(std::string code, std::string text) { return {false, std::move(code), std::move(text)}; }
};

struct Cost {
  double time_us = 0;
  Provenance provenance = Provenance::kModelled;
  std::string source;         // how the number was made, for people: "roofline: 31 GB/s, 116 GFLOP/s"
  int64_t cycles = 0;         // accelerator cycles, 0 elsewhere
  int64_t bytes_moved = 0;    // between the device and its main memory
};

// One stretch of time on one resource of one device, relative to the start of the region's run.
struct TimelineEvent {
  std::string resource;  // "cpu", "gpu", "accelerator.load", "accelerator.compute", …
  std::string name;      // the node's or the transfer's
  double start_us = 0;
  double end_us = 0;
};

// One layer of an accelerator program: prediction against simulation.
struct LayerCycles {
  std::string node;
  int64_t macs = 0;
  int64_t cycles_estimated = 0;
  int64_t cycles_simulated = 0;  // 0 where not simulated
};

struct RunResult {
  std::vector<Tensor> outputs;  // one per output of the region's graph, logical shapes and types
  double time_us = 0;
  Provenance provenance = Provenance::kMeasured;
  std::vector<TimelineEvent> events;
  std::map<std::string, int64_t> counters;  // device specific: "cycles", "stall_load", "dram_bytes_read", …
  std::vector<LayerCycles> layers;
};

// A region that was compiled: owns its code; Run may be called again and again, from one thread at a time.
class CompiledRegion {
 public:
  virtual ~CompiledRegion() = default;
  // `inputs`: one per input of the region's graph, in order. Errors are coded.
  virtual absl::StatusOr<RunResult> Run(const std::vector<Tensor>& inputs) = 0;
  // What Run is predicted to take, launch excluded: each node's part by name. Empty where the compiled code is not known
  // better than EstimateCost knows its nodes one by one.
  virtual std::map<std::string, double> PredictedUs() const { return {}; }
};

struct CompileRequest {
  std::string name;                 // "region_000": unique in the run
  std::filesystem::path directory;  // where artefacts go (created by the device); empty: write none
  std::function<void(const std::string&)> progress;  // may be empty; one short line of talk on long work
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // of the target file: "cpu", "gpu", "accelerator"
  virtual std::string kind() const = 0;  // "cpu", "gpu", "accelerator"
  virtual bool needs_convex_regions() const { return false; }
  virtual double launch_overhead_us() const { return 0; }  // once for each region of a run

  virtual Support Supports(const Graph& graph, const Node& node) const = 0;
  // Cost of the nodes run as one region (one node: its cost alone), launch and transfers excluded. All are supported.
  virtual absl::StatusOr<Cost> EstimateCost(const Graph& graph, const std::vector<NodeId>& nodes) const = 0;
  // `region`: a graph of its own (ir/region.h) with values named as in the whole; it must outlive the result.
  virtual absl::StatusOr<std::unique_ptr<CompiledRegion>> Compile(std::shared_ptr<const Graph> region,
                                                                  const CompileRequest& request) = 0;
};

}  // namespace heddle::ir

#endif  // HEDDLE_IR_DEVICE_H_
