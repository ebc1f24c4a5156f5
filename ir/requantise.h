// Exact integer requantisation: the one definition that the reference kernels, the compilers' tests and the hardware
// models call or mirror. Everything here is integer arithmetic; no result depends on a floating-point mode.
#ifndef HEDDLE_IR_REQUANTISE_H_
#define HEDDLE_IR_REQUANTISE_H_

#include <cstdint>

namespace heddle::ir {

// How the product accumulator * multiplier is brought back to the output's scale.
enum class Rounding : uint8_t {
  // One rounding of the exact product, ties to even, before the zero point is added (ONNX QuantizeLinear).
  kHalfEven,
  // TFLite: saturating rounding doubling high multiply by a Q31 multiplier, then a rounding shift, ties away from zero.
  kDoublingHighMul,
};

// real multiplier = multiplier * 2^-shift.
//   kHalfEven:        0 <= multiplier < 2^31, 0 <= shift <= 62.
//   kDoublingHighMul: 0 <= multiplier < 2^31 (Q31), shift is 31 - TFLite's exponent, 0 <= shift <= 62: shift > 31 shifts right
//                     afterwards, shift < 31 shifts the accumulator left first (saturating as TFLite does not overflow in range).
struct FixedPointScale {
  int32_t multiplier = 0;
  int32_t shift = 0;
  bool operator==(const FixedPointScale&) const = default;
};

// The nearest FixedPointScale with a multiplier in [2^30, 2^31) (kHalfEven and kDoublingHighMul alike), or {0, 0} for 0
// and for scales too small to matter. `real_scale` must be finite, >= 0 and below 2^30.
FixedPointScale FixedPointScaleOf(double real_scale);

// (value * multiplier) >> shift with the given rounding, without zero point and clamp. |value| < 2^32 for kHalfEven;
// int32 for kDoublingHighMul.
int64_t ScaleValue(int64_t value, FixedPointScale scale, Rounding rounding);

// value / 2^shift, ties to even. 0 <= shift <= 62.
int64_t ShiftRightHalfEven(int64_t value, int shift);

// clamp(ScaleValue(accumulator) + zero_point, low, high).
inline int32_t Requantise(int64_t accumulator, FixedPointScale scale, Rounding rounding, int32_t zero_point, int32_t low,
                          int32_t high) {
  const int64_t scaled = ScaleValue(accumulator, scale, rounding) + zero_point;
  return static_cast<int32_t>(scaled < low ? low : scaled > high ? high : scaled);
}

}  // namespace heddle::ir

#endif  // HEDDLE_IR_REQUANTISE_H_
