// Reads a placement graph, solves it and prints the plan with its proof.
#include "driver/partition_graph.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/partition/placement/evaluate_placement.h"
#include "ir/partition/placement/solve_placement.h"

namespace heddle::driver {
namespace {

namespace part = ir::partition;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void PrintPlanJson(const part::PlacementGraph& graph, const part::PlacementOptions& options, const part::PlacementResult& result) {
  nlohmann::ordered_json assignment = nlohmann::ordered_json::object();
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    assignment[std::to_string(graph.nodes[node].id)] =
        part::PlacementDeviceName(graph, options.objective, result.device_of[node]);
  }
  const bool throughput = options.objective == part::PlacementObjective::kThroughput;
  nlohmann::ordered_json plan = {{"objective", throughput ? "throughput" : "latency"},
                                 {"contiguous", options.contiguous},
                                 {"cost_us", result.cost_us},
                                 {"lower_bound_us", result.lower_bound_us},
                                 {"gap_percent", result.gap_percent},
                                 {"solver", result.solver},
                                 {"solve_seconds", result.solve_seconds},
                                 {"assignment", std::move(assignment)}};
  const std::string text = nlohmann::ordered_json{{"schema_version", 1}, {"partition", std::move(plan)}}.dump(1) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void PrintPlanTable(const part::PlacementGraph& graph, const part::PlacementOptions& options, const part::PlacementResult& result) {
  fmt::print("{}{}: cost {:.6g}, lower bound {:.6g}: {}\n{}, {:.2f} s\n",
             options.objective == part::PlacementObjective::kThroughput ? "throughput" : "latency",
             options.objective == part::PlacementObjective::kThroughput && !options.contiguous ? ", not contiguous" : "",
             result.cost_us, result.lower_bound_us,
             result.gap_percent == 0 ? "proven optimal" : fmt::format("gap {:.3g} %", result.gap_percent), result.solver,
             result.solve_seconds);
  struct Use {
    int nodes = 0;
    double compute = 0, size = 0;
  };
  std::map<int, Use> uses;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const part::PlacementNode& info = graph.nodes[node];
    Use& use = uses[result.device_of[node]];
    ++use.nodes;
    use.compute += result.device_of[node] < graph.accelerators ? info.accelerator_us : info.cpu_us;
    use.size += info.size;
  }
  const std::vector<double> loads = part::DeviceLoads(graph, result.device_of);
  fmt::print("\n  {:<14} {:>6} {:>12} {:>12} {:>12}\n", "device", "nodes", "compute", "transfers", "memory");
  for (const auto& [device, use] : uses) {
    fmt::print("  {:<14} {:>6} {:>12.6g} {:>12.6g} {:>12.6g}\n", part::PlacementDeviceName(graph, options.objective, device),
               use.nodes, use.compute, loads[static_cast<size_t>(device)] - use.compute, use.size);
  }
}

}  // namespace

bool IsPlacementGraphFile(const std::string& path) {
  if (path.ends_with(".json")) return true;
  std::ifstream file(path, std::ios::binary);
  std::string beginning(1 << 16, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<size_t>(file.gcount()));
  return part::LooksLikePlacementGraph(beginning);
}

absl::Status PartitionGraphCommand(const RunOptions& options) {
  std::ifstream file(options.model, std::ios::binary);
  if (!file) return ir::UserError("E-USAGE-031", fmt::format("'{}' cannot be read", options.model), "Give a placement graph or a model.");
  part::PlacementOptions solve;
  if (options.objective == "energy") {
    return ir::UserError("E-USAGE-032", "a placement graph has no energies", "Use --objective throughput or latency.");
  }
  solve.objective = options.objective == "throughput" ? part::PlacementObjective::kThroughput : part::PlacementObjective::kLatency;
  solve.contiguous = options.contiguous;
  if (solve.objective == part::PlacementObjective::kLatency && !options.contiguous) {
    return ir::UserError("E-USAGE-033", "latency plans are contiguous: an accelerator runs one block", "Leave out --any.");
  }
  if (options.time_limit_given) solve.time_limit_seconds = options.time_limit_s;
  HEDDLE_ASSIGN_OR_RETURN(const part::PlacementGraph graph, part::ReadPlacementGraph(ReadFile(options.model)));
  HEDDLE_ASSIGN_OR_RETURN(const part::PlacementResult result, part::SolvePlacement(graph, solve));
  if (options.json) {
    PrintPlanJson(graph, solve, result);
  } else {
    PrintPlanTable(graph, solve, result);
  }
  return absl::OkStatus();
}

}  // namespace heddle::driver
