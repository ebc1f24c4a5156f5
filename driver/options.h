// What the command line can say, as a value.
#ifndef HEDDLE_DRIVER_OPTIONS_H_
#define HEDDLE_DRIVER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "driver/talk.h"

namespace heddle::driver {

constexpr const char* kDefaultOut = "heddle-out/latest";  // beside the runs that were given a name

struct TalkOptions {
  Verbosity verbosity = Verbosity::kNormal;
  ColorMode color = ColorMode::kAuto;
};

enum class VerifyMode {
  kAll,   // the plan, and the whole graph on every device of the target and on an OpenCL device where there is one
  kPlan,  // the plan against the reference interpreter
  kNone,
};

struct RunOptions {
  std::string model;                // path of an .onnx file or of a textual IR (.ir)
  std::string target = "zynq7020";  // preset or path
  std::vector<std::string> inputs;  // FILE.npz | NAME=FILE.npy | random:SEED; none: random:0
  std::vector<std::string> shapes;  // NAME=1,3,224,224
  std::string out = kDefaultOut;
  std::string objective = "latency";
  std::vector<std::string> devices;  // names or kinds allowed; empty: all of the target
  VerifyMode verify = VerifyMode::kAll;
  std::string simulator = "rtl";           // what the accelerator's regions run on: rtl, fast or systemc
  std::string systemc_accelerator = "fast"; // the accelerator in the SystemC platform: fast or rtl
  bool compile_only = false;  // stop before anything runs
  bool json = false;          // report.json on stdout instead of the text report
  bool strict = false;        // exit 4 where the target's limits are missed
  int64_t max_luts = 0;       // 0: the target's limit
  int threads = 0;            // of the CPU device; 0: as the target says
  double time_limit_s = 10;   // of the partitioner
  bool time_limit_given = false;  // by the user: placement graphs have a default of their own
  bool contiguous = true;     // placement graphs: devices form a pipeline
  std::vector<std::string> passes;  // of `heddle import`
  std::vector<std::string> skip_passes;  // names: left out of the default pipeline
  std::string waves;          // "", "all" or "START:END" in cycles
  bool hls = true;            // C simulation of the HLS C++
  bool icarus = false;        // the RTL in Icarus Verilog too
  bool synth = false;         // Yosys counts the accelerator's cells
  bool reproducible = false;  // the same bytes whenever and wherever it is run (driver/reproducible.h)
  bool build_simulator = false;  // compile_only: the RTL's simulator is built into the cache folder for later runs
  TalkOptions talk;
};

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_OPTIONS_H_
