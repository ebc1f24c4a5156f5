// What a target's accelerator takes of a network, for tests and benchmarks of the accelerator alone.
#ifndef HEDDLE_TESTBENCH_ACCELERATOR_REGION_H_
#define HEDDLE_TESTBENCH_ACCELERATOR_REGION_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "hls/memory_model.h"
#include "hls/params.h"
#include "ir/device.h"
#include "ir/graph.h"

namespace heddle::testbench {

struct AcceleratorTarget {
  hls::AcceleratorParams params;
  hls::MemoryModel memory;
};

// The first accelerator of a target file.
absl::StatusOr<AcceleratorTarget> ReadAcceleratorTarget(const std::string& path);

struct AcceleratorPart {
  ir::Graph region;  // all nodes that the engine takes
  size_t nodes = 0;
  struct Refusal {
    std::string node, op;
    ir::Support support;
  };
  std::vector<Refusal> refusals;
};

AcceleratorPart TakeAcceleratorPart(const ir::Graph& graph, const hls::AcceleratorParams& params);

// i8 tensors for the region's inputs, of the whole range.
std::vector<ir::Tensor> RandomInputs(const ir::Graph& region, uint64_t seed);

}  // namespace heddle::testbench

#endif  // HEDDLE_TESTBENCH_ACCELERATOR_REGION_H_
