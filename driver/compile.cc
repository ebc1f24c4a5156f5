// The story of a run. Each step is one function here that hands over to the package that does the work.

#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "driver/artefacts.h"
#include "driver/devices.h"
#include "driver/execute.h"
#include "driver/fill_report.h"
#include "driver/inputs.h"
#include "driver/refine_costs.h"
#include "driver/reproducible.h"
#include "driver/run_directory.h"
#include "driver/verify.h"
#include "frontend/onnx_import.h"
#include "hls/accelerator/accelerator.h"
#include "ir/check.h"
#include "ir/partition/solve.h"
#include "ir/passes/pass.h"
#include "ir/sha256.h"
#include "ir/text.h"
#include "sim/accelerator_device.h"

namespace heddle::driver {
namespace {

constexpr int kRunSteps = 7, kCompileSteps = 5;
constexpr int kMostCompilations = 4;  // of a plan, each with the costs that the one before taught
constexpr double kSynthesisTimeoutS = 7200;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// One run, step by step; every step may use what the ones before left in the members.
class ModelRun {
 public:
  ModelRun(const RunOptions& options, report::Report& report)
      : options_(options), report_(report), talk_(options.talk.verbosity, options.talk.color, options.compile_only ? kCompileSteps : kRunSteps) {}

  absl::Status Go() {
    HEDDLE_RETURN_IF_ERROR(Prepare());
    HEDDLE_RETURN_IF_ERROR(Import());
    HEDDLE_RETURN_IF_ERROR(OptimiseAndLegalise());
    HEDDLE_RETURN_IF_ERROR(Partition());
    HEDDLE_RETURN_IF_ERROR(Compile());
    if (!options_.compile_only) {
      HEDDLE_RETURN_IF_ERROR(Run());
      HEDDLE_RETURN_IF_ERROR(Compare());
    }
    HEDDLE_RETURN_IF_ERROR(WriteReport());
    talk_.Done();
    return Judge();
  }

 private:
  std::function<void(const std::string&)> Progress() {
    return [this](const std::string& text) { talk_.Progress(text); };
  }

  absl::Status Prepare() {
    HEDDLE_ASSIGN_OR_RETURN(target_, LoadTarget(options_.target));
    HEDDLE_ASSIGN_OR_RETURN(DeviceSet set, MakeDevices(target_, options_.devices, options_.threads));
    devices_ = std::move(set.devices);
    report_.notes = set.notes;
    if (options_.reproducible) HEDDLE_RETURN_IF_ERROR(CheckNothingLeftOut(set.notes));
    HEDDLE_ASSIGN_OR_RETURN(directory_, RunDirectory::Create(options_.out));
    return ConfigureAccelerator();
  }

  absl::Status ConfigureAccelerator() {
    HEDDLE_ASSIGN_OR_RETURN(const sim::WaveRequest waves, ParseWaves(options_.waves));
    for (const auto& device : devices_) {
      if (auto* accelerator = dynamic_cast<sim::AcceleratorDevice*>(device.get())) {
        accelerator->set_options({waves, directory_->path() / "sim", ChosenSimulator(),
                                  options_.systemc_accelerator == "rtl" ? sim::PlatformAccelerator::kRtl : sim::PlatformAccelerator::kFast});
      }
    }
    return absl::OkStatus();
  }

  sim::Simulator ChosenSimulator() const {
    if ((options_.compile_only && !options_.build_simulator) || options_.simulator == "fast") return sim::Simulator::kFast;
    return options_.simulator == "systemc" ? sim::Simulator::kSystemC : sim::Simulator::kRtl;
  }

  absl::Status Import() {
    talk_.Step("import " + options_.model);
    HEDDLE_ASSIGN_OR_RETURN(graph_, LoadModel(options_.model, options_.shapes, false));
    HEDDLE_RETURN_IF_ERROR(ir::Verify(graph_));
    HEDDLE_RETURN_IF_ERROR(WritePhase("01-import", graph_));
    report_.heddle_version = kVersion;
    report_.model = DescribeModel(options_.model, ReadFile(options_.model), graph_);
    report_.target = {target_.name, target_.description};
    talk_.Detail(fmt::format("{} nodes, {} MACs, {} parameters", graph_.NodeIds().size(), report_.model.macs, report_.model.parameters));
    return absl::OkStatus();
  }

  absl::Status OptimiseAndLegalise() {
    talk_.Step("optimise and legalise");
    ir::RunPassesOptions passes;
    passes.after_pass = [&](int index, std::string_view pass, const ir::Graph& graph) {
      talk_.Detail(fmt::format("{:2} {}: {} nodes", index, pass, graph.NodeIds().size()));
    };
    HEDDLE_RETURN_IF_ERROR(RunPipeline(graph_, options_.skip_passes, passes));
    HEDDLE_RETURN_IF_ERROR(ir::Verify(graph_));
    return WritePhase("02-legalised", graph_);
  }

  absl::Status Partition() {
    talk_.Step("partition for " + target_.name);
    HEDDLE_ASSIGN_OR_RETURN(model_, BuildPartitionModel(graph_, devices_, target_, options_.objective, Progress()));
    HEDDLE_RETURN_IF_ERROR(SolvePartition());
    return WritePhase("03-partition", graph_);
  }

  absl::Status SolvePartition() {
    ir::partition::SolveOptions solve;
    solve.time_limit_seconds = options_.time_limit_s;
    HEDDLE_ASSIGN_OR_RETURN(result_, ir::partition::Solve(model_.problem, solve));
    if (options_.reproducible) HEDDLE_RETURN_IF_ERROR(CheckPlanReproducible(model_, result_));
    plan_ = RegionsOf(model_, result_);
    talk_.Detail(fmt::format("{} regions, {} {:.1f} {}, gap {:.2f} %, {} in {:.2f} s", plan_.size(), options_.objective, result_.cost,
                             ir::partition::UnitOf(model_.problem.objective), result_.gap_percent, result_.solver, result_.solve_seconds));
    return absl::OkStatus();
  }

  // Compiled regions are known better than their nodes were: the partition is solved again with what they say, and where
  // that gives other regions, those are compiled.
  absl::Status Compile() {
    talk_.Step(fmt::format("compile {} regions", plan_.size()));
    for (int round = 1;; ++round) {
      HEDDLE_ASSIGN_OR_RETURN(regions_, CompilePlan(graph_, plan_, devices_, directory_->path(), Progress()));
      if (round == kMostCompilations || !RefineCosts(regions_, graph_, model_)) return absl::OkStatus();
      const std::vector<PlannedRegion> compiled = plan_;
      HEDDLE_RETURN_IF_ERROR(SolvePartition());
      if (SameRegions(compiled, plan_)) break;
      talk_.Progress("other regions are better at the compiled ones' costs");
      RemoveRegions();
    }
    for (size_t i = 0; i < plan_.size(); ++i) regions_[i].planned = plan_[i];
    return absl::OkStatus();
  }

  static bool SameRegions(const std::vector<PlannedRegion>& a, const std::vector<PlannedRegion>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const PlannedRegion& x, const PlannedRegion& y) { return x.device == y.device && x.nodes == y.nodes; });
  }

  // What CompilePlan has written.
  void RemoveRegions() {
    for (const CompiledPlanRegion& region : regions_) {
      const auto& device = devices_[static_cast<size_t>(region.planned.device)];
      std::error_code ignored;
      std::filesystem::remove_all(directory_->path() / device->kind() / region.name, ignored);
    }
  }

  absl::Status Run() {
    HEDDLE_ASSIGN_OR_RETURN(inputs_, LoadInputs(graph_, options_.inputs));
    talk_.Step("run and simulate");
    if (AnyOnAccelerator() && options_.simulator != "rtl") {
      report_.notes.push_back(options_.simulator == "fast" ? "the accelerator's cycles are the fast model's; no RTL was simulated"
                                                           : fmt::format("the accelerator's simulated cycles are those of the SystemC platform, accelerator: {}",
                                                                         options_.systemc_accelerator == "rtl" ? "RTL" : "fast model"));
    }
    HEDDLE_ASSIGN_OR_RETURN(run_, RunPlan(graph_, regions_, inputs_, Progress()));
    return absl::OkStatus();
  }

  absl::Status Compare() {
    talk_.Step("compare");
    if (options_.verify == VerifyMode::kNone) return WriteTensors(*directory_, graph_, nullptr, run_.outputs);
    talk_.Progress("reference interpreter");
    HEDDLE_ASSIGN_OR_RETURN(const Reference reference, ComputeReference(graph_, inputs_));
    checks_.push_back(CheckPlan(graph_, reference, regions_, run_, devices_));
    if (options_.verify == VerifyMode::kAll) HEDDLE_RETURN_IF_ERROR(CompareOthers(reference));
    if (options_.icarus && AnyOnAccelerator()) {
      HEDDLE_ASSIGN_OR_RETURN(CrossCheck check, CheckIcarus(reference, regions_, Progress()));
      checks_.push_back(std::move(check));
    }
    HEDDLE_RETURN_IF_ERROR(WriteTensors(*directory_, graph_, &reference.outputs, run_.outputs));
    return WriteChecks(*directory_, checks_);
  }

  absl::Status CompareOthers(const Reference& reference) {
    ir::Device& host = HostOf(devices_);
    talk_.Progress("the whole graph on the CPU");
    HEDDLE_ASSIGN_OR_RETURN(CrossCheck cpu, CheckWholeOn(graph_, reference, inputs_, host, host, Progress()));
    checks_.push_back(std::move(cpu));
    std::unique_ptr<ir::Device> own_gpu;
    ir::Device* gpu = nullptr;
    for (const auto& device : devices_) gpu = device->kind() == "gpu" ? device.get() : gpu;
    if (!gpu) {
      own_gpu = MakeCrossCheckGpu();
      gpu = own_gpu.get();
    }
    if (gpu) {
      talk_.Progress("the whole graph through OpenCL");
      HEDDLE_ASSIGN_OR_RETURN(CrossCheck check, CheckWholeOn(graph_, reference, inputs_, *gpu, host, Progress()));
      checks_.push_back(std::move(check));
    } else {
      report_.notes.push_back("not compared through OpenCL: this machine has no driver");
    }
    if (AnyOnAccelerator()) {
      HEDDLE_ASSIGN_OR_RETURN(CrossCheck check, CheckSystemC(reference, regions_, Progress()));
      checks_.push_back(std::move(check));
    }
    if (options_.hls && AnyOnAccelerator()) {
      HEDDLE_ASSIGN_OR_RETURN(CrossCheck check, CheckHls(reference, regions_, Progress()));
      checks_.push_back(std::move(check));
    }
    return absl::OkStatus();
  }

  bool AnyOnAccelerator() const {
    for (const PlannedRegion& region : plan_) {
      if (devices_[static_cast<size_t>(region.device)]->kind() == "accelerator") return true;
    }
    return false;
  }

  absl::Status Synthesise() {
    if (!options_.synth || !AnyOnAccelerator()) return absl::OkStatus();
    talk_.Progress("synthesis by Yosys");
    HEDDLE_ASSIGN_OR_RETURN(synthesis_, hls::Synthesise(directory_->path() / "accelerator" / "rtl", hls::kTopModule,
                                                        hls::FpgaFamily::kXilinx7, kSynthesisTimeoutS));
    return absl::OkStatus();
  }

  absl::Status WriteReport() {
    talk_.Step("report");
    HEDDLE_RETURN_IF_ERROR(Synthesise());
    FillReport({graph_, devices_, target_, model_, result_, regions_, options_.compile_only ? nullptr : &run_, checks_,
                synthesis_ ? &*synthesis_ : nullptr},
               report_);
    if (options_.reproducible) DropWallClock(report_);
    HEDDLE_RETURN_IF_ERROR(WriteReportFiles(*directory_, report_));
    if (!options_.compile_only) HEDDLE_RETURN_IF_ERROR(WriteCounters(*directory_, regions_, run_));
    HEDDLE_RETURN_IF_ERROR(WritePartitionedModel(*directory_, options_.model, graph_, report_));
    HEDDLE_RETURN_IF_ERROR(WriteManifest(*directory_, options_, target_, report_, talk_.log()));
    return directory_->Commit();
  }

  // What the exit status says, after everything was kept.
  absl::Status Judge() const {
    for (const CrossCheck& check : checks_) {
      if (check.within_bounds()) continue;
      return ir::UserError("E-VERIFY-001", fmt::format("{} differs from the reference interpreter, first at {}", check.against,
                                                       check.first_difference.empty() ? "an output" : check.first_difference),
                           fmt::format("see {}/verify/diff.json", directory_->final_path().string()));
    }
    return CheckBudget(options_, target_, report_);
  }

  absl::Status WritePhase(const std::string& name, const ir::Graph& graph) {
    ir::PrintOptions print;
    print.form = ir::ConstantForm::kReference;
    print.store = &constants_;
    HEDDLE_RETURN_IF_ERROR(directory_->Write("phases/" + name + ".ir", ir::PrintGraph(graph, print)));
    return constants_.Save(directory_->path() / "phases" / "constants.bin");
  }

  const RunOptions& options_;
  report::Report& report_;
  Talk talk_;
  Target target_;
  DeviceList devices_;
  std::unique_ptr<RunDirectory> directory_;
  ir::Graph graph_;
  ir::ConstantStore constants_;
  PartitionModel model_;
  ir::partition::Result result_;
  std::vector<PlannedRegion> plan_;
  std::vector<CompiledPlanRegion> regions_;
  std::vector<ir::Tensor> inputs_;
  PlanRun run_;
  std::vector<CrossCheck> checks_;
  std::optional<hls::Synthesis> synthesis_;
};

}  // namespace

absl::StatusOr<ir::Graph> LoadModel(const std::string& path, const std::vector<std::string>& shapes, bool keep_symbolic) {
  if (path.ends_with(".ir")) {
    std::ifstream file(path);
    if (!file) return ir::UserError("E-IMPORT-001", fmt::format("'{}' cannot be read", path), "check the path");
    auto store = ir::ConstantStore::Load(std::filesystem::path(path).parent_path() / "constants.bin");
    ir::ParseOptions parse;
    if (store.ok()) parse.store = &*store;
    return ir::ParseGraph(ReadFile(path), parse);
  }
  frontend::ImportOptions import;
  import.keep_symbolic = keep_symbolic;
  for (const std::string& text : shapes) {
    HEDDLE_ASSIGN_OR_RETURN(auto shape, ParseShapeOption(text));
    import.shapes[shape.first] = shape.second;
  }
  return frontend::ImportOnnx(path, import);
}

absl::Status RunPipeline(ir::Graph& graph, const std::vector<std::string>& skip, const ir::RunPassesOptions& passes) {
  for (const std::string& name : skip) {
    if (!ir::FindPass(name)) return ir::UserError("E-USAGE-043", fmt::format("no pass is called '{}'", name), "choose among those of `heddle passes`");
  }
  std::vector<std::string> steps;
  for (const ir::PipelineStep& step : ir::DefaultPipeline()) {
    if (std::find(skip.begin(), skip.end(), step.pass.substr(0, step.pass.find(':'))) == skip.end()) steps.push_back(step.pass);
  }
  return ir::RunPasses(graph, steps, passes);
}

absl::Status RunModel(const RunOptions& options, report::Report& report) { return ModelRun(options, report).Go(); }

}  // namespace heddle::driver
