// Loop IR as PTX, through LLVM's NVPTX back end.
//
// Division and square root are correctly rounded (div.rn, sqrt.rn), denormals are kept, nothing is reassociated; multiplies and
// adds are contracted as in opencl_printer.h. Functions that PTX has no instruction for (exp, tanh, …) come from CUDA's
// device library (libdevice), which is linked in where a CUDA toolkit is installed.
#ifndef HEDDLE_GPU_PTX_EMITTER_H_
#define HEDDLE_GPU_PTX_EMITTER_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "ir/loops/stmt.h"

namespace heddle::gpu {

struct PtxOptions {
  int compute_capability = 70;  // 10 * major + minor: 70, 75, 80, 86, 89, 90; PTX also runs on every later device
  std::string libdevice;        // path of libdevice.10.bc; empty: FindLibdevice()
};

// One .entry for each function, in order. Parameters are pointers to global memory, in the order of the function's.
//   E-GPU-040 where LLVM was built without NVPTX, E-GPU-041 where a kernel needs libdevice and none is found.
absl::StatusOr<std::string> EmitPtx(const std::vector<ir::loops::Function>& kernels, const PtxOptions& options = {});

// libdevice.10.bc under $CUDA_HOME, $CUDA_PATH or where distributions and NVIDIA's installer put it; empty where there is none.
std::string FindLibdevice();

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_PTX_EMITTER_H_
