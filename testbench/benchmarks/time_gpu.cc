// Times one model on the GPU device, whole in one region: compilation, and the fastest of some runs, kernel by kernel.
//   time_gpu MODEL.onnx [RUNS] [gpu|cpu|any]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/onnx_import.h"
#include "gpu/gpu_device.h"
#include "ir/op.h"
#include "ir/passes/pass.h"

namespace heddle {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ir::Tensor Ramp(const ir::ValueType& type) {
  ir::Tensor tensor(type.element, type.static_shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (ir::IsFloat(type.element)) {
      tensor.set_double(i, static_cast<double>(i) / static_cast<double>(tensor.elements()));
    } else {
      tensor.set_int(i, i % 100);
    }
  }
  return tensor;
}

absl::Status Time(const std::string& model, int runs, const std::string& type) {
  double start = Seconds();
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(model));
  HEDDLE_RETURN_IF_ERROR(RunDefaultPipeline(graph));
  std::printf("imported and optimised in %.2f s\n", Seconds() - start);
  HEDDLE_ASSIGN_OR_RETURN(const auto device, gpu::MakeGpuDevice({{"name", "gpu"}, {"timing", "measured"}, {"opencl_device_type", type}}));
  for (ir::NodeId id : graph.NodeIds()) {
    const ir::Support support = device->Supports(graph, graph.node(id));
    if (!support.supported) return ir::UserError(support.code, graph.node(id).name + ": " + support.text);
  }
  start = Seconds();
  const auto shared = std::make_shared<const ir::Graph>(std::move(graph));
  HEDDLE_ASSIGN_OR_RETURN(const auto region,
                          device->Compile(shared, {.name = "whole", .directory = "", .progress = [](const std::string& s) { std::puts(s.c_str()); }}));
  std::printf("compiled in %.2f s\n", Seconds() - start);
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId id : shared->inputs()) inputs.push_back(Ramp(shared->type(id)));
  ir::RunResult best;
  for (int run = 0; run < runs; ++run) {
    start = Seconds();
    HEDDLE_ASSIGN_OR_RETURN(ir::RunResult result, region->Run(inputs));
    std::printf("run %d: %.1f ms on the device, %.2f s in all\n", run, result.time_us / 1e3, Seconds() - start);
    if (run == 0 || result.time_us < best.time_us) best = std::move(result);
  }
  std::map<std::string, double> by_op;
  std::vector<std::pair<double, std::string>> slowest;
  for (const ir::TimelineEvent& event : best.events) {
    const auto node = shared->FindNode(event.name);
    by_op[event.resource == "gpu" && node ? shared->node(*node).op : "transfer"] += event.end_us - event.start_us;
    slowest.emplace_back(event.end_us - event.start_us, event.name);
  }
  for (const auto& [op, us] : by_op) std::printf("%-24s %10.1f us\n", op.c_str(), us);
  std::sort(slowest.rbegin(), slowest.rend());
  for (size_t i = 0; i < std::min<size_t>(12, slowest.size()); ++i) std::printf("  %10.1f us  %s\n", slowest[i].first, slowest[i].second.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: time_gpu MODEL.onnx [RUNS] [gpu|cpu|any]\n");
    return 2;
  }
  const absl::Status status = heddle::Time(argv[1], argc > 2 ? std::atoi(argv[2]) : 3, argc > 3 ? argv[3] : "any");
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
