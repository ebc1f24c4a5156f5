// Steps on a float graph before it is quantised, that spare it roundings.
#ifndef HEDDLE_IR_QUANTISE_PREPARE_H_
#define HEDDLE_IR_QUANTISE_PREPARE_H_

#include "ir/graph.h"

namespace heddle::ir::quantise {

// Constants that are multiplied with or added to a tensor, one for each channel or one for all:
//  - behind a Conv, Gemm or MatMul with constant weights, and read by it alone, they go into weights and bias (those of
//  a MatMul
//    only where they multiply: legalisation knows an Add behind it as its bias);
//  - a product by channel elsewhere, with the addition behind it (a batch normalisation before its layer), becomes a
//  depthwise
//    convolution with a kernel of 1: its weights have a scale for each channel, and one rounding takes the place of
//    two.
// The graph computes the same but for float rounding. Types must be inferred; they are afterwards.
absl::Status FoldChannelConstants(Graph& graph);

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_PREPARE_H_
