// Exact requantisation. kDoublingHighMul follows the arithmetic of TensorFlow Lite's reference kernels
// (MultiplyByQuantizedMultiplier with double rounding); kHalfEven follows ONNX's QuantizeLinear.

#include "ir/requantise.h"

#include <cmath>
#include <limits>

#include "ir/check.h"

namespace heddle::ir {
namespace {

int32_t SaturatingRoundingDoublingHighMul(int32_t a, int32_t b) {
  if (a == b && a == std::numeric_limits<int32_t>::min()) return std::numeric_limits<int32_t>::max();
  const int64_t product = static_cast<int64_t>(a) * b;
  const int64_t nudge = product >= 0 ? (int64_t{1} << 30) : 1 - (int64_t{1} << 30);
  return static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
}

// value / 2^exponent, ties away from zero.
int32_t RoundingDivideByPowerOfTwo(int32_t value, int exponent) {
  if (exponent > 31) return 0;
  const int64_t mask = (int64_t{1} << exponent) - 1;
  const int64_t remainder = value & mask;
  const int64_t threshold = (mask >> 1) + (value < 0 ? 1 : 0);
  return static_cast<int32_t>((static_cast<int64_t>(value) >> exponent) + (remainder > threshold ? 1 : 0));
}

int32_t SaturateToInt32(int64_t value) {
  if (value > std::numeric_limits<int32_t>::max()) return std::numeric_limits<int32_t>::max();
  if (value < std::numeric_limits<int32_t>::min()) return std::numeric_limits<int32_t>::min();
  return static_cast<int32_t>(value);
}

}  // namespace

FixedPointScale FixedPointScaleOf(double real_scale) {
  HEDDLE_CHECK(std::isfinite(real_scale) && real_scale >= 0 && real_scale < (1 << 30), "scale out of range");
  if (real_scale == 0) return {0, 0};
  int exponent = 0;
  const double fraction = std::frexp(real_scale, &exponent);  // in [0.5, 1)
  int64_t multiplier = std::llround(fraction * static_cast<double>(int64_t{1} << 31));
  if (multiplier == (int64_t{1} << 31)) {
    multiplier /= 2;
    ++exponent;
  }
  const int shift = 31 - exponent;
  if (shift > 62) return {0, 0};
  return {static_cast<int32_t>(multiplier), shift};
}

int64_t ShiftRightHalfEven(int64_t value, int shift) {
  if (shift == 0) return value;
  const int64_t floor = value >> shift;
  const int64_t remainder = value - (floor << shift);
  const int64_t half = int64_t{1} << (shift - 1);
  return floor + ((remainder > half || (remainder == half && (floor & 1))) ? 1 : 0);
}

int64_t ScaleValue(int64_t value, FixedPointScale scale, Rounding rounding) {
  if (rounding == Rounding::kHalfEven) return ShiftRightHalfEven(value * scale.multiplier, scale.shift);
  const int left = scale.shift < 31 ? 31 - scale.shift : 0;
  const int right = scale.shift > 31 ? scale.shift - 31 : 0;
  const int32_t shifted = SaturateToInt32(value << left);
  return RoundingDivideByPowerOfTwo(SaturatingRoundingDoublingHighMul(shifted, scale.multiplier), right);
}

}  // namespace heddle::ir
