// From a histogram to the parameters of an 8-bit tensor.
#ifndef HEDDLE_IR_QUANTISE_RANGE_H_
#define HEDDLE_IR_QUANTISE_RANGE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/quantise/histogram.h"

namespace heddle::ir::quantise {

enum class Method {
  kMinMax,      // every value that occurred
  kPercentile,  // all but the outermost values, half of the rest at either end
  kMse,         // the range whose rounding and clipping together have the least mean squared error
};
std::string_view MethodName(Method method);  // "minmax", "percentile", "mse"

struct CalibrationOptions {
  Method method = Method::kMinMax;
  double percentile = 99.99;  // of the values that the range covers, 50 < percentile <= 100
};

// Real values that keep their place; low <= 0 <= high, because zero (padding, ReLU) must be exact.
struct Range {
  double low = 0, high = 0;
};
Range RangeOf(const Histogram& histogram, const CalibrationOptions& options);

// real = scale * (i8 - zero_point)
struct Parameters {
  float scale = 1;
  int64_t zero_point = 0;
  double low() const { return scale * static_cast<double>(-128 - zero_point); }
  double high() const { return scale * static_cast<double>(127 - zero_point); }
};
// The range on -128..127. An empty range gets a scale of 1/255: all its values are zero.
Parameters ParametersOf(Range range);

// Mean of (x - x as int8)² over the bins' values, clipping included.
double MeanSquaredError(const std::vector<Histogram::Bin>& bins, const Parameters& parameters);
// Share of the bins' values outside of what int8 can hold, 0 to 1.
double ClippedShare(const std::vector<Histogram::Bin>& bins, const Parameters& parameters);

// Scale of symmetric int8 weights (-127..127) for `weights`: the largest magnitude's, or under kMse the one with the
// least squared error. 1/127 where all are zero.
float WeightScale(std::span<const float> weights, Method method);

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_RANGE_H_
