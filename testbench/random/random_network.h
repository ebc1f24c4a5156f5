// Random small networks for whole-system tests: the same seed gives the same graph on every machine.
#ifndef HEDDLE_TESTBENCH_RANDOM_RANDOM_NETWORK_H_
#define HEDDLE_TESTBENCH_RANDOM_RANDOM_NETWORK_H_

#include <cstdint>
#include <vector>

#include "hls/params.h"
#include "ir/graph.h"

namespace heddle::testbench {

// A network of integer layers (convolutions of all kinds, pooling, residual additions, lookups, concatenation, fully
// connected layers) between a QuantizeLinear and a DequantizeLinear, 2 to 9 layers with random shapes and scales.
// Types are inferred.
ir::Graph RandomIntegerNetwork(uint64_t seed);

// A network of float layers likewise.
ir::Graph RandomFloatNetwork(uint64_t seed);

// Inputs for either, drawn from the seed.
std::vector<ir::Tensor> RandomInputs(const ir::Graph& graph, uint64_t seed);

// Legal accelerator parameters, small enough to compile in seconds.
hls::AcceleratorParams RandomParams(uint64_t seed);

}  // namespace heddle::testbench

#endif  // HEDDLE_TESTBENCH_RANDOM_RANDOM_NETWORK_H_
