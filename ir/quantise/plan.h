// What of a float graph becomes int8: decided before any number is known.
//
// The rules mirror what legalise-quantisation (ir/passes) can turn into integer ops, so that a quantised graph has as
// few float nodes as it can, and no rounding that no layer needs:
//  - convolutions and matrix products, pools, softmax and additions, subtractions and products of two tensors have
//  8-bit
//    inputs and outputs; ReLU and Clip right behind them are part of them;
//  - chains of element-wise functions of one tensor become one lookup: only their end is rounded;
//  - nodes that only move elements (and maxima) share the parameters of what they move, concatenations too where an
//    operand has no other reader;
//  - the arithmetic of a normalisation (mean, variance, square root) and every other op stay in float.
#ifndef HEDDLE_IR_QUANTISE_PLAN_H_
#define HEDDLE_IR_QUANTISE_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir::quantise {

struct PlanOptions {
  std::vector<std::string> keep_float;  // names of nodes (of the graph or of the source model) that stay in float
};

// Tensors with the same parameters.
struct ParameterClass {
  std::vector<ValueId> members;
  std::vector<ValueId> sources;  // members whose values are not those of other members moved: the range comes from them
  bool is_softmax = false;       // probabilities: the range is [0, 1) whatever the samples say
};

// One operand of an Add whose result only a Softmax reads: a mask may lie below all that the softmax can see.
struct MaskUse {
  NodeId add = kNoNode;
  ValueId other = kNoValue;  // the other operand
};

// A node whose second input is a constant int8 tensor with a scale for each output channel.
struct WeightedLayer {
  NodeId node = kNoNode;
  int axis = -1;               // of the weights, -1: one scale for all
  ValueId bias = kNoValue;     // a float constant that becomes i32, or none
  NodeId bias_node = kNoNode;  // that reads the bias: the layer, or the Add behind a MatMul
  int bias_input = -1;
};

struct Plan {
  std::vector<int> class_of;  // by ValueId: index into classes, or -1 where the tensor stays float
  std::vector<ParameterClass> classes;
  std::vector<WeightedLayer> layers;
  std::vector<std::pair<NodeId, int>> constants;  // (node, input): float constants that become int8 with one scale
  std::map<ValueId, int64_t> softmax_axis;        // of tensors that only a Softmax reads: ir/quantise/softmax_input.h
  std::map<ValueId, std::vector<MaskUse>> masks;  // tensors and constants that only such Adds read
  bool Quantised(ValueId value) const {
    return value >= 0 && static_cast<size_t>(value) < class_of.size() && class_of[static_cast<size_t>(value)] >= 0;
  }
};

// What the histogram of a tensor counts of one sample of it: all of it, or what a softmax sees.
Tensor Observed(const Plan& plan, ValueId value, const Tensor& tensor);

// `graph`: types inferred, static shapes. E-QUANT-001 it has quantised operators already, E-QUANT-002 it has no layer
// that becomes int8, E-QUANT-003 keep_float names no node.
absl::StatusOr<Plan> PlanQuantisation(const Graph& graph, const PlanOptions& options = {});

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_PLAN_H_
