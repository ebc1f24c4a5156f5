// Everything that Heddle reports about one run, as one value; text, JSON, HTML and trace are printed from it alone.
//
// The driver fills it (report/fill_partition.h does so for the partitioner's part) and writes report.json, from which
// ReadReport gives the same value again: `heddle report DIR` and `heddle explain DIR NODE` need nothing else.
// docs/report.md explains every word and number, docs/report.schema.json is the schema of the JSON.
#ifndef HEDDLE_REPORT_REPORT_H_
#define HEDDLE_REPORT_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heddle::report {

inline constexpr int kSchemaVersion = 1;

// Where a number comes from: "measured" (wall clock of this machine), "simulated" (RTL cycles), "modelled" (a cost
// model) or "assumed" (the target file says so); "mixed" for a sum of several kinds.
struct Quantity {
  double value = 0;
  std::string provenance = "modelled";
  bool operator==(const Quantity&) const = default;
};

struct Model {
  std::string path;
  std::string sha256;
  int64_t macs = 0;        // multiply-accumulates of one inference
  int64_t parameters = 0;  // elements of all constants
  bool operator==(const Model&) const = default;
};

struct Target {
  std::string name;
  std::string description;  // one line; may be empty
  bool operator==(const Target&) const = default;
};

struct OutputCheck {
  std::string name;
  int64_t elements = 0;
  int64_t mismatches = 0;    // elements beyond the bound (integers: that differ at all)
  double max_abs_error = 0;  // largest difference from the reference interpreter
  bool operator==(const OutputCheck&) const = default;
};

struct Verdict {
  bool compared = false;                      // false: nothing was run (`heddle compile`)
  bool bit_exact = false;                     // no element differs at all; false also where floats differ within bounds
  bool within_bounds = false;                 // no mismatches, float bounds allowed for
  std::vector<std::string> compared_against;  // "reference interpreter", "cpu", "gpu", "hls c++", …
  std::vector<OutputCheck> outputs;
  bool operator==(const Verdict&) const = default;
};

struct DeviceUse {
  std::string name;    // of the target file: "cpu"
  std::string kind;    // cpu, gpu, accelerator
  std::string detail;  // "PoCL 3.1, Zen 4", "16x16 MACs at 100 MHz"; may be empty
  int64_t nodes = 0;
  int64_t macs = 0;
  int64_t bytes_moved = 0;  // over its links and its main memory
  Quantity time_us;         // busy, launches included
  // One inference with everything on this device, absent where it refuses a node.
  std::optional<Quantity> alone_us;
  bool operator==(const DeviceUse&) const = default;
};

// Where the cycles of one layer of the accelerator's program go (hls/attribution.h): `by_cause` adds up to cycles_estimated.
struct LayerCycles {
  std::string name;
  std::string region;
  int64_t macs = 0;
  int64_t cycles_estimated = 0;
  int64_t cycles_simulated = 0;  // 0: not simulated
  std::map<std::string, int64_t> by_cause;
  int64_t dram_bytes = 0;        // over the memory port in each inference, instructions left out
  int64_t weight_bytes = 0;      // as they lie in memory
  bool weights_resident = false; // loaded once after power-up, not in each inference
  bool operator==(const LayerCycles&) const = default;
};

// One memory on the accelerator's chip, as full as the fullest region makes it.
struct OnChipMemory {
  std::string name;  // "activations", "weights", "parameters"
  std::string unit;  // "bytes", "words" (a tile of weights), "blocks" (one block of output channels)
  int64_t used = 0;
  int64_t available = 0;
  int64_t resident = 0;  // of `used`: stays between inferences
  bool operator==(const OnChipMemory&) const = default;
};

struct Accelerator {
  double clock_mhz = 0;
  int64_t macs_per_cycle_peak = 0;
  int64_t macs = 0;
  int64_t cycles_simulated = 0;  // 0: not simulated
  int64_t cycles_estimated = 0;
  double utilisation = 0;  // macs / (cycles x peak), 0 to 1, from the first instruction to the last byte stored
  std::map<std::string, int64_t> stall_cycles;  // cause → cycles
  int64_t dram_bytes_read = 0;
  int64_t dram_bytes_written = 0;
  double simulated_cycles_per_second = 0;  // speed of the simulation itself
  double estimated_cycles_per_second = 0;  // and of the fast model
  std::map<std::string, int64_t> cycles_by_cause;  // of the fast model; adds up to cycles_estimated
  std::vector<LayerCycles> layers;                 // in the order of execution
  std::string knob;                                // "8 bytes a cycle instead of 4: 1,200 cycles less"; may be empty
  double memory_bytes_per_cycle = 0;               // what the main memory gives at most, reads and writes together
  std::vector<OnChipMemory> on_chip;
  int64_t spilled_bytes = 0;    // tensors between layers that do not fit on the chip and live in the main memory
  int64_t spilled_tensors = 0;
  bool operator==(const Accelerator&) const = default;
};

struct Region {
  std::string name;  // "region_000"
  std::string device;
  std::vector<std::string> nodes;  // in the order of execution
  int64_t macs = 0;
  Quantity predicted_us;              // nodes and launch, before the run
  std::optional<Quantity> actual_us;  // measured or simulated
  int64_t cycles_estimated = 0;       // accelerator only
  int64_t cycles_simulated = 0;
  bool operator==(const Region&) const = default;
};

struct Transfer {
  std::string tensor;
  std::string from;  // devices
  std::string to;
  int64_t bytes = 0;
  double us = 0;
  bool operator==(const Transfer&) const = default;
};

struct Partition {
  std::string objective = "latency";  // or throughput, energy
  // The plan's cost in the objective; with objective energy that is cost_uj, and cost_us is the plan's latency.
  double cost_us = 0;
  std::optional<double> cost_uj;
  // All three objectives of the plan, predicted.
  double latency_us = 0;            // of one inference, devices and links side by side
  double period_us = 0;             // between inferences in a steady stream: the busiest device or link
  std::optional<double> energy_uj;  // of one inference, absent where the target does not say what its devices draw
  double node_us = 0;               // sums of the plan's parts
  double transfer_us = 0;
  double launch_us = 0;
  double lower_bound_us = 0;  // no plan is predicted to cost less; 0 with objective energy
  std::optional<double> lower_bound_uj;
  double gap_percent = 0;     // 0: proven optimal for these costs
  std::string solver;
  double solve_seconds = 0;
  std::vector<Region> regions;  // in the order of execution
  std::vector<Transfer> transfers;
  bool operator==(const Partition&) const = default;
};

struct Refusal {
  std::string code;  // "E-ACC-012"
  std::string text;  // the violated constraint, expected and found
  bool operator==(const Refusal&) const = default;
};

// What moving one node alone to another device would change.
struct Alternative {
  std::string device;
  double cost_us = 0;  // of the node there
  double transfer_delta_us = 0;
  double launch_delta_us = 0;
  double delta_us = 0;  // of the whole plan's cost; with objective energy of its nodes, transfers and launches
  std::optional<double> delta_uj;  // objective energy: of the whole plan's cost
  bool operator==(const Alternative&) const = default;
};

// The smallest change that would move a node to `device`.
struct Flip {
  std::string device;
  std::string text;
  std::optional<double> bandwidth_gb_s;  // of the device's link: above this the move pays
  std::optional<double> cost_us;         // of the node there: below this the move pays
  bool operator==(const Flip&) const = default;
};

struct Node {
  std::string name;
  std::string op;
  std::string device;
  std::string region;
  std::string shape;                // of the first output: "i8[1,32,32,16]"; may be empty
  std::vector<std::string> inputs;  // names of the nodes whose results it reads (edges of the drawn graph)
  std::vector<std::string> sources; // nodes of the model file that it stands for; empty: a pass added it
  std::string fused;                // what else is computed with it: "Relu, Add"; may be empty
  int64_t macs = 0;
  int64_t parameters = 0;
  int64_t output_bytes = 0;
  std::map<std::string, double> costs_us;         // device → cost there, for the devices that support it
  std::map<std::string, std::string> provenance;  // device → where that cost comes from
  std::map<std::string, Refusal> not_on;          // device → why it is refused there
  std::string why;                                // one or two sentences on the choice
  std::vector<Alternative> alternatives;
  std::vector<Flip> flips_if;
  std::optional<Quantity> actual_us;  // measured or simulated, where known for the node by itself
  int64_t cycles_estimated = 0;       // accelerator only
  int64_t cycles_simulated = 0;
  bool operator==(const Node&) const = default;
};

// One stretch of time on one resource. Times count from the start of the inference.
struct Event {
  std::string resource;  // a row of the timeline: "cpu", "accelerator.load", "link cpu→gpu"
  std::string kind;      // compute, load, store, link, launch
  std::string name;      // the node, region or tensor
  double start_us = 0;
  double end_us = 0;
  bool operator==(const Event&) const = default;
};

// Many inferences one after the other on the same plan: the timeline simulation's answer.
struct SteadyState {
  Quantity period_us;               // between the ends of two inferences
  double bound_us = 0;              // the busiest resource's time for one inference: no schedule of the plan is faster
  std::string bottleneck;           // that resource
  double latency_us = 0;            // of one inference in the full pipeline
  int64_t inferences = 0;           // simulated
  std::map<std::string, double> busy_percent;  // resource → share of the period
  bool operator==(const SteadyState&) const = default;
};

struct Resources {
  int64_t lut = 0;
  int64_t ff = 0;
  int64_t dsp = 0;
  double bram36 = 0;  // halves exist
  double fmax_mhz = 0;
  std::string provenance = "modelled";
  std::map<std::string, double> available;  // lut, ff, dsp, bram36 of the target; may be empty
  bool operator==(const Resources&) const = default;
};

// What holds the run back, and the knob with the largest predicted gain. Left empty it is derived (Summarise).
struct Bottleneck {
  std::string what;  // "accelerator: waiting for loads"
  double share_percent = 0;
  std::string knob;  // "twice the memory bandwidth: about 12 us less (model)"
  bool operator==(const Bottleneck&) const = default;
};

struct Report {
  std::string heddle_version;
  Model model;
  Target target;
  Verdict verdict;
  Quantity latency_us;  // of one inference, host's part and transfers included
  std::optional<Quantity> cpu_only_us;
  std::optional<SteadyState> steady;  // absent where nothing was planned
  std::vector<DeviceUse> devices;
  std::optional<Accelerator> accelerator;
  Partition partition;
  std::vector<Node> nodes;  // in topological order
  std::optional<Resources> resources;
  std::optional<Resources> synthesis;  // the same as a synthesis tool counts it; provenance names the tool, the clock is unknown
  std::vector<Event> timeline;
  Bottleneck bottleneck;
  std::vector<std::string> notes;  // what a reader must know: "GPU times are of PoCL on this CPU"
  bool operator==(const Report&) const = default;
};

// The layer whose estimate is worst against the simulation, and by how much; null where nothing was simulated.
const LayerCycles* WorstLayer(const Accelerator& accelerator);

// "Where did the MACs go?": one sentence with numbers on two runs of one network; "" where one has no accelerator.
std::string CompareAccelerators(const Report& before, const Report& after);

// Fills what follows from the rest where it is empty: bottleneck, cpu_only_us from the device of kind cpu. The printers
// call it themselves on a copy.
void Summarise(Report& report);

}  // namespace heddle::report

#endif  // HEDDLE_REPORT_REPORT_H_
