// The tables of index.html. A cell's data-v is what page.js sorts by; a row's data-node opens the node's details.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "report/format.h"
#include "report/html_parts.h"

namespace heddle::report {
namespace {

struct Column {
  const char* title;
  const char* tip;
  bool numeric;
};

std::string Head(const std::vector<Column>& columns) {
  std::string html = "<thead><tr>";
  for (const Column& column : columns) {
    html += fmt::format("<th scope=\"col\"{} data-tip=\"{}\"><button type=\"button\">{}</button></th>",
                        column.numeric ? " class=\"num\"" : "", column.tip, column.title);
  }
  return html + "</tr></thead>\n";
}

std::string Text(const std::string& text, size_t width = 40) {
  return fmt::format("<td title=\"{}\">{}</td>", EscapeHtml(text), EscapeHtml(Shorten(text, width)));
}

std::string Number(double value, const std::string& text) {
  return fmt::format("<td class=\"num\" data-v=\"{}\">{}</td>", value, text);
}

std::string Missing() { return "<td class=\"num\" data-v=\"-1\"><span class=\"none\">-</span></td>"; }

// A dot in the device's colour and its name.
std::string DeviceCell(const std::map<std::string, std::string>& classes, const std::string& device) {
  const auto found = classes.find(device);
  return fmt::format("<td><span class=\"dot {}\"></span>{}</td>", found == classes.end() ? "d7" : found->second,
                     EscapeHtml(device));
}

double Predicted(const Node& node) {
  const auto found = node.costs_us.find(node.device);
  return found == node.costs_us.end() ? 0 : found->second;
}

std::string LayerRow(const Report& report, size_t index, double largest_us,
                     const std::map<std::string, std::string>& classes) {
  const Node& node = report.nodes[index];
  const double predicted = Predicted(node);
  const double time = node.actual_us ? node.actual_us->value : predicted;
  std::string html = fmt::format("<tr data-node=\"{}\" tabindex=\"0\">", index);
  html += Number(index + 1, std::to_string(index + 1)) + Text(node.name) +
          Text(node.fused.empty() ? node.op : node.op + " + " + node.fused, 24) + DeviceCell(classes, node.device) +
          Text(node.shape, 24) + Number(node.macs, node.macs ? FormatCount(node.macs) : "0");
  html += Number(predicted, FormatUs(predicted));
  html += node.actual_us ? Number(node.actual_us->value, FormatUs(node.actual_us->value)) : Missing();
  if (node.actual_us && predicted > 0) {
    html += Number((node.actual_us->value - predicted) / predicted, FormatDeviation(predicted, node.actual_us->value));
  } else {
    html += Missing();
  }
  html += node.cycles_simulated > 0   ? Number(node.cycles_simulated, FormatThousands(node.cycles_simulated))
          : node.cycles_estimated > 0 ? Number(node.cycles_estimated, "~" + FormatThousands(node.cycles_estimated))
                                      : Missing();
  const int64_t cycles = node.cycles_simulated > 0 ? node.cycles_simulated : node.cycles_estimated;
  if (report.accelerator && report.accelerator->macs_per_cycle_peak > 0 && cycles > 0) {
    const double percent = 100.0 * node.macs / (static_cast<double>(cycles) * report.accelerator->macs_per_cycle_peak);
    html += Number(percent, FormatPercent(percent));
  } else {
    html += Missing();
  }
  const double share = largest_us > 0 ? 100 * time / largest_us : 0;
  const auto css = classes.find(node.device);
  return html +
         fmt::format("<td class=\"share\" data-v=\"{}\"><span class=\"{}\" style=\"width:{:.1f}%\"></span></td></tr>\n",
                     time, css == classes.end() ? "d7" : css->second, share);
}

std::string RegionsTable(const Report& report, const std::map<std::string, std::string>& classes) {
  std::string html = "<table class=\"sortable\">" +
                     Head({{"region", "One launch on one device", false},
                           {"device", "Where it runs", false},
                           {"nodes", "How many nodes", true},
                           {"MACs", "Multiply-accumulates", true},
                           {"predicted", "Nodes and launch, before the run", true},
                           {"found", "Simulated or measured", true},
                           {"deviation", "Found against predicted", true}}) +
                     "<tbody>\n";
  for (const Region& region : report.partition.regions) {
    html += "<tr>" + Text(region.name) + DeviceCell(classes, region.device) +
            Number(region.nodes.size(), std::to_string(region.nodes.size())) +
            Number(region.macs, FormatCount(region.macs)) +
            Number(region.predicted_us.value, FormatUs(region.predicted_us.value));
    if (region.actual_us) {
      html += Number(region.actual_us->value, FormatUs(region.actual_us->value)) +
              Number(region.actual_us->value / std::max(1e-12, region.predicted_us.value),
                     FormatDeviation(region.predicted_us.value, region.actual_us->value));
    } else {
      html += Missing() + Missing();
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string TransfersTable(const Report& report, const std::map<std::string, std::string>& classes) {
  if (report.partition.transfers.empty()) return "<p class=\"quiet\">No tensor moves between devices.</p>\n";
  std::string html = "<table class=\"sortable\">" +
                     Head({{"tensor", "What moves; once for each destination", false},
                           {"from", "Producer", false},
                           {"to", "Reader", false},
                           {"bytes", "Size", true},
                           {"time", "Latency and bytes over bandwidth of the link", true}}) +
                     "<tbody>\n";
  for (const Transfer& transfer : report.partition.transfers) {
    html += "<tr>" + Text(transfer.tensor) + DeviceCell(classes, transfer.from) + DeviceCell(classes, transfer.to) +
            Number(transfer.bytes, FormatBytes(transfer.bytes)) + Number(transfer.us, FormatUs(transfer.us)) +
            "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string Pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string html = "<dl>";
  for (const auto& [label, value] : pairs) {
    html += "<div><dt>" + EscapeHtml(label) + "</dt><dd>" + EscapeHtml(value) + "</dd></div>";
  }
  return html + "</dl>\n";
}

std::string AcceleratorCard(const Accelerator& a) {
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"clock", fmt::format("{:.4g} MHz", a.clock_mhz)},
      {"MACs a cycle, at most", FormatThousands(a.macs_per_cycle_peak)},
      {"MACs done", FormatThousands(a.macs)},
      {"cycles, estimated", FormatThousands(a.cycles_estimated)},
      {"cycles, simulated", a.cycles_simulated > 0 ? FormatThousands(a.cycles_simulated) : "not simulated"}};
  if (a.cycles_simulated > 0) {
    pairs.push_back({"simulation against estimate", FormatDeviation(a.cycles_estimated, a.cycles_simulated)});
  }
  pairs.push_back({"utilisation", FormatPercent(100 * a.utilisation)});
  for (const auto& [cause, cycles] : a.stall_cycles) {
    pairs.push_back({"stalled: " + Words(cause), FormatThousands(cycles) + " cycles"});
  }
  if (!a.knob.empty()) pairs.push_back({"knob worth turning", a.knob});
  for (const OnChipMemory& memory : a.on_chip) pairs.push_back({"on chip: " + memory.name, FormatOnChip(memory)});
  if (a.spilled_tensors > 0) {
    pairs.push_back({"do not fit on chip", fmt::format("{} tensors, {}", FormatThousands(a.spilled_tensors), FormatBytes(static_cast<double>(a.spilled_bytes)))});
  }
  pairs.push_back({"DRAM read", FormatBytes(a.dram_bytes_read)});
  pairs.push_back({"DRAM written", FormatBytes(a.dram_bytes_written)});
  if (a.simulated_cycles_per_second > 0) {
    pairs.push_back({"simulation speed", FormatCount(a.simulated_cycles_per_second) + " cycles/s"});
  }
  if (a.estimated_cycles_per_second > 0) {
    pairs.push_back({"speed of the fast model", FormatCount(a.estimated_cycles_per_second) + " cycles/s"});
  }
  return "<article class=\"card\"><h3>Accelerator</h3>" + Pairs(pairs) + "</article>\n";
}

std::string CertificateCard(const Partition& p) {
  return "<article class=\"card\"><h3>Certificate</h3>" +
         Pairs({{"objective", p.objective},
                {"predicted cost", FormatCost(p)},
                {"latency", FormatUs(p.latency_us)},
                {"in a stream", FormatUs(p.period_us) + " an inference"},
                {"energy", p.energy_uj ? FormatUj(*p.energy_uj) : "the target gives no powers"},
                {"nodes", FormatUs(p.node_us)},
                {"transfers", FormatUs(p.transfer_us)},
                {"launches", FormatUs(p.launch_us)},
                {"lower bound", FormatBound(p)},
                {"gap", p.gap_percent == 0 ? "0 %: proven optimal for these costs" : FormatPercent(p.gap_percent)},
                {"solver", p.solver},
                {"solved in", fmt::format("{:.3f} s", p.solve_seconds)}}) +
         "</article>\n";
}

std::string ResourcesCard(const std::string& title, const Resources& r) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, key, used] : {std::tuple<const char*, const char*, double>{"LUT", "lut", r.lut},
                                        {"FF", "ff", r.ff},
                                        {"DSP", "dsp", r.dsp},
                                        {"BRAM36", "bram36", r.bram36}}) {
    std::string text = fmt::format("{:.6g}", used);
    const auto limit = r.available.find(key);
    if (limit != r.available.end() && limit->second > 0) {
      text += fmt::format(" of {:.6g} ({})", limit->second, FormatPercent(100 * used / limit->second));
    }
    pairs.push_back({name, text});
  }
  if (r.fmax_mhz > 0) pairs.push_back({"clock", fmt::format("{:.4g} MHz", r.fmax_mhz)});
  pairs.push_back({"provenance", r.provenance});
  return "<article class=\"card\"><h3>" + title + "</h3>" + Pairs(pairs) + "</article>\n";
}

std::string OutputsCard(const Report& report) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const OutputCheck& output : report.verdict.outputs) {
    pairs.push_back(
        {output.name, fmt::format("{} elements, {} differ, largest error {:.3g}", FormatThousands(output.elements),
                                  FormatThousands(output.mismatches), output.max_abs_error)});
  }
  if (pairs.empty()) return "";
  return "<article class=\"card\"><h3>Outputs compared</h3>" + Pairs(pairs) + "</article>\n";
}

// One row a layer, one column for each cause that occurs, and a total.
std::string CyclesTable(const Accelerator& a) {
  std::vector<std::string> causes;
  for (const auto& [cause, cycles] : a.cycles_by_cause) {
    if (cycles > 0) causes.push_back(cause);
  }
  std::stable_sort(causes.begin(), causes.end(), [&](const auto& x, const auto& y) { return a.cycles_by_cause.at(x) > a.cycles_by_cause.at(y); });
  std::string html = "<table class=\"sortable\" id=\"cycles\"><thead><tr>";
  const auto head = [&html](const std::string& title, bool numeric) {
    html += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>", numeric ? " class=\"num\"" : "", EscapeHtml(title));
  };
  head("layer", false);
  for (const char* title : {"MACs", "cycles", "simulated"}) head(title, true);
  head("DRAM bytes", true);
  head("weights", false);
  for (const std::string& cause : causes) head(Words(cause), true);
  html += "</tr></thead><tbody>\n";
  int64_t dram_bytes = 0;
  for (const LayerCycles& layer : a.layers) {
    html += "<tr>" + Text(layer.name) + Number(layer.macs, FormatCount(layer.macs)) + Number(layer.cycles_estimated, FormatThousands(layer.cycles_estimated)) +
            (layer.cycles_simulated > 0 ? Number(layer.cycles_simulated, FormatThousands(layer.cycles_simulated)) : Missing()) +
            Number(layer.dram_bytes, FormatThousands(layer.dram_bytes)) +
            Text(layer.weight_bytes == 0 ? "" : FormatBytes(static_cast<double>(layer.weight_bytes)) + (layer.weights_resident ? ", stay on chip" : ", read each time"));
    dram_bytes += layer.dram_bytes;
    for (const std::string& cause : causes) {
      const auto found = layer.by_cause.find(cause);
      const int64_t cycles = found == layer.by_cause.end() ? 0 : found->second;
      html += Number(cycles, cycles ? FormatThousands(cycles) : "");
    }
    html += "</tr>\n";
  }
  html += "</tbody><tfoot><tr>" + Text("total") + Number(a.macs, FormatCount(a.macs)) + Number(a.cycles_estimated, FormatThousands(a.cycles_estimated)) +
          (a.cycles_simulated > 0 ? Number(a.cycles_simulated, FormatThousands(a.cycles_simulated)) : Missing()) +
          Number(dram_bytes, FormatThousands(dram_bytes)) + Text("");
  for (const std::string& cause : causes) html += Number(a.cycles_by_cause.at(cause), FormatThousands(a.cycles_by_cause.at(cause)));
  return html + "</tr></tfoot></table>\n";
}

}  // namespace

std::string LayersTable(const Report& report) {
  const std::map<std::string, std::string> classes = DeviceClasses(report);
  double largest_us = 0;
  for (const Node& node : report.nodes) {
    largest_us = std::max(largest_us, node.actual_us ? node.actual_us->value : Predicted(node));
  }
  std::string html = "<table class=\"sortable\" id=\"layers\">" +
                     Head({{"#", "Order of execution", true},
                           {"node", "Name in the model", false},
                           {"op", "Operator, and what is fused into it", false},
                           {"device", "Where it runs", false},
                           {"result", "Type and shape of the result", false},
                           {"MACs", "Multiply-accumulates", true},
                           {"predicted", "Cost that the partitioner used", true},
                           {"found", "Simulated or measured", true},
                           {"deviation", "Found against predicted", true},
                           {"cycles", "Accelerator cycles: simulated, or ~ estimated", true},
                           {"utilisation", "MACs / (cycles x MACs a cycle at most)", true},
                           {"share", "Time against the slowest layer", true}}) +
                     "<tbody>\n";
  for (size_t index = 0; index < report.nodes.size(); ++index) html += LayerRow(report, index, largest_us, classes);
  return html + "</tbody></table>\n";
}

std::string DetailTables(const Report& report) {
  const std::map<std::string, std::string> classes = DeviceClasses(report);
  std::string html = "<section><h2>Regions</h2><div class=\"scroll\">" + RegionsTable(report, classes) +
                     "</div></section>\n<section><h2>Transfers</h2><div class=\"scroll\">" +
                     TransfersTable(report, classes) + "</div></section>\n";
  if (report.accelerator && !report.accelerator->layers.empty()) {
    html += "<section><h2>Where the accelerator's cycles go</h2><div class=\"scroll\">" + CyclesTable(*report.accelerator) + "</div></section>\n";
  }
  html += "<section><h2>Figures</h2><div class=\"cards\">" + CertificateCard(report.partition);
  if (report.accelerator) html += AcceleratorCard(*report.accelerator);
  if (report.resources) html += ResourcesCard("FPGA resources", *report.resources);
  if (report.synthesis) html += ResourcesCard("FPGA resources by synthesis", *report.synthesis);
  return html + OutputsCard(report) + "</div></section>\n";
}

}  // namespace heddle::report
