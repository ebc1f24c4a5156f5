// The tensor accelerator as a device: programs by hls/, run on the RTL under Verilator.
#ifndef HEDDLE_SIM_ACCELERATOR_DEVICE_H_
#define HEDDLE_SIM_ACCELERATOR_DEVICE_H_

#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hls/compiler.h"
#include "hls/verilog_testbench.h"
#include "ir/device.h"
#include "sim/systemc_platform.h"
#include "sim/verilated_model.h"

namespace heddle::sim {

// Which cycles of a simulation are recorded as waves.
struct WaveRequest {
  bool enabled = false;
  uint64_t start_cycle = 0;
  uint64_t end_cycle = UINT64_MAX;
  std::string layer;  // a node's name: its cycles, found by a first simulation; empty: the window above
};

// What a region's Run runs on. All give the same bits.
enum class Simulator {
  kRtl,      // the Verilog under Verilator; cycles are the hardware's
  kFast,     // the functional model; cycles are the fast timing model's
  kSystemC,  // the TLM-2.0 platform (sim/systemc/)
};

struct AcceleratorOptions {
  WaveRequest waves;
  std::filesystem::path directory;  // for rtl/ and waves; empty: none are written
  Simulator simulator = Simulator::kRtl;
  PlatformAccelerator platform = PlatformAccelerator::kFast;  // in the SystemC platform
};

class AcceleratorDevice;

// A region on the accelerator. Run simulates it; its counters are those of docs/accelerator.md and "cycles".
class AcceleratorRegion : public ir::CompiledRegion {
 public:
  AcceleratorRegion(AcceleratorDevice& device, std::shared_ptr<const ir::Graph> graph, hls::CompiledProgram program,
                    std::string name, std::filesystem::path directory);
  absl::StatusOr<ir::RunResult> Run(const std::vector<ir::Tensor>& inputs) override;
  // The fast model's cycles of the compiled program, by the layer's last node.
  std::map<std::string, double> PredictedUs() const override;
  // Many inferences in one simulation, on-chip memories kept between them. One result each.
  absl::StatusOr<std::vector<ir::RunResult>> RunBatch(const std::vector<std::vector<ir::Tensor>>& inputs);
  // The same program on the functional model: outputs without time.
  absl::StatusOr<std::vector<ir::Tensor>> RunFunctional(const std::vector<ir::Tensor>& inputs) const;
  // The same program on the SystemC platform, whatever the device's options say. The time is `simulated` with the RTL and
  // `modelled` with the fast accelerator.
  absl::StatusOr<ir::RunResult> RunOnPlatform(const std::vector<ir::Tensor>& inputs, PlatformAccelerator accelerator) const;
  // Compiles the region's HLS C++ with g++ and compares its outputs with `expected`. E-HLS-… where they differ.
  absl::Status CheckHls(const std::vector<ir::Tensor>& inputs, const std::vector<ir::Tensor>& expected) const;

  // Simulates the program on the RTL in Icarus Verilog by a test bench in the region's folder. E-SIM-004 where an output differs
  // from the functional model's.
  absl::StatusOr<hls::IcarusResult> CheckIcarus(const std::vector<ir::Tensor>& inputs) const;

  const hls::CompiledProgram& program() const { return program_; }
  const std::string& name() const { return name_; }

 private:
  absl::StatusOr<SimulationRequest> MakeRequest(const std::vector<uint8_t>& dram, const std::vector<std::vector<ir::Tensor>>& inputs) const;
  absl::StatusOr<SimulationResult> Simulate(const std::vector<std::vector<ir::Tensor>>& inputs);
  absl::StatusOr<ir::RunResult> ResultOf(const JobResult& job) const;
  // A failed simulation in the layers' names, and where the program itself stops, which unit waits for whose token.
  absl::Status Explain(const absl::Status& failure) const;

  AcceleratorDevice& device_;
  std::shared_ptr<const ir::Graph> graph_;
  hls::CompiledProgram program_;
  std::string name_;
  std::filesystem::path directory_;
};

class AcceleratorDevice : public ir::Device {
 public:
  std::string name() const override { return name_; }
  std::string kind() const override { return "accelerator"; }
  bool needs_convex_regions() const override { return true; }
  double launch_overhead_us() const override { return launch_overhead_us_; }
  ir::Support Supports(const ir::Graph& graph, const ir::Node& node) const override;
  absl::StatusOr<ir::Cost> EstimateCost(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) const override;
  absl::StatusOr<std::unique_ptr<ir::CompiledRegion>> Compile(std::shared_ptr<const ir::Graph> region,
                                                              const ir::CompileRequest& request) override;

  const hls::AcceleratorParams& params() const { return params_; }
  const MemoryConfig& memory() const { return memory_; }
  // Where runs made from now on put their RTL and waves, and whether they simulate.
  void set_options(AcceleratorOptions options) { options_ = std::move(options); }
  const AcceleratorOptions& options() const { return options_; }
  // "RTL", "fast model", "SystemC": what the options make regions run on.
  std::string simulator_name() const;
  // The verilated hardware, built or found in the cache at the first call.
  absl::StatusOr<const VerilatedModel*> Model(const std::function<void(const std::string&)>& progress);
  // Wall seconds and cycles of all simulations so far.
  double simulated_seconds() const { return simulated_seconds_; }
  int64_t simulated_cycles() const { return simulated_cycles_; }
  void AddSimulation(int64_t cycles, double seconds) {
    simulated_cycles_ += cycles;
    simulated_seconds_ += seconds;
  }

 private:
  friend absl::StatusOr<std::unique_ptr<AcceleratorDevice>> MakeAcceleratorDevice(const nlohmann::json& section);

  std::string name_;
  double launch_overhead_us_ = 0;
  hls::AcceleratorParams params_;
  MemoryConfig memory_;
  AcceleratorOptions options_;
  std::optional<VerilatedModel> model_;
  int64_t simulated_cycles_ = 0;
  double simulated_seconds_ = 0;
};

// `section`: the device object of a target file (docs/targets.md). Errors E-TARGET-003, E-ACCEL-….
absl::StatusOr<std::unique_ptr<AcceleratorDevice>> MakeAcceleratorDevice(const nlohmann::json& section);

}  // namespace heddle::sim

#endif  // HEDDLE_SIM_ACCELERATOR_DEVICE_H_
