// RTL simulation: the accelerator's Verilog, verilated, compiled and kept by content, run on programs.
#ifndef HEDDLE_SIM_VERILATED_MODEL_H_
#define HEDDLE_SIM_VERILATED_MODEL_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/status.h"
#include "sim/harness/axi_memory.h"

namespace heddle::sim {

// One run of a program. Addresses of pokes and dumps are those of the simulated DRAM, whose byte 0 is address 0.
struct SimulationJob {
  uint64_t program_address = 0;  // bytes from the base
  std::vector<std::pair<uint64_t, std::vector<uint8_t>>> pokes;  // written before the start
  std::vector<std::pair<uint64_t, uint64_t>> dumps;              // address and size, read after the end
};

// A stretch in which one unit executed instructions of one tag (layer).
struct UnitEvent {
  int unit = 0;  // 0 load, 1 compute, 2 store
  int tag = 0;
  uint64_t start_cycle = 0, end_cycle = 0;  // of the whole simulation
};

struct JobResult {
  std::vector<std::vector<uint8_t>> dumps;
  std::map<std::string, int64_t> counters;  // the accelerator's counter registers by name, dram_bytes_read, dram_bytes_written
  std::vector<UnitEvent> events;
};

struct SimulationResult {
  std::vector<JobResult> jobs;
  int64_t cycles = 0;    // of all jobs, host accesses included
  double seconds = 0;    // wall time of the simulation proper
};

struct SimulationRequest {
  const std::vector<uint8_t>* image = nullptr;  // initial DRAM; the memory is as large as this
  uint64_t base = 0;             // base register
  MemoryConfig memory;
  std::vector<SimulationJob> jobs;
  uint64_t max_cycles = 2'000'000'000;  // of one job
  double timeout_s = 3600;
  std::filesystem::path wave_file;      // FST; empty: none (the model must have been built with waves)
  uint64_t wave_start_cycle = 0, wave_end_cycle = UINT64_MAX;
  double clock_mhz = 100;               // of the platform's clocks; cycles do not depend on it
  std::string params_json;              // hls::ParamsToJson; only the SystemC platform's fast accelerator needs them
};

// Runs a simulation program (a verilated model, a SystemC platform) on a request: the jobs one after the other on one
// instance, so that on-chip memories stay. E-SIM-001 with the program's words where the accelerator hangs, leaves the memory or
// reports an error.
absl::StatusOr<SimulationResult> RunSimulation(const std::filesystem::path& program, const SimulationRequest& request);

// What is compiled around the verilated accelerator to a program.
struct HarnessSpec {
  std::map<std::string, std::string> sources;  // file name → text; .cc and .c files are compiled
  std::string cflags;                          // for all of them
  std::string ldflags;
  bool waves = false;                          // FST
};
// The plain harness of harness/harness.cc: host and memory of axi_memory.h.
HarnessSpec PlainHarness(bool waves);

class VerilatedModel {
 public:
  // Verilates and compiles `verilog` (file name and text; top module heddle_accelerator), or finds the result of an
  // earlier call with the same text, harness, flags and processor in the cache ($HEDDLE_CACHE, else
  // $XDG_CACHE_HOME/heddle, else ~/.cache/heddle). Safe against other processes doing the same.
  // Errors: E-TOOL-… where verilator or the compiler is missing or fails.
  static absl::StatusOr<VerilatedModel> Build(const std::map<std::string, std::string>& verilog, bool waves,
                                              const std::function<void(const std::string&)>& progress);
  // The same with another program around the hardware.
  static absl::StatusOr<VerilatedModel> Build(const std::map<std::string, std::string>& verilog, const HarnessSpec& harness,
                                              const std::function<void(const std::string&)>& progress);

  absl::StatusOr<SimulationResult> Run(const SimulationRequest& request) const { return RunSimulation(program_, request); }
  const std::filesystem::path& program() const { return program_; }

  bool was_cached() const { return was_cached_; }
  double build_seconds() const { return build_seconds_; }

 private:
  std::filesystem::path program_;
  bool was_cached_ = false;
  double build_seconds_ = 0;
};

// The cache's root folder; created where missing.
absl::StatusOr<std::filesystem::path> CacheDirectory();

}  // namespace heddle::sim

#endif  // HEDDLE_SIM_VERILATED_MODEL_H_
