// Error bounds of ops that add up many terms (Conv, Gemm, MatMul, reductions, normalisations).
//
// Derivation: a sum of K terms t_k computed in any order with unit roundoff u (each product rounded once, each addition once)
// differs from the exact sum by at most γ_K·Σ|t_k| with γ_K = K·u / (1 - K·u) (Higham, Accuracy and Stability of Numerical
// Algorithms, section 4.2). The reference sums in double, so only the device's error counts.
#ifndef HEDDLE_IR_OPS_REDUCTION_H_
#define HEDDLE_IR_OPS_REDUCTION_H_

#include "ir/ops/common.h"

namespace heddle::ir {

// The part of the bound that the reference value alone can carry: K·u·|reference| for terms of equal sign, and an absolute part
// √K·u for cancelling terms of magnitude about 1 (the statistical growth of a random walk's error); at least the default bound.
double SumErrorBound(ElementType type, int64_t terms, double reference);

// max |t| of a tensor; NaN is ignored.
double LargestMagnitude(const Tensor& t);
// Of a tensor split into `rows` equal contiguous parts, the largest Σ|t| of a part.
double LargestRowMagnitude(const Tensor& t, int64_t rows);
// K·u·Σ|x·w| with Σ|x·w| <= max|x|·Σ|w|.
double ProductSumBound(const Tensor& x, double weight_magnitude, int64_t terms);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_REDUCTION_H_
