// Everything here is deterministic: equal runs give equal bytes, measured times excepted.

#include "driver/artefacts.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "driver/compile.h"
#include "frontend/onnx_export.h"
#include "ir/npz.h"
#include "ir/roofline.h"
#include "ir/sha256.h"
#include "report/print.h"

namespace heddle::driver {
namespace {

using nlohmann::ordered_json;

ordered_json Number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json("inf"); }

ordered_json CheckJson(const CrossCheck& check) {
  ordered_json outputs = ordered_json::array();
  for (const report::OutputCheck& output : check.outputs) {
    outputs.push_back({{"name", output.name}, {"elements", output.elements}, {"mismatches", output.mismatches},
                       {"max_abs_error", Number(output.max_abs_error)}});
  }
  return {{"against", check.against}, {"bit_exact", check.bit_exact()}, {"within_bounds", check.within_bounds()},
          {"first_difference", check.first_difference}, {"outputs", outputs}};
}

absl::Status WriteNamed(const std::filesystem::path& path, const ir::Graph& graph, const std::vector<ir::Tensor>& tensors) {
  std::vector<ir::NamedTensor> named;
  for (size_t i = 0; i < tensors.size(); ++i) named.push_back({graph.value(graph.outputs()[i]).name, tensors[i]});
  return ir::WriteNpzFile(path, named);
}

std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string RunScript(const RunOptions& options) {
  std::string command = fmt::format("heddle run {} --target {}", ShellQuoted(options.model), ShellQuoted(options.target));
  for (const std::string& input : options.inputs) command += " --input " + ShellQuoted(input);
  for (const std::string& shape : options.shapes) command += " --shape " + ShellQuoted(shape);
  if (!options.devices.empty()) command += " --devices " + ShellQuoted(fmt::format("{}", fmt::join(options.devices, ",")));
  if (!options.skip_passes.empty()) command += " --skip-pass " + ShellQuoted(fmt::format("{}", fmt::join(options.skip_passes, ",")));
  return fmt::format("#!/bin/sh\n# Repeats this run; the folder to write to is the first argument.\nexec {} --out \"${{1:-{}}}\"\n", command, kDefaultOut);
}

}  // namespace

report::Model DescribeModel(const std::string& path, const std::string& bytes, const ir::Graph& graph) {
  report::Model model;
  model.path = path;
  model.sha256 = ir::Sha256Hex(bytes);
  model.macs = ir::TotalWork(graph, graph.NodeIds()).macs;
  for (ir::ValueId id : graph.ValueIds()) {
    if (graph.IsConstant(id)) model.parameters += graph.type(id).elements();
  }
  return model;
}

absl::StatusOr<sim::WaveRequest> ParseWaves(const std::string& text) {
  sim::WaveRequest waves;
  if (text.empty()) return waves;
  waves.enabled = true;
  if (text == "all") return waves;
  const size_t colon = text.find(':');
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, waves.start_cycle);
  const auto second = colon == std::string::npos ? first : std::from_chars(text.data() + colon + 1, end, waves.end_cycle);
  if (colon == std::string::npos || first.ec != std::errc() || second.ec != std::errc() || first.ptr != text.data() + colon ||
      second.ptr != end || waves.end_cycle < waves.start_cycle) {
    return ir::UserError("E-USAGE-006", fmt::format("--waves '{}' is not understood", text), "use --waves all or --waves START:END in cycles");
  }
  return waves;
}

absl::Status WriteTensors(const RunDirectory& directory, const ir::Graph& graph, const std::vector<ir::Tensor>* expected,
                          const std::vector<ir::Tensor>& actual) {
  const std::filesystem::path folder = directory.path() / "verify";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  if (expected) HEDDLE_RETURN_IF_ERROR(WriteNamed(folder / "expected.npz", graph, *expected));
  return WriteNamed(folder / "actual.npz", graph, actual);
}

absl::Status WriteChecks(RunDirectory& directory, const std::vector<CrossCheck>& checks) {
  ordered_json json = {{"reference", "reference interpreter"},
                       {"float_bound", fmt::format("{:g} of the tensor's largest magnitude + {:g}", kFloatRelative, kFloatAbsolute)},
                       {"checks", ordered_json::array()}};
  for (const CrossCheck& check : checks) json["checks"].push_back(CheckJson(check));
  return directory.Write("verify/diff.json", json.dump(2) + "\n");
}

absl::Status WriteReportFiles(RunDirectory& directory, const report::Report& report) {
  HEDDLE_RETURN_IF_ERROR(directory.Write("report/report.txt", report::PrintText(report)));
  HEDDLE_RETURN_IF_ERROR(directory.Write("report/report.json", report::PrintJson(report)));
  HEDDLE_RETURN_IF_ERROR(directory.Write("report/index.html", report::PrintHtml(report)));
  return directory.Write("sim/trace.json", report::PrintTrace(report));
}

absl::Status WriteCounters(RunDirectory& directory, const std::vector<CompiledPlanRegion>& regions, const PlanRun& run) {
  ordered_json json = ordered_json::object();
  for (size_t i = 0; i < regions.size(); ++i) {
    if (!run.regions[i].counters.empty()) json[regions[i].name] = run.regions[i].counters;
  }
  return directory.Write("sim/counters.json", json.dump(2) + "\n");
}

absl::Status WritePartitionedModel(RunDirectory& directory, const std::string& model_path, const ir::Graph& graph,
                                   const report::Report& report) {
  if (model_path.ends_with(".ir")) return absl::OkStatus();
  frontend::NodeNotes notes;
  for (const report::Node& entry : report.nodes) {
    const std::optional<ir::NodeId> id = graph.FindNode(entry.name);
    if (!id) continue;
    std::map<std::string, std::string> note = {{"heddle.device", entry.device}, {"heddle.region", entry.region}};
    if (auto cost = entry.costs_us.find(entry.device); cost != entry.costs_us.end()) note["heddle.cost_us"] = fmt::format("{:.3f}", cost->second);
    const std::vector<std::string>& sources = graph.node(*id).source_names;
    for (const std::string& source : sources) notes[source] = note;
    if (sources.empty()) notes[entry.name] = note;
  }
  return frontend::WritePartitionedOnnx(model_path, directory.path() / "partitioned.onnx", notes);
}

absl::Status WriteManifest(RunDirectory& directory, const RunOptions& options, const Target& target, const report::Report& report,
                           const std::string& log) {
  const ordered_json config = {{"model", options.model}, {"target", target.json}, {"inputs", options.inputs}, {"shapes", options.shapes},
                               {"objective", options.objective}, {"devices", options.devices}, {"threads", options.threads > 0 ? ordered_json(options.threads) : ordered_json()},
                               {"time_limit_s", options.time_limit_s}, {"skip_passes", options.skip_passes}, {"waves", options.waves}};
  HEDDLE_RETURN_IF_ERROR(directory.Write("resolved_config.json", config.dump(2) + "\n"));
  HEDDLE_RETURN_IF_ERROR(directory.Write("resolved_target.json", target.json.dump(2) + "\n"));
  HEDDLE_RETURN_IF_ERROR(directory.Write("log.txt", log));
  HEDDLE_RETURN_IF_ERROR(directory.Write("run.sh", RunScript(options)));
  std::error_code error;
  std::filesystem::permissions(directory.path() / "run.sh", std::filesystem::perms::owner_exec | std::filesystem::perms::group_exec,
                               std::filesystem::perm_options::add, error);
  const ordered_json manifest = {{"heddle", kVersion}, {"schema_version", report::kSchemaVersion},
                                 {"model", {{"path", report.model.path}, {"sha256", report.model.sha256}}}, {"target", target.name},
                                 {"report", "report/report.json"}};
  return directory.Write("manifest.json", manifest.dump(2) + "\n");
}

absl::Status CheckBudget(const RunOptions& options, const Target& target, const report::Report& report) {
  if (!report.resources) return absl::OkStatus();
  std::string misses;
  auto check = [&](const char* name, double needed, std::optional<int64_t> allowed) {
    if (allowed && needed > static_cast<double>(*allowed)) {
      misses += fmt::format("{}{}: {} allowed, {:.0f} needed", misses.empty() ? "" : "; ", name, *allowed, needed);
    }
  };
  if (options.max_luts > 0) check("LUT", static_cast<double>(report.resources->lut), options.max_luts);
  if (options.strict) {
    if (options.max_luts <= 0) check("LUT", static_cast<double>(report.resources->lut), target.max_lut);
    check("DSP", static_cast<double>(report.resources->dsp), target.max_dsp);
    check("BRAM36", report.resources->bram36, target.max_bram36);
  }
  if (misses.empty()) return absl::OkStatus();
  return ir::UserError("E-BUDGET-001", "the accelerator is larger than allowed: " + misses, "lower the lanes or memories in the target file");
}

}  // namespace heddle::driver
