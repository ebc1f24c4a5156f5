// A part of a graph as a graph of its own, so that a device compiles it without seeing the rest.
#ifndef HEDDLE_IR_REGION_H_
#define HEDDLE_IR_REGION_H_

#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// Copies `nodes` (any order, living) with the constants they read. Inputs of the result: the values from outside they
// read, in order of first use; outputs: the values that others or the graph's outputs need, in topological order. Value
// and node names, types and fusion groups are kept.
Graph ExtractRegion(const Graph& graph, const std::vector<NodeId>& nodes);

// True where no path leaves the set and returns.
bool IsConvex(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_REGION_H_
