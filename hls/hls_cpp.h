// HLS C++ of a region: a kernel with AXI pointers and #pragma HLS directives, printed from loop IR, and a test bench that
// compares it with recorded outputs. Plain g++ compiles both: the C simulation.
#ifndef HEDDLE_HLS_HLS_CPP_H_
#define HEDDLE_HLS_HLS_CPP_H_

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hls/params.h"
#include "ir/graph.h"

namespace heddle::hls {

struct HlsSources {
  std::string kernel_name;  // the top function, a C identifier
  std::string kernel_h;     // its declaration and the arguments' sizes
  std::string kernel_cpp;
  // tb [DIR]: reads DIR/constant_N.bin, DIR/input_N.bin and DIR/expected_N.bin; exit status 0 where all bytes agree, 1 where not,
  // 2 where a file is missing or too short.
  std::string tb_cpp;
  std::vector<std::shared_ptr<const ir::Tensor>> constants;  // weights and the like, in the order of constant_N
};

// `region`: every op has a loop definition (E-OP-090 otherwise). The lanes of `params` are the unroll factors: C output channels at
// a time, R products in each.
absl::StatusOr<HlsSources> GenerateHls(const ir::Graph& region, const std::string& name, const AcceleratorParams& params);

// kernel.h, kernel.cpp, tb.cpp and constant_N.bin in `directory`, which is created.
absl::Status WriteHls(const HlsSources& sources, const std::filesystem::path& directory);

// Compiles kernel.cpp and tb.cpp in `directory` with g++ (sanitizers on) and runs the test bench on `inputs` against `expected`.
// E-HLS-001 where g++ refuses, E-HLS-002 where the outputs differ.
absl::Status SimulateHls(const std::filesystem::path& directory, const std::vector<ir::Tensor>& inputs,
                         const std::vector<ir::Tensor>& expected, bool sanitizers = true);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_HLS_CPP_H_
