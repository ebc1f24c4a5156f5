// Histograms, the three ways of choosing a range, and noise: against sums over all values and brute searches.

#include "ir/quantise/range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/quantise/noise.h"

namespace heddle::ir::quantise {
namespace {

std::vector<float> Normal(uint64_t seed, size_t count, double deviation = 1, double mean = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> distribution(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(distribution(random));
  return values;
}

Histogram HistogramOf(const std::vector<float>& values) {
  Histogram histogram;
  histogram.Add(values);
  return histogram;
}

// Over the values themselves.
double TrueError(const std::vector<float>& values, const Parameters& p) {
  double sum = 0;
  for (const float x : values) {
    const double q =
        std::clamp(std::nearbyint(static_cast<double>(x) / p.scale) + static_cast<double>(p.zero_point), -128.0, 127.0);
    const double error = x - p.scale * (q - static_cast<double>(p.zero_point));
    sum += error * error;
  }
  return sum / static_cast<double>(values.size());
}

void ExpectSameBins(const Histogram& a, const Histogram& b) {
  const auto x = a.Bins(), y = b.Bins();
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].count, y[i].count);
    EXPECT_NEAR(x[i].value, y[i].value, 1e-9 * std::abs(x[i].value));
  }
}

TEST(Histogram, CountsEveryValueWhateverTheOrder) {
  const uint64_t seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::vector<float> small = Normal(seed, 5000, 1e-3), large = Normal(seed + 1, 5000, 50);
  small.resize(6000, 0.0f);  // and zeros
  std::vector<float> all = small;
  all.insert(all.end(), large.begin(), large.end());
  const Histogram together = HistogramOf(all);
  Histogram forward, backward, merged = HistogramOf(large);
  forward.Add(small);
  forward.Add(large);
  backward.Add(large);
  backward.Add(small);
  merged.Merge(HistogramOf(small));
  for (const Histogram* histogram : {&forward, &backward, &merged}) {
    ExpectSameBins(together, *histogram);
    EXPECT_EQ(histogram->count(), 11000);
    EXPECT_EQ(histogram->low(), *std::min_element(all.begin(), all.end()));
    EXPECT_EQ(histogram->high(), *std::max_element(all.begin(), all.end()));
  }
  int64_t zeros = 0, total = 0;
  for (const Histogram::Bin& bin : together.Bins()) {
    total += bin.count;
    if (bin.value == 0) zeros += bin.count;
  }
  EXPECT_EQ(total, 11000);
  EXPECT_EQ(zeros, 1000);
}

TEST(Histogram, KeepsWhatIsNoNumberApart) {
  const Histogram histogram = HistogramOf({1, NAN, -2, INFINITY, -INFINITY, 0});
  EXPECT_EQ(histogram.count(), 3);
  EXPECT_EQ(histogram.not_finite(), 3);
  EXPECT_EQ(histogram.low(), -2);
  EXPECT_EQ(histogram.high(), 1);
  EXPECT_EQ(HistogramOf({}).Bins().size(), 0u);
  // Extremes of float32: nothing leaves the bins.
  EXPECT_EQ(HistogramOf({3e38f, -3e38f, 1e-45f, -1e-45f}).Bins().size(), 4u);
}

TEST(Parameters, HoldZeroAndTheRange) {
  for (const Range range : {Range{-1, 3}, Range{0, 6}, Range{-5, 0}, Range{0.5, 2}, Range{-3, -1}, Range{-1e-6, 1e-3},
                            Range{-1e30, 1e30}}) {
    const Parameters p = ParametersOf(range);
    EXPECT_GE(p.zero_point, -128);
    EXPECT_LE(p.zero_point, 127);
    // A whole zero point moves the range by half a step at most.
    EXPECT_LE(p.low(), std::min(range.low, 0.0) + 0.501 * p.scale);
    EXPECT_GE(p.high(), std::max(range.high, 0.0) - 0.501 * p.scale);
    EXPECT_NEAR(p.scale, (std::max(range.high, 0.0) - std::min(range.low, 0.0)) / 255, 1e-6 * p.scale);
  }
  EXPECT_EQ(ParametersOf({0, 0}).scale, 1.0f / 255);
  EXPECT_EQ(ParametersOf({0, 6}).zero_point, -128);
}

TEST(RangeOf, MinMaxIsWhatOccurred) {
  const Range range = RangeOf(HistogramOf({0.25f, 7, -3, 2}), {});
  EXPECT_EQ(range.low, -3);
  EXPECT_EQ(range.high, 7);
  EXPECT_EQ(RangeOf(HistogramOf({2, 3}), {}).low, 0);
  EXPECT_EQ(RangeOf(Histogram(), {}).high, 0);
}

TEST(RangeOf, PercentileLeavesOutTheOutermost) {
  const uint64_t seed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::vector<float> values = Normal(seed, 100000);
  for (const double percentile : {90.0, 99.0, 99.9}) {
    const Range range = RangeOf(HistogramOf(values), {Method::kPercentile, percentile});
    std::vector<float> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto tail = static_cast<size_t>((1 - percentile / 100) / 2 * static_cast<double>(sorted.size()));
    EXPECT_NEAR(range.low, sorted[tail], 0.01) << percentile;
    EXPECT_NEAR(range.high, sorted[sorted.size() - 1 - tail], 0.01) << percentile;
  }
  const Range whole = RangeOf(HistogramOf(values), {Method::kPercentile, 100});
  EXPECT_EQ(whole.high, *std::max_element(values.begin(), values.end()));
  // One outlier among many: all of the range is lost to it by min-max, nothing by percentile.
  values.push_back(1000);
  EXPECT_LT(RangeOf(HistogramOf(values), {Method::kPercentile, 99.99}).high, 6);
  EXPECT_EQ(RangeOf(HistogramOf(values), {}).high, 1000);
}

// The least error over a grid of ranges, by the values themselves.
double BruteLeast(const std::vector<float>& values, int steps) {
  const double low = std::min(0.0f, *std::min_element(values.begin(), values.end())),
               high = std::max(0.0f, *std::max_element(values.begin(), values.end()));
  double least = HUGE_VAL;
  for (int i = low < 0 ? 0 : steps; i <= steps; ++i) {
    for (int j = high > 0 ? 0 : steps; j <= steps; ++j)
      least = std::min(least, TrueError(values, ParametersOf({low * i / steps, high * j / steps})));
  }
  return least;
}

TEST(RangeOf, MseFindsTheLeastErrorOfABruteSearch) {
  std::vector<std::vector<float>> cases;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    cases.push_back(Normal(seed, 3000));
    std::vector<float> heavy = Normal(seed + 10, 3000), relu = Normal(seed + 20, 3000),
                       skewed = Normal(seed + 30, 3000, 0.5, 2);
    for (float& x : heavy) x = x * x * x;  // long tails on both sides
    for (float& x : relu) x = std::max(x, 0.0f) * std::abs(x);
    for (float& x : skewed) x = -std::exp(x);
    cases.insert(cases.end(), {heavy, relu, skewed});
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    const Range range = RangeOf(HistogramOf(cases[i]), {Method::kMse, 100});
    const double found = TrueError(cases[i], ParametersOf(range)), brute = BruteLeast(cases[i], 64);
    EXPECT_LE(found, 1.02 * brute) << "case " << i << ", range " << range.low << " " << range.high;
    const Range whole = RangeOf(HistogramOf(cases[i]), {});
    EXPECT_LE(found, 1.001 * TrueError(cases[i], ParametersOf(whole)));
  }
  // One value far out among 200,000: clipping it costs (8 - h)² / 200,000, keeping it a longer step for all others. By
  // the derivative the least is near h = 5.4.
  std::vector<float> outlier = Normal(41, 200000);
  outlier.push_back(8);
  const Range clipped = RangeOf(HistogramOf(outlier), {Method::kMse, 100});
  EXPECT_NEAR(clipped.high, 5.4, 0.5);
}

TEST(MeanSquaredError, IsThatOfTheValues) {
  const std::vector<float> values = Normal(5, 20000);
  const Histogram histogram = HistogramOf(values);
  for (const Range range : {Range{-4, 4}, Range{-1, 2}, Range{0, 3}}) {
    const Parameters p = ParametersOf(range);
    const double truth = TrueError(values, p);
    EXPECT_NEAR(MeanSquaredError(histogram.Bins(), p), truth, 0.03 * truth);
    const auto outside = std::count_if(
        values.begin(), values.end(), [&](float x) { return x < p.low() - p.scale / 2 || x > p.high() + p.scale / 2; });
    EXPECT_NEAR(ClippedShare(histogram.Bins(), p), static_cast<double>(outside) / 20000, 0.002);
  }
}

TEST(WeightScale, LargestMagnitudeOrLeastError) {
  EXPECT_FLOAT_EQ(WeightScale(std::vector<float>{0.5f, -1.27f, 0}, Method::kMinMax), 0.01f);
  EXPECT_FLOAT_EQ(WeightScale(std::vector<float>{0, 0}, Method::kMinMax), 1.0f / 127);
  std::vector<float> weights = Normal(9, 2000);
  weights.push_back(8);  // an outlier
  const auto error = [&](float scale) {
    double sum = 0;
    for (const float w : weights)
      sum += std::pow(w - scale * std::clamp(std::nearbyint(w / scale), -127.0f, 127.0f), 2);
    return sum;
  };
  const float whole = WeightScale(weights, Method::kMinMax), best = WeightScale(weights, Method::kMse);
  for (int step = 0; step < 64; ++step)
    EXPECT_LE(error(best), 1.0001 * error(whole * (1 - static_cast<float>(step) / 128)));
  EXPECT_LT(best, whole);
}

TEST(Noise, IsTheRatioOfSums) {
  Noise noise;
  noise.Add(Tensor::Of<float>({3}, {3, -4, 0}), Tensor::Of<float>({3}, {3.5f, -4, 0}));
  EXPECT_NEAR(noise.sqnr_db(), 10 * std::log10(25 / 0.25), 1e-9);
  noise.Add(Tensor::Of<float>({2}, {1, 2}), Tensor::Of<int8_t>({2}, {-1, 3}), 0.5f, -3);  // 1 and 3
  EXPECT_NEAR(noise.sqnr_db(), 10 * std::log10(30 / 1.25), 1e-9);
  EXPECT_EQ(noise.elements, 5);
  EXPECT_EQ(Noise().sqnr_db(), HUGE_VAL);
  // A uniform signal over all of the range: 6.02 dB a bit.
  std::mt19937_64 random(1);
  Tensor real(ElementType::kFloat32, {100000}), integers(ElementType::kInt8, {100000});
  const Parameters p = ParametersOf({-1, 1});
  for (int64_t i = 0; i < real.elements(); ++i) {
    const float x = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    real.as<float>()[static_cast<size_t>(i)] = x;
    integers.set_int(i,
                     std::clamp<int64_t>(static_cast<int64_t>(std::nearbyint(x / p.scale)) + p.zero_point, -128, 127));
  }
  Noise uniform;
  uniform.Add(real, integers, p.scale, p.zero_point);
  EXPECT_NEAR(uniform.sqnr_db(), 48.1, 0.3);
}

TEST(TopOne, ComparesClassesOfEachSample) {
  EXPECT_EQ(ClassesOf({4, 10}), 10);
  EXPECT_EQ(ClassesOf({1, 1000, 1, 1}), 1000);
  EXPECT_EQ(ClassesOf({12}), 12);
  EXPECT_EQ(ClassesOf({1, 1}), 0);
  EXPECT_EQ(ClassesOf({1, 21, 4}), 0);
  EXPECT_EQ(ClassesOf({}), 0);
  TopOne top;
  top.Add(Tensor::Of<float>({2, 3}, {0, 2, 1, 5, 4, 3}), Tensor::Of<float>({2, 3}, {0, 3, 2, 1, 4, 3}), 3);
  EXPECT_EQ(top.equal, 1);
  EXPECT_EQ(top.total, 2);
}

}  // namespace
}  // namespace heddle::ir::quantise
