// layer_differences MODEL.onnx FOLDER: counts how far Heddle's integer layers are from another runtime's, layer by layer on
// equal inputs and end to end. FOLDER holds .npz files with the model's inputs and the runtime's 8-bit tensors by name
// (onnx_runtime_layers.py writes them). Exit status 5 where a layer is off by more than one step.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "frontend/onnx_import.h"
#include "ir/interpreter.h"
#include "ir/npz.h"
#include "ir/passes/pass.h"
#include "ir/passes/quantised_compare.h"

namespace heddle {
namespace {

using Tensors = std::map<std::string, ir::Tensor>;

struct EndToEnd {
  int64_t runs = 0, same_top = 0, elements = 0, mismatches = 0, largest_step = 0;
};

int64_t IndexOfLargest(const ir::Tensor& t) {
  int64_t best = 0;
  for (int64_t i = 1; i < t.elements(); ++i) best = t.at_int(i) > t.at_int(best) ? i : best;
  return best;
}

// The last 8-bit tensor that both have stands for the output: behind it there is at most a dequantiser.
absl::Status CompareEndToEnd(const ir::Graph& graph, const Tensors& theirs, const std::vector<ir::Tensor>& inputs, EndToEnd& total) {
  std::pair<std::string, ir::Tensor> last;
  ir::InterpretOptions options;
  options.on_value = [&](ir::ValueId id, const ir::Tensor& tensor) {
    const auto it = theirs.find(graph.value(id).name);
    if (it != theirs.end() && it->second.type() == tensor.type() && !ir::IsFloat(tensor.type())) last = {it->first, tensor};
  };
  HEDDLE_RETURN_IF_ERROR(ir::Interpret(graph, inputs, options).status());
  if (last.first.empty()) return absl::NotFoundError("no 8-bit tensor in common");
  const ir::Tensor& expected = theirs.at(last.first);
  ++total.runs;
  total.same_top += IndexOfLargest(expected) == IndexOfLargest(last.second);
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const int64_t step = std::abs(expected.at_int(i) - last.second.at_int(i));
    ++total.elements;
    total.mismatches += step != 0;
    total.largest_step = std::max(total.largest_step, step);
  }
  return absl::OkStatus();
}

absl::Status Compare(const std::string& model, const std::filesystem::path& folder, ir::QuantisedComparison& layers, EndToEnd& total) {
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(model));
  HEDDLE_RETURN_IF_ERROR(ir::RunDefaultPipeline(graph));
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".npz") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::NamedTensor> named, ir::ReadNpzFile(file));
    Tensors theirs;
    for (const ir::NamedTensor& t : named) theirs[t.name] = t.tensor;
    std::vector<ir::Tensor> inputs;
    for (ir::ValueId id : graph.inputs()) {
      const auto it = theirs.find(graph.value(id).name);
      if (it == theirs.end()) return absl::NotFoundError(file.string() + " lacks input " + graph.value(id).name);
      inputs.push_back(it->second);
    }
    HEDDLE_RETURN_IF_ERROR(ir::CompareQuantisedLayers(theirs, graph, inputs, layers));
    HEDDLE_RETURN_IF_ERROR(CompareEndToEnd(graph, theirs, inputs, total));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: layer_differences MODEL.onnx FOLDER\n");
    return 2;
  }
  ir::QuantisedComparison layers;
  EndToEnd total;
  if (const absl::Status status = Compare(argv[1], argv[2], layers, total); !status.ok()) {
    fmt::print(stderr, "{}\n", std::string(status.message()));
    return 3;
  }
  fmt::print("{:<14} {:<40} {:>10} {:>8} {:>4}\n", "op", "tensor", "elements", "differ", "step");
  for (const ir::LayerDifference& layer : layers.layers) {
    fmt::print("{:<14} {:<40} {:>10} {:>8} {:>4}\n", layer.op, layer.value, layer.elements, layer.mismatches, layer.largest_step);
  }
  fmt::print("layers fed with equal inputs: {} of {} elements differ, by at most {}\n", layers.mismatches, layers.elements,
             layers.largest_step);
  fmt::print("end to end, {} inputs: {} of {} output elements differ, by at most {}; same top class {} times\n", total.runs,
             total.mismatches, total.elements, total.largest_step, total.same_top);
  return layers.largest_step > 1 ? 5 : 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) { return heddle::Main(argc, argv); }
