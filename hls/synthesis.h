// How large the emitted Verilog really is: Yosys synthesises it for an FPGA family and its cells are counted. The resource
// model (resources.h) is checked against this; `heddle run --synth` puts it into the report.
#ifndef HEDDLE_HLS_SYNTHESIS_H_
#define HEDDLE_HLS_SYNTHESIS_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace heddle::hls {

enum class FpgaFamily { kXilinx7, kEcp5 };

struct CellCounts {
  // Look-up tables, those used as memory and as shift registers included. 6-input (Xilinx) or 4-input (ECP5).
  int64_t lut = 0;
  int64_t ff = 0;
  int64_t dsp = 0;     // DSP48E1 or MULT18X18D
  int64_t bram18 = 0;  // 18 Kibit block RAMs; a RAMB36 counts as two
  int64_t bram36() const { return (bram18 + 1) / 2; }
};

struct Synthesis {
  std::string tool;  // "Yosys 0.23 synth_xilinx"
  CellCounts total;
  std::map<std::string, CellCounts> modules;  // one instance of each module, its children not included
  double seconds = 0;
};

// Runs Yosys on the .v files of `rtl_folder` for the module `top` and what it holds; nothing is written there. Errors:
// E-TOOL-001 no Yosys, E-TOOL-002 not done after `timeout_s`, E-TOOL-003 Yosys refused.
absl::StatusOr<Synthesis> Synthesise(const std::filesystem::path& rtl_folder, const std::string& top, FpgaFamily family, double timeout_s);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_SYNTHESIS_H_
