// From a region of integer ops to an accelerator program.
//
// Layers are made from nodes (hls/layer.h), activations and weights get places on chip or in DRAM and layers that do not
// fit are cut into tiles (hls/plan.h), tiles become instructions with tokens (hls/emit.h).
#ifndef HEDDLE_HLS_COMPILER_H_
#define HEDDLE_HLS_COMPILER_H_

#include <absl/status/statusor.h>

#include <vector>

#include "hls/memory_model.h"
#include "hls/params.h"
#include "hls/program.h"
#include "ir/device.h"
#include "ir/graph.h"

namespace heddle::hls {

// Every node of `region` must be one that SupportsNode accepts; otherwise, and where nodes that are fine alone do not go
// together, the error is that of the node (E-ACC-…). The program has passed VerifyProgram.
absl::StatusOr<CompiledProgram> CompileRegion(const ir::Graph& region, const AcceleratorParams& params,
                                              const MemoryModel& memory = {});

// Whether the engine takes the node: alone in a region it compiles. Codes E-ACC-001…, see hls/README.md.
ir::Support SupportsNode(const ir::Graph& graph, const ir::Node& node, const AcceleratorParams& params);

// Cost of the nodes inside a larger region: the fast model's cycles from the first result to the last, with the input on
// chip when they start and weights that fit resident. What a region adds once (its program, the first input, the last
// output) belongs to the launch overhead and the links.
absl::StatusOr<ir::Cost> EstimateRegionCost(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes,
                                            const AcceleratorParams& params, const MemoryModel& memory = {});

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_COMPILER_H_
