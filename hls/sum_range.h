// What the sums of a layer can reach, whatever its input: decides whether the drain's multipliers take one cycle or two.
#ifndef HEDDLE_HLS_SUM_RANGE_H_
#define HEDDLE_HLS_SUM_RANGE_H_

#include <cstdint>

#include "hls/layer.h"

namespace heddle::hls {

// Greatest magnitude of what the layer's drain scales: of accumulator plus bias, over all channels and all int8 inputs.
int64_t GreatestSum(const Layer& layer);

// Sets drain_fields.wide of every layer: whether GreatestSum() needs more than the 25 bits of a narrow drain (isa.h).
void SetWideDrains(Network& network);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_SUM_RANGE_H_
