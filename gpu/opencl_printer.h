// Loop IR as OpenCL C 1.2. Equal functions give equal text.
//
// Exact where the loop IR is exact: integers wrap (through unsigned types where C would leave overflow undefined), the operands of
// a Select that are not taken are not evaluated, nothing is reassociated. Multiplies and adds may be contracted, except in
// kernels that convert between floats and integers: their roundings are part of a network's integer arithmetic. 64-bit
// indices are printed as 32-bit where interval analysis proves that nothing is lost.
//
// A vectorised loop becomes OpenCL vector types where its extent is 2, 4, 8 or 16; neighbouring elements are loaded at once.
#ifndef HEDDLE_GPU_OPENCL_PRINTER_H_
#define HEDDLE_GPU_OPENCL_PRINTER_H_

#include <string>
#include <vector>

#include "gpu/kernel_schedule.h"
#include "ir/loops/stmt.h"

namespace heddle::gpu {

// The whole program: one __kernel for each function, in order, with the helpers and tables that they need. Names of functions
// are distinct. Allocations in global memory are not printable (HEDDLE_CHECK): make them parameters first.
std::string PrintOpenCl(const std::vector<ir::loops::Function>& kernels);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_OPENCL_PRINTER_H_
