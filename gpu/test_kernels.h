// Stages that the tests of this folder share: small hand-made definitions in which every construct of the loop IR occurs, and
// random ones.
#ifndef HEDDLE_GPU_TEST_KERNELS_H_
#define HEDDLE_GPU_TEST_KERNELS_H_

#include <random>
#include <string>
#include <vector>

#include "gpu/kernel_schedule.h"
#include "ir/loops/tensor_expr.h"

namespace heddle::gpu {

struct TestKernel {
  std::string name;
  Kernel kernel;
  ir::loops::Function plain;  // the same as plain loops over kernel.arguments
  bool is_exact = true;       // results agree to the bit; else within a few roundings
};

// Convolutions, matrix products, poolings, requantisations, casts, conversions, integer arithmetic that wraps.
std::vector<TestKernel> TestKernels(const ScheduleOptions& options, bool only_reductions = false);

// Tensors for the kernel's arguments: random for those that are read (a table's contents where it is one), zero where written.
// Exact kernels also get large and small values.
std::vector<ir::Tensor> RandomArguments(const TestKernel& test, std::mt19937_64& random);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_TEST_KERNELS_H_
