// Node by node, as the partition asks; but everything that is supported in one region, whatever it costs.

#include "testbench/accelerator_region.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "hls/compiler.h"
#include "ir/ops/quant_common.h"
#include "ir/region.h"
#include "ir/status.h"

namespace heddle::testbench {

absl::StatusOr<AcceleratorTarget> ReadAcceleratorTarget(const std::string& path) {
  std::ifstream file(path);
  const auto target = nlohmann::json::parse(file, nullptr, false);
  if (target.is_discarded() || !target.contains("devices")) return absl::InvalidArgumentError("'" + path + "' is no target file");
  for (const auto& device : target["devices"]) {
    if (device.value("kind", "") != "accelerator") continue;
    AcceleratorTarget found;
    HEDDLE_ASSIGN_OR_RETURN(found.params, hls::ParamsFromJson(device["parameters"]));
    HEDDLE_ASSIGN_OR_RETURN(found.memory, hls::MemoryModelFromJson(device.value("memory", nlohmann::json::object())));
    return found;
  }
  return absl::InvalidArgumentError("the target '" + path + "' has no accelerator");
}

AcceleratorPart TakeAcceleratorPart(const ir::Graph& graph, const hls::AcceleratorParams& params) {
  AcceleratorPart part;
  std::vector<ir::NodeId> nodes;
  for (ir::NodeId id : graph.NodeIds()) {
    const ir::Node& node = graph.node(id);
    ir::Support support = hls::SupportsNode(graph, node, params);
    if (support.supported) {
      nodes.push_back(id);
    } else {
      part.refusals.push_back({node.name, node.op, std::move(support)});
    }
  }
  part.nodes = nodes.size();
  part.region = ir::ExtractRegion(graph, nodes);
  return part;
}

std::vector<ir::Tensor> RandomInputs(const ir::Graph& region, uint64_t seed) {
  ir::Random random(seed);
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId value : region.inputs()) {
    inputs.push_back(ir::RandomTensor(random, ir::ElementType::kInt8, region.type(value).static_shape(), -128, 127));
  }
  return inputs;
}

}  // namespace heddle::testbench
