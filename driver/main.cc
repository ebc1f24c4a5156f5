// The command line: what can be said, and which function answers. Data goes to stdout, talk to stderr.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <new>

#include "driver/check.h"
#include "driver/commands.h"
#include "driver/exit_codes.h"
#include "driver/explore.h"
#include "driver/options.h"
#include "driver/quantise.h"
#include "driver/run_directory.h"

namespace heddle::driver {
namespace {

void AddTalk(CLI::App& app, TalkOptions& talk) {
  app.add_flag_callback("-q,--quiet", [&talk] { talk.verbosity = Verbosity::kQuiet; }, "say nothing but errors");
  app.add_flag_callback("-v,--verbose", [&talk] { talk.verbosity = Verbosity::kVerbose; }, "say more on each step");
  app.add_option_function<std::string>(
         "--color", [&talk](const std::string& when) { talk.color = when == "always" ? ColorMode::kAlways : when == "never" ? ColorMode::kNever : ColorMode::kAuto; },
         "colours: auto, always or never (NO_COLOR is obeyed)")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void AddModelOptions(CLI::App& app, RunOptions& options, const std::string& what = "an ONNX model (.onnx) or textual IR (.ir)",
                     const std::string& objective = "what the partition minimises: the time of one inference, the time between inferences in a steady stream, or the energy of one") {
  app.add_option("model", options.model, what)->required();
  app.add_option("-t,--target", options.target, "target: a preset's name (see `heddle targets`) or a JSON file")->capture_default_str();
  app.add_option("--shape", options.shapes, "shape of a graph input with unknown dimensions: NAME=1,3,224,224");
  app.add_option("--devices", options.devices, "use only these devices of the target (names or kinds), e.g. cpu,accelerator")->delimiter(',');
  app.add_option("--skip-pass", options.skip_passes, "leave a pass of the pipeline out (see `heddle passes`); several with commas")->delimiter(',');
  app.add_option("--objective", options.objective, objective)->check(CLI::IsMember({"latency", "throughput", "energy"}))->capture_default_str();
  app.add_option("--time-limit", options.time_limit_s, "seconds for the partitioner; past it, the best plan with its gap")->check(CLI::PositiveNumber)->capture_default_str();
  AddTalk(app, options.talk);
}

void AddPartitionOptions(CLI::App& app, RunOptions& options) {
  AddModelOptions(app, options, "a model (.onnx, .ir), or a placement graph (.json, see docs/partitioning.md)",
                  "what the partition minimises (placement graphs: latency or throughput)");
  app.get_option("--time-limit")->each([&options](const std::string&) { options.time_limit_given = true; })->description(
      "seconds; past it, the best plan with its gap (placement graphs: default 60)");
  app.add_flag_callback("--contiguous", [&options] { options.contiguous = true; }, "placement graph, throughput: the devices form a pipeline (default)");
  app.add_flag_callback("--any", [&options] { options.contiguous = false; }, "placement graph, throughput: a device may have any nodes");
  app.add_flag("--json", options.json, "placement graph: print the plan as JSON (a model's plan always is)");
}

void AddOutputOptions(CLI::App& app, RunOptions& options) {
  app.add_option("-o,--out", options.out, "the run directory")->capture_default_str();
  app.add_flag("--json", options.json, "print report.json instead of the first screen");
  app.add_option("--threads", options.threads, "threads of the CPU (as the target says)")->check(CLI::Range(1, 256));
  app.add_option("--max-luts", options.max_luts, "exit with status 4 where the accelerator needs more LUTs")->check(CLI::PositiveNumber);
  app.add_flag("--strict", options.strict, "exit with status 4 where the target's limits are exceeded");
  app.add_flag("--reproducible", options.reproducible,
               "for caches of build systems: leave wall-clock figures out, and refuse measured costs and plans that are not proven optimal");
}

void AddRunOptions(CLI::App& app, RunOptions& options) {
  AddModelOptions(app, options);
  AddOutputOptions(app, options);
  app.add_option("-i,--input", options.inputs, "FILE.npz, NAME=FILE.npy or random:SEED; several may be given (default random:0)");
  static const std::map<std::string, VerifyMode> modes = {{"all", VerifyMode::kAll}, {"plan", VerifyMode::kPlan}, {"none", VerifyMode::kNone}};
  app.add_option("--verify", options.verify, "all: every device, OpenCL and HLS C++; plan: what ran; none")->transform(CLI::CheckedTransformer(modes))->default_str("all");
  app.add_flag("--icarus", options.icarus, "simulate the RTL in Icarus Verilog too, by a self-checking test bench for each region (slow: 1 ms a cycle and more)");
  app.add_flag("--synth", options.synth, "synthesise the accelerator with Yosys (synth_xilinx) and report its LUTs, registers, DSPs and block RAMs (minutes)");
  app.add_option("--waves", options.waves, "record waves of the RTL (FST): all, or START:END in cycles");
}

// Registers the commands; the chosen one sets `action`.
class CommandLine {
 public:
  CommandLine() : app_("Heddle: splits a trained network over CPU, GPU and a generated accelerator, proves the parts agree, and reports why.") {
    app_.require_subcommand(1);
    app_.set_help_all_flag("--help-all", "help of all commands");
    app_.footer("Exit status: 0 ok, 1 internal bug, 2 usage, 3 bad or unsupported model, 4 budget missed, 5 numeric mismatch, 6 external tool failed, 130 interrupted.");
    AddRun();
    AddDirectoryCommands();
    AddQuantise();
    AddLookCommands();
  }

  int Run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? kExitOk : kExitUsage;
    }
    const absl::Status status = action_();
    const ColorMode color = quantise_.model.empty() ? options_.talk.color : quantise_.talk.color;
    if (!status.ok()) PrintError(std::string(status.message()), color);
    return ExitCodeOf(status);
  }

 private:
  CLI::App* Command(const std::string& name, const std::string& help, std::function<absl::Status()> action) {
    CLI::App* command = app_.add_subcommand(name, help);
    command->callback([this, action] { action_ = action; });
    return command;
  }

  void AddRun() {
    AddRunOptions(*Command("run", "import, partition, compile, simulate, compare and report", [this] { return RunCommand(options_); }), options_);
    CLI::App* compile = Command("compile", "as run, but nothing is run: code, RTL, HLS C++ and predictions", [this] {
      options_.compile_only = true;
      return RunCommand(options_);
    });
    AddModelOptions(*compile, options_);
    AddOutputOptions(*compile, options_);
    compile->add_flag("--simulator", options_.build_simulator, "also build the simulator of the Verilog, into the cache folder (HEDDLE_CACHE), where runs find it");
    CLI::App* explore = Command("explore", "sweep the accelerator's parameters: cycles against size, the Pareto front, the best that fits", [this] {
      explore_.run = options_;
      return ExploreCommand(explore_);
    });
    AddModelOptions(*explore, options_);
    explore->add_option("--sweep", explore_.sweep, "parameters and their values: contraction_lanes=8,16,24,output_lanes=8,16 (docs/accelerator.md; rows and cols for short)")->required();
    explore->add_flag("--confirm", explore_.confirm, "simulate the best point in RTL and compare it with the reference interpreter");
    explore->add_flag("--json", options_.json, "print explore.json instead of the table");
    explore->add_option("-i,--input", options_.inputs, "as for run; for --confirm");
    explore->add_option("-o,--out", options_.out, "folder for explore.txt, explore.json, explore.html and the confirmed point's run")->capture_default_str();
    AddPartitionOptions(*Command("partition", "print which node would run where and why, as JSON; or solve a placement graph", [this] { return PartitionCommand(options_); }), options_);
  }

  void AddDirectoryCommands() {
    CLI::App* simulate = Command("simulate", "simulate a compiled run directory's accelerator regions again", [this] { return SimulateCommand(directory_, options_); });
    simulate->add_option("dir", directory_, "run directory")->required();
    simulate->add_option("-i,--input", options_.inputs, "as for run");
    simulate->add_option("--model", options_.simulator, "what the accelerator's regions run on: its Verilog, the fast model, or the SystemC platform")
        ->check(CLI::IsMember({"rtl", "fast", "systemc"}))->capture_default_str();
    simulate->add_option("--systemc-accelerator", options_.systemc_accelerator, "the accelerator in the SystemC platform: the fast model, or its Verilog behind a bridge")
        ->check(CLI::IsMember({"fast", "rtl"}))->capture_default_str();
    simulate->add_option("--waves", options_.waves, "record waves of the RTL (FST): all, or START:END in cycles");
    simulate->add_option("-o,--out", options_.out, "the new run directory")->capture_default_str();
    AddTalk(*simulate, options_.talk);
    CLI::App* report = Command("report", "print a run directory's report", [this] { return ReportCommand(directory_, format_); });
    report->add_option("dir", directory_, "run directory")->required();
    report->add_option("--format", format_, "text, json or html")->check(CLI::IsMember({"text", "json", "html"}))->capture_default_str();
    CLI::App* check = Command("check", "a run's verdict and budgets as exit status: 5 where it is not bit-exact, 4 where a budget is missed",
                              [this] { return CheckCommand(directory_, budgets_); });
    check->add_option("dir", directory_, "run directory, or its report.json")->required();
    check->add_option("--max-cycles", budgets_.max_cycles, "simulated cycles of the accelerator")->check(CLI::PositiveNumber);
    check->add_option("--max-latency-us", budgets_.max_latency_us, "microseconds of one inference, everything included")->check(CLI::PositiveNumber);
    check->add_option("--max-luts", budgets_.max_luts, "LUTs of the accelerator")->check(CLI::PositiveNumber);
    check->add_flag("--within-bounds", budgets_.within_bounds, "floating-point outputs within their stated bounds pass too");
    CLI::App* explain = Command("explain", "the plan's story, or one node's: where it runs, why, and what would move it", [this] { return ExplainCommand(directory_, node_); });
    explain->add_option("dir", directory_, "run directory")->required();
    explain->add_option("node", node_, "the node's name; without it, the plan: regions, what cuts them apart, what crosses borders, who is busy");
    CLI::App* diff = Command("diff", "what moved between two runs, and what it changed", [this] { return DiffCommand(directory_, other_, threshold_percent_); });
    diff->add_option("a", directory_, "run directory")->required();
    diff->add_option("b", other_, "run directory")->required();
    diff->add_option("--max-slowdown", threshold_percent_, "exit with status 4 where b's latency is more than so many per cent above a's");
  }

  void AddQuantise() {
    namespace quantise = ir::quantise;
    CLI::App* command = Command("quantise", "make an int8 model (ONNX, QDQ form) of a float model, and say what it costs in accuracy", [this] { return QuantiseCommand(quantise_); });
    command->add_option("model", quantise_.model, "a float model: ONNX (.onnx) or textual IR (.ir)")->required();
    command->add_option("--calibrate", quantise_.calibrate, "samples to choose ranges from: FILE.npz, FILE.npy, NAME=FILE.npy, a folder of such files, or random:SEED; several may be given (default random:0)");
    command->add_option("--samples", quantise_.most_samples, "use at most so many samples (default all; 16 random ones)")->check(CLI::PositiveNumber);
    static const std::map<std::string, quantise::Method> methods = {
        {"minmax", quantise::Method::kMinMax}, {"percentile", quantise::Method::kPercentile}, {"mse", quantise::Method::kMse}};
    command->add_option("--method", quantise_.calibration.method, "how a tensor's range is chosen: minmax (all values), percentile, or mse (least mean squared error)")
        ->transform(CLI::CheckedTransformer(methods))->default_str("minmax");
    command->add_option("--percentile", quantise_.calibration.percentile, "share of the values that the range covers, in per cent, for --method percentile")
        ->check(CLI::Range(50.0, 100.0))->capture_default_str();
    command->add_option("--keep-float", quantise_.keep_float, "names of nodes that stay in float")->delimiter(',');
    command->add_option("--shape", quantise_.shapes, "shape of a graph input with unknown dimensions: NAME=1,3,224,224");
    command->add_option("-o,--out", quantise_.out, "the model to write")->capture_default_str();
    command->add_option("--threads", quantise_.threads, "threads of the CPU (as the target says)")->check(CLI::Range(1, 256));
    command->add_flag("--json", quantise_.json, "print the report as JSON");
    AddTalk(*command, quantise_.talk);
  }

  void AddLookCommands() {
    CLI::App* import = Command("import", "print the model's graph as textual IR", [this] { return ImportCommand(options_, full_); });
    import->add_option("model", options_.model, "an ONNX model (.onnx) or textual IR (.ir)")->required();
    import->add_option("--shape", options_.shapes, "shape of a graph input with unknown dimensions: NAME=1,3,224,224");
    import->add_option("--passes", options_.passes, "passes to run on it, in order (see `heddle passes`); `default` is the whole pipeline")->delimiter(',');
    import->add_flag("--full", full_, "constants in full, so that the text alone is the whole model");
    Command("targets", "list the target presets", [] { return TargetsCommand(); });
    Command("ops", "list the operators and what they do", [] { return OpsCommand(); });
    Command("passes", "list the passes and the default pipeline with its reasons", [] { return PassesCommand(); });
    Command("version", "print versions", [] { return VersionCommand(); });
  }

  CLI::App app_;
  RunOptions options_;
  ExploreOptions explore_;
  Budgets budgets_;
  QuantiseOptions quantise_;
  std::string directory_, other_, node_, format_ = "text";
  double threshold_percent_ = -1;
  bool full_ = false;
  std::function<absl::Status()> action_;
};

}  // namespace
}  // namespace heddle::driver

int main(int argc, char** argv) {
  heddle::driver::HandleInterrupts();
  int status = heddle::driver::kExitInternal;
  try {
    status = heddle::driver::CommandLine().Run(argc, argv);
  } catch (const std::bad_alloc&) {
    const absl::Status none_left = heddle::ir::UserError("E-RUN-002", "out of memory", "use a smaller model or a machine with more memory");
    heddle::driver::PrintError(std::string(none_left.message()), heddle::driver::ColorMode::kAuto);
    status = heddle::driver::kExitBadModel;
  } catch (const std::exception& error) {
    heddle::driver::PrintError(fmt::format("internal error: {}", error.what()), heddle::driver::ColorMode::kAuto);
  }
  std::fflush(nullptr);
  _exit(status);  // drivers of OpenCL devices may keep threads that do not survive static destruction
}
