// index.html: one file with style, script, drawings and data inside, so that it opens from a mail or an archive and
// asks the network for nothing. Drawings and tables are markup made here (they show without script too); page.js adds
// sorting, tooltips and the details of a node, which it reads from the embedded report.json as text, never as markup.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "report/format.h"
#include "report/html_parts.h"
#include "report/print.h"

namespace heddle::report {
namespace {

// The files' contents, made into string literals by the build.
constexpr const char* kStyle =
#include "report/page.css.inc"
    ;
constexpr const char* kScript =
#include "report/page.js.inc"
    ;

// JSON inside a script element must not hold "</script" nor "<!--".
std::string EmbeddedJson(const Report& report) {
  const std::string json = PrintJson(report);
  std::string result;
  for (char c : json) result += c == '<' ? "\\u003c" : std::string(1, c);
  return result;
}

std::string Card(const std::string& label, const std::string& value, const std::string& detail,
                 const std::string& css = "") {
  return fmt::format("<div class=\"fact {}\"><span class=\"label\">{}</span><strong>{}</strong><span>{}</span></div>\n",
                     css, label, value, detail);
}

std::string VerdictBadge(const Verdict& verdict) {
  const char* css = "bad";
  const char* text = "mismatch";
  if (!verdict.compared) {
    css = "unknown";
    text = "not run";
  } else if (verdict.bit_exact) {
    css = "good";
    text = "bit-exact";
  } else if (verdict.within_bounds) {
    css = "good";
    text = "within bounds";
  }
  std::string against;
  for (const std::string& name : verdict.compared_against) against += (against.empty() ? "" : ", ") + EscapeHtml(name);
  std::string html = fmt::format("<span class=\"badge {}\">{}</span>", css, text);
  if (!against.empty()) html += "<span class=\"against\">compared: " + against + "</span>";
  return html;
}

std::string Facts(const Report& report) {
  std::string html = "<div class=\"facts\">\n";
  html += Card("one inference", FormatUs(report.latency_us.value), EscapeHtml(report.latency_us.provenance), "lead");
  if (report.cpu_only_us && report.latency_us.value > 0) {
    const double factor = report.cpu_only_us->value / report.latency_us.value;
    html += Card("against the CPU alone",
                 fmt::format("{:.3g}x {}", factor >= 1 ? factor : 1 / factor, factor >= 1 ? "faster" : "slower"),
                 FormatUs(report.cpu_only_us->value) + " " + EscapeHtml(report.cpu_only_us->provenance));
  }
  for (const DeviceUse& device : report.devices) {
    if (device.kind == "cpu" || report.model.macs == 0) continue;
    html += Card("on the " + EscapeHtml(device.name), FormatPercent(100.0 * device.macs / report.model.macs),
                 fmt::format("of the MACs, {} of {} nodes", device.nodes, report.nodes.size()));
  }
  if (report.accelerator && report.accelerator->macs > 0) {
    const Accelerator& a = *report.accelerator;
    const int64_t cycles = a.cycles_simulated > 0 ? a.cycles_simulated : a.cycles_estimated;
    html += Card("accelerator busy", FormatPercent(100 * a.utilisation),
                 FormatThousands(cycles) + " cycles " + (a.cycles_simulated > 0 ? "simulated" : "estimated"));
  }
  const Partition& p = report.partition;
  html += Card("partition", p.gap_percent == 0 ? "optimal" : FormatPercent(p.gap_percent) + " gap",
               fmt::format("{} bound {}, {}", EscapeHtml(p.objective), FormatBound(p), EscapeHtml(p.solver)));
  if (report.steady && report.steady->period_us.value > 0) {
    html += Card("in a stream", FormatCount(1e6 / report.steady->period_us.value) + "/s",
                 fmt::format("one each {}, {}", FormatUs(report.steady->period_us.value), EscapeHtml(report.steady->bottleneck)));
  }
  return html + "</div>\n";
}

// Where the time goes: devices and transfers as one bar.
std::string TimeBar(const Report& report) {
  const std::map<std::string, std::string> classes = DeviceClasses(report);
  std::vector<std::tuple<std::string, std::string, double>> parts;
  double total = 0;
  for (const DeviceUse& device : report.devices) {
    parts.emplace_back(device.name, classes.at(device.name), device.time_us.value);
  }
  parts.emplace_back("transfers", "link", report.partition.transfer_us);
  for (const auto& [name, css, us] : parts) total += std::max(0.0, us);
  if (!(total > 0)) return "";
  std::string bar = "<div class=\"bar\" role=\"img\" aria-label=\"Share of each device\">";
  std::string legend = "<ul class=\"legend\">";
  for (const auto& [name, css, us] : parts) {
    if (us <= 0) continue;
    bar += fmt::format("<span class=\"{}\" style=\"flex-grow:{:.6f}\" data-tip=\"{}: {}\"></span>", css, us / total,
                       EscapeHtml(name), FormatUs(us));
    legend += fmt::format("<li><span class=\"dot {}\"></span>{} <b>{}</b> <i>{}</i></li>", css, EscapeHtml(name),
                          FormatUs(us), FormatPercent(100 * us / total));
  }
  std::string html = "<section><h2>Where the time goes</h2>" + bar + "</div>" + legend + "</ul>";
  const Bottleneck& b = report.bottleneck;
  if (!b.what.empty()) {
    html += fmt::format("<p class=\"bind\"><b>Bottleneck:</b> {}, {} of the time; {}.</p>", EscapeHtml(b.what),
                        FormatPercent(b.share_percent), EscapeHtml(b.knob));
  }
  for (const std::string& note : report.notes) html += "<p class=\"note\">" + EscapeHtml(note) + "</p>";
  return html + "</section>\n";
}

const char* const kGlossary =
    "<section><details><summary>What the words mean</summary><dl class=\"words\">"
    "<div><dt>region</dt><dd>Nodes that one launch runs on one device, without a path that leaves and returns."
    "</dd></div>"
    "<div><dt>predicted</dt><dd>The cost with which the partitioner decided, before anything ran.</dd></div>"
    "<div><dt>found</dt><dd>What the run gave: simulated cycles of the RTL, or the wall clock.</dd></div>"
    "<div><dt>measured, simulated, modelled, assumed</dt><dd>Where a number comes from: the wall clock of this "
    "machine, "
    "RTL cycles, a cost model, or the target's description.</dd></div>"
    "<div><dt>utilisation</dt><dd>Multiply-accumulates done over cycles times the most that fit in a cycle, from "
    "the first instruction to the last byte stored.</dd></div>"
    "<div><dt>lower bound, gap</dt><dd>No placement can be predicted to cost less than the bound; a gap of 0 % proves "
    "that this one is the best for these costs.</dd></div>"
    "<div><dt>on its own</dt><dd>What changes if this node alone moves while all others stay.</dd></div>"
    "</dl></details></section>\n";

const char* const kLogo =
    "<svg class=\"logo\" viewBox=\"0 0 28 28\" width=\"28\" height=\"28\" aria-hidden=\"true\">"
    "<path d=\"M4 3v22M11 3v22M18 3v22M25 3v22\"/><path class=\"weft\" d=\"M1 8h5M9 8h11M23 8h4M1 15h12M16 15h11M1 "
    "22h5M9 "
    "22h11M23 22h4\"/></svg>";

std::string Head(const Report& report) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         EscapeHtml(report.model.path) + " on " + EscapeHtml(report.target.name) + "</title>\n<style>\n" + kStyle +
         "</style>\n</head>\n<body>\n";
}

std::string Header(const Report& report) {
  std::string target = EscapeHtml(report.target.name);
  if (!report.target.description.empty()) target += ": " + EscapeHtml(report.target.description);
  return std::string("<header><div class=\"title\">") + kLogo + "<div><h1>" +
         EscapeHtml(Shorten(report.model.path, 70)) + "</h1><p>" + target +
         fmt::format("; {} MACs, {} parameters, {} nodes</p></div>", FormatCount(report.model.macs),
                     FormatCount(report.model.parameters), report.nodes.size()) +
         "<button type=\"button\" id=\"theme\" aria-label=\"Light or dark\">light / dark</button></div>\n"
         "<p class=\"verdict\">" +
         VerdictBadge(report.verdict) + "</p>\n" + Facts(report) + "</header>\n";
}

// The devices that run something, by colour.
std::string DeviceLegend(const Report& report) {
  const std::map<std::string, std::string> classes = DeviceClasses(report);
  std::string html = "<ul class=\"legend\">";
  for (const DeviceUse& device : report.devices) {
    html += fmt::format("<li><span class=\"dot {}\"></span>{} <i>{} node{}</i></li>", classes.at(device.name), EscapeHtml(device.name), device.nodes,
                        device.nodes == 1 ? "" : "s");
  }
  return html + "</ul>";
}

std::string GraphSection(const Report& report) {
  return "<section><h2>Partitioned network</h2><p class=\"quiet\">Colour is the device; a dashed edge moves between "
         "devices. Click a node for its story.</p>" +
         DeviceLegend(report) + "<div class=\"split\"><div class=\"scroll graph\">" +
         GraphSvg(report) +
         "</div><aside id=\"details\" aria-live=\"polite\"><p class=\"quiet\">No node chosen.</p></aside></div>"
         "</section>\n";
}

std::string TimelineSection(const Report& report) {
  const std::string timeline = TimelineSvg(report);
  if (timeline.empty()) return "";
  return "<section><h2>Timeline</h2><p class=\"quiet\">One inference. Pale bars are loads, stores and launches; the "
         "percentage is how long a row is busy.</p><div class=\"scroll\">" +
         timeline + "</div></section>\n";
}

std::string RooflineSection(const Report& report) {
  const std::string roofline = RooflineSvg(report);
  if (roofline.empty()) return "";
  return "<section><h2>Roofline</h2><p class=\"quiet\">One mark for each layer on the accelerator: the ring is the estimate, the disc the "
         "simulation, the square all layers together. On the slope the memory holds back, at the top the lanes; the distance below the "
         "roof is idle lanes, waiting and start-up (see the table of cycles). A layer above the slope had its data loaded while the "
         "layers before it computed.</p><div class=\"scroll\">" +
         roofline + "</div></section>\n";
}

std::string LayersSection(const Report& report) {
  return "<section><h2>Layers</h2><p class=\"quiet\">Click a heading to sort, a row for details.</p><input "
         "id=\"filter\" "
         "type=\"search\" placeholder=\"filter by name, op or device\" aria-label=\"Filter the layers\">"
         "<div class=\"scroll\">" +
         LayersTable(report) + "</div></section>\n";
}

}  // namespace

std::string PrintHtml(const Report& given) {
  Report report = given;
  Summarise(report);
  return Head(report) + Header(report) + "<main>\n" + TimeBar(report) + GraphSection(report) + TimelineSection(report) +
         RooflineSection(report) + LayersSection(report) + DetailTables(report) + kGlossary +
         "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script type=\"application/json\" id=\"report\">" +
         EmbeddedJson(report) + "</script>\n<script>\n" + kScript + "</script>\n</body>\n</html>\n";
}

}  // namespace heddle::report
