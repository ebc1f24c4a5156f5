// A roofline cost for processors that are described by a few figures: the CPU and GPU models of target files.
#ifndef HEDDLE_IR_ROOFLINE_H_
#define HEDDLE_IR_ROOFLINE_H_

#include "ir/device.h"
#include "ir/op.h"

namespace heddle::ir {

// Sustained rates of one processor. All positive.
struct Roofline {
  double float_gmacs_per_s = 1;  // 32-bit floating-point multiply-accumulates
  double int8_gmacs_per_s = 1;   // 8-bit multiply-accumulates into 32 bits
  double other_gops_per_s = 1;   // element operations without a multiply-accumulate
  double memory_gb_per_s = 1;    // main memory
  double node_overhead_us = 0;   // start of one fused group of nodes
};

// Time of nodes run one fused group after another: each group the larger of its arithmetic and its memory traffic, plus
// the overhead. Values inside a group are not counted as traffic. All nodes have inferred types.
Cost RooflineCost(const Graph& graph, const std::vector<NodeId>& nodes, const Roofline& roofline);

// Sum of the nodes' work; a value that several of them read is counted for each.
OpWork TotalWork(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_ROOFLINE_H_
