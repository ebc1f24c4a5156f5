// Error bounds of sums (the derivation is in the header).

#include "ir/ops/reduction.h"

#include <algorithm>
#include <cmath>

namespace heddle::ir {

double SumErrorBound(ElementType type, int64_t terms, double reference) {
  const double u = UnitRoundoff(type);
  const auto k = static_cast<double>(terms);
  const double growth = std::max(16 * u, 4 * std::sqrt(k) * u);
  return std::max(10 * u, k * u) * std::abs(reference) + growth;
}

double LargestMagnitude(const Tensor& t) {
  double largest = 0;
  DispatchElement(t.type(), [&]<typename T>(Tag<T>) {
    for (T value : t.as<T>()) largest = std::max(largest, std::abs(static_cast<double>(value)));
  });
  return largest;
}

double LargestRowMagnitude(const Tensor& t, int64_t rows) {
  double largest = 0;
  if (rows == 0) return 0;
  const int64_t row = t.elements() / rows;
  DispatchElement(t.type(), [&]<typename T>(Tag<T>) {
    const T* data = t.as<T>().data();
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < row; ++i) sum += std::abs(static_cast<double>(data[r * row + i]));
      largest = std::max(largest, sum);
    }
  });
  return largest;
}

double ProductSumBound(const Tensor& x, double weight_magnitude, int64_t terms) {
  return static_cast<double>(terms + 1) * UnitRoundoff(x.type()) * LargestMagnitude(x) * weight_magnitude;
}

}  // namespace heddle::ir
