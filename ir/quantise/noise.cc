// Ratios are of sums over all samples, not means of ratios: a silent sample must not outweigh a loud one.

#include "ir/quantise/noise.h"

#include <algorithm>
#include <cmath>

#include "ir/check.h"

namespace heddle::ir::quantise {

void Noise::Add(const Tensor& real, const Tensor& other, float scale, int64_t zero_point) {
  HEDDLE_CHECK(real.elements() == other.elements(), "tensors of different sizes are compared");
  const std::span<const float> x = real.as<float>();
  const bool is_float = other.type() == ElementType::kFloat32;
  const std::span<const float> y = is_float ? other.as<float>() : std::span<const float>();
  const std::span<const int8_t> q = is_float ? std::span<const int8_t>() : other.as<int8_t>();
  for (size_t i = 0; i < x.size(); ++i) {
    const double found = is_float ? y[i] : scale * static_cast<double>(q[i] - zero_point);
    const double difference = x[i] - found;
    signal += static_cast<double>(x[i]) * x[i];
    noise += difference * difference;
  }
  elements += real.elements();
}

double Noise::sqnr_db() const {
  if (noise == 0) return HUGE_VAL;
  return 10 * std::log10(signal / noise);
}

int64_t ClassesOf(const Shape& shape) {
  if (shape.empty()) return 0;
  const int64_t classes = shape.size() == 1 ? shape[0] : shape[1];
  for (size_t d = 2; d < shape.size(); ++d) {
    if (shape[d] != 1) return 0;
  }
  return classes > 1 ? classes : 0;
}

void TopOne::Add(const Tensor& real, const Tensor& other, int64_t classes) {
  const std::span<const float> x = real.as<float>(), y = other.as<float>();
  for (int64_t at = 0; classes > 0 && at + classes <= real.elements(); at += classes) {
    const auto largest = [&](std::span<const float> values) {
      const auto row = values.subspan(static_cast<size_t>(at), static_cast<size_t>(classes));
      return std::max_element(row.begin(), row.end()) - row.begin();
    };
    ++total;
    if (largest(x) == largest(y)) ++equal;
  }
}

}  // namespace heddle::ir::quantise
