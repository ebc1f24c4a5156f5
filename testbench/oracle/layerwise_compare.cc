// Compares the legalised graph with values that another runtime recorded, layer by layer with equal inputs and at the
// outputs, and prints the counts as JSON.
//
// Usage: layerwise_compare MODEL.onnx VALUES.npz...   (one file a sample; keys are value names of the source model)
//
// A layer counts where every non-constant input and its output were recorded: it is fed with the recorded inputs, so that
// differences do not add up from layer to layer.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/onnx_import.h"
#include "ir/interpreter.h"
#include "ir/npz.h"
#include "ir/op.h"
#include "ir/passes/pass.h"

namespace heddle::testbench {
namespace {

using Values = std::map<std::string, ir::Tensor>;

struct LayerCount {
  std::string op;
  int64_t elements = 0, mismatches = 0;
  double max_steps = 0;
};

struct Totals {
  std::vector<std::string> order;
  std::map<std::string, LayerCount> layers;
  int64_t samples = 0, same_top = 0, output_elements = 0, output_mismatches = 0;
  double output_max_error = 0;
};

// The recorded tensor as the legalised graph has it: 8-bit unsigned values have become signed ones.
const ir::Tensor* Find(const ir::Graph& graph, ir::ValueId id, const Values& recorded, Values& converted) {
  const ir::Value& value = graph.value(id);
  auto it = recorded.find(value.name);
  if (it == recorded.end() || it->second.elements() != value.type.elements()) return nullptr;
  if (it->second.type() == value.type.element) return &it->second;
  if (it->second.type() != ir::ElementType::kUint8 || value.type.element != ir::ElementType::kInt8) return nullptr;
  ir::Tensor& tensor = converted[value.name] = ir::Tensor(ir::ElementType::kInt8, value.type.static_shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.set_int(i, it->second.at_int(i) - 128);
  return &tensor;
}

void CompareLayer(const ir::Graph& graph, const ir::Node& node, const Values& recorded, Totals& totals) {
  Values converted;
  std::vector<const ir::Tensor*> inputs;
  bool any_recorded = false;
  for (ir::ValueId id : node.inputs) {
    const ir::Tensor* tensor = id == ir::kNoValue ? nullptr : graph.ConstantOrNull(id);
    if (id != ir::kNoValue && !tensor) {
      tensor = Find(graph, id, recorded, converted);
      if (!tensor || tensor->shape() != graph.type(id).static_shape()) return;
      any_recorded = true;
    }
    inputs.push_back(tensor);
  }
  const ir::Tensor* expected = Find(graph, node.outputs[0], recorded, converted);
  if (!any_recorded || !expected) return;
  auto outputs = ir::FindOp(node.op)->Evaluate(ir::NodeContext(graph, node), inputs);
  if (!outputs.ok()) return;
  if (!totals.layers.contains(node.name)) totals.order.push_back(node.name);
  LayerCount& count = totals.layers[node.name];
  count.op = node.op;
  for (int64_t i = 0; i < expected->elements(); ++i) {
    const double difference = std::abs((*outputs)[0].at_double(i) - expected->at_double(i));
    ++count.elements;
    if (difference > 0) ++count.mismatches;
    count.max_steps = std::max(count.max_steps, difference);
  }
}

int64_t TopIndex(const ir::Tensor& tensor) {
  int64_t top = 0;
  for (int64_t i = 1; i < tensor.elements(); ++i) {
    if (tensor.at_double(i) > tensor.at_double(top)) top = i;
  }
  return top;
}

absl::Status CompareSample(const ir::Graph& graph, const Values& recorded, Totals& totals) {
  for (ir::NodeId id : graph.NodeIds()) CompareLayer(graph, graph.node(id), recorded, totals);
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId id : graph.inputs()) {
    auto it = recorded.find(graph.value(id).name);
    if (it == recorded.end()) return ir::UserError("E-INPUT-002", "no recorded input " + graph.value(id).name);
    inputs.push_back(it->second);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::Tensor> outputs, ir::Interpret(graph, inputs));
  ++totals.samples;
  bool same = true;
  for (size_t o = 0; o < outputs.size(); ++o) {
    auto it = recorded.find(graph.value(graph.outputs()[o]).name);
    if (it == recorded.end()) continue;
    same = same && TopIndex(outputs[o]) == TopIndex(it->second);
    for (int64_t i = 0; i < outputs[o].elements(); ++i) {
      const double difference = std::abs(outputs[o].at_double(i) - it->second.at_double(i));
      ++totals.output_elements;
      if (difference > 0) ++totals.output_mismatches;
      totals.output_max_error = std::max(totals.output_max_error, difference);
    }
  }
  totals.same_top += same;
  return absl::OkStatus();
}

void Print(const Totals& totals) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const std::string& name : totals.order) {
    const LayerCount& count = totals.layers.at(name);
    layers.push_back({{"name", name}, {"op", count.op}, {"elements", count.elements}, {"mismatches", count.mismatches}, {"max_steps", count.max_steps}});
  }
  const nlohmann::ordered_json json = {{"samples", totals.samples},
                                       {"same_top", totals.same_top},
                                       {"output_elements", totals.output_elements},
                                       {"output_mismatches", totals.output_mismatches},
                                       {"output_max_error", totals.output_max_error},
                                       {"layers", layers}};
  fmt::print("{}\n", json.dump(1));
}

absl::Status Main(int argc, char** argv) {
  if (argc < 3) return ir::UserError("E-USAGE-001", "usage: layerwise_compare MODEL.onnx VALUES.npz...");
  HEDDLE_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(argv[1]));
  HEDDLE_RETURN_IF_ERROR(ir::RunDefaultPipeline(graph));
  Totals totals;
  for (int i = 2; i < argc; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const auto arrays, ir::ReadNpzFile(argv[i]));
    Values recorded;
    for (const ir::NamedTensor& array : arrays) recorded[array.name] = array.tensor;
    HEDDLE_RETURN_IF_ERROR(CompareSample(graph, recorded, totals));
  }
  Print(totals);
  return absl::OkStatus();
}

}  // namespace
}  // namespace heddle::testbench

int main(int argc, char** argv) {
  const absl::Status status = heddle::testbench::Main(argc, argv);
  if (!status.ok()) fmt::print(stderr, "error: {}\n", std::string(status.message()));
  return status.ok() ? 0 : 3;
}
