// From a float graph, a plan and calibrated histograms to a graph in QDQ form.
#ifndef HEDDLE_IR_QUANTISE_INSERT_H_
#define HEDDLE_IR_QUANTISE_INSERT_H_

#include <map>
#include <string>
#include <vector>

#include "ir/quantise/plan.h"
#include "ir/quantise/range.h"

namespace heddle::ir::quantise {

// By ValueId of the float graph, of what Observed (plan.h) leaves of each sample; at least all sources of the plan's
// classes.
using Histograms = std::map<ValueId, Histogram>;

// A tensor that is int8 in the quantised graph.
struct QuantisedTensor {
  std::string value;     // its name in the float graph
  std::string integers;  // name of the i8 tensor
  std::string node;      // that computes it, "" for graph inputs
  std::string op;        // of that node, "input" for graph inputs
  Parameters parameters;
  Range range;                // that was asked for
  double low = 0, high = 0;   // that occurred
  double clipped_share = 0;   // of the calibrated values outside of what int8 holds, 0 to 1
  bool moved = false;         // only moved elements of others: no rounding of its own
  int64_t softmax_axis = -1;  // where only a Softmax reads it: noise counts as it sees it (ir/quantise/softmax_input.h)
};

struct Quantised {
  Graph graph;  // QuantizeLinear and DequantizeLinear around what stays float for legalise-quantisation to match;
                // inputs and outputs as in the float graph
  std::vector<QuantisedTensor> tensors;  // in topological order
  int64_t layers = 0;                    // with int8 weights
  int64_t weight_bytes = 0;              // of int8 weights and i32 biases
  int64_t float_weight_bytes = 0;        // of the same as float32
};

// Weights: int8, -127 to 127, zero point 0, a scale for each output channel (enlarged where a channel's bias would not
// fit 2^30 steps). Biases: i32 of scale x_scale * w_scale. Activations: int8 with one scale and zero point. E-QUANT-004
// where a constant is not finite.
absl::StatusOr<Quantised> Quantise(const Graph& graph, const Plan& plan, const Histograms& histograms,
                                   const CalibrationOptions& options);

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_INSERT_H_
