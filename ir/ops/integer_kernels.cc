// Plain loops, with zero points taken off first and the innermost output dimension in the inner loop: the reference runs
// whole networks in tests, and the compiler vectorises this form.

#include "ir/ops/integer_kernels.h"

#include <algorithm>
#include <cstdlib>

namespace heddle::ir {
namespace {

int64_t ZeroAt(const std::vector<int64_t>& zeros, int64_t channel) {
  return zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

// The elements less `zero`: at most 9 bits.
std::vector<int16_t> Centred(const Tensor& tensor, int64_t zero) {
  std::vector<int16_t> result(static_cast<size_t>(tensor.elements()));
  if (tensor.type() == ElementType::kInt8) {
    const auto in = tensor.as<int8_t>();
    for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int16_t>(in[i] - zero);
  } else {
    const auto in = tensor.as<uint8_t>();
    for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int16_t>(in[i] - zero);
  }
  return result;
}

// Sums wrap like the hardware's would; signed overflow would be undefined.
void MultiplyAdd(uint32_t& sum, int32_t a, int32_t b) { sum += static_cast<uint32_t>(a * b); }

// Adds one kernel tap of one input channel to every output element of one channel.
void AccumulateTap(const Window& w, const Shape& outer_extents, const Shape& tap, const int16_t* x, int32_t weight,
                   uint32_t* sums) {
  const size_t last = static_cast<size_t>(w.rank()) - 1;
  const int64_t stride = w.strides[last];
  const int64_t base = tap[last] * w.dilations[last] - w.pads_begin[last];
  const int64_t first = base >= 0 ? 0 : (-base + stride - 1) / stride;
  const int64_t end = std::min(w.output[last], base >= w.input[last] ? 0 : (w.input[last] - 1 - base) / stride + 1);
  ForEachIndex(outer_extents, [&](const Shape& outer) {
    int64_t row = 0, out_row = 0;
    for (size_t d = 0; d < last; ++d) {
      const int64_t position = outer[d] * w.strides[d] + tap[d] * w.dilations[d] - w.pads_begin[d];
      if (position < 0 || position >= w.input[d]) return;
      row = row * w.input[d] + position;
      out_row = out_row * w.output[d] + outer[d];
    }
    const int64_t source = row * w.input[last] + base;
    uint32_t* target = sums + out_row * w.output[last];
    if (stride == 1) {
      for (int64_t o = first; o < end; ++o) MultiplyAdd(target[o], weight, x[source + o]);
    } else {
      for (int64_t o = first; o < end; ++o) MultiplyAdd(target[o], weight, x[source + o * stride]);
    }
  });
}

}  // namespace

Tensor IntegerConvolution(const Window& window, const Tensor& x, const Tensor& w, int64_t x_zero,
                          const std::vector<int64_t>& w_zero, int64_t group, const Tensor* bias) {
  const int64_t batch = x.shape()[0], channels = x.shape()[1], outputs = w.shape()[0], group_channels = w.shape()[1];
  const int64_t in_plane = ElementCount(window.input), out_plane = ElementCount(window.output);
  const std::vector<int16_t> centred = Centred(x, x_zero);
  const Shape outer(window.output.begin(), window.output.end() - 1);
  Shape shape = {batch, outputs};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  Tensor sums(ElementType::kInt32, shape);
  auto* target = reinterpret_cast<uint32_t*>(sums.data());
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t m = 0; m < outputs; ++m, target += out_plane) {
      std::fill(target, target + out_plane, bias ? static_cast<uint32_t>(bias->at_int(m)) : 0);
      int64_t position = m * group_channels * ElementCount(window.kernel);
      for (int64_t i = 0; i < group_channels; ++i) {
        const int64_t channel = m / (outputs / group) * group_channels + i;
        const int16_t* plane = centred.data() + (n * channels + channel) * in_plane;
        ForEachIndex(window.kernel, [&](const Shape& tap) {
          const auto weight = static_cast<int32_t>(w.at_int(position++) - ZeroAt(w_zero, m));
          AccumulateTap(window, outer, tap, plane, weight, target);
        });
      }
    }
  }
  return sums;
}

Shape MatrixProduct::output() const {
  Shape shape = batch;
  shape.push_back(m);
  shape.push_back(n);
  return shape;
}

std::optional<MatrixProduct> MatrixProductOf(const Shape& a, const Shape& b) {
  if (a.size() < 2 || b.size() < 2 || a[a.size() - 1] != b[b.size() - 2]) return std::nullopt;
  auto batch = BroadcastShapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!batch) return std::nullopt;
  return MatrixProduct{*batch, a[a.size() - 2], a[a.size() - 1], b[b.size() - 1]};
}

Tensor IntegerMatrixProduct(const Tensor& a, const Tensor& b, int64_t a_zero, const std::vector<int64_t>& b_zero,
                            const Tensor* bias) {
  const MatrixProduct p = *MatrixProductOf(a.shape(), b.shape());
  const std::vector<int16_t> left = Centred(a, a_zero), right = Centred(b, 0);
  const Shape a_strides = BroadcastStrides(Shape(a.shape().begin(), a.shape().end() - 2), p.batch);
  const Shape b_strides = BroadcastStrides(Shape(b.shape().begin(), b.shape().end() - 2), p.batch);
  std::vector<int32_t> zeros;
  for (int64_t n = 0; n < p.n; ++n) zeros.push_back(static_cast<int32_t>(ZeroAt(b_zero, n)));
  Tensor sums(ElementType::kInt32, p.output());
  auto* target = reinterpret_cast<uint32_t*>(sums.data());
  ForEachIndex(p.batch, [&](const Shape& index) {
    int64_t a_matrix = 0, b_matrix = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      a_matrix += index[d] * a_strides[d];
      b_matrix += index[d] * b_strides[d];
    }
    for (int64_t m = 0; m < p.m; ++m, target += p.n) {
      for (int64_t n = 0; n < p.n; ++n) target[n] = bias ? static_cast<uint32_t>(bias->at_int(n)) : 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const int32_t value = left[static_cast<size_t>((a_matrix * p.m + m) * p.k + k)];
        const int16_t* row = right.data() + (b_matrix * p.k + k) * p.n;
        for (int64_t n = 0; n < p.n; ++n) MultiplyAdd(target[n], value, row[n] - zeros[static_cast<size_t>(n)]);
      }
    }
  });
  return sums;
}

int64_t LargestAccumulator(const Tensor* weights, int64_t channels, int64_t products, int64_t channel_stride,
                           int64_t product_stride, int64_t x_zero, const std::vector<int64_t>& w_zero, const Tensor* bias) {
  const int64_t x_extreme = std::max(127 - x_zero, x_zero + 128);
  int64_t largest = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t zero = ZeroAt(w_zero, c);
    int64_t sum = products * std::max(127 - zero, zero + 128);
    if (weights) {
      const auto w = weights->as<int8_t>();
      sum = 0;
      for (int64_t i = 0; i < products; ++i) {
        sum += std::abs(w[static_cast<size_t>(c * channel_stride + i * product_stride)] - zero);
      }
    }
    largest = std::max(largest, sum * x_extreme + (bias ? std::abs(bias->at_int(c)) : 0));
  }
  return largest;
}

}  // namespace heddle::ir
