// Where the platform's programs come from. The fast one is compiled with Heddle and carried in it, so that no compiler is needed to
// run it; the other one contains generated hardware and is compiled where it is used, like any verilated model.

#include "sim/systemc_platform.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "hls/accelerator/accelerator.h"
#include "ir/sha256.h"
#include "sim/harness_sources.h"
#include "sim/systemc/platform_sources.h"

extern "C" {
extern const char _binary_heddle_systemc_fast_platform_start[];  // NOLINT
extern const char _binary_heddle_systemc_fast_platform_end[];    // NOLINT
}

namespace heddle::sim {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<fs::path> UnpackFastPlatform() {
  HEDDLE_ASSIGN_OR_RETURN(const fs::path cache, CacheDirectory());
  const fs::path folder = cache / "systemc";
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string bytes(_binary_heddle_systemc_fast_platform_start, _binary_heddle_systemc_fast_platform_end);
  const fs::path program = folder / ("fast_platform-" + ir::Sha256Hex(bytes).substr(0, 24));
  if (fs::exists(program)) return program;
  // Written under a name of this process's own and renamed: another process may be doing the same.
  const fs::path temporary = folder / fmt::format("tmp-{}", getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return ir::UserError("E-SIM-002", fmt::format("writing '{}' failed", temporary.string()), "check the space left on the disk");
  }
  fs::permissions(temporary, fs::perms::owner_all, error);
  fs::rename(temporary, program, error);
  if (error) return ir::UserError("E-SIM-002", fmt::format("keeping the SystemC platform: {}", error.message()));
  return program;
}

HarnessSpec PlatformHarness() {
  HarnessSpec harness;
  for (const EmbeddedFile& file : systemc::platform_sources::EmbeddedFiles()) harness.sources[file.name] = file.text;
  for (const EmbeddedFile& file : harness_sources::EmbeddedFiles()) {
    if (file.name != "harness.cc") harness.sources[file.name] = file.text;
  }
  // The packaged SystemC was compiled as C++17.
  harness.cflags = "-DSC_CPLUSPLUS=201703L";
  harness.ldflags = "-lsystemc";
  return harness;
}

}  // namespace

absl::StatusOr<SystemCPlatform> SystemCPlatform::Build(PlatformAccelerator accelerator, const hls::AcceleratorParams& params,
                                                       const std::function<void(const std::string&)>& progress) {
  SystemCPlatform platform;
  platform.params_ = params;
  if (accelerator == PlatformAccelerator::kFast) {
    HEDDLE_ASSIGN_OR_RETURN(platform.program_, UnpackFastPlatform());
    return platform;
  }
  HEDDLE_ASSIGN_OR_RETURN(const VerilatedModel model, VerilatedModel::Build(hls::GenerateVerilog(params), PlatformHarness(), progress));
  platform.program_ = model.program();
  return platform;
}

absl::StatusOr<SimulationResult> SystemCPlatform::Run(SimulationRequest request) const {
  request.params_json = hls::ParamsToJson(params_).dump();
  request.clock_mhz = params_.clock_mhz;
  return RunSimulation(program_, request);
}

}  // namespace heddle::sim
