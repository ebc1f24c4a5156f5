// A quantisation's report as text and JSON.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/quantise.h"
#include "report/format.h"

namespace heddle::driver {
namespace {

using nlohmann::ordered_json;
using report::FormatThousands;

std::string Decibels(const ir::quantise::Noise& noise, const char* unit = "") {
  if (noise.elements == 0) return "-";
  return std::isfinite(noise.sqnr_db()) ? fmt::format("{:.1f}{}", noise.sqnr_db(), unit) : "exact";
}

ordered_json DecibelsJson(const ir::quantise::Noise& noise) {
  return noise.elements > 0 && std::isfinite(noise.sqnr_db()) ? ordered_json(noise.sqnr_db()) : ordered_json(nullptr);
}

std::string Columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t c = 0; c < row.size(); ++c)
      line += c < 2 ? fmt::format(" {:<{}}", row[c], widths[c]) : fmt::format("  {:>{}}", row[c], widths[c]);
    while (line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string FloatNodesText(const QuantiseReport& report) {
  std::map<std::string, int> counts;
  for (const FloatNode& node : report.float_nodes) ++counts[node.op];
  std::string text;
  for (const auto& [op, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, op);
  return text;
}

}  // namespace

std::string PrintQuantiseText(const QuantiseReport& report) {
  std::string text =
      fmt::format("{} -> {}: {} layers with int8 weights, {} B for {} B of float32\n", report.model, report.out,
                  report.layers, FormatThousands(report.weight_bytes), FormatThousands(report.float_weight_bytes));
  text += fmt::format("calibrated by {}{} on {}\n\n", report.method,
                      report.percentile > 0 ? fmt::format(" {}", report.percentile) : "", report.samples);
  std::vector<std::vector<std::string>> rows = {
      {"tensor of", "op", "lowest", "highest", "scale", "zero", "clipped", "SQNR dB"}};
  for (const TensorNoise& entry : report.tensors) {
    const ir::quantise::QuantisedTensor& t = entry.tensor;
    if (t.moved) continue;
    rows.push_back({t.node.empty() ? t.value : t.node, t.op, fmt::format("{:.4g}", t.low),
                    fmt::format("{:.4g}", t.high), fmt::format("{:.4g}", t.parameters.scale),
                    fmt::format("{}", t.parameters.zero_point),
                    t.clipped_share > 0 ? fmt::format("{:.3g} %", 100 * t.clipped_share) : "", Decibels(entry.noise)});
  }
  text += Columns(rows);
  text +=
      "\n  SQNR: signal to quantisation noise, the float model against the whole quantised one on the same samples\n";
  text += fmt::format("  after legalisation: {} integer nodes, {} float nodes{}\n", report.integer_nodes,
                      report.float_nodes.size(), report.float_nodes.empty() ? "" : " (" + FloatNodesText(report) + ")");
  for (const OutputNoise& output : report.outputs) {
    text += fmt::format("  output {}: SQNR {}", output.name, Decibels(output.noise, " dB"));
    if (output.classes) {
      text += fmt::format(", same class in {} of {} ({:.2f} %)", FormatThousands(output.top_one.equal),
                          FormatThousands(output.top_one.total),
                          100.0 * static_cast<double>(output.top_one.equal) /
                              static_cast<double>(std::max<int64_t>(output.top_one.total, 1)));
    }
    text += "\n";
  }
  for (const std::string& note : report.notes) text += "  note: " + note + "\n";
  return text;
}

std::string PrintQuantiseJson(const QuantiseReport& report) {
  ordered_json json = {{"schema_version", QuantiseReport::kSchemaVersion},
                       {"model", report.model},
                       {"out", report.out},
                       {"method", report.method}};
  json["percentile"] = report.percentile > 0 ? ordered_json(report.percentile) : ordered_json(nullptr);
  json["samples"] = report.samples;
  json["notes"] = report.notes;
  json["layers"] = report.layers;
  json["weight_bytes"] = report.weight_bytes;
  json["float_weight_bytes"] = report.float_weight_bytes;
  json["integer_nodes"] = report.integer_nodes;
  json["tensors"] = ordered_json::array();
  for (const TensorNoise& entry : report.tensors) {
    const ir::quantise::QuantisedTensor& t = entry.tensor;
    json["tensors"].push_back({{"value", t.value},
                               {"node", t.node},
                               {"op", t.op},
                               {"lowest", t.low},
                               {"highest", t.high},
                               {"range", {t.range.low, t.range.high}},
                               {"scale", t.parameters.scale},
                               {"zero_point", t.parameters.zero_point},
                               {"clipped_share", t.clipped_share},
                               {"moved", t.moved},
                               {"sqnr_db", DecibelsJson(entry.noise)}});
  }
  json["outputs"] = ordered_json::array();
  for (const OutputNoise& output : report.outputs) {
    ordered_json entry = {{"name", output.name},
                          {"elements", output.noise.elements},
                          {"sqnr_db", DecibelsJson(output.noise)},
                          {"classes", output.classes}};
    if (output.classes) entry["top1"] = {{"equal", output.top_one.equal}, {"total", output.top_one.total}};
    json["outputs"].push_back(std::move(entry));
  }
  json["float_nodes"] = ordered_json::array();
  for (const FloatNode& node : report.float_nodes)
    json["float_nodes"].push_back({{"name", node.name}, {"op", node.op}});
  return json.dump(2) + "\n";
}

}  // namespace heddle::driver
