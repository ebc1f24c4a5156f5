// The generated accelerator: every module of it, built through hls/rtl for one parameter set.
#ifndef HEDDLE_HLS_ACCELERATOR_ACCELERATOR_H_
#define HEDDLE_HLS_ACCELERATOR_ACCELERATOR_H_

#include <map>
#include <string>

#include "hls/params.h"

namespace heddle::hls {

inline constexpr const char* kTopModule = "heddle_accelerator";

// Verilog-2005, one module a file: file name to content. `params` must have passed CheckParams. The same parameters
// always give the same bytes.
std::map<std::string, std::string> GenerateVerilog(const AcceleratorParams& params);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_ACCELERATOR_ACCELERATOR_H_
