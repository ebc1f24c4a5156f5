// Commands on models and on finished run directories.

#include "driver/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/partition_graph.h"
#include "ir/op.h"
#include "ir/partition/solve.h"
#include "ir/passes/pass.h"
#include "ir/text.h"
#include "report/fill_partition.h"
#include "report/print.h"

namespace heddle::driver {
namespace {

absl::StatusOr<std::string> ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return ir::UserError("E-USAGE-007", fmt::format("'{}' cannot be read", path.string()), "give a run directory that `heddle run` has written");
  }
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::StatusOr<report::Report> LoadReport(const std::string& directory) {
  // Build systems keep the report alone: its file, or a folder with it, is as good as the run directory.
  std::filesystem::path path = directory;
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
    path /= std::filesystem::exists(path / "report.json", ignored) ? "report.json" : "report/report.json";
  } else if (path.extension() != ".json") {
    path /= "report/report.json";
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return report::ReadReport(text);
}

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void PrintMoves(const report::Report& a, const report::Report& b) {
  std::map<std::string, const report::Node*> nodes;
  for (const report::Node& node : a.nodes) nodes[node.name] = &node;
  for (const report::Node& node : b.nodes) {
    auto it = nodes.find(node.name);
    if (it == nodes.end()) {
      fmt::print("  + {} ({}) on {}\n", node.name, node.op, node.device);
      continue;
    }
    if (it->second->device != node.device) fmt::print("  {}: {} -> {}\n", node.name, it->second->device, node.device);
    nodes.erase(it);
  }
  for (const auto& [name, node] : nodes) fmt::print("  - {} ({}) on {}\n", name, node->op, node->device);
}

double TimeOf(const report::Node& node) {
  if (node.actual_us) return node.actual_us->value;
  const auto cost = node.costs_us.find(node.device);
  return cost == node.costs_us.end() ? 0 : cost->second;
}

// The nodes of both runs whose own time changed most.
void PrintSlower(const report::Report& a, const report::Report& b) {
  std::map<std::string, double> before;
  for (const report::Node& node : a.nodes) before[node.name] = TimeOf(node);
  std::vector<std::pair<double, const report::Node*>> changes;
  for (const report::Node& node : b.nodes) {
    const auto found = before.find(node.name);
    const double change = found == before.end() ? 0 : TimeOf(node) - found->second;
    if (std::abs(change) >= 0.0005) changes.emplace_back(change, &node);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
  if (!changes.empty()) fmt::print("nodes whose own time changed most ({} in all):\n", changes.size());
  for (size_t i = 0; i < std::min<size_t>(5, changes.size()); ++i) {
    fmt::print("  {}: {:.2f} us -> {:.2f} us on {}\n", changes[i].second->name, before[changes[i].second->name], TimeOf(*changes[i].second),
               changes[i].second->device);
  }
}

}  // namespace

absl::Status RunCommand(const RunOptions& options) {
  report::Report report;
  const absl::Status status = RunModel(options, report);
  const bool finished = status.ok() || ir::ErrorCode(status).starts_with("E-VERIFY") || ir::ErrorCode(status).starts_with("E-BUDGET");
  if (!finished) return status;
  Print(options.json ? report::PrintJson(report) : report::PrintText(report));
  if (!options.json && options.talk.verbosity != Verbosity::kQuiet) {
    fmt::print(stderr, "report: {}/report/index.html\n", options.out);
  }
  return status;
}

absl::Status PartitionCommand(const RunOptions& options) {
  if (IsPlacementGraphFile(options.model)) return PartitionGraphCommand(options);
  HEDDLE_ASSIGN_OR_RETURN(const Target target, LoadTarget(options.target));
  HEDDLE_ASSIGN_OR_RETURN(DeviceSet set, MakeDevices(target, options.devices, options.threads));
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, LoadModel(options.model, options.shapes, false));
  HEDDLE_RETURN_IF_ERROR(RunPipeline(graph, options.skip_passes));
  HEDDLE_ASSIGN_OR_RETURN(const PartitionModel model, BuildPartitionModel(graph, set.devices, target, options.objective, {}));
  ir::partition::SolveOptions solve;
  solve.time_limit_seconds = options.time_limit_s;
  HEDDLE_ASSIGN_OR_RETURN(const ir::partition::Result result, ir::partition::Solve(model.problem, solve));
  report::Report report;
  report.model.path = options.model;
  report.target = {target.name, target.description};
  report.notes = set.notes;
  for (const auto& device : set.devices) {
    report::DeviceUse use;
    use.name = device->name();
    use.kind = device->kind();
    report.devices.push_back(use);
  }
  report::FillPartition(model.problem, result, report);
  Print(report::PrintJson(report));
  return absl::OkStatus();
}

absl::Status SimulateCommand(const std::string& directory, const RunOptions& changes) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadText(std::filesystem::path(directory) / "resolved_config.json"));
  const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  if (!config.is_object() || !config.contains("model") || !config.contains("target")) {
    return ir::UserError("E-USAGE-008", fmt::format("'{}/resolved_config.json' is damaged", directory), "make the run again with `heddle run`");
  }
  RunOptions options = changes;
  // A preset may have changed since: the directory's own copy of the target counts.
  options.target = (std::filesystem::path(directory) / "resolved_target.json").string();
  options.model = config.value("model", "");
  options.shapes = config.value("shapes", std::vector<std::string>{});
  options.devices = config.value("devices", std::vector<std::string>{});
  options.skip_passes = config.value("skip_passes", std::vector<std::string>{});
  if (options.inputs.empty()) options.inputs = config.value("inputs", std::vector<std::string>{});
  return RunCommand(options);
}

absl::Status ReportCommand(const std::string& directory, const std::string& format) {
  HEDDLE_ASSIGN_OR_RETURN(const report::Report report, LoadReport(directory));
  Print(format == "json" ? report::PrintJson(report) : format == "html" ? report::PrintHtml(report) : report::PrintText(report));
  return absl::OkStatus();
}

absl::Status CheckCommand(const std::string& directory, const Budgets& budgets) {
  HEDDLE_ASSIGN_OR_RETURN(const report::Report report, LoadReport(directory));
  std::string text;
  const absl::Status status = CheckReport(report, budgets, text);
  Print(text);
  return status;
}

absl::Status ExplainCommand(const std::string& directory, const std::string& node) {
  HEDDLE_ASSIGN_OR_RETURN(const report::Report report, LoadReport(directory));
  if (node.empty()) {
    Print(report::PrintPlan(report));
    return absl::OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, report::PrintNode(report, node));
  Print(text);
  return absl::OkStatus();
}

absl::Status DiffCommand(const std::string& a, const std::string& b, double max_slowdown_percent) {
  HEDDLE_ASSIGN_OR_RETURN(const report::Report first, LoadReport(a));
  HEDDLE_ASSIGN_OR_RETURN(const report::Report second, LoadReport(b));
  const double change = first.latency_us.value > 0 ? (second.latency_us.value / first.latency_us.value - 1) * 100 : 0;
  if (first.heddle_version != second.heddle_version) fmt::print("heddle: {} -> {}\n", first.heddle_version, second.heddle_version);
  if (first.model.sha256 != second.model.sha256) fmt::print("the models differ: {} -> {}\n", first.model.path, second.model.path);
  fmt::print("latency: {:.1f} us ({}) -> {:.1f} us ({}), {:+.2f} %\n", first.latency_us.value, first.target.name, second.latency_us.value,
             second.target.name, change);
  if (first.accelerator && second.accelerator) {
    const auto cycles = [](const report::Accelerator& a) {
      return a.cycles_simulated > 0 ? fmt::format("{}", a.cycles_simulated) : fmt::format("{} (estimated)", a.cycles_estimated);
    };
    fmt::print("accelerator cycles: {} -> {}\n", cycles(*first.accelerator), cycles(*second.accelerator));
    if (const std::string why = report::CompareAccelerators(first, second); !why.empty()) fmt::print("{}\n", why);
  }
  fmt::print("regions: {} -> {}\nnodes that moved:\n", first.partition.regions.size(), second.partition.regions.size());
  PrintMoves(first, second);
  PrintSlower(first, second);
  if (max_slowdown_percent < 0 || change <= max_slowdown_percent) return absl::OkStatus();
  return ir::UserError("E-BUDGET-002", fmt::format("'{}' is {:.2f} % slower than '{}'; {:.2f} % are allowed", b, change, a, max_slowdown_percent));
}

absl::Status ImportCommand(const RunOptions& options, bool full) {
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, LoadModel(options.model, options.shapes, options.passes.empty()));
  if (options.passes.size() == 1 && options.passes[0] == "default") {
    HEDDLE_RETURN_IF_ERROR(ir::RunDefaultPipeline(graph));
  } else if (!options.passes.empty()) {
    HEDDLE_RETURN_IF_ERROR(ir::RunPasses(graph, options.passes));
  }
  ir::PrintOptions print;
  print.form = full ? ir::ConstantForm::kHex : ir::ConstantForm::kReference;
  Print(ir::PrintGraph(graph, print));
  return absl::OkStatus();
}

absl::Status TargetsCommand() {
  for (const std::string& name : PresetNames()) {
    HEDDLE_ASSIGN_OR_RETURN(const Target target, LoadTarget(name));
    fmt::print("{:<14} {}\n", name, target.description);
  }
  return absl::OkStatus();
}

absl::Status OpsCommand() {
  for (const ir::Op* op : ir::AllOps()) fmt::print("{}\n    {}\n", op->name(), op->doc());
  return absl::OkStatus();
}

absl::Status PassesCommand() {
  for (const ir::Pass& pass : ir::AllPasses()) {
    fmt::print("{}\n    {}\n", pass.name, pass.description);
    for (const ir::PassOption& option : pass.options) fmt::print("    {}={}  {}\n", option.name, option.default_value, option.description);
  }
  fmt::print("\nThe default pipeline:\n");
  int index = 0;
  for (const ir::PipelineStep& step : ir::DefaultPipeline()) fmt::print("{:2} {:<40} {}\n", ++index, step.pass, step.reason);
  return absl::OkStatus();
}

absl::Status VersionCommand() {
  fmt::print("heddle {}\nreport.json schema {}\n", kVersion, report::kSchemaVersion);
  return absl::OkStatus();
}

}  // namespace heddle::driver
