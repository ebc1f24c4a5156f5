// What a softmax sees of its input: how far below the largest element of its row a value lies matters only down to a
// point. Masks of attention put -10000 or -infinity there; a range that held them would leave no steps for the scores.
#ifndef HEDDLE_IR_QUANTISE_SOFTMAX_INPUT_H_
#define HEDDLE_IR_QUANTISE_SOFTMAX_INPUT_H_

#include <map>

#include "ir/graph.h"

namespace heddle::ir::quantise {

// e^-12 is 1/163,000: far below half of the 1/256 that a probability is rounded to.
inline constexpr double kSoftmaxReach = 12;

// f32 `x` with every element raised to (largest of its row along `axis`) - kSoftmaxReach at least; rows without a
// finite largest element stay as they are.
Tensor VisibleToSoftmax(const Tensor& x, int64_t axis);

// Tensors that nothing but Softmax reads, with its axis (not negative).
std::map<ValueId, int64_t> SoftmaxInputs(const Graph& graph);

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_SOFTMAX_INPUT_H_
