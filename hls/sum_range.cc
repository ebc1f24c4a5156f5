// Bounds of accumulators. An int8 input is at most 128 in magnitude, padding included; so a channel's accumulator is at most
// 128 times the sum of its weights' magnitudes. That holds for every partial sum too.

#include "hls/sum_range.h"

#include <algorithm>
#include <cstdlib>

#include "ir/check.h"

namespace heddle::hls {
namespace {

constexpr int64_t kGreatestInput = 128;

int64_t GreatestAccumulator(const Layer& layer) {
  if (layer.weights_storage >= 0) {
    return layer.kernel_h * layer.kernel_w * (layer.in_c / layer.groups) * kGreatestInput * kGreatestInput;
  }
  if (layer.weights.empty()) return layer.drain_fields.drain == Drain::kMultiply ? int64_t{255} * 255 : kGreatestInput;
  const size_t filter = layer.weights.size() / static_cast<size_t>(layer.out_c);
  int64_t greatest = 0;
  for (size_t channel = 0; channel < static_cast<size_t>(layer.out_c); ++channel) {
    int64_t sum = 0;
    for (size_t i = channel * filter; i < (channel + 1) * filter; ++i) sum += std::abs(int{layer.weights[i]});
    greatest = std::max(greatest, sum * kGreatestInput);
  }
  return greatest;
}

}  // namespace

int64_t GreatestSum(const Layer& layer) {
  int64_t bias = 0;
  for (const auto& set : layer.parameters) {
    for (const ChannelParameters& channel : set) bias = std::max(bias, std::abs(int64_t{channel.bias}));
  }
  return GreatestAccumulator(layer) + bias;
}

void SetWideDrains(Network& network) {
  for (Layer& layer : network.layers) {
    layer.drain_fields.wide = GreatestSum(layer) > kGreatestNarrowSum ? 1 : 0;
    HEDDLE_CHECK(layer.drain_fields.drain != Drain::kMultiply || layer.drain_fields.wide == 0, "a product of two activations is wide");
  }
}

}  // namespace heddle::hls
