// Placement instances of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators" (NeurIPS
// 2020): several like accelerators with a memory each, and CPU cores.
//
// Times are in the unit of the instance's file; what is called _us elsewhere is printed in that unit unchanged.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_PLACEMENT_GRAPH_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_PLACEMENT_GRAPH_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::ir::partition {

struct PlacementNode {
  int64_t id = 0;                      // as in the file
  bool backward = false;               // of the training pass
  bool accelerator_supported = true;   // else CPU only
  double accelerator_us = 0;
  double cpu_us = 0;
  double size = 0;                     // of PlacementGraph::accelerator_capacity
  double send_us = 0;                  // an accelerator's time to send the result, or to receive it
  int colour = -1;                     // nodes of one colour (>= 0, dense) share a device
  std::vector<int> successors;         // indices, ascending, each once
  std::vector<int> predecessors;
};

struct PlacementGraph {
  int accelerators = 0;
  int cpus = 0;  // cores; a core is a device of its own in a pipeline, and never scarce for latency
  double accelerator_capacity = 0;
  std::vector<PlacementNode> nodes;
  int colours = 0;
};

// Reads the JSON form. E-PARTITION-010 not JSON or a field that is missing, of the wrong type, not finite, negative or
// above 1e15 (names the field and the node); E-PARTITION-011 an id twice, or an edge to an id that is not there, or from
// a node to itself; E-PARTITION-012 a cycle; E-PARTITION-013 edges of one node with different costs; E-PARTITION-014
// more than 100,000 nodes, 1,000,000 edges or 64 devices of a kind.
absl::StatusOr<PlacementGraph> ReadPlacementGraph(const std::string& json_text);

// Whether the beginning of a text looks like such an instance: a JSON object with "maxFPGAs".
bool LooksLikePlacementGraph(const std::string& json_text);

// Device numbers of a plan: 0 … accelerators-1 are the accelerators, the CPU cores follow. For latency, where cores are
// not scarce, the first CPU number stands for all of them.
using Placement = std::vector<int>;  // by node index

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_PLACEMENT_GRAPH_H_
