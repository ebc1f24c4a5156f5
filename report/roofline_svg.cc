// The accelerator's roofline (Williams, Waterman, Patterson, "Roofline", CACM 2009): each layer by the MACs that it does for
// every byte over the memory port, and by the MACs a cycle that it reached: on the slope the memory binds, on the flat part the
// lanes. The square is the whole program, which cannot lie above the roof. A single layer can lie above the slope: its data may
// have come while the layers before it computed, and its cycles count from the end of those. A ring is the estimate, a disc the
// simulation. Layers without traffic of their own stand at the right edge.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "report/format.h"
#include "report/html_parts.h"

namespace heddle::report {
namespace {

constexpr double kLeft = 62, kRight = 190, kTop = 18, kBottom = 46;
constexpr double kWidth = 1130, kHeight = 430;
constexpr double kLabelHeight = 13;
constexpr double kLetter = 6.6;
constexpr double kNoTraffic = 78;  // from the right end of the axis to where layers without traffic stand
constexpr double kRoofEnd = 120;

struct Point {
  const LayerCycles* layer;
  double intensity = 0;  // MACs for each byte; infinite without traffic
  double estimated = 0;  // MACs a cycle
  double simulated = 0;
};

double Rate(int64_t macs, int64_t cycles) { return cycles > 0 ? static_cast<double>(macs) / static_cast<double>(cycles) : 0; }

// 10^exponent as people write it.
std::string Power(int exponent) {
  return exponent >= 0 ? FormatThousands(std::llround(std::pow(10, exponent))) : fmt::format("{:.{}f}", std::pow(10, exponent), -exponent);
}

class Chart {
 public:
  explicit Chart(const Report& report) : a_(*report.accelerator) {
    for (const DeviceUse& device : report.devices) {
      if (device.kind == "accelerator") css_ = DeviceClasses(report).at(device.name);
    }
    for (const LayerCycles& layer : a_.layers) {
      if (layer.macs <= 0 || layer.cycles_estimated <= 0) continue;
      points_.push_back({&layer, layer.dram_bytes > 0 ? static_cast<double>(layer.macs) / static_cast<double>(layer.dram_bytes) : HUGE_VAL,
                         Rate(layer.macs, layer.cycles_estimated), Rate(layer.macs, layer.cycles_simulated)});
    }
    Span();
  }

  std::string Draw() {
    std::string svg = fmt::format(
        "<svg id=\"roofline\" role=\"img\" aria-label=\"Roofline of the accelerator\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\">\n",
        kWidth, kHeight);
    svg += Axes() + Roof();
    // The layers that take the most cycles are named; the others have a tip.
    std::vector<const Point*> order;
    for (const Point& point : points_) order.push_back(&point);
    std::stable_sort(order.begin(), order.end(), [](const Point* a, const Point* b) { return a->layer->cycles_estimated > b->layer->cycles_estimated; });
    for (const Point* point : order) taken_.push_back({X(point->intensity) - 6, Y(Reached(*point)) - 6, 12, 12});
    taken_.push_back({X(Ridge()), Y(Peak()) - 20, kWidth, 24});  // the flat roof and its name
    for (double exponent = low_x_; exponent < std::log10(Ridge()); exponent += 0.05) {
      const double intensity = std::pow(10, exponent);
      taken_.push_back({X(intensity) - 6, Y(intensity * a_.memory_bytes_per_cycle) - 14, 12, 18});
    }
    const Point whole = Whole();
    if (std::isfinite(whole.intensity)) taken_.push_back({X(whole.intensity) - 7, Y(whole.estimated) - 7, 14, 14});
    std::string names;
    for (const Point* point : order) names += Label(*point);
    for (const Point* point : order) svg += Mark(*point);
    if (std::isfinite(whole.intensity)) {
      svg += fmt::format("<rect class=\"whole\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" data-tip=\"all layers together: {:.3g} MACs a cycle, {:.3g} "
                         "MACs for each byte\"/>\n",
                         X(whole.intensity) - 5, Y(whole.estimated) - 5, whole.estimated, whole.intensity);
    }
    return svg + names + "</svg>\n";
  }

 private:
  struct Box {
    double x, y, width, height;
    bool Touches(const Box& other) const {
      return x < other.x + other.width && other.x < x + width && y < other.y + other.height && other.y < y + height;
    }
  };

  // All layers as one: bytes of the layers, cycles of the whole program.
  Point Whole() const {
    int64_t bytes = 0;
    for (const LayerCycles& layer : a_.layers) bytes += layer.dram_bytes;
    const int64_t cycles = a_.cycles_simulated > 0 ? a_.cycles_simulated : a_.cycles_estimated;
    return {nullptr, bytes > 0 && cycles > 0 && a_.macs > 0 ? static_cast<double>(a_.macs) / static_cast<double>(bytes) : HUGE_VAL, Rate(a_.macs, cycles), 0};
  }

  static double Reached(const Point& point) { return point.simulated > 0 ? point.simulated : point.estimated; }

  double Peak() const { return static_cast<double>(a_.macs_per_cycle_peak); }
  double Ridge() const { return Peak() / a_.memory_bytes_per_cycle; }

  // Whole decades that hold every point, the ridge and the peak.
  void Span() {
    double low_x = Ridge() / 4, high_x = Ridge() * 4, low_y = Peak() / 8;
    for (const Point& point : points_) {
      if (std::isfinite(point.intensity)) {
        low_x = std::min(low_x, point.intensity);
        high_x = std::max(high_x, point.intensity);
      }
      low_y = std::min(low_y, std::min(point.estimated, Reached(point)));
    }
    if (const Point whole = Whole(); std::isfinite(whole.intensity)) {
      low_x = std::min(low_x, whole.intensity);
      high_x = std::max(high_x, whole.intensity);
      low_y = std::min(low_y, whole.estimated);
    }
    low_x_ = static_cast<int>(std::floor(std::log10(low_x)));
    high_x_ = static_cast<int>(std::ceil(std::log10(high_x)));
    low_y_ = static_cast<int>(std::floor(std::log10(low_y)));
    high_y_ = std::log10(Peak()) + 0.15;
  }

  double X(double intensity) const {
    const double right = kWidth - kRight;
    if (!std::isfinite(intensity)) return right + kNoTraffic;
    return kLeft + (std::log10(intensity) - low_x_) / std::max(1, high_x_ - low_x_) * (right - kLeft);
  }
  double Y(double rate) const {
    const double bottom = kHeight - kBottom;
    return bottom - (std::log10(rate) - low_y_) / (high_y_ - low_y_) * (bottom - kTop);
  }

  std::string Axes() const {
    const double bottom = kHeight - kBottom, right = kWidth - kRight;
    std::string svg;
    for (int exponent = low_x_; exponent <= high_x_; ++exponent) {
      const double x = X(std::pow(10, exponent));
      svg += fmt::format("<line class=\"tick\" x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\"/>"
                         "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.0f}\">{4}</text>\n",
                         x, kTop, bottom, bottom + 16, Power(exponent));
    }
    for (int exponent = low_y_; exponent <= static_cast<int>(std::floor(high_y_)); ++exponent) {
      const double y = Y(std::pow(10, exponent));
      svg += fmt::format("<line class=\"tick\" x1=\"{0:.0f}\" y1=\"{1:.1f}\" x2=\"{2:.0f}\" y2=\"{1:.1f}\"/>"
                         "<text class=\"tick left\" x=\"{3:.0f}\" y=\"{4:.1f}\">{5}</text>\n",
                         kLeft, y, kWidth - kRight + kRoofEnd, kLeft - 8, y + 4, Power(exponent));
    }
    svg += fmt::format("<text class=\"axis\" x=\"{:.0f}\" y=\"{:.0f}\">MACs for each byte over the memory port</text>\n", (kLeft + right) / 2, kHeight - 10);
    svg += fmt::format("<text class=\"axis\" x=\"14\" y=\"{0:.0f}\" transform=\"rotate(-90 14 {0:.0f})\">MACs a cycle</text>\n", (kTop + bottom) / 2);
    svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.0f}\">no traffic</text>\n", X(HUGE_VAL), bottom + 16);
    return svg;
  }

  std::string Roof() const {
    const double floor_rate = std::pow(10, low_y_), left = std::pow(10, low_x_);
    const double start = std::max(left, floor_rate / a_.memory_bytes_per_cycle);
    const double right = kWidth - kRight + kRoofEnd;
    std::string svg = fmt::format("<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}\"/>\n", X(start), Y(start * a_.memory_bytes_per_cycle),
                                  X(Ridge()), Y(Peak()), right);
    svg += fmt::format("<text class=\"roof\" x=\"{:.1f}\" y=\"{:.1f}\">lanes: {} MACs a cycle, {:.3g} GMAC/s</text>\n", X(Ridge()) + 12, Y(Peak()) - 7,
                       FormatThousands(a_.macs_per_cycle_peak), Peak() * a_.clock_mhz / 1000);
    // Along the slope, whose angle depends on the decades shown.
    const double middle = std::sqrt(start * Ridge());
    const double angle = std::atan2(Y(Peak()) - Y(start * a_.memory_bytes_per_cycle), X(Ridge()) - X(start)) * 180 / std::numbers::pi;
    const double x = X(middle), y = Y(middle * a_.memory_bytes_per_cycle) - 7;
    svg += fmt::format("<text class=\"roof middle\" x=\"{0:.1f}\" y=\"{1:.1f}\" transform=\"rotate({2:.1f} {0:.1f} {1:.1f})\">memory: {3:.3g} bytes a cycle, "
                       "{4:.3g} GB/s</text>\n",
                       x, y, angle, a_.memory_bytes_per_cycle, a_.memory_bytes_per_cycle * a_.clock_mhz / 1000);
    return svg;
  }

  std::string Tip(const Point& point) const {
    const double roof = std::min(Peak(), std::isfinite(point.intensity) ? point.intensity * a_.memory_bytes_per_cycle : Peak());
    std::string tip = EscapeHtml(point.layer->name) + fmt::format(": {:.3g} MACs a cycle estimated", point.estimated);
    if (point.simulated > 0) tip += fmt::format(", {:.3g} simulated", point.simulated);
    return tip + fmt::format("; {} of the roof ({:.3g}); {} over the memory port", FormatPercent(100 * Reached(point) / roof), roof,
                             FormatBytes(static_cast<double>(point.layer->dram_bytes)));
  }

  std::string Mark(const Point& point) const {
    const std::string tip = Tip(point);
    const double x = X(point.intensity);
    std::string svg;
    if (point.simulated > 0) {
      svg += fmt::format("<circle class=\"found {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" data-tip=\"{}\"/>", css_, x, Y(point.simulated), tip);
    }
    return svg + fmt::format("<circle class=\"ring {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" data-tip=\"{}\"/>\n", css_, x, Y(point.estimated), tip);
  }

  // Beside its point, on the side where nothing stands yet; left out where everything is taken.
  std::string Label(const Point& point) {
    const std::string name = Shorten(point.layer->name, 24);
    const double width = static_cast<double>(name.size()) * kLetter, x = X(point.intensity), y = Y(Reached(point));
    for (const auto& [dx, dy] : {std::pair<double, double>{11, 0}, {-11 - width, 0}, {11, 14}, {11, -14}, {-11 - width, 14}, {-11 - width, -14}, {11, 28}, {-11 - width, 28}, {-width / 2, -17}, {-width / 2, 17}}) {
      const Box box{x + dx, y + dy - kLabelHeight / 2, width, kLabelHeight};
      const bool free = std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) { return box.Touches(other); });
      if (!free || box.x < kLeft || box.x + box.width > kWidth || box.y + box.height > kHeight - kBottom) continue;
      taken_.push_back(box);
      return fmt::format("<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", box.x, y + dy + 4, EscapeHtml(name));
    }
    return "";
  }

  const Accelerator& a_;
  std::string css_ = "d7";
  std::vector<Point> points_;
  std::vector<Box> taken_;
  int low_x_ = 0, high_x_ = 0, low_y_ = 0;  // exponents of ten
  double high_y_ = 0;
};

}  // namespace

std::string RooflineSvg(const Report& report) {
  if (!report.accelerator) return "";
  const Accelerator& a = *report.accelerator;
  const bool drawable = a.macs_per_cycle_peak > 0 && a.memory_bytes_per_cycle > 0 && std::isfinite(a.memory_bytes_per_cycle);
  const bool any = std::any_of(a.layers.begin(), a.layers.end(), [](const LayerCycles& layer) { return layer.macs > 0 && layer.cycles_estimated > 0; });
  return drawable && any ? Chart(report).Draw() : "";
}

}  // namespace heddle::report
