// Requantisation as integer expressions. The formulas are shorter than ir/requantise.cc's and equal to them (the test
// compares the two at every kind of tie and at the ends of the range):
//   half to even:   with half = 2^(shift-1):  (p + half - 1 + ((p >> shift) & 1)) >> shift
//   doubling high multiply: (value * multiplier + 2^30) >> 31, since truncating division of a negative number by 2^31 after
//   TFLite's negative nudge is that very shift; then ties away from zero: (v + half - (v < 0)) >> exponent.

#include "ir/loops/requantise_expr.h"

#include <algorithm>

#include "ir/check.h"

namespace heddle::ir::loops {
namespace {

constexpr ElementType kI64 = ElementType::kInt64;

// What the formulas need of a scale, either constants or loads from tables.
struct ScaleParts {
  Expr multiplier, shift;            // kHalfEven: shift >= 1
  Expr left, right, half, is_shift;  // kDoublingHighMul: is_shift is 1 where right > 0
  bool any_left = false;
};

Expr HalfEven(const Expr& value, const ScaleParts& parts) {
  const Expr product = Cast(kI64, value) * parts.multiplier;
  if (value.type() == kI64) {
    // |value| may exceed 2^31: adding to the product could overflow, so compare the remainder instead.
    const Expr floor = product >> parts.shift;
    const Expr twice = (product - (floor << parts.shift)) << 1;
    const Expr unit = IntConstant(kI64, 1) << parts.shift;
    const Expr up = Or(twice > unit, And(Equal(twice, unit), Equal(floor & 1, IntConstant(kI64, 1))));
    return floor + Cast(kI64, up);
  }
  return (product + parts.half + ((product >> parts.shift) & 1)) >> parts.shift;
}

Expr DoublingHighMul(const Expr& value, const ScaleParts& parts) {
  Expr wide = Cast(kI64, value);
  if (parts.any_left) {
    wide = Clamp(wide << parts.left, IntConstant(kI64, std::numeric_limits<int32_t>::min()),
                 IntConstant(kI64, std::numeric_limits<int32_t>::max()));
  }
  const Expr high = (wide * parts.multiplier + (int64_t{1} << 30)) >> 31;
  if (!parts.right) return high;
  const Expr negative = Cast(kI64, high < 0) & parts.is_shift;
  return (high + parts.half - negative) >> parts.right;
}

// An i64 constant where all channels agree, else a load from a table.
Expr PerChannel(std::string name, const std::vector<int64_t>& values, const Expr& channel) {
  if (std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; })) return IntConstant(kI64, values[0]);
  const bool narrow = std::all_of(values.begin(), values.end(), [](int64_t v) { return v == static_cast<int32_t>(v); });
  const Shape shape = {static_cast<int64_t>(values.size())};
  if (!narrow) return Buffer::Table(std::move(name), Tensor::Of<int64_t>(shape, values)).At({channel});
  std::vector<int32_t> small(values.begin(), values.end());
  return Cast(kI64, Buffer::Table(std::move(name), Tensor::Of<int32_t>(shape, small)).At({channel}));
}

ScaleParts PartsOf(const std::vector<FixedPointScale>& scales, const Expr& channel, Rounding rounding, bool wide_value) {
  std::vector<int64_t> multiplier, shift, half, left, right, is_shift;
  for (const FixedPointScale& scale : scales) {
    HEDDLE_CHECK(scale.multiplier >= 0 && scale.shift >= 0 && scale.shift <= 62, "a fixed-point scale out of range");
    // A shift of 0 has no half; twice the multiplier shifted by 1 is the same number (exact for 32-bit values).
    const bool lift = rounding == Rounding::kHalfEven && scale.shift == 0 && !wide_value;
    multiplier.push_back(lift ? int64_t{scale.multiplier} * 2 : scale.multiplier);
    shift.push_back(lift ? 1 : scale.shift);
    const int r = std::max(scale.shift - 31, 0);
    left.push_back(std::max(31 - scale.shift, 0));
    right.push_back(r);
    is_shift.push_back(r > 0 ? 1 : 0);
    const int64_t s = rounding == Rounding::kHalfEven ? shift.back() : r;
    half.push_back(((int64_t{1} << s) >> 1) - (rounding == Rounding::kHalfEven ? 1 : 0));
  }
  ScaleParts parts;
  parts.multiplier = PerChannel("multiplier", multiplier, channel);
  parts.half = PerChannel("half", half, channel);
  if (rounding == Rounding::kHalfEven) {
    parts.shift = PerChannel("shift", shift, channel);
    return parts;
  }
  parts.any_left = std::any_of(left.begin(), left.end(), [](int64_t v) { return v > 0; });
  if (parts.any_left) parts.left = PerChannel("left_shift", left, channel);
  if (std::any_of(right.begin(), right.end(), [](int64_t v) { return v > 0; })) {
    parts.right = PerChannel("right_shift", right, channel);
    parts.is_shift = PerChannel("is_shift", is_shift, channel);
  }
  return parts;
}

Expr Scaled(const Expr& value, const std::vector<FixedPointScale>& scales, const Expr& channel, Rounding rounding) {
  HEDDLE_CHECK(IsInteger(value.type()) && !scales.empty(), "requantisation needs an integer and a scale");
  const ScaleParts parts = PartsOf(scales, channel, rounding, value.type() == kI64);
  return rounding == Rounding::kHalfEven ? HalfEven(value, parts) : DoublingHighMul(value, parts);
}

}  // namespace

Expr ScaleValueExpr(Expr value, FixedPointScale scale, Rounding rounding) { return Scaled(value, {scale}, Expr(), rounding); }

Expr RequantiseExpr(Expr accumulator, FixedPointScale scale, Rounding rounding, int32_t zero_point, int32_t low, int32_t high,
                    ElementType type) {
  return RequantiseExpr(accumulator, std::vector<FixedPointScale>{scale}, Expr(), rounding, zero_point, low, high, type);
}

Expr RequantiseExpr(Expr accumulator, const std::vector<FixedPointScale>& scales, Expr channel, Rounding rounding,
                    int32_t zero_point, int32_t low, int32_t high, ElementType type) {
  const Expr scaled = Scaled(accumulator, scales, channel, rounding) + zero_point;
  return Cast(type, Clamp(scaled, IntConstant(kI64, low), IntConstant(kI64, high)));
}

}  // namespace heddle::ir::loops
