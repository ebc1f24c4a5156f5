// Random regions of integer ops and random accelerator parameters, for tests of everything that compiles or runs programs.
#ifndef HEDDLE_HLS_RANDOM_REGION_H_
#define HEDDLE_HLS_RANDOM_REGION_H_

#include <random>
#include <vector>

#include "hls/params.h"
#include "ir/graph.h"

namespace heddle::hls {

struct RandomRegion {
  ir::Graph graph;
  std::vector<ir::Tensor> inputs;  // one per graph input
};

// `nodes` nodes (a few more where one needs helpers), all attributes exercised. The same seed gives the same region.
RandomRegion MakeRandomRegion(uint64_t seed, int nodes);

// Legal parameters; memories small enough that some regions must be cut into tiles.
AcceleratorParams MakeRandomParams(uint64_t seed);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_RANDOM_REGION_H_
