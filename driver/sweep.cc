// Sweeps as text. The parameters' names come from the accelerator's one description.

#include "driver/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hls/params.h"

namespace heddle::driver {
namespace {

constexpr size_t kMostCombinations = 4096;

absl::Status Wrong(const std::string& what) {
  return ir::UserError("E-USAGE-014", fmt::format("--sweep: {}", what), "use for example --sweep contraction_lanes=8,16,24,output_lanes=8,16");
}

std::string FullName(const std::string& name) {
  if (name == "rows") return "contraction_lanes";
  if (name == "cols") return "output_lanes";
  return name;
}

absl::Status CheckName(const std::string& name) {
  std::vector<std::string> known{"rows", "cols", "clock_mhz"};
  for (const hls::ParamRange& range : hls::ParamRanges()) known.push_back(range.name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  return Wrong(fmt::format("'{}' is no parameter of the accelerator; there are {}", name, fmt::join(known, ", ")));
}

absl::StatusOr<double> Number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return Wrong(fmt::format("'{}' is not a number", text));
  return value;
}

std::vector<std::string> SplitAtCommas(const std::vector<std::string>& parts) {
  std::vector<std::string> pieces;
  for (const std::string& part : parts) {
    size_t begin = 0;
    for (size_t comma; (comma = part.find(',', begin)) != std::string::npos; begin = comma + 1) pieces.push_back(part.substr(begin, comma - begin));
    pieces.push_back(part.substr(begin));
  }
  return pieces;
}

}  // namespace

nlohmann::json ParameterValue(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? nlohmann::json(static_cast<int64_t>(value)) : nlohmann::json(value);
}

absl::StatusOr<std::vector<SweepAxis>> ParseSweep(const std::vector<std::string>& parts) {
  std::vector<SweepAxis> axes;
  for (std::string piece : SplitAtCommas(parts)) {
    if (const size_t equals = piece.find('='); equals != std::string::npos) {
      const std::string name = piece.substr(0, equals);
      HEDDLE_RETURN_IF_ERROR(CheckName(name));
      const std::string full = FullName(name);
      if (std::any_of(axes.begin(), axes.end(), [&](const SweepAxis& axis) { return axis.name == full; })) return Wrong("'" + full + "' is given twice");
      axes.push_back({full, {}});
      piece = piece.substr(equals + 1);
    }
    if (axes.empty()) return Wrong(fmt::format("'{}' stands before any parameter's name", piece));
    HEDDLE_ASSIGN_OR_RETURN(const double value, Number(piece));
    std::vector<double>& values = axes.back().values;
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  if (axes.empty()) return Wrong("nothing to sweep over");
  size_t count = 1;
  for (const SweepAxis& axis : axes) {
    count *= axis.values.size();
    if (count > kMostCombinations) return Wrong(fmt::format("more than {} combinations", kMostCombinations));
  }
  return axes;
}

std::vector<nlohmann::json> Combinations(const std::vector<SweepAxis>& axes) {
  std::vector<nlohmann::json> all{nlohmann::json::object()};
  for (const SweepAxis& axis : axes) {
    std::vector<nlohmann::json> longer;
    for (const nlohmann::json& combination : all) {
      for (double value : axis.values) {
        longer.push_back(combination);
        longer.back()[axis.name] = ParameterValue(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace heddle::driver
