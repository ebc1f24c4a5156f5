// The bench itself is verilog_testbench/testbench.v, the same for all regions; what is printed here are its numbers: constants as
// an included file, memories as words of one AXI beat for $readmemh.

#include "hls/verilog_testbench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "hls/registers.h"
#include "hls/testbench_source.h"
#include "ir/status.h"
#include "ir/subprocess.h"

namespace heddle::hls {
namespace {

// Latency of the test bench's memory; any would do.
constexpr int kLatencyCycles = 20;
// Icarus needs a millisecond a cycle, more with many lanes.
constexpr double kTimeoutSeconds = 3600;

// One line a beat, its highest byte first.
std::string HexOf(const std::vector<uint8_t>& bytes, int64_t beat_bytes) {
  std::string text;
  text.reserve(bytes.size() * 2 + bytes.size() / static_cast<size_t>(beat_bytes) + 64);
  for (size_t beat = 0; beat < bytes.size(); beat += static_cast<size_t>(beat_bytes)) {
    for (int64_t i = beat_bytes - 1; i >= 0; --i) {
      const size_t at = beat + static_cast<size_t>(i);
      fmt::format_to(std::back_inserter(text), "{:02x}", at < bytes.size() ? bytes[at] : 0);
    }
    text += '\n';
  }
  return text;
}

std::string ParametersOf(const CompiledProgram& program, int64_t beats) {
  const AcceleratorParams& p = program.params;
  std::string text = "// Constants of testbench.v for " + program.name + ".\n";
  const auto constant = [&](const std::string& name, int64_t value) { text += fmt::format("localparam {} = {};\n", name, value); };
  constant("BEAT_BYTES", p.beat_bytes());
  constant("ADDRESS_BITS", p.axi_address_bits);
  constant("LATENCY_CYCLES", kLatencyCycles);
  constant("DRAM_BEATS", beats);
  constant("OUTPUTS", static_cast<int64_t>(program.outputs.size()));
  constant("SETUP_ADDRESS", program.setup_address);
  constant("RUN_ADDRESS", program.run_address);
  // The fast model's prediction with ample room for this memory: only to end a hang.
  constant("MAX_CYCLES", 100000 + 20 * (program.cycles_estimated + program.setup_cycles_estimated));
  for (const char* name : {"control", "status", "base_low", "base_high", "program", "cycles_low"}) {
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    text += fmt::format("localparam [7:0] REGISTER_{} = {};\n", upper, RegisterOffset(name));
  }
  return text;
}

absl::Status WriteText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return ir::UserError("E-SIM-002", fmt::format("writing '{}' failed", path.string()), "check the space left on the disk");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> GenerateVerilogTestbench(const CompiledProgram& program,
                                                                            const std::vector<ir::Tensor>& inputs) {
  std::vector<uint8_t> dram = InitialDram(program);
  HEDDLE_RETURN_IF_ERROR(PackInputs(program, inputs, dram));
  std::vector<uint8_t> after = dram;
  HEDDLE_RETURN_IF_ERROR(RunFunctional(program, after));

  const int64_t beat_bytes = program.params.beat_bytes();
  std::map<std::string, std::string> files;
  for (const EmbeddedFile& file : testbench_source::EmbeddedFiles()) files[file.name] = file.text;
  files["parameters.vh"] = ParametersOf(program, (program.dram_bytes + beat_bytes - 1) / beat_bytes);
  files["dram.hex"] = HexOf(dram, beat_bytes);
  files["expected.hex"] = HexOf(after, beat_bytes);
  for (const HostTensor& tensor : program.outputs) files["outputs.hex"] += fmt::format("{:08x}\n{:08x}\n", tensor.dram_address, tensor.bytes);
  return files;
}

absl::StatusOr<IcarusResult> SimulateInIcarus(const CompiledProgram& program, const std::vector<ir::Tensor>& inputs,
                                              const std::filesystem::path& rtl, const std::filesystem::path& directory) {
  HEDDLE_ASSIGN_OR_RETURN(const auto files, GenerateVerilogTestbench(program, inputs));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (const auto& [name, text] : files) HEDDLE_RETURN_IF_ERROR(WriteText(directory / name, text));

  std::vector<std::string> compile = {"iverilog", "-g2005", "-o", "testbench", "-s", "testbench", "testbench.v"};
  for (const auto& entry : std::filesystem::directory_iterator(rtl, error)) {
    if (entry.path().extension() == ".v") compile.push_back(std::filesystem::absolute(entry.path()).string());
  }
  std::sort(compile.begin() + 7, compile.end());
  ir::ProcessOptions options;
  options.directory = directory;
  options.timeout_s = kTimeoutSeconds;
  HEDDLE_ASSIGN_OR_RETURN(const std::string compiled, ir::RunTool(compile, options));
  HEDDLE_ASSIGN_OR_RETURN(const std::string said, ir::RunTool({"vvp", "-n", "testbench"}, options));
  IcarusResult result;
  long long equal = 0, compared = 0, cycles = 0;
  const size_t line = said.rfind(" bytes equal after ");
  const size_t begin = line == std::string::npos ? line : said.rfind('\n', line) + 1;  // 0 where it is the first line
  const bool parsed = line != std::string::npos &&
                      std::sscanf(said.c_str() + begin, "%lld of %lld bytes equal after %lld", &equal, &compared, &cycles) == 3;
  if (!parsed || equal != compared || said.find("\nPASS\n") == std::string::npos) {
    return ir::UserError("E-SIM-004", fmt::format("Icarus Verilog on {} ({}): {}", program.name, directory.string(), said),
                         "run its test bench by hand: the command stands at the top of testbench.v");
  }
  std::filesystem::remove(directory / "testbench", error);  // it holds this machine's paths
  result.cycles = cycles;
  result.bytes_compared = compared;
  return result;
}

}  // namespace heddle::hls
