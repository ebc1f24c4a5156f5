// The verilated model is a program of its own: a crash or a hang of the simulated hardware cannot take Heddle along, and
// compiled models are shared by all runs with the same hardware.

#include "sim/verilated_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "hls/registers.h"
#include "ir/sha256.h"
#include "ir/subprocess.h"
#include "sim/harness_sources.h"

namespace heddle::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgramName = "heddle_accelerator_model";

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::Status WriteBytes(const fs::path& path, const void* data, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  file.close();
  if (!file) return ir::UserError("E-SIM-002", fmt::format("writing '{}' failed", path.string()), "check the space left on the disk");
  return absl::OkStatus();
}

absl::Status WriteText(const fs::path& path, const std::string& text) { return WriteBytes(path, text.data(), text.size()); }

// The instruction sets of this processor: code compiled for it may not run on another that shares the cache.
std::string ProcessorFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("flags") || line.starts_with("Features")) return line;
  }
  return "unknown";
}

std::vector<std::string> VerilatorCommand(const std::map<std::string, std::string>& verilog, const HarnessSpec& harness) {
  std::vector<std::string> command = {"verilator", "--cc", "--exe", "--build", "-j", "2", "--top-module", "heddle_accelerator",
                                      "--prefix", "Vheddle_accelerator", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert",
                                      "--Mdir", "obj", "-o", kProgramName, "-MAKEFLAGS", "OPT_FAST=-O2 OPT_SLOW=-O1 OPT_GLOBAL=-O2"};
  command.push_back("-CFLAGS");
  command.push_back(fmt::format("-march=native -DHEDDLE_WAVES={} {}", harness.waves ? 1 : 0, harness.cflags));
  if (!harness.ldflags.empty()) command.insert(command.end(), {"-LDFLAGS", harness.ldflags});
  if (harness.waves) command.push_back("--trace-fst");
  for (const auto& [name, text] : verilog) command.push_back(name);
  for (const auto& [name, text] : harness.sources) {
    if (name.ends_with(".cc") || name.ends_with(".c")) command.push_back(name);
  }
  return command;
}

std::string ContentKey(const std::map<std::string, std::string>& verilog, const HarnessSpec& harness) {
  std::string all = ProcessorFlags() + "\n" + fmt::format("{}", fmt::join(VerilatorCommand(verilog, harness), " "));
  if (auto version = ir::RunTool({"verilator", "--version"}); version.ok()) all += *version;
  for (const auto& [name, text] : verilog) all += "\n" + name + "\n" + text;
  for (const auto& [name, text] : harness.sources) all += "\n" + name + "\n" + text;
  return ir::Sha256Hex(all).substr(0, 32);
}

// A folder of this process's own below `parent`, removed with everything in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& parent) {
    std::string pattern = (parent / "tmp-XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void Keep() { path_.clear(); }

 private:
  fs::path path_;
};

std::string ScriptText(const SimulationRequest& request, const fs::path& folder) {
  const MemoryConfig& m = request.memory;
  std::string text = fmt::format(
      "beat_bytes {}\nlatency_cycles {}\nbytes_per_cycle {}\nmax_reads {}\nmax_writes {}\nbanks {}\nrow_bytes {}\nrow_miss_cycles {}\nrow_cycle_cycles {}\n"
      "refresh_interval_cycles {}\nrefresh_cycles {}\nstall_probability {}\nseed {}\ndram_bytes {}\nimage {}\nbase {}\nmax_cycles {}\nclock_mhz {}\n",
      m.beat_bytes, m.latency_cycles, m.bytes_per_cycle, m.max_reads, m.max_writes, m.banks, m.row_bytes, m.row_miss_cycles, m.row_cycle_cycles,
      m.refresh_interval_cycles, m.refresh_cycles, m.stall_probability, m.seed, request.image->size(), "image.bin", request.base,
      request.max_cycles, request.clock_mhz);
  if (!request.params_json.empty()) text += fmt::format("params {}\n", request.params_json);
  if (!request.wave_file.empty()) {
    text += fmt::format("waves {} {} {}\n", (folder / "wave.fst").string(), request.wave_start_cycle, request.wave_end_cycle);
  }
  for (const hls::RegisterSpec& spec : hls::RegisterMap()) text += fmt::format("register {} {}\n", spec.name, spec.offset);
  for (size_t j = 0; j < request.jobs.size(); ++j) {
    const SimulationJob& job = request.jobs[j];
    text += fmt::format("job {}\n", job.program_address);
    for (size_t i = 0; i < job.pokes.size(); ++i) text += fmt::format("poke {} poke_{}_{}.bin\n", job.pokes[i].first, j, i);
    for (size_t i = 0; i < job.dumps.size(); ++i) text += fmt::format("dump {} {} dump_{}_{}.bin\n", job.dumps[i].first, job.dumps[i].second, j, i);
  }
  return text;
}

absl::Status WriteRequest(const SimulationRequest& request, const fs::path& folder) {
  HEDDLE_RETURN_IF_ERROR(WriteBytes(folder / "image.bin", request.image->data(), request.image->size()));
  for (size_t j = 0; j < request.jobs.size(); ++j) {
    for (size_t i = 0; i < request.jobs[j].pokes.size(); ++i) {
      const std::vector<uint8_t>& bytes = request.jobs[j].pokes[i].second;
      HEDDLE_RETURN_IF_ERROR(WriteBytes(folder / fmt::format("poke_{}_{}.bin", j, i), bytes.data(), bytes.size()));
    }
  }
  return WriteText(folder / "script.txt", ScriptText(request, folder));
}

absl::StatusOr<SimulationResult> ReadResult(const SimulationRequest& request, const fs::path& folder) {
  const nlohmann::json json = nlohmann::json::parse(ReadText(folder / "result.json"), nullptr, false);
  if (json.is_discarded()) return absl::InternalError("the simulation left no result");
  const std::string error = json.value("error", "");
  if (!error.empty()) return ir::UserError("E-SIM-001", "simulation: " + error);
  SimulationResult result;
  result.cycles = json.value("cycles", int64_t{0});
  result.seconds = json.value("seconds", 0.0);
  for (size_t j = 0; j < json["jobs"].size(); ++j) {
    const nlohmann::json& entry = json["jobs"][j];
    JobResult job;
    for (const auto& [name, value] : entry["counters"].items()) job.counters[name] = value;
    for (const auto& event : entry["events"]) job.events.push_back({event[0], event[1], event[2], event[3]});
    for (size_t i = 0; i < request.jobs[j].dumps.size(); ++i) {
      const std::string bytes = ReadText(folder / fmt::format("dump_{}_{}.bin", j, i));
      job.dumps.emplace_back(bytes.begin(), bytes.end());
    }
    result.jobs.push_back(std::move(job));
  }
  return result;
}

}  // namespace

absl::StatusOr<fs::path> CacheDirectory() {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  fs::path path = variable("HEDDLE_CACHE");
  if (path.empty() && !variable("XDG_CACHE_HOME").empty()) path = fs::path(variable("XDG_CACHE_HOME")) / "heddle";
  if (path.empty() && !variable("HOME").empty()) path = fs::path(variable("HOME")) / ".cache" / "heddle";
  std::error_code error;
  if (!path.empty()) fs::create_directories(path, error);
  // A home that cannot be written (a build sandbox) is no reason to stop: then the cache lasts as long as the machine.
  if (path.empty() || error || access(path.c_str(), W_OK) != 0) {
    path = fs::temp_directory_path() / fmt::format("heddle-cache-{}", getuid());
    fs::create_directories(path, error);
    if (error) return ir::UserError("E-SIM-002", fmt::format("no cache folder can be written: {}", error.message()), "set HEDDLE_CACHE");
  }
  return path;
}

HarnessSpec PlainHarness(bool waves) {
  HarnessSpec harness;
  for (const EmbeddedFile& file : harness_sources::EmbeddedFiles()) harness.sources[file.name] = file.text;
  harness.waves = waves;
  return harness;
}

absl::StatusOr<VerilatedModel> VerilatedModel::Build(const std::map<std::string, std::string>& verilog, bool waves,
                                                     const std::function<void(const std::string&)>& progress) {
  return Build(verilog, PlainHarness(waves), progress);
}

absl::StatusOr<VerilatedModel> VerilatedModel::Build(const std::map<std::string, std::string>& verilog, const HarnessSpec& harness,
                                                     const std::function<void(const std::string&)>& progress) {
  HEDDLE_ASSIGN_OR_RETURN(const fs::path cache, CacheDirectory());
  const fs::path models = cache / "verilated";
  std::error_code error;
  fs::create_directories(models, error);
  VerilatedModel model;
  model.program_ = models / ContentKey(verilog, harness);
  if (fs::exists(model.program_)) {
    model.was_cached_ = true;
    return model;
  }
  const auto start = std::chrono::steady_clock::now();
  if (progress) progress("verilating and compiling the accelerator (kept for later runs)");
  TemporaryFolder work(models);
  if (work.path().empty()) return ir::UserError("E-SIM-002", "no temporary folder can be made below " + models.string());
  for (const auto& [name, text] : verilog) HEDDLE_RETURN_IF_ERROR(WriteText(work.path() / name, text));
  for (const auto& [name, text] : harness.sources) HEDDLE_RETURN_IF_ERROR(WriteText(work.path() / name, text));
  HEDDLE_ASSIGN_OR_RETURN(const std::string output, ir::RunTool(VerilatorCommand(verilog, harness), {.directory = work.path(), .timeout_s = 1800}));
  (void)output;
  fs::rename(work.path() / "obj" / kProgramName, model.program_, error);
  if (error) return ir::UserError("E-SIM-002", fmt::format("keeping the verilated model: {}", error.message()));
  model.build_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return model;
}

absl::StatusOr<SimulationResult> RunSimulation(const fs::path& program, const SimulationRequest& request) {
  TemporaryFolder work(fs::temp_directory_path());
  if (work.path().empty()) return ir::UserError("E-SIM-002", "no temporary folder can be made");
  HEDDLE_RETURN_IF_ERROR(WriteRequest(request, work.path()));
  HEDDLE_ASSIGN_OR_RETURN(const ir::ProcessResult process, ir::RunProcess({program.string(), "script.txt", "result.json"},
                                                                        {.directory = work.path(), .timeout_s = request.timeout_s}));
  auto result = ReadResult(request, work.path());
  if (!result.ok()) return result.status();
  if (process.exit_status != 0) {
    return ir::UserError("E-SIM-003", fmt::format("the simulation ended with status {}: {}", process.exit_status, process.output));
  }
  if (!request.wave_file.empty()) {
    std::error_code error;
    fs::create_directories(request.wave_file.parent_path(), error);
    fs::copy_file(work.path() / "wave.fst", request.wave_file, fs::copy_options::overwrite_existing, error);
    if (error) return ir::UserError("E-SIM-002", fmt::format("keeping the waves: {}", error.message()));
  }
  return result;
}

}  // namespace heddle::sim
