// Gives an ONNX model seeded random weights that keep activations in range, for topologies whose weights are missing or
// all equal (the "light" models of onnx/onnx), so that quantising and simulating them says something:
//
//   bazel run //testbench:fill_weights -- IN.onnx OUT.onnx [SEED]
//
// Weights of convolutions and matrix products are normal with variance 2 / fan-in (He et al., "Delving Deep into
// Rectifiers", 2015), a quarter of that where the result is only added to another tensor, so that a chain of residual
// blocks does not grow; biases are small. Batch normalisations are folded first: theirs would undo it.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <random>
#include <string_view>

#include "frontend/onnx_import.h"
#include "frontend/onnx_write.h"
#include "ir/passes/pass.h"

namespace heddle::testbench {
namespace {

// Box and Muller's: std::normal_distribution differs between standard libraries.
class Normal {
 public:
  explicit Normal(uint64_t seed) : random_(seed) {}
  double Next() { return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(2 * M_PI * Uniform()); }

 private:
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::mt19937_64 random_;
};

ir::Tensor RandomTensor(const ir::Shape& shape, double deviation, Normal& normal) {
  ir::Tensor tensor(ir::ElementType::kFloat32, shape);
  for (float& value : tensor.as<float>()) value = static_cast<float>(deviation * normal.Next());
  return tensor;
}

bool OnlyAdded(const ir::Graph& graph, ir::ValueId value) {
  const auto& uses = graph.value(value).uses;
  return uses.size() == 1 && graph.node(uses[0].node).op == "Add";
}

// Products summed for one element of the result.
double FanIn(const ir::Node& node, const ir::Shape& weights) {
  const auto elements = static_cast<double>(ir::ElementCount(weights));
  if (node.op == "Conv") return elements / static_cast<double>(weights[0]);
  if (node.op == "Gemm" && node.Int("transB", 0) != 0) return static_cast<double>(weights[1]);
  return static_cast<double>(weights[weights.size() - 2]);
}

void FillWeights(ir::Graph& graph, uint64_t seed) {
  Normal normal(seed);
  for (ir::NodeId id : graph.NodeIds()) {
    const ir::Node node = graph.node(id);
    if (node.op != "Conv" && node.op != "Gemm" && node.op != "MatMul") continue;
    const ir::Tensor* weights = graph.ConstantOrNull(node.inputs[1]);
    if (!weights || weights->type() != ir::ElementType::kFloat32 || weights->rank() < 2) continue;
    const double gain = OnlyAdded(graph, node.outputs[0]) ? 0.25 : 1;
    const double deviation = std::sqrt(2 * gain / FanIn(node, weights->shape()));
    graph.SetInput(id, 1, graph.AddConstant(node.name + "_weight", RandomTensor(weights->shape(), deviation, normal)));
    const ir::Tensor* bias = node.inputs.size() > 2 ? graph.ConstantOrNull(node.inputs[2]) : nullptr;
    if (bias) graph.SetInput(id, 2, graph.AddConstant(node.name + "_bias", RandomTensor(bias->shape(), 0.1, normal)));
  }
}

absl::Status Run(const std::string& in, const std::string& out, uint64_t seed) {
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(in));
  HEDDLE_RETURN_IF_ERROR(ir::RunPasses(graph, {"infer-shapes", "fold-constants", "simplify", "fold-batch-norm"}));
  FillWeights(graph, seed);
  HEDDLE_RETURN_IF_ERROR(ir::RunPasses(graph, {"eliminate-dead-code"}));
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, frontend::OnnxBytes(graph));
  return frontend::WriteOnnxBytes(bytes, out);
}

}  // namespace
}  // namespace heddle::testbench

int main(int argc, char** argv) {
  uint64_t seed = 1;
  const std::string_view text = argc == 4 ? argv[3] : "1";
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (argc < 3 || argc > 4 || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    fmt::print(stderr, "usage: fill_weights IN.onnx OUT.onnx [SEED]\n");
    return 2;
  }
  const absl::Status status = heddle::testbench::Run(argv[1], argv[2], seed);
  if (!status.ok()) fmt::print(stderr, "{}\n", std::string(status.message()));
  return status.ok() ? 0 : 3;
}
