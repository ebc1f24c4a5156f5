// synthesise xilinx|ecp5 PARAMETERS.json FOLDER: emits the accelerator of these parameters into FOLDER, synthesises it with
// Yosys and prints what each module takes, beside the resource model's figures (which are for xilinx).

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "hls/accelerator/accelerator.h"
#include "hls/resources.h"
#include "hls/synthesis.h"

namespace heddle::hls {
namespace {

constexpr double kTimeoutS = 3600;

void PrintRow(const std::string& name, int64_t lut, int64_t ff, int64_t dsp, const std::string& bram36) {
  fmt::print("{:<28}{:>9}{:>9}{:>6}{:>8}\n", name, lut, ff, dsp, bram36);
}
void PrintRow(const std::string& name, const CellCounts& c) {
  PrintRow(name, c.lut, c.ff, c.dsp, fmt::format("{:.1f}", static_cast<double>(c.bram18) / 2));
}

int Main(const std::string& family, const std::string& parameters, const std::filesystem::path& folder) {
  std::ifstream file(parameters);
  const auto params = ParamsFromJson(nlohmann::json::parse(file, nullptr, false));
  if (!params.ok()) {
    fmt::print(stderr, "{}\n", std::string(params.status().message()));
    return 2;
  }
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : GenerateVerilog(*params)) std::ofstream(folder / name) << text;
  const auto synthesis = Synthesise(folder, kTopModule, family == "ecp5" ? FpgaFamily::kEcp5 : FpgaFamily::kXilinx7, kTimeoutS);
  if (!synthesis.ok()) {
    fmt::print(stderr, "{}\n", std::string(synthesis.status().message()));
    return 6;
  }
  fmt::print("{:<28}{:>9}{:>9}{:>6}{:>8}\n", synthesis->tool, "LUT", "FF", "DSP", "BRAM36");
  for (const auto& [name, counts] : synthesis->modules) PrintRow("  " + name, counts);
  PrintRow("total", synthesis->total);
  const Resources model = EstimateResources(*params);
  for (const UnitResources& unit : model.units) PrintRow("  model: " + unit.unit, unit.lut, unit.ff, unit.dsp, std::to_string((unit.bram18 + 1) / 2));
  PrintRow("model", model.lut, model.ff, model.dsp, std::to_string(model.bram36()));
  fmt::print("{:.0f} s\n", synthesis->seconds);
  return 0;
}

}  // namespace
}  // namespace heddle::hls

int main(int argc, char** argv) {
  if (argc != 4 || (std::string(argv[1]) != "xilinx" && std::string(argv[1]) != "ecp5")) {
    std::fprintf(stderr, "usage: synthesise xilinx|ecp5 PARAMETERS.json FOLDER\n");
    return 2;
  }
  return heddle::hls::Main(argv[1], argv[2], argv[3]);
}
