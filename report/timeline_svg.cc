// Resources over time: one row for each resource in order of first use, one rectangle for each event.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/format.h"
#include "report/html_parts.h"

namespace heddle::report {
namespace {

constexpr double kLeft = 210;
constexpr double kWidth = 900;  // of the time axis
constexpr double kRow = 30;
constexpr double kBar = 20;
constexpr double kTop = 26;

// A step of 1, 2 or 5 times a power of ten that gives at most eight ticks.
double TickStep(double span_us) {
  const double raw = span_us / 8;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

class Chart {
 public:
  explicit Chart(const Report& report) : report_(report), classes_(DeviceClasses(report)) {
    for (const Event& event : report.timeline) {
      if (std::find(rows_.begin(), rows_.end(), event.resource) == rows_.end()) rows_.push_back(event.resource);
      end_us_ = std::max(end_us_, event.end_us);
    }
  }

  std::string Draw() const {
    if (rows_.empty() || !(end_us_ > 0) || !std::isfinite(end_us_)) return "";
    const double height = kTop + rows_.size() * kRow + 6;
    std::string svg = fmt::format(
        "<svg id=\"timeline\" role=\"img\" aria-label=\"Timeline of devices, memory ports and links\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\">\n",
        kLeft + kWidth + 20, height);
    svg += Axis(height);
    for (size_t row = 0; row < rows_.size(); ++row) svg += Row(row);
    for (size_t index = 0; index < report_.timeline.size(); ++index) svg += Bar(report_.timeline[index]);
    return svg + "</svg>\n";
  }

 private:
  double X(double us) const { return kLeft + us / end_us_ * kWidth; }

  std::string Axis(double height) const {
    std::string svg;
    const double step = TickStep(end_us_);
    for (double us = 0; us <= end_us_ * 1.0001; us += step) {
      svg += fmt::format(
          "<line class=\"tick\" x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\"/>"
          "<text class=\"tick\" x=\"{0:.1f}\" y=\"14\">{3}</text>\n",
          X(us), kTop - 6, height, us == 0 ? "0" : FormatUs(us));
    }
    return svg;
  }

  std::string Row(size_t row) const {
    double busy_us = 0;
    for (const Event& event : report_.timeline) {
      if (event.resource == rows_[row]) busy_us += event.end_us - event.start_us;
    }
    const double y = kTop + row * kRow;
    return fmt::format(
        "<text class=\"row\" x=\"0\" y=\"{:.1f}\">{}</text><text class=\"busy\" x=\"{:.0f}\" y=\"{:.1f}\">{:.0f} "
        "%</text>\n",
        y + 14, EscapeHtml(Shorten(rows_[row], 24)), kLeft - 8, y + 14, 100 * busy_us / end_us_);
  }

  // "accelerator.load" has the colour of "accelerator", a link that of links.
  std::string Class(const Event& event) const {
    const auto device = classes_.find(event.resource.substr(0, event.resource.find('.')));
    const std::string color = device == classes_.end() ? "link" : device->second;
    return event.kind == "load" || event.kind == "store" || event.kind == "launch" ? color + " light" : color;
  }

  std::string Bar(const Event& event) const {
    const size_t row = std::find(rows_.begin(), rows_.end(), event.resource) - rows_.begin();
    const double x = X(event.start_us);
    const double width = std::max(0.6, X(event.end_us) - x - 0.4);
    const double y = kTop + row * kRow;
    std::string svg = fmt::format(
        "<rect class=\"bar {}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" rx=\"2\" data-tip=\"{} "
        "({}): {} from {}\"/>",
        Class(event), x, y, width, kBar, EscapeHtml(event.name), EscapeHtml(event.kind),
        FormatUs(event.end_us - event.start_us), FormatUs(event.start_us));
    const size_t letters = width > 20 ? static_cast<size_t>((width - 8) / 6.6) : 0;
    if (letters >= 6 || (letters > 0 && event.name.size() <= letters)) {
      svg += fmt::format("<text class=\"in\" x=\"{:.2f}\" y=\"{:.1f}\">{}</text>", x + 4, y + 14,
                         EscapeHtml(Shorten(event.name, letters)));
    }
    return svg + "\n";
  }

  const Report& report_;
  std::map<std::string, std::string> classes_;
  std::vector<std::string> rows_;
  double end_us_ = 0;
};

}  // namespace

std::string TimelineSvg(const Report& report) { return Chart(report).Draw(); }

}  // namespace heddle::report
