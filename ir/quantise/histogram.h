// How often a tensor's values occurred over all calibration samples: what ranges are chosen from.
#ifndef HEDDLE_IR_QUANTISE_HISTOGRAM_H_
#define HEDDLE_IR_QUANTISE_HISTOGRAM_H_

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::ir::quantise {

// Counts in bins whose width is a power of two and grows with the largest magnitude seen, so that any two histograms
// merge exactly and the order of samples does not matter. Zeros are counted apart: they are frequent and always exact.
class Histogram {
 public:
  // On each side of zero. The largest magnitude lies in the outer half of its side: a step of an 8-bit range holds 8
  // bins or more.
  static constexpr int kBinsPerSide = 4096;

  // Values of one bin, taken as their mean.
  struct Bin {
    double value = 0;
    int64_t count = 0;
  };

  void Add(std::span<const float> values);
  void Merge(const Histogram& other);

  int64_t count() const { return count_; }            // finite values
  int64_t not_finite() const { return not_finite_; }  // NaN and infinities, counted nowhere else
  double low() const { return low_; }                 // of the finite values; 0 where there are none
  double high() const { return high_; }
  std::vector<Bin> Bins() const;  // those that are not empty, ascending

 private:
  void CoarsenTo(int exponent);

  int exponent_ = -1000;  // bins are 2^exponent_ wide
  std::vector<int64_t>
      counts_;  // [2 kBinsPerSide], bin i holds [i - kBinsPerSide, i + 1 - kBinsPerSide) * 2^exponent_; empty at first
  std::vector<double> sums_;
  int64_t zeros_ = 0, count_ = 0, not_finite_ = 0;
  double low_ = 0, high_ = 0;
};

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_HISTOGRAM_H_
