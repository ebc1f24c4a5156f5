// An exploration as text and JSON.

#include <fmt/format.h>

#include <algorithm>

#include "driver/explore.h"
#include "report/format.h"

namespace heddle::driver {
namespace {

using nlohmann::ordered_json;
using report::FormatThousands;

std::string Value(const nlohmann::json& parameters, const std::string& name) { return parameters.at(name).dump(); }

std::string Limit(const char* name, std::optional<int64_t> limit) { return limit ? fmt::format(", {} {}", FormatThousands(*limit), name) : ""; }

std::string Remark(const Exploration& exploration, size_t index) {
  const ExplorePoint& point = exploration.points[index];
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  if (point.on_front) add("front");
  if (exploration.best == index) add("best");
  if (!point.fits) add("too large");
  if (point.less_work) add("accelerates less");
  return text;
}

// Rows of cells as columns, the first row a heading; numbers to the right.
std::string Columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t c = 0; c < row.size(); ++c) line += c + 1 == row.size() ? "  " + row[c] : fmt::format(" {:>{}}", row[c], widths[c]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

ordered_json ParametersJson(const Exploration& exploration, const nlohmann::json& parameters) {
  ordered_json json = ordered_json::object();
  for (const SweepAxis& axis : exploration.axes) json[axis.name] = parameters.at(axis.name);
  return json;
}

ordered_json Optional(std::optional<int64_t> value) { return value ? ordered_json(*value) : ordered_json(nullptr); }

}  // namespace

std::string PrintExplorationText(const Exploration& exploration) {
  std::string text = fmt::format("{} on {}: {} combinations, {} of them possible{}{}{}\n\n", exploration.model, exploration.target,
                                 exploration.points.size() + exploration.illegal.size(), exploration.points.size(), Limit("LUT", exploration.max_lut),
                                 Limit("DSP", exploration.max_dsp), Limit("BRAM36 at most", exploration.max_bram36));
  std::vector<size_t> order(exploration.points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return exploration.points[a].cycles_estimated < exploration.points[b].cycles_estimated; });
  std::vector<std::vector<std::string>> rows(1);
  for (const SweepAxis& axis : exploration.axes) rows[0].push_back(axis.name);
  for (const char* heading : {"cycles", "latency", "used", "LUT", "DSP", "BRAM36", ""}) rows[0].push_back(heading);
  for (size_t index : order) {
    const ExplorePoint& point = exploration.points[index];
    std::vector<std::string> row;
    for (const SweepAxis& axis : exploration.axes) row.push_back(Value(point.parameters, axis.name));
    row.insert(row.end(), {FormatThousands(point.cycles_estimated), report::FormatUs(point.latency_us), report::FormatPercent(100 * point.utilisation),
                           FormatThousands(point.resources.lut), FormatThousands(point.resources.dsp), FormatThousands(point.resources.bram36()), Remark(exploration, index)});
    rows.push_back(std::move(row));
  }
  if (!order.empty()) text += Columns(rows);
  text += "\n  cycles by the fast model, sizes by the resource model; used: of the multipliers, while the accelerator runs\n";
  for (const IllegalCombination& entry : exploration.illegal) {
    text += "  not possible:";
    for (const SweepAxis& axis : exploration.axes) text += fmt::format(" {}={}", axis.name, Value(entry.parameters, axis.name));
    text += fmt::format(": {}: {}\n", entry.code, entry.text);
  }
  if (!exploration.best) text += "  no combination fits the target's limits\n";
  if (exploration.confirmation) {
    const Confirmation& c = *exploration.confirmation;
    text += fmt::format("  best in RTL: {} cycles simulated, {} estimated ({}), {}\n", FormatThousands(c.cycles_simulated), FormatThousands(c.cycles_estimated),
                        report::FormatDeviation(static_cast<double>(c.cycles_estimated), static_cast<double>(c.cycles_simulated)),
                        c.bit_exact ? "bit-exact" : "NOT bit-exact");
  }
  return text;
}

std::string PrintExplorationJson(const Exploration& exploration) {
  ordered_json json = {{"schema_version", Exploration::kSchemaVersion}, {"model", exploration.model}, {"target", exploration.target}};
  for (const SweepAxis& axis : exploration.axes) {
    for (double value : axis.values) json["sweep"][axis.name].push_back(ordered_json(ParameterValue(value)));
  }
  json["limits"] = {{"lut", Optional(exploration.max_lut)}, {"dsp", Optional(exploration.max_dsp)}, {"bram36", Optional(exploration.max_bram36)}};
  json["points"] = ordered_json::array();
  for (const ExplorePoint& point : exploration.points) {
    json["points"].push_back({{"parameters", ParametersJson(exploration, point.parameters)}, {"cycles_estimated", point.cycles_estimated},
                              {"latency_us", point.latency_us}, {"macs", point.macs}, {"utilisation", point.utilisation},
                              {"resources", {{"lut", point.resources.lut}, {"ff", point.resources.ff}, {"dsp", point.resources.dsp}, {"bram36", point.resources.bram36()}}},
                              {"fits", point.fits}, {"less_work", point.less_work}, {"on_front", point.on_front}});
  }
  json["illegal"] = ordered_json::array();
  for (const IllegalCombination& entry : exploration.illegal) {
    json["illegal"].push_back({{"parameters", ParametersJson(exploration, entry.parameters)}, {"code", entry.code}, {"text", entry.text}});
  }
  json["best"] = exploration.best ? ordered_json(*exploration.best) : ordered_json(nullptr);
  json["confirmation"] = nullptr;
  if (exploration.confirmation) {
    const Confirmation& c = *exploration.confirmation;
    json["confirmation"] = {{"cycles_estimated", c.cycles_estimated}, {"cycles_simulated", c.cycles_simulated}, {"bit_exact", c.bit_exact}};
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace heddle::driver
