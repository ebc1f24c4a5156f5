// Choice of ranges. The search for the least squared error judges a range by the parameters it really gets (float32
// scale, whole zero point) on the histogram's bins. It first shrinks both ends together, then one end at a time until
// neither gets better: along each of these lines the error falls, then rises, but for ripples that rounding makes, so
// every line is tried in full rather than descended.

#include "ir/quantise/range.h"

#include <algorithm>
#include <cmath>

namespace heddle::ir::quantise {
namespace {

constexpr int kShrinkSteps = 128;  // ends tried on a line from the whole range to nothing
constexpr int kMostRounds = 4;
constexpr int kWeightSteps = 64;  // from the largest magnitude to half of it

Range WithZero(double low, double high) { return {std::min(low, 0.0), std::max(high, 0.0)}; }

Range PercentileRange(const Histogram& histogram, double percentile) {
  const double tail = (1 - percentile / 100) / 2 * static_cast<double>(histogram.count());
  const std::vector<Histogram::Bin> bins = histogram.Bins();
  const auto end = [&](auto begin, auto last) {
    double seen = 0;
    for (auto it = begin; it != last; ++it) {
      seen += static_cast<double>(it->count);
      if (seen > tail) return it->value;
    }
    return 0.0;
  };
  // With no tail the ends are the extremes themselves, which a bin's mean does not reach.
  if (tail < 1) return WithZero(histogram.low(), histogram.high());
  return WithZero(end(bins.begin(), bins.end()), end(bins.rbegin(), bins.rend()));
}

Range LeastErrorRange(const Histogram& histogram) {
  const std::vector<Histogram::Bin> bins = histogram.Bins();
  const Range whole = WithZero(histogram.low(), histogram.high());
  Range best = whole;
  double least = MeanSquaredError(bins, ParametersOf(whole));
  const auto consider = [&](Range range) {
    const double error = MeanSquaredError(bins, ParametersOf(range));
    if (error >= least) return false;
    least = error;
    best = range;
    return true;
  };
  const auto share = [](int step) { return static_cast<double>(step) / kShrinkSteps; };
  for (int step = kShrinkSteps - 1; step > 0; --step) consider({whole.low * share(step), whole.high * share(step)});
  for (int round = 0; round < kMostRounds; ++round) {
    bool better = false;
    const double low = best.low;
    for (int step = kShrinkSteps; step >= 0 && whole.high > 0; --step)
      better |= consider({low, whole.high * share(step)});
    const double high = best.high;
    for (int step = kShrinkSteps; step >= 0 && whole.low < 0; --step)
      better |= consider({whole.low * share(step), high});
    if (!better) break;
  }
  return best;
}

}  // namespace

std::string_view MethodName(Method method) {
  return method == Method::kMinMax ? "minmax" : method == Method::kPercentile ? "percentile" : "mse";
}

Range RangeOf(const Histogram& histogram, const CalibrationOptions& options) {
  if (histogram.count() == 0) return {};
  if (options.method == Method::kPercentile) return PercentileRange(histogram, options.percentile);
  if (options.method == Method::kMse) return LeastErrorRange(histogram);
  return WithZero(histogram.low(), histogram.high());
}

Parameters ParametersOf(Range range) {
  const Range r = WithZero(range.low, range.high);
  const auto scale = static_cast<float>((r.high - r.low) / 255);
  // Below this the scale's reciprocal, and the products of scales, leave float32.
  constexpr float kSmallestScale = 1e-18f;
  if (!(scale > kSmallestScale)) return {1.0f / 255, r.low < 0 ? 127 : -128};
  return {scale, std::clamp(static_cast<int64_t>(std::nearbyint(-128 - r.low / static_cast<double>(scale))),
                            int64_t{-128}, int64_t{127})};
}

double MeanSquaredError(const std::vector<Histogram::Bin>& bins, const Parameters& parameters) {
  const double scale = parameters.scale, inverse = 1 / scale;
  const auto low = static_cast<double>(-128 - parameters.zero_point),
             high = static_cast<double>(127 - parameters.zero_point);
  double sum = 0, count = 0;
  for (const Histogram::Bin& bin : bins) {
    const double error = bin.value - scale * std::clamp(std::nearbyint(bin.value * inverse), low, high);
    sum += error * error * static_cast<double>(bin.count);
    count += static_cast<double>(bin.count);
  }
  return count > 0 ? sum / count : 0;
}

double ClippedShare(const std::vector<Histogram::Bin>& bins, const Parameters& parameters) {
  // Half a step beyond the ends still rounds to them.
  const double margin = parameters.scale / 2, low = parameters.low() - margin, high = parameters.high() + margin;
  int64_t clipped = 0, count = 0;
  for (const Histogram::Bin& bin : bins) {
    count += bin.count;
    if (bin.value < low || bin.value > high) clipped += bin.count;
  }
  return count ? static_cast<double>(clipped) / static_cast<double>(count) : 0;
}

float WeightScale(std::span<const float> weights, Method method) {
  float largest = 0;
  for (const float w : weights) largest = std::max(largest, std::abs(w));
  const float whole = largest / 127;
  if (!(whole > 1e-18f)) return 1.0f / 127;
  if (method != Method::kMse) return whole;
  float best = whole;
  double least = HUGE_VAL;
  for (int step = 0; step < kWeightSteps; ++step) {
    const float scale = whole * (1 - static_cast<float>(step) / (2 * kWeightSteps)), inverse = 1 / scale;
    double error = 0;
    for (const float w : weights) {
      const float difference = w - scale * std::clamp(std::nearbyint(w * inverse), -127.0f, 127.0f);
      error += static_cast<double>(difference) * difference;
    }
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

}  // namespace heddle::ir::quantise
