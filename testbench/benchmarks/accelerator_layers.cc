// Cycles of each layer of a network on a target's accelerator, as the fast model sees them: where a plan loses time, and
// which nodes the engine refuses. With --rtl the program runs on the RTL too, on random inputs: its cycles, and its bytes beside the
// reference interpreter's.
//
//   accelerator_layers MODEL.onnx|resnet50 TARGET.json [--rtl] [DIMENSION=VALUE…]

#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "frontend/onnx_import.h"
#include "hls/accelerator/accelerator.h"
#include "hls/compiler.h"
#include "ir/interpreter.h"
#include "ir/passes/pass.h"
#include "sim/verilated_model.h"
#include "testbench/accelerator_region.h"
#include "testbench/resnet50.h"
#include "testbench/simulation_request.h"

namespace heddle {
namespace {

int Fail(const absl::Status& status) {
  fmt::print(stderr, "{}\n", std::string(status.message()));
  return 1;
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double PeakMebibytes() {
  rusage usage{}, children{};
  getrusage(RUSAGE_SELF, &usage);
  getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(std::max(usage.ru_maxrss, children.ru_maxrss)) / 1024;
}

// 0 where bytes and cycles are as expected.
int RunOnRtl(const ir::Graph& region, const testbench::AcceleratorTarget& target, const hls::CompiledProgram& program) {
  const std::vector<ir::Tensor> inputs = testbench::RandomInputs(region, 1);
  const auto model = sim::VerilatedModel::Build(hls::GenerateVerilog(target.params), false, {});
  if (!model.ok()) return Fail(model.status());
  const auto run = testbench::RunProgram(*model, program, inputs, {target.memory, target.params.beat_bytes()});
  if (!run.ok()) return Fail(run.status());
  fmt::print("RTL: {} cycles ({:+.4f} % against the estimate), simulated in {:.1f} s ({:.0f} cycles/s, set-up included), peak memory {:.0f} MiB\n", run->cycles,
             100.0 * static_cast<double>(run->cycles - program.cycles_estimated) / static_cast<double>(program.cycles_estimated), run->simulation.seconds,
             static_cast<double>(run->simulation.cycles) / run->simulation.seconds, PeakMebibytes());
  const auto start = std::chrono::steady_clock::now();
  const auto expected = ir::Interpret(region, inputs);
  if (!expected.ok()) return Fail(expected.status());
  int64_t elements = 0;
  for (const ir::Tensor& tensor : run->outputs) elements += tensor.elements();
  const bool equal = run->outputs == *expected;
  fmt::print("{} bytes of {} outputs {} the reference interpreter's (it took {:.1f} s)\n", elements, run->outputs.size(), equal ? "equal" : "DIFFER FROM",
             SecondsSince(start));
  return equal && run->cycles == program.cycles_estimated ? 0 : 1;
}

int Main(int argc, char** argv) {
  const auto target = testbench::ReadAcceleratorTarget(argv[2]);
  if (!target.ok()) return Fail(target.status());
  frontend::ImportOptions options;
  bool rtl = false;
  for (int i = 3; i < argc; ++i) {
    rtl |= std::strcmp(argv[i], "--rtl") == 0;
    const char* equals = std::strchr(argv[i], '=');
    if (equals) options.symbols[std::string(argv[i], equals - argv[i])] = std::atoll(equals + 1);
  }
  const bool resnet50 = std::strcmp(argv[1], "resnet50") == 0;
  auto graph = resnet50 ? absl::StatusOr<ir::Graph>(testbench::MakeResnet50()) : frontend::ImportOnnx(argv[1], options);
  if (!graph.ok()) return Fail(graph.status());
  if (const absl::Status status = ir::RunDefaultPipeline(*graph); !status.ok()) return Fail(status);
  const testbench::AcceleratorPart part = testbench::TakeAcceleratorPart(*graph, target->params);
  for (const auto& [node, op, support] : part.refusals) fmt::print("  {} ({}) elsewhere: {} {}\n", node, op, support.code, support.text);
  const auto start = std::chrono::steady_clock::now();
  const auto program = hls::CompileRegion(part.region, target->params, target->memory);
  if (!program.ok()) return Fail(program.status());
  const double seconds = SecondsSince(start);
  const double peak = target->params.peak_macs_per_cycle();
  fmt::print("{:44} {:14} {:>10} {:>9} {:>9} {:>6} {:>5} {:>9}\n", "layer", "kind", "MACs", "cycles", "excess", "util", "tiles", "weights");
  for (const hls::ProgramLayer& layer : program->layers) {
    const double ideal = static_cast<double>(layer.macs) / peak;
    fmt::print("{:44} {:14} {:10} {:9} {:9.0f} {:6.3f} {:5} {:>9}{}\n", layer.name.substr(0, 44), layer.kind, layer.macs, layer.cycles_estimated,
               static_cast<double>(layer.cycles_estimated) - ideal, ideal / static_cast<double>(std::max<int64_t>(1, layer.cycles_estimated)), layer.tiles,
               layer.weight_bytes, layer.weights_resident ? "r" : "");
  }
  fmt::print("{} of {} nodes, {} layers, {} instructions, {} cycles estimated, utilisation {:.4f}, {} bytes read, {} written, {} tensors of {} bytes "
             "spilled, activation memory {}, weights {} ({} resident), compiled in {:.2f} s\n",
             part.nodes, graph->NodeIds().size(), program->layers.size(), program->run.size(), program->cycles_estimated,
             static_cast<double>(program->macs()) / (static_cast<double>(program->cycles_estimated) * peak), program->dram_bytes_read,
             program->dram_bytes_written, program->plan.spilled_tensors, program->plan.activations_spilled_bytes,
             program->plan.activation_bytes_used, program->plan.weight_words_used, program->plan.weight_words_resident, seconds);
  return rtl ? RunOnRtl(part.region, *target, *program) : 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "accelerator_layers MODEL.onnx|resnet50 TARGET.json [--rtl] [DIMENSION=VALUE…]\n");
    return 2;
  }
  return heddle::Main(argc, argv);
}
