// A self-checking Verilog test bench of one region: the same program on the same RTL in any simulator of Verilog-2005, so
// that no result rests on one simulator alone.
#ifndef HEDDLE_HLS_VERILOG_TESTBENCH_H_
#define HEDDLE_HLS_VERILOG_TESTBENCH_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hls/program.h"

namespace heddle::hls {

// The files, by name: testbench.v (how to run it stands at its top), parameters.vh, dram.hex (image and inputs),
// expected.hex and outputs.hex. The outputs to expect are the functional model's. `inputs`: one per input of the program.
// E-ACC-090 where the inputs do not fit.
absl::StatusOr<std::map<std::string, std::string>> GenerateVerilogTestbench(const CompiledProgram& program,
                                                                            const std::vector<ir::Tensor>& inputs);

struct IcarusResult {
  int64_t cycles = 0;          // of the program, with the test bench's memory
  int64_t bytes_compared = 0;  // all equal
};

// Writes those files to `directory` (created) and simulates them with the Verilog of `rtl` (a folder) in Icarus Verilog.
// E-TOOL-001 where it is not installed, E-TOOL-003 where it refuses the Verilog, E-SIM-004 where an output differs or the
// program does not end.
absl::StatusOr<IcarusResult> SimulateInIcarus(const CompiledProgram& program, const std::vector<ir::Tensor>& inputs,
                                              const std::filesystem::path& rtl, const std::filesystem::path& directory);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_VERILOG_TESTBENCH_H_
