// An exploration as a page of its own: cycles against each resource, the front as a line, the target's limit, and the table.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/explore.h"
#include "report/format.h"

namespace heddle::driver {
namespace {

using report::EscapeHtml;
using report::FormatThousands;

constexpr double kWidth = 360, kHeight = 300, kLeft = 64, kRight = 16, kTop = 28, kBottom = 44;

constexpr char kStyle[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1160px;padding:0 1rem;color:#1c2430;background:#fff}"
    "svg{max-width:100%;font:12px system-ui,sans-serif}table{border-collapse:collapse;margin-top:1rem}"
    "td,th{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #dde3ea}td:last-child,th:last-child{text-align:left}"
    "tr.front{font-weight:600}.dot{fill:#9aa7b5}.dot.large{fill:none;stroke:#9aa7b5}.dot.front{fill:#0b6bcb}.dot.best{fill:#d1480f}"
    ".line{fill:none;stroke:#0b6bcb;stroke-width:1.5}.limit{stroke:#d1480f;stroke-dasharray:4 3}.axis{stroke:#59636e}.grid{stroke:#e4e9ef}"
    "text{fill:#3a4552}";

struct Resource {
  const char* name;
  int64_t (*of)(const hls::Resources&);
  std::optional<int64_t> limit;
};

// A number to the axis' figure of one, two or five times a power of ten above it.
double NiceStep(double span, int steps) {
  const double raw = span / steps, power = std::pow(10, std::floor(std::log10(std::max(raw, 1e-9))));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

// One diagram: cycles upwards (logarithmic), a resource to the right.
class Panel {
 public:
  Panel(const Exploration& exploration, const Resource& resource) : exploration_(exploration), resource_(resource) {
    for (const ExplorePoint& point : exploration.points) {
      most_x_ = std::max(most_x_, static_cast<double>(X(point)));
      low_ = std::min(low_, Y(point));
      high_ = std::max(high_, Y(point));
    }
    if (resource.limit) most_x_ = std::max(most_x_, static_cast<double>(*resource.limit));
    most_x_ *= 1.05;
    if (high_ - low_ < 0.05) low_ -= 0.05, high_ += 0.05;
    const double margin = 0.06 * (high_ - low_);
    low_ -= margin, high_ += margin;
  }

  std::string Svg(double offset) const {
    std::string svg = fmt::format("<g transform=\"translate({:.0f} 0)\"><text x=\"{:.0f}\" y=\"16\" font-weight=\"600\">cycles against {}</text>", offset, kLeft, resource_.name);
    svg += Grid();
    if (resource_.limit) {
      const double x = Px(static_cast<double>(*resource_.limit));
      svg += fmt::format("<line class=\"limit\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"><title>limit of the target: {3}</title></line>", x, kTop,
                         kHeight - kBottom, FormatThousands(*resource_.limit));
    }
    return svg + FrontLine() + Dots() + "</g>";
  }

 private:
  int64_t X(const ExplorePoint& point) const { return resource_.of(point.resources); }
  static double Y(const ExplorePoint& point) { return std::log10(static_cast<double>(std::max<int64_t>(1, point.cycles_estimated))); }
  double Px(double x) const { return kLeft + x / most_x_ * (kWidth - kLeft - kRight); }
  double Py(double y) const { return kTop + (high_ - y) / (high_ - low_) * (kHeight - kTop - kBottom); }

  std::string Grid() const {
    std::string svg;
    const double step = NiceStep(most_x_, 4), bottom = kHeight - kBottom;
    for (double x = 0; x <= most_x_; x += step) {
      svg += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/><text x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\">{4}</text>", Px(x),
                         kTop, bottom, bottom + 16, report::FormatCount(x));
    }
    for (int k = 0; k <= 4; ++k) {
      const double y = low_ + (high_ - low_) * k / 4;
      svg += fmt::format("<line class=\"grid\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3:.0f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>", kLeft,
                         kWidth - kRight, Py(y), kLeft - 6, Py(y) + 4, report::FormatCount(std::pow(10, y)));
    }
    return svg + fmt::format("<path class=\"axis\" fill=\"none\" d=\"M{0:.0f} {1:.0f}V{2:.0f}H{3:.0f}\"/><text x=\"{4:.0f}\" y=\"{5:.0f}\" text-anchor=\"middle\">{6}</text>", kLeft, kTop,
                             bottom, kWidth - kRight, (kLeft + kWidth - kRight) / 2, kHeight - 8, resource_.name);
  }

  // The points that need fewest cycles for their amount of this one resource.
  std::string FrontLine() const {
    std::vector<const ExplorePoint*> front;
    for (const ExplorePoint& point : exploration_.points) {
      if (point.on_front) front.push_back(&point);
    }
    std::sort(front.begin(), front.end(), [&](const auto* a, const auto* b) { return std::pair(X(*a), a->cycles_estimated) < std::pair(X(*b), b->cycles_estimated); });
    std::string path;
    int64_t least = INT64_MAX;
    for (const ExplorePoint* point : front) {
      if (point->cycles_estimated >= least) continue;
      least = point->cycles_estimated;
      path += path.empty() ? fmt::format("M{:.1f} {:.1f}", Px(static_cast<double>(X(*point))), Py(Y(*point)))
                           : fmt::format("H{:.1f}V{:.1f}", Px(static_cast<double>(X(*point))), Py(Y(*point)));
    }
    return path.empty() ? "" : fmt::format("<path class=\"line\" d=\"{}\"/>", path);
  }

  std::string Dots() const {
    std::string svg;
    for (size_t i = 0; i < exploration_.points.size(); ++i) {
      const ExplorePoint& point = exploration_.points[i];
      if (point.less_work) continue;
      std::string title;
      for (const SweepAxis& axis : exploration_.axes) title += fmt::format("{}={} ", axis.name, point.parameters.at(axis.name).dump());
      title += fmt::format(": {} cycles, {} LUT, {} DSP, {} BRAM36", FormatThousands(point.cycles_estimated), point.resources.lut, point.resources.dsp, point.resources.bram36());
      const std::string kind = exploration_.best == i ? " best" : point.on_front ? " front" : point.fits ? "" : " large";
      svg += fmt::format("<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"><title>{}</title></circle>", kind, Px(static_cast<double>(X(point))), Py(Y(point)),
                         EscapeHtml(title));
    }
    return svg;
  }

  const Exploration& exploration_;
  const Resource& resource_;
  double most_x_ = 1, low_ = 1e9, high_ = -1e9;
};

std::string Table(const Exploration& exploration) {
  std::string html = "<table><tr>";
  for (const SweepAxis& axis : exploration.axes) html += "<th>" + EscapeHtml(axis.name) + "</th>";
  html += "<th>cycles</th><th>latency</th><th>used</th><th>LUT</th><th>DSP</th><th>BRAM36</th><th></th></tr>";
  for (size_t i = 0; i < exploration.points.size(); ++i) {
    const ExplorePoint& point = exploration.points[i];
    html += point.on_front ? "<tr class=\"front\">" : "<tr>";
    for (const SweepAxis& axis : exploration.axes) html += "<td>" + point.parameters.at(axis.name).dump() + "</td>";
    html += fmt::format("<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}{}{}{}</td></tr>", FormatThousands(point.cycles_estimated),
                        report::FormatUs(point.latency_us), report::FormatPercent(100 * point.utilisation), FormatThousands(point.resources.lut),
                        FormatThousands(point.resources.dsp), FormatThousands(point.resources.bram36()), point.on_front ? "front " : "",
                        exploration.best == i ? "best " : "", point.fits ? "" : "too large ", point.less_work ? "accelerates less" : "");
  }
  return html + "</table>";
}

}  // namespace

std::string PrintExplorationHtml(const Exploration& exploration) {
  const Resource resources[] = {{"DSP", [](const hls::Resources& r) { return r.dsp; }, exploration.max_dsp},
                                {"LUT", [](const hls::Resources& r) { return r.lut; }, exploration.max_lut},
                                {"BRAM36", [](const hls::Resources& r) { return r.bram36(); }, exploration.max_bram36}};
  std::string html = fmt::format("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style></head><body><h1>{0} on {2}</h1>",
                                 EscapeHtml(exploration.model), kStyle, EscapeHtml(exploration.target));
  if (!exploration.points.empty()) {
    html += fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"cycles against resources\">", 3 * kWidth, kHeight);
    for (int i = 0; i < 3; ++i) html += Panel(exploration, resources[i]).Svg(i * kWidth);
    html += "</svg><p>Cycles by the fast model, sizes by the resource model. Blue: the Pareto front over cycles, DSP, LUT and BRAM36; red: the best in the target's "
            "limits (dashed); hollow: too large.</p>";
    html += Table(exploration);
  }
  for (const IllegalCombination& entry : exploration.illegal) {
    html += "<p>Not possible:";
    for (const SweepAxis& axis : exploration.axes) html += fmt::format(" {}={}", axis.name, entry.parameters.at(axis.name).dump());
    html += fmt::format(": {}: {}</p>", EscapeHtml(entry.code), EscapeHtml(entry.text));
  }
  if (exploration.confirmation) {
    html += fmt::format("<p>Best in RTL: {} cycles simulated, {} estimated, {}.</p>", FormatThousands(exploration.confirmation->cycles_simulated),
                        FormatThousands(exploration.confirmation->cycles_estimated), exploration.confirmation->bit_exact ? "bit-exact" : "not bit-exact");
  }
  return html + "</body></html>\n";
}

}  // namespace heddle::driver
