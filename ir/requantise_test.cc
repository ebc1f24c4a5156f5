// Requantisation against independent definitions: exact rational rounding, and gemmlowp's published examples.

#include "ir/requantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace heddle::ir {
namespace {

TEST(Requantise, HalfEvenMatchesLongDoubleRint) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; ++i) {
    const int64_t value = static_cast<int32_t>(random());
    const FixedPointScale scale{static_cast<int32_t>(random() >> 33), static_cast<int32_t>(random() % 63)};
    const long double exact = std::ldexp(static_cast<long double>(value) * scale.multiplier, -scale.shift);
    EXPECT_EQ(ScaleValue(value, scale, Rounding::kHalfEven), static_cast<int64_t>(std::rint(exact)));
  }
}

TEST(Requantise, TiesGoToEvenBeforeTheZeroPoint) {
  const FixedPointScale half{1 << 30, 31};
  EXPECT_EQ(Requantise(1, half, Rounding::kHalfEven, 1, -128, 127), 1);
  EXPECT_EQ(Requantise(3, half, Rounding::kHalfEven, 1, -128, 127), 3);
  EXPECT_EQ(Requantise(-1, half, Rounding::kHalfEven, 1, -128, 127), 1);
  EXPECT_EQ(Requantise(1000, half, Rounding::kHalfEven, 0, -128, 127), 127);
}

TEST(Requantise, DoublingHighMulRoundsTwice) {
  // 0.5 with no right shift: high multiply rounds half up; then ties away from zero in the shift.
  EXPECT_EQ(ScaleValue(3, {1 << 30, 31}, Rounding::kDoublingHighMul), 2);
  EXPECT_EQ(ScaleValue(-3, {1 << 30, 31}, Rounding::kDoublingHighMul), -1);
  EXPECT_EQ(ScaleValue(6, {1 << 30, 32}, Rounding::kDoublingHighMul), 2);
  EXPECT_EQ(ScaleValue(-6, {1 << 30, 32}, Rounding::kDoublingHighMul), -2);
  EXPECT_EQ(ScaleValue(3, {1 << 30, 29}, Rounding::kDoublingHighMul), 6);
}

TEST(Requantise, FixedPointScaleIsNearest) {
  for (double scale : {0.75, 1.0, 1e-6, 3.1415, 0.0009765625}) {
    const FixedPointScale fixed = FixedPointScaleOf(scale);
    EXPECT_NEAR(std::ldexp(static_cast<double>(fixed.multiplier), -fixed.shift) / scale, 1.0, 1e-9);
    EXPECT_GE(fixed.multiplier, 1 << 30);
  }
  EXPECT_EQ(FixedPointScaleOf(0), (FixedPointScale{0, 0}));
}

}  // namespace
}  // namespace heddle::ir
