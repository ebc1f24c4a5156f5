// Runs Yosys and counts cells. The hierarchy is kept: modules are mapped one after the other, which takes a fraction of the
// time of a flat design and tells which module takes what; each module keeps its registers at its ports, so little is lost.

#include "hls/synthesis.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>

#include "ir/status.h"
#include "ir/subprocess.h"

namespace heddle::hls {
namespace {

// What one cell takes of look-up tables, registers, multipliers and 18 Kibit memories. Carry chains, multiplexers between
// look-up tables and pads are parts of slices that are there anyway.
const std::map<std::string, CellCounts>& Cells() {
  static const std::map<std::string, CellCounts>* const cells = new std::map<std::string, CellCounts>{
      // 7 series; distributed memories by the look-up tables that they are made of.
      {"LUT1", {1}}, {"LUT2", {1}}, {"LUT3", {1}}, {"LUT4", {1}}, {"LUT5", {1}}, {"LUT6", {1}}, {"INV", {1}},
      {"SRL16E", {1}}, {"SRLC32E", {1}}, {"RAM32X1D", {2}}, {"RAM64X1D", {2}}, {"RAM128X1D", {4}}, {"RAM32M", {4}}, {"RAM64M", {4}},
      {"FDRE", {0, 1}}, {"FDSE", {0, 1}}, {"FDCE", {0, 1}}, {"FDPE", {0, 1}},
      {"DSP48E1", {0, 0, 1}}, {"RAMB18E1", {0, 0, 0, 1}}, {"RAMB36E1", {0, 0, 0, 2}},
      // ECP5; a carry cell is two look-up tables.
      {"CCU2C", {2}}, {"TRELLIS_DPR16X4", {4}}, {"TRELLIS_FF", {0, 1}}, {"MULT18X18D", {0, 0, 1}}, {"DP16KD", {0, 0, 0, 1}},
  };
  return *cells;
}

CellCounts Count(const nlohmann::json& module) {
  CellCounts sum;
  for (const auto& [type, number] : module.at("num_cells_by_type").items()) {
    const auto cell = Cells().find(type);
    if (cell == Cells().end()) continue;
    const int64_t n = number.get<int64_t>();
    sum.lut += n * cell->second.lut;
    sum.ff += n * cell->second.ff;
    sum.dsp += n * cell->second.dsp;
    sum.bram18 += n * cell->second.bram18;
  }
  return sum;
}

// The statistics are the last JSON object of the output. Yosys 0.23 prints the tree of modules, lines of a name and a number, in
// its middle, forgets the comma in front of "design" where there is no tree, and leaves the member out where there is one module only.
absl::StatusOr<nlohmann::json> Statistics(const std::string& output) {
  const size_t from = output.rfind("\n{");
  const size_t to = output.rfind("\n}");
  nlohmann::json json;
  if (from != std::string::npos && to != std::string::npos && from < to) {
    std::string text = std::regex_replace(output.substr(from, to + 2 - from), std::regex("\n +[^ \n\":]+ +[0-9]+(?=\n)"), "");
    text = std::regex_replace(text, std::regex("\\}\\s*\"design\""), "},\"design\"");
    json = nlohmann::json::parse(text, nullptr, false);
  }
  if (!json.is_object() || !json.contains("modules") || json.at("modules").empty()) {
    return ir::UserError("E-TOOL-003", "Yosys ended without statistics", "run it on the emitted Verilog by hand to see why");
  }
  return json;
}

}  // namespace

absl::StatusOr<Synthesis> Synthesise(const std::filesystem::path& rtl_folder, const std::string& top, FpgaFamily family, double timeout_s) {
  const auto start = std::chrono::steady_clock::now();
  const std::string command = family == FpgaFamily::kXilinx7 ? "synth_xilinx" : "synth_ecp5";
  const ir::ProcessOptions options{rtl_folder, timeout_s};
  HEDDLE_ASSIGN_OR_RETURN(const std::string version, ir::RunTool({"yosys", "-V"}, options));
  const std::string keep = family == FpgaFamily::kXilinx7 ? "" : " -noflatten";
  const std::string script = fmt::format("read_verilog *.v; {}{} -top {}; stat -json", command, keep, top);
  HEDDLE_ASSIGN_OR_RETURN(const std::string output, ir::RunTool({"yosys", "-Q", "-T", "-p", script}, options));
  HEDDLE_ASSIGN_OR_RETURN(const nlohmann::json json, Statistics("\n" + output));
  Synthesis result;
  result.tool = version.substr(0, version.find(" (")) + " " + command;
  // Names that come from the source begin with a backslash in Yosys.
  for (const auto& [name, module] : json.at("modules").items()) result.modules[name.substr(name.find_first_not_of('\\'))] = Count(module);
  result.total = json.contains("design") ? Count(json.at("design")) : Count(json.at("modules").front());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace heddle::hls
