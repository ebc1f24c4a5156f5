// The partition is made anew for every combination, as `heddle run` would make it: a smaller accelerator may be worth less of the
// network. Points that accelerate less than the best do not compete for the front; their cycles are those of less work.

#include "driver/explore.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/execute.h"
#include "driver/run_directory.h"
#include "driver/target.h"
#include "ir/partition/solve.h"
#include "ir/passes/pass.h"
#include "ir/region.h"
#include "ir/roofline.h"
#include "sim/accelerator_device.h"

namespace heddle::driver {
namespace {

using nlohmann::json;

// The target with the accelerator's parameters changed.
absl::StatusOr<Target> Changed(const Target& target, const json& parameters) {
  json file = target.json;
  bool found = false;
  for (json& device : file["devices"]) {
    if (device.value("kind", "") != "accelerator") continue;
    device["parameters"].update(parameters);
    found = true;
  }
  if (!found) {
    return ir::UserError("E-USAGE-013", fmt::format("target '{}' has no accelerator to explore", target.name), "use a target with one; see `heddle targets`");
  }
  return ParseTarget(file.dump(), target.name);
}

absl::Status CompileRegions(const ir::Graph& graph, const std::vector<PlannedRegion>& plan, const DeviceSet& set, ExplorePoint& point) {
  for (const PlannedRegion& planned : plan) {
    auto* accelerator = dynamic_cast<sim::AcceleratorDevice*>(set.devices[static_cast<size_t>(planned.device)].get());
    if (!accelerator) continue;
    auto region = std::make_shared<const ir::Graph>(ir::ExtractRegion(graph, planned.nodes));
    HEDDLE_ASSIGN_OR_RETURN(const auto code, accelerator->Compile(region, {"region", {}, {}}));
    point.cycles_estimated += dynamic_cast<const sim::AcceleratorRegion&>(*code).program().cycles_estimated;
    point.macs += ir::TotalWork(graph, planned.nodes).macs;
  }
  return absl::OkStatus();
}

absl::StatusOr<ExplorePoint> Evaluate(const ir::Graph& graph, const Target& base, const json& parameters, const RunOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Target target, Changed(base, parameters));
  HEDDLE_ASSIGN_OR_RETURN(DeviceSet set, MakeDevices(target, options.devices, options.threads));
  ExplorePoint point;
  point.parameters = parameters;
  int lanes = 0;
  for (const auto& device : set.devices) {
    auto* accelerator = dynamic_cast<sim::AcceleratorDevice*>(device.get());
    if (!accelerator) continue;
    accelerator->set_options({{}, {}, sim::Simulator::kFast, {}});
    point.resources = hls::EstimateResources(accelerator->params());
    lanes = accelerator->params().peak_macs_per_cycle();
  }
  HEDDLE_ASSIGN_OR_RETURN(const PartitionModel model, BuildPartitionModel(graph, set.devices, target, options.objective, {}));
  ir::partition::SolveOptions solve;
  solve.time_limit_seconds = options.time_limit_s;
  solve.alternatives = false;
  HEDDLE_ASSIGN_OR_RETURN(const ir::partition::Result result, ir::partition::Solve(model.problem, solve));
  point.latency_us = result.evaluation.latency_us;
  HEDDLE_RETURN_IF_ERROR(CompileRegions(graph, RegionsOf(model, result), set, point));
  if (point.cycles_estimated > 0) point.utilisation = static_cast<double>(point.macs) / (static_cast<double>(point.cycles_estimated) * lanes);
  const auto within = [](int64_t needed, std::optional<int64_t> allowed) { return !allowed || needed <= *allowed; };
  point.fits = within(point.resources.lut, target.max_lut) && within(point.resources.dsp, target.max_dsp) && within(point.resources.bram36(), target.max_bram36);
  return point;
}

bool Dominates(const ExplorePoint& a, const ExplorePoint& b) {
  const int64_t left[] = {a.cycles_estimated, a.resources.dsp, a.resources.lut, a.resources.bram36()};
  const int64_t right[] = {b.cycles_estimated, b.resources.dsp, b.resources.lut, b.resources.bram36()};
  bool better = false;
  for (int i = 0; i < 4; ++i) {
    if (left[i] > right[i]) return false;
    better = better || left[i] < right[i];
  }
  return better;
}

std::string Named(const json& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters.items()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.dump());
  return text;
}

// Runs the best point's hardware in RTL against the reference interpreter.
absl::Status Confirm(const ExploreOptions& options, const Target& base, RunDirectory& directory, Exploration& exploration) {
  HEDDLE_ASSIGN_OR_RETURN(const Target target, Changed(base, exploration.points[*exploration.best].parameters));
  HEDDLE_RETURN_IF_ERROR(directory.Write("best_target.json", target.json.dump(2) + "\n"));
  RunOptions run = options.run;
  run.target = (directory.path() / "best_target.json").string();
  run.out = (directory.path() / "best").string();
  run.verify = VerifyMode::kPlan;
  run.talk.verbosity = Verbosity::kQuiet;
  report::Report report;
  HEDDLE_RETURN_IF_ERROR(RunModel(run, report));
  Confirmation confirmation;
  confirmation.bit_exact = report.verdict.compared && report.verdict.bit_exact;
  if (report.accelerator) {
    confirmation.cycles_estimated = report.accelerator->cycles_estimated;
    confirmation.cycles_simulated = report.accelerator->cycles_simulated;
  }
  exploration.confirmation = confirmation;
  return absl::OkStatus();
}

absl::Status SweepAll(const ExploreOptions& options, const ir::Graph& graph, const Target& target, Talk& talk, Exploration& exploration) {
  const std::vector<json> combinations = Combinations(exploration.axes);
  for (size_t i = 0; i < combinations.size(); ++i) {
    talk.Progress(fmt::format("{} of {}: {}", i + 1, combinations.size(), Named(combinations[i])));
    auto point = Evaluate(graph, target, combinations[i], options.run);
    if (point.ok()) {
      exploration.points.push_back(*std::move(point));
      continue;
    }
    const std::string code = ir::ErrorCode(point.status());
    // Parameters that are no hardware, and networks that do not fit into it, are results here; anything else is an error.
    if (!code.starts_with("E-ACCEL-") && !code.starts_with("E-ACC-")) return point.status();
    std::string text(point.status().message());
    if (text.starts_with(code + ": ")) text = text.substr(code.size() + 2);
    exploration.illegal.push_back({combinations[i], code, text.substr(0, text.find('\n'))});
  }
  return absl::OkStatus();
}

}  // namespace

void Judge(Exploration& exploration) {
  std::vector<ExplorePoint>& points = exploration.points;
  int64_t most_macs = 0;
  for (const ExplorePoint& point : points) most_macs = std::max(most_macs, point.macs);
  exploration.best.reset();
  for (ExplorePoint& point : points) {
    // Half a per cent: a pooling or a last layer that moves does not make two points incomparable.
    point.less_work = static_cast<double>(point.macs) < 0.995 * static_cast<double>(most_macs);
  }
  for (size_t i = 0; i < points.size(); ++i) {
    points[i].on_front = !points[i].less_work && std::none_of(points.begin(), points.end(), [&](const ExplorePoint& other) {
      return !other.less_work && Dominates(other, points[i]);
    });
    if (points[i].less_work || !points[i].fits) continue;
    const auto key = [](const ExplorePoint& p) { return std::tuple(p.cycles_estimated, p.resources.dsp, p.resources.lut, p.resources.bram36()); };
    if (!exploration.best || key(points[i]) < key(points[*exploration.best])) exploration.best = i;
  }
}

absl::Status ExploreCommand(const ExploreOptions& options) {
  Exploration exploration;
  HEDDLE_ASSIGN_OR_RETURN(exploration.axes, ParseSweep(options.sweep));
  HEDDLE_ASSIGN_OR_RETURN(const Target target, LoadTarget(options.run.target));
  HEDDLE_RETURN_IF_ERROR(Changed(target, json::object()).status());
  exploration.model = options.run.model;
  exploration.target = target.name;
  exploration.max_lut = target.max_lut;
  exploration.max_dsp = target.max_dsp;
  exploration.max_bram36 = target.max_bram36;
  HEDDLE_ASSIGN_OR_RETURN(const auto directory, RunDirectory::Create(options.run.out));
  Talk talk(options.run.talk.verbosity, options.run.talk.color, options.confirm ? 3 : 2);
  talk.Step("import " + options.run.model);
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, LoadModel(options.run.model, options.run.shapes, false));
  HEDDLE_RETURN_IF_ERROR(RunPipeline(graph, options.run.skip_passes));
  talk.Step(fmt::format("explore {} combinations for {}", Combinations(exploration.axes).size(), target.name));
  HEDDLE_RETURN_IF_ERROR(SweepAll(options, graph, target, talk, exploration));
  Judge(exploration);
  if (options.confirm && exploration.best) {
    talk.Step("confirm " + Named(exploration.points[*exploration.best].parameters) + " in RTL");
    HEDDLE_RETURN_IF_ERROR(Confirm(options, target, *directory, exploration));
  }
  talk.Done();
  const std::string text = PrintExplorationText(exploration), json_text = PrintExplorationJson(exploration);
  HEDDLE_RETURN_IF_ERROR(directory->Write("explore.txt", text));
  HEDDLE_RETURN_IF_ERROR(directory->Write("explore.json", json_text));
  HEDDLE_RETURN_IF_ERROR(directory->Write("explore.html", PrintExplorationHtml(exploration)));
  HEDDLE_RETURN_IF_ERROR(directory->Write("manifest.json", json{{"heddle", kVersion}, {"explore", "explore.json"}}.dump(2) + "\n"));
  HEDDLE_RETURN_IF_ERROR(directory->Commit());
  const std::string& shown = options.run.json ? json_text : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  if (options.confirm && !exploration.best) {
    return ir::UserError("E-BUDGET-003", "no combination fits the target's limits, so there is none to confirm", "sweep over smaller values");
  }
  return absl::OkStatus();
}

}  // namespace heddle::driver
