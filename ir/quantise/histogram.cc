// Bins of a width 2^e: making them coarser by one step joins neighbours 2i and 2i + 1, so that nothing is ever
// redistributed.

#include "ir/quantise/histogram.h"

#include <algorithm>
#include <cmath>

namespace heddle::ir::quantise {
namespace {

constexpr int kFinestExponent = -160;  // below what float32 tells apart next to any value that matters

// The finest bins in which a value of this magnitude has a place.
int ExponentFor(double magnitude) {
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  constexpr int kSideBits = 12;
  static_assert(1 << kSideBits == Histogram::kBinsPerSide);
  return std::max(exponent - kSideBits, kFinestExponent);
}

}  // namespace

void Histogram::CoarsenTo(int exponent) {
  if (counts_.empty()) {
    counts_.assign(2 * kBinsPerSide, 0);
    sums_.assign(2 * kBinsPerSide, 0);
    exponent_ = exponent;
  }
  if (exponent <= exponent_) return;
  const int shift = std::min(exponent - exponent_, 30);
  std::vector<int64_t> counts(counts_.size(), 0);
  std::vector<double> sums(sums_.size(), 0);
  for (int i = 0; i < 2 * kBinsPerSide; ++i) {
    const auto from = static_cast<size_t>(i), to = static_cast<size_t>(((i - kBinsPerSide) >> shift) + kBinsPerSide);
    counts[to] += counts_[from];
    sums[to] += sums_[from];
  }
  counts_ = std::move(counts);
  sums_ = std::move(sums);
  exponent_ = exponent;
}

void Histogram::Add(std::span<const float> values) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  int64_t finite = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    ++finite;
    low = std::min<double>(low, value);
    high = std::max<double>(high, value);
  }
  not_finite_ += static_cast<int64_t>(values.size()) - finite;
  if (finite == 0) return;
  low_ = count_ ? std::min(low_, low) : low;
  high_ = count_ ? std::max(high_, high) : high;
  count_ += finite;
  CoarsenTo(ExponentFor(std::max(std::abs(low), std::abs(high))));
  const double inverse = std::ldexp(1.0, -exponent_);
  for (const float value : values) {
    if (value == 0) {
      ++zeros_;
    } else if (std::isfinite(value)) {
      const auto bin = static_cast<size_t>(static_cast<int>(std::floor(value * inverse)) + kBinsPerSide);
      ++counts_[bin];
      sums_[bin] += value;
    }
  }
}

void Histogram::Merge(const Histogram& other) {
  not_finite_ += other.not_finite_;
  if (other.count_ == 0) return;
  Histogram source = other;
  CoarsenTo(source.exponent_);
  source.CoarsenTo(exponent_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] += source.counts_[i];
    sums_[i] += source.sums_[i];
  }
  low_ = count_ ? std::min(low_, other.low_) : other.low_;
  high_ = count_ ? std::max(high_, other.high_) : other.high_;
  zeros_ += other.zeros_;
  count_ += other.count_;
}

std::vector<Histogram::Bin> Histogram::Bins() const {
  std::vector<Bin> bins;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (i == kBinsPerSide && zeros_) bins.push_back({0, zeros_});
    if (counts_[i]) bins.push_back({sums_[i] / static_cast<double>(counts_[i]), counts_[i]});
  }
  return bins;
}

}  // namespace heddle::ir::quantise
