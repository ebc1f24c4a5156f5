// Compiles a model for this machine's CPU and runs it once for each line of stdin, printing milliseconds: the other half
// of compare_cpu.py.
//
// Usage: time_cpu MODEL.onnx THREADS INPUTS.npz OUTPUTS.npz

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cpu_fallback/cpu_device.h"
#include "frontend/onnx_import.h"
#include "ir/npz.h"
#include "ir/passes/pass.h"

namespace heddle::testbench {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

absl::Status Main(char** argv) {
  const auto start = std::chrono::steady_clock::now();
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(argv[1]));
  HEDDLE_RETURN_IF_ERROR(ir::RunDefaultPipeline(graph));
  auto shared = std::make_shared<const ir::Graph>(std::move(graph));
  HEDDLE_ASSIGN_OR_RETURN(auto device, cpu::MakeCpuDevice({{"name", "cpu"}, {"kind", "cpu"}, {"timing", "measured"}, {"threads", std::atoi(argv[2])}}));
  HEDDLE_ASSIGN_OR_RETURN(auto region, device->Compile(shared, {"model", {}, {}}));
  HEDDLE_ASSIGN_OR_RETURN(const auto arrays, ir::ReadNpzFile(argv[3]));
  std::map<std::string, ir::Tensor> by_name;
  for (const ir::NamedTensor& array : arrays) by_name[array.name] = array.tensor;
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId id : shared->inputs()) inputs.push_back(by_name.at(shared->value(id).name));
  fmt::print("{{\"compile_s\": {:.3f}}}\n", SecondsSince(start));
  std::fflush(stdout);
  std::vector<ir::NamedTensor> outputs;
  for (std::string line; std::getline(std::cin, line);) {
    HEDDLE_ASSIGN_OR_RETURN(ir::RunResult result, region->Run(inputs));
    fmt::print("{:.4f}\n", result.time_us / 1e3);
    std::fflush(stdout);
    outputs.clear();
    for (size_t i = 0; i < result.outputs.size(); ++i) outputs.push_back({shared->value(shared->outputs()[i]).name, result.outputs[i]});
  }
  HEDDLE_RETURN_IF_ERROR(ir::WriteNpzFile(argv[4], outputs));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{{\"peak_mib\": {}}}\n", usage.ru_maxrss / 1024);
  return absl::OkStatus();
}

}  // namespace
}  // namespace heddle::testbench

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: time_cpu MODEL.onnx THREADS INPUTS.npz OUTPUTS.npz\n");
    return 2;
  }
  const absl::Status status = heddle::testbench::Main(argv);
  if (!status.ok()) fmt::print(stderr, "error: {}\n", std::string(status.message()));
  return status.ok() ? 0 : 3;
}
