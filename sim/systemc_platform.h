// The SystemC platform (sim/systemc/) as a program that runs simulation requests: a TLM-2.0 system of host, interconnect, memory
// and accelerator. No SystemC header is needed here.
#ifndef HEDDLE_SIM_SYSTEMC_PLATFORM_H_
#define HEDDLE_SIM_SYSTEMC_PLATFORM_H_

#include <filesystem>
#include <functional>

#include "hls/params.h"
#include "ir/status.h"
#include "sim/verilated_model.h"

namespace heddle::sim {

enum class PlatformAccelerator {
  kFast,  // functional model with the fast model's cycles, transfers burst by burst
  kRtl,   // verilated RTL behind an AXI-to-TLM bridge
};

class SystemCPlatform {
 public:
  // kFast unpacks the program that Heddle carries; kRtl verilates `params`' hardware and compiles the platform around it. Both
  // are kept by content in the cache (CacheDirectory()). Errors: E-TOOL-…, E-SIM-002.
  static absl::StatusOr<SystemCPlatform> Build(PlatformAccelerator accelerator, const hls::AcceleratorParams& params,
                                               const std::function<void(const std::string&)>& progress);

  // As RunSimulation. Counters are the registers that the accelerator has (kFast: not those of stalls inside a unit) and
  // dram_bytes_read and -written. E-SIM-001 names for a hang each unit and the tokens it waits for.
  absl::StatusOr<SimulationResult> Run(SimulationRequest request) const;

 private:
  std::filesystem::path program_;
  hls::AcceleratorParams params_;
};

}  // namespace heddle::sim

#endif  // HEDDLE_SIM_SYSTEMC_PLATFORM_H_
