// Time of a model on this CPU, group by group: where the compiler is slow.
//
//   cpu_benchmark MODEL.onnx [--threads N] [--runs N] [--top N] [--loops FILE] [--check] [--dimension NAME VALUE]

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>

#include "cpu_fallback/cpu_target.h"
#include "cpu_fallback/program.h"
#include "frontend/onnx_import.h"
#include "ir/interpreter.h"
#include "ir/passes/pass.h"

namespace heddle {
namespace {

struct Options {
  std::string model, loops_file;
  std::vector<std::pair<std::string, int64_t>> dimensions;  // named ones, such as "batch"
  int threads = 1, runs = 10, top = 12;
  bool check = false;
};

std::vector<ir::Tensor> RandomInputs(const ir::Graph& graph) {
  std::mt19937_64 random(1);
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId id : graph.inputs()) {
    ir::Tensor tensor(graph.type(id).element, graph.type(id).static_shape());
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (IsFloat(tensor.type())) {
        tensor.set_double(i, std::uniform_real_distribution<double>(0, 1)(random));
      } else {
        tensor.set_int(i, static_cast<int64_t>(random() % 2));
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

void PrintDifference(const std::vector<ir::Tensor>& expected, const std::vector<ir::Tensor>& actual) {
  for (size_t t = 0; t < expected.size(); ++t) {
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < expected[t].elements(); ++i) {
      worst = std::max(worst, std::fabs(expected[t].at_double(i) - actual[t].at_double(i)));
      largest = std::max(largest, std::fabs(expected[t].at_double(i)));
    }
    fmt::print("output {}: largest difference {:.3g}, largest value {:.3g}\n", t, worst, largest);
  }
}

absl::Status Benchmark(const Options& options) {
  frontend::ImportOptions import_options;
  import_options.symbols.insert(options.dimensions.begin(), options.dimensions.end());
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(options.model, import_options));
  HEDDLE_RETURN_IF_ERROR(RunDefaultPipeline(graph));
  HEDDLE_ASSIGN_OR_RETURN(auto program, cpu::CompileProgram(graph));
  const cpu::ProgramStats& stats = program->stats();
  fmt::print("{}: compiled in {:.2f} s, {} groups, {} functions, {} interpreted nodes, arena {:.1f} MB, packed {:.1f} MB\n",
             cpu::HostCpu().name, stats.compile_seconds, stats.groups, stats.functions, stats.interpreted_nodes,
             static_cast<double>(stats.arena_bytes) / 1e6, static_cast<double>(stats.packed_bytes) / 1e6);
  if (!options.loops_file.empty()) std::ofstream(options.loops_file) << program->LoopText();
  const std::vector<ir::Tensor> inputs = RandomInputs(graph);
  cpu::ThreadPool pool(options.threads);
  std::vector<double> totals;
  std::map<std::string, double> fastest;
  std::vector<ir::Tensor> outputs;
  for (int run = 0; run <= options.runs; ++run) {
    std::vector<cpu::GroupTime> times;
    HEDDLE_ASSIGN_OR_RETURN(outputs, program->Run(inputs, &pool, &times));
    if (run == 0) continue;  // warm-up
    totals.push_back(times.empty() ? 0 : times.back().end_us * 1e-3);
    for (const cpu::GroupTime& time : times) {
      auto [it, is_new] = fastest.try_emplace(time.name, time.end_us - time.start_us);
      if (!is_new) it->second = std::min(it->second, time.end_us - time.start_us);
    }
  }
  std::sort(totals.begin(), totals.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{} thread(s): median {:.3f} ms, fastest {:.3f} ms, peak memory {:.0f} MB\n", options.threads,
             totals[totals.size() / 2], totals[0], static_cast<double>(usage.ru_maxrss) / 1e3);
  std::vector<std::pair<double, std::string>> slow;
  for (const auto& [name, time] : fastest) slow.emplace_back(time, name);
  std::sort(slow.rbegin(), slow.rend());
  for (int i = 0; i < options.top && i < static_cast<int>(slow.size()); ++i) {
    fmt::print("  {:10.1f} us  {}\n", slow[static_cast<size_t>(i)].first, slow[static_cast<size_t>(i)].second);
  }
  if (options.check) {
    HEDDLE_ASSIGN_OR_RETURN(auto expected, ir::Interpret(graph, inputs));
    PrintDifference(expected, outputs);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  heddle::Options options;
  CLI::App app("Time of a model on this CPU");
  app.add_option("model", options.model)->required();
  app.add_option("--threads", options.threads);
  app.add_option("--runs", options.runs);
  app.add_option("--top", options.top);
  app.add_option("--loops", options.loops_file);
  app.add_option("--dimension", options.dimensions, "NAME VALUE");
  app.add_flag("--check", options.check);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = heddle::Benchmark(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", std::string(status.message()));
  return 1;
}
