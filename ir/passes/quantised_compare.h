// How far legalised layers are from the quantise/dequantise graph they were made of, counted layer by layer.
#ifndef HEDDLE_IR_PASSES_QUANTISED_COMPARE_H_
#define HEDDLE_IR_PASSES_QUANTISED_COMPARE_H_

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

struct LayerDifference {
  std::string node;   // of the legalised graph
  std::string op;
  std::string value;  // the 8-bit tensor that both graphs have
  int64_t elements = 0;
  int64_t mismatches = 0;
  int64_t largest_step = 0;  // largest |difference| in units of the output's scale
};

struct QuantisedComparison {
  std::vector<LayerDifference> layers;  // in the order of the legalised graph; one for each 8-bit tensor that both have
  int64_t elements = 0;
  int64_t mismatches = 0;
  int64_t largest_step = 0;
};

// Runs every node of `legalised` on the original's 8-bit tensors: an earlier difference does not travel on. Tensors are matched
// by name; unsigned ones of the original are compared with the signed ones that stand for the same reals. Adds to `result`,
// so that several inputs can be counted together.
//
// The first form takes the original's 8-bit tensors from whatever computed them (another runtime too), the second runs
// `original` (types inferred, quantisers still explicit) by the reference interpreter.
absl::Status CompareQuantisedLayers(const std::map<std::string, Tensor>& tensors, const Graph& legalised,
                                    const std::vector<Tensor>& inputs, QuantisedComparison& result);
absl::Status CompareQuantisedLayers(const Graph& original, const Graph& legalised, const std::vector<Tensor>& inputs,
                                    QuantisedComparison& result);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_PASSES_QUANTISED_COMPARE_H_
