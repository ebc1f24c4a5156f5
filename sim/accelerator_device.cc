// Joins the accelerator's compiler with its simulation. The host's part of a run (packing tensors channels-last into
// DRAM and back) is done here; its time belongs to the links of the target file.

#include "sim/accelerator_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "hls/accelerator/accelerator.h"
#include "hls/driver_c/driver_c.h"
#include "hls/hls_cpp.h"

namespace heddle::sim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kMostMicroseconds = 1e9;  // a quarter of an hour: a longer overhead is a typing error
constexpr double kMostStalls = 0.9;        // a probability: transfers must still end

constexpr const char* kUnitNames[] = {"accelerator.load", "accelerator.compute", "accelerator.store"};

absl::Status WriteFile(const fs::path& path, const void* data, size_t size) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  file.close();
  if (!file) return ir::UserError("E-SIM-002", fmt::format("writing '{}' failed", path.string()), "check the space left on the disk");
  return absl::OkStatus();
}

absl::Status WriteProgram(const hls::CompiledProgram& program, const fs::path& directory) {
  const std::string text = hls::ProgramText(program);
  HEDDLE_RETURN_IF_ERROR(WriteFile(directory / "program.asm", text.data(), text.size()));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, hls::EncodeProgram(program.run));
  HEDDLE_RETURN_IF_ERROR(WriteFile(directory / "program.bin", bytes.data(), bytes.size()));
  return WriteFile(directory / "weights.bin", program.image.data(), program.image.size());
}

// driver/: the driver for all regions, and this region's program and examples.
absl::Status WriteDriver(const hls::CompiledProgram& program, const std::string& name, const fs::path& directory) {
  for (const auto& sources : {hls::DriverSources(), hls::DriverProgramSources(program, name)}) {
    for (const auto& [file, text] : sources) HEDDLE_RETURN_IF_ERROR(WriteFile(directory / file, text.data(), text.size()));
  }
  return absl::OkStatus();
}

absl::Status WriteRtl(const hls::AcceleratorParams& params, const fs::path& directory) {
  for (const auto& [name, text] : hls::GenerateVerilog(params)) {
    HEDDLE_RETURN_IF_ERROR(WriteFile(directory / "rtl" / name, text.data(), text.size()));
  }
  return absl::OkStatus();
}

// The simulation's cycle in which the program started: its last unit ends in the last cycle counted.
int64_t StartOf(const JobResult& job) {
  uint64_t first = UINT64_MAX, end = 0;
  for (const UnitEvent& event : job.events) {
    first = std::min(first, event.start_cycle);
    end = std::max(end, event.end_cycle);
  }
  const int64_t cycles = job.counters.at("cycles_low") | job.counters.at("cycles_high") << 32;
  return job.events.empty() ? 0 : std::min(static_cast<int64_t>(first), static_cast<int64_t>(end) - cycles + 1);
}

// Cycles of each layer: of each of its compute instructions from the end of the one before to its own, waiting included, as
// the fast model counts them (hls/timing.h). Fused layers take turns. What comes after the last one belongs to its layer.
std::vector<ir::LayerCycles> LayersOf(const hls::CompiledProgram& program, const JobResult& job) {
  std::vector<std::pair<uint64_t, int>> computed;  // end, tag
  for (const UnitEvent& event : job.events) {
    if (event.unit == 1) computed.emplace_back(event.end_cycle, event.tag);
  }
  std::sort(computed.begin(), computed.end());
  std::vector<int64_t> cycles(program.layers.size(), 0);
  auto previous = static_cast<uint64_t>(StartOf(job));
  const uint64_t end = previous + static_cast<uint64_t>(job.counters.at("cycles_low") | job.counters.at("cycles_high") << 32);
  for (size_t i = 0; i < computed.size(); ++i) {
    const uint64_t own_end = i + 1 == computed.size() ? end : computed[i].first;
    const auto tag = static_cast<size_t>(computed[i].second);
    if (tag < cycles.size()) cycles[tag] += static_cast<int64_t>(own_end - previous);
    previous = own_end;
  }
  std::vector<ir::LayerCycles> layers;
  for (size_t i = 0; i < program.layers.size(); ++i) {
    const hls::ProgramLayer& layer = program.layers[i];
    layers.push_back({layer.name, layer.macs, layer.cycles_estimated, cycles[i]});
  }
  return layers;
}

// An absent number is 0.
absl::StatusOr<double> NumberWithin(const json& section, const char* key, double most) {
  const json value = section.value(key, json(0.0));
  if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= most)) {
    return ir::UserError("E-TARGET-004", fmt::format("{} of an accelerator: expected 0 to {:g}, found {}", key, most, value.dump()));
  }
  return value.get<double>();
}

}  // namespace

AcceleratorRegion::AcceleratorRegion(AcceleratorDevice& device, std::shared_ptr<const ir::Graph> graph,
                                     hls::CompiledProgram program, std::string name, fs::path directory)
    : device_(device), graph_(std::move(graph)), program_(std::move(program)), name_(std::move(name)), directory_(std::move(directory)) {}

absl::StatusOr<std::vector<ir::Tensor>> AcceleratorRegion::RunFunctional(const std::vector<ir::Tensor>& inputs) const {
  std::vector<uint8_t> dram = hls::InitialDram(program_);
  HEDDLE_RETURN_IF_ERROR(hls::PackInputs(program_, inputs, dram));
  HEDDLE_RETURN_IF_ERROR(hls::RunFunctional(program_, dram));
  return hls::UnpackOutputs(program_, dram);
}

absl::Status AcceleratorRegion::CheckHls(const std::vector<ir::Tensor>& inputs, const std::vector<ir::Tensor>& expected) const {
  if (directory_.empty()) return ir::UserError("E-HLS-003", "the region was compiled without a folder for its HLS C++");
  return hls::SimulateHls(directory_, inputs, expected);
}

absl::StatusOr<hls::IcarusResult> AcceleratorRegion::CheckIcarus(const std::vector<ir::Tensor>& inputs) const {
  if (directory_.empty()) return ir::UserError("E-HLS-003", "the region was compiled without a folder for its test bench");
  return hls::SimulateInIcarus(program_, inputs, directory_.parent_path() / "rtl", directory_ / "verilog_testbench");
}

absl::StatusOr<SimulationRequest> AcceleratorRegion::MakeRequest(const std::vector<uint8_t>& dram,
                                                                 const std::vector<std::vector<ir::Tensor>>& inputs) const {
  SimulationRequest request;
  request.image = &dram;
  request.memory = device_.memory();
  request.jobs.push_back({static_cast<uint64_t>(program_.setup_address), {}, {}});
  for (const std::vector<ir::Tensor>& tensors : inputs) {
    std::vector<uint8_t> packed = dram;
    HEDDLE_RETURN_IF_ERROR(hls::PackInputs(program_, tensors, packed));
    SimulationJob job;
    job.program_address = static_cast<uint64_t>(program_.run_address);
    for (const hls::HostTensor& tensor : program_.inputs) {
      const auto begin = packed.begin() + tensor.dram_address;
      job.pokes.emplace_back(static_cast<uint64_t>(tensor.dram_address), std::vector<uint8_t>(begin, begin + tensor.bytes));
    }
    for (const hls::HostTensor& tensor : program_.outputs) {
      job.dumps.emplace_back(static_cast<uint64_t>(tensor.dram_address), static_cast<uint64_t>(tensor.bytes));
    }
    request.jobs.push_back(std::move(job));
  }
  return request;
}

absl::StatusOr<SimulationResult> AcceleratorRegion::Simulate(const std::vector<std::vector<ir::Tensor>>& inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const VerilatedModel* model, device_.Model({}));
  const std::vector<uint8_t> dram = hls::InitialDram(program_);
  HEDDLE_ASSIGN_OR_RETURN(SimulationRequest request, MakeRequest(dram, inputs));
  const WaveRequest& waves = device_.options().waves;
  if (waves.enabled && !device_.options().directory.empty()) {
    request.wave_file = device_.options().directory / (name_ + ".fst");
    request.wave_start_cycle = waves.start_cycle;
    request.wave_end_cycle = waves.end_cycle;
  }
  auto run = model->Run(request);
  if (!run.ok()) return Explain(run.status());
  SimulationResult result = *std::move(run);
  device_.AddSimulation(result.cycles, result.seconds);
  result.jobs.erase(result.jobs.begin());  // the set-up
  return result;
}

absl::Status AcceleratorRegion::Explain(const absl::Status& failure) const {
  if (ir::ErrorCode(failure) != "E-SIM-001") return failure;
  std::string message(failure.message());
  hls::EstimateOptions options;
  for (const hls::ProgramLayer& layer : program_.layers) options.layer_names.push_back(layer.name);
  for (size_t tag = options.layer_names.size(); tag-- > 0;) {
    const std::string number = fmt::format("layer {};", tag);
    for (size_t at = message.find(number); at != std::string::npos; at = message.find(number, at + 1)) {
      message.replace(at, number.size(), fmt::format("layer \"{}\";", options.layer_names[tag]));
    }
  }
  for (const auto& [name, instructions] : {std::pair("set-up", &program_.setup), std::pair("run", &program_.run)}) {
    const auto timing = hls::EstimateProgram(program_.params, device_.memory(), *instructions, options);
    if (!timing.ok()) message += fmt::format("\nin the {} program: {}", name, std::string(timing.status().message()));
  }
  return absl::Status(failure.code(), message);
}

absl::StatusOr<ir::RunResult> AcceleratorRegion::RunOnPlatform(const std::vector<ir::Tensor>& inputs, PlatformAccelerator accelerator) const {
  HEDDLE_ASSIGN_OR_RETURN(const SystemCPlatform platform, SystemCPlatform::Build(accelerator, program_.params, {}));
  const std::vector<uint8_t> dram = hls::InitialDram(program_);
  HEDDLE_ASSIGN_OR_RETURN(const SimulationRequest request, MakeRequest(dram, {inputs}));
  HEDDLE_ASSIGN_OR_RETURN(const SimulationResult simulation, platform.Run(request));
  device_.AddSimulation(simulation.cycles, simulation.seconds);
  HEDDLE_ASSIGN_OR_RETURN(ir::RunResult result, ResultOf(simulation.jobs.at(1)));
  if (accelerator == PlatformAccelerator::kFast) result.provenance = ir::Provenance::kModelled;
  return result;
}

absl::StatusOr<ir::RunResult> AcceleratorRegion::ResultOf(const JobResult& job) const {
  std::vector<uint8_t> dram(static_cast<size_t>(program_.dram_bytes));
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    const hls::HostTensor& tensor = program_.outputs[i];
    if (static_cast<int64_t>(job.dumps[i].size()) != tensor.bytes) return absl::InternalError("a dump has the wrong size");
    std::copy(job.dumps[i].begin(), job.dumps[i].end(), dram.begin() + tensor.dram_address);
  }
  ir::RunResult result;
  result.outputs = hls::UnpackOutputs(program_, dram);
  result.counters = job.counters;
  const int64_t cycles = job.counters.at("cycles_low") | job.counters.at("cycles_high") << 32;
  result.counters["cycles"] = cycles;
  result.time_us = static_cast<double>(cycles) / program_.params.clock_mhz;
  result.provenance = ir::Provenance::kSimulated;
  result.layers = LayersOf(program_, job);
  const auto start = static_cast<uint64_t>(StartOf(job));
  for (const UnitEvent& event : job.events) {
    const auto tag = static_cast<size_t>(event.tag);
    result.events.push_back({kUnitNames[event.unit], tag < program_.layers.size() ? program_.layers[tag].name : "program",
                             static_cast<double>(event.start_cycle - start) / program_.params.clock_mhz,
                             static_cast<double>(event.end_cycle - start) / program_.params.clock_mhz});
  }
  return result;
}

absl::StatusOr<std::vector<ir::RunResult>> AcceleratorRegion::RunBatch(const std::vector<std::vector<ir::Tensor>>& inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const SimulationResult simulation, Simulate(inputs));
  std::vector<ir::RunResult> results;
  for (const JobResult& job : simulation.jobs) {
    HEDDLE_ASSIGN_OR_RETURN(ir::RunResult result, ResultOf(job));
    results.push_back(std::move(result));
  }
  return results;
}

absl::StatusOr<ir::RunResult> AcceleratorRegion::Run(const std::vector<ir::Tensor>& inputs) {
  if (device_.options().simulator == Simulator::kSystemC) return RunOnPlatform(inputs, device_.options().platform);
  if (device_.options().simulator == Simulator::kRtl) {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<ir::RunResult> results, RunBatch({inputs}));
    return std::move(results[0]);
  }
  ir::RunResult result;
  HEDDLE_ASSIGN_OR_RETURN(result.outputs, RunFunctional(inputs));
  result.provenance = ir::Provenance::kModelled;
  result.time_us = static_cast<double>(program_.cycles_estimated) / program_.params.clock_mhz;
  for (const hls::ProgramLayer& layer : program_.layers) result.layers.push_back({layer.name, layer.macs, layer.cycles_estimated, 0});
  return result;
}

std::map<std::string, double> AcceleratorRegion::PredictedUs() const {
  std::map<std::string, double> cycles;
  double of_nodes = 0;
  for (const hls::ProgramLayer& layer : program_.layers) {
    if (layer.nodes.empty()) continue;  // copies: spread over all
    cycles[layer.nodes.back()] += static_cast<double>(layer.cycles_estimated);
    of_nodes += static_cast<double>(layer.cycles_estimated);
  }
  if (of_nodes == 0) return {};
  const double us_per_cycle = static_cast<double>(program_.cycles_estimated) / of_nodes / program_.params.clock_mhz;
  for (auto& [node, value] : cycles) value *= us_per_cycle;
  return cycles;
}

ir::Support AcceleratorDevice::Supports(const ir::Graph& graph, const ir::Node& node) const {
  return hls::SupportsNode(graph, node, params_);
}

absl::StatusOr<ir::Cost> AcceleratorDevice::EstimateCost(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) const {
  return hls::EstimateRegionCost(graph, nodes, params_, memory_);
}

std::string AcceleratorDevice::simulator_name() const {
  switch (options_.simulator) {
    case Simulator::kRtl: return "RTL";
    case Simulator::kFast: return "fast model";
    case Simulator::kSystemC: return options_.platform == PlatformAccelerator::kRtl ? "SystemC with RTL" : "SystemC";
  }
  return "";
}

absl::StatusOr<const VerilatedModel*> AcceleratorDevice::Model(const std::function<void(const std::string&)>& progress) {
  if (!model_) {
    HEDDLE_ASSIGN_OR_RETURN(model_, VerilatedModel::Build(hls::GenerateVerilog(params_), options_.waves.enabled, progress));
  }
  return &*model_;
}

absl::StatusOr<std::unique_ptr<ir::CompiledRegion>> AcceleratorDevice::Compile(std::shared_ptr<const ir::Graph> region,
                                                                               const ir::CompileRequest& request) {
  if (request.progress) request.progress("accelerator program of " + request.name);
  HEDDLE_ASSIGN_OR_RETURN(hls::CompiledProgram program, hls::CompileRegion(*region, params_, memory_));
  program.name = request.name;
  if (!request.directory.empty()) {
    HEDDLE_RETURN_IF_ERROR(WriteProgram(program, request.directory));
    HEDDLE_RETURN_IF_ERROR(WriteRtl(params_, request.directory.parent_path()));
    HEDDLE_RETURN_IF_ERROR(WriteDriver(program, request.name, request.directory.parent_path() / "driver"));
    HEDDLE_ASSIGN_OR_RETURN(const hls::HlsSources sources, hls::GenerateHls(*region, request.name, params_));
    HEDDLE_RETURN_IF_ERROR(hls::WriteHls(sources, request.directory));
  }
  if (options_.simulator == Simulator::kRtl) {
    HEDDLE_ASSIGN_OR_RETURN(const VerilatedModel* model, Model(request.progress));
    (void)model;
  }
  return std::make_unique<AcceleratorRegion>(*this, std::move(region), std::move(program), request.name, request.directory);
}

absl::StatusOr<std::unique_ptr<AcceleratorDevice>> MakeAcceleratorDevice(const json& section) {
  static const std::set<std::string> known = {"name", "kind", "optional", "launch_overhead_us", "parameters", "memory"};
  for (const auto& [key, value] : section.items()) {
    if (!known.contains(key)) {
      return ir::UserError("E-TARGET-003", fmt::format("unknown key '{}' of an accelerator", key),
                           fmt::format("use {}", fmt::join(known, ", ")));
    }
  }
  try {
    auto device = std::make_unique<AcceleratorDevice>();
    device->name_ = section.at("name");
    HEDDLE_ASSIGN_OR_RETURN(device->launch_overhead_us_, NumberWithin(section, "launch_overhead_us", kMostMicroseconds));
    HEDDLE_ASSIGN_OR_RETURN(device->params_, hls::ParamsFromJson(section.value("parameters", json::object())));
    const json memory = section.value("memory", json::object());
    HEDDLE_ASSIGN_OR_RETURN(static_cast<hls::MemoryModel&>(device->memory_), hls::MemoryModelFromJson(memory));
    device->memory_.beat_bytes = device->params_.beat_bytes();
    HEDDLE_ASSIGN_OR_RETURN(device->memory_.stall_probability, NumberWithin(memory, "stall_probability", kMostStalls));
    device->memory_.seed = memory.value("seed", uint64_t{1});
    return device;
  } catch (const json::exception& error) {
    return ir::UserError("E-TARGET-003", fmt::format("accelerator: {}", error.what()), "see docs/targets.md");
  }
}

}  // namespace heddle::sim
