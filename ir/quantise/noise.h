// Signal against quantisation noise.
#ifndef HEDDLE_IR_QUANTISE_NOISE_H_
#define HEDDLE_IR_QUANTISE_NOISE_H_

#include "ir/types.h"

namespace heddle::ir::quantise {

// Sums over all samples of one tensor: Σ x² of the float run against Σ (x - x')² of the quantised one.
struct Noise {
  double signal = 0, noise = 0;
  int64_t elements = 0;
  // `integers` is i8 with parameters, or f32 of the same shape (scale and zero point are not read then).
  void Add(const Tensor& real, const Tensor& other, float scale = 1, int64_t zero_point = 0);
  // 10 log10(signal / noise), in decibels; +infinity where there is no noise.
  double sqnr_db() const;
};

// Tensors that are vectors of classes, one for each entry of the leading dimension: [N, C], [N, C, 1, 1], [C]. The
// number of classes, or 0 for other shapes and for C = 1.
int64_t ClassesOf(const Shape& shape);

// Agreement on the largest element, the first of equals.
struct TopOne {
  int64_t equal = 0, total = 0;
  void Add(const Tensor& real, const Tensor& other, int64_t classes);  // f32 both
};

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_NOISE_H_
