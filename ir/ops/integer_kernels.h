// Exact sums of products of 8-bit integers: the inner part of QConv, QMatMul and ONNX's QLinear and Integer operators.
#ifndef HEDDLE_IR_OPS_INTEGER_KERNELS_H_
#define HEDDLE_IR_OPS_INTEGER_KERNELS_H_

#include "ir/ops/quant_common.h"

namespace heddle::ir {

// x (i8 or u8) [N, C, spatial…], w (i8 or u8) [M, C/group, kernel…]; w_zero has 1 or M entries; bias i32 [M] or null.
// Returns i32 [N, M, window.output…]: bias + sum (x - x_zero)(w - w_zero), pads counting as x_zero. The caller knows that
// the sums fit 32 bits (AccumulatorFits…); otherwise they wrap.
Tensor IntegerConvolution(const Window& window, const Tensor& x, const Tensor& w, int64_t x_zero,
                          const std::vector<int64_t>& w_zero, int64_t group, const Tensor* bias);

// Extents of a product […, M, K] x […, K, N], batch dimensions broadcast.
struct MatrixProduct {
  Shape batch;
  int64_t m = 0, k = 0, n = 0;
  Shape output() const;  // […, M, N]
};
std::optional<MatrixProduct> MatrixProductOf(const Shape& a, const Shape& b);

// a, b (i8 or u8); b_zero has 1 or N entries; bias i32 [N] or null. Returns i32 […, M, N], wrapping as above.
Tensor IntegerMatrixProduct(const Tensor& a, const Tensor& b, int64_t a_zero, const std::vector<int64_t>& b_zero,
                            const Tensor* bias);

// Largest |sum| that any 8-bit activation can cause in channel-major weights: `weights` (or null where unknown) holds
// `channels` groups of `products` weights, weight i of channel c at c * channel_stride + i * product_stride.
int64_t LargestAccumulator(const Tensor* weights, int64_t channels, int64_t products, int64_t channel_stride,
                           int64_t product_stride, int64_t x_zero, const std::vector<int64_t>& w_zero, const Tensor* bias);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_INTEGER_KERNELS_H_
