// The partitioned network as SVG. Colours and type come from page.css through classes; a click is page.js's business.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/format.h"
#include "report/graph_layout.h"
#include "report/html_parts.h"

namespace heddle::report {
namespace {

constexpr double kMargin = 12;

// Straight down through layers that it only passes, an S-curve between layers.
std::string PathData(const std::vector<Point>& points) {
  std::string data;
  for (size_t at = 0; at < points.size(); ++at) {
    const double x = points[at].x + kMargin, y = points[at].y + kMargin;
    if (at == 0) {
      data = fmt::format("M{:.1f} {:.1f}", x, y);
    } else if (at % 2 == 0) {
      data += fmt::format("L{:.1f} {:.1f}", x, y);
    } else {
      const double from_x = points[at - 1].x + kMargin, from_y = points[at - 1].y + kMargin;
      const double middle = (from_y + y) / 2;
      data += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from_x, middle, x, middle, x, y);
    }
  }
  return data;
}

class Picture {
 public:
  explicit Picture(const Report& report) : report_(report), classes_(DeviceClasses(report)) {
    std::map<std::string, int> index_of;
    for (size_t index = 0; index < report.nodes.size(); ++index) index_of[report.nodes[index].name] = index;
    for (size_t index = 0; index < report.nodes.size(); ++index) {
      for (const std::string& input : report.nodes[index].inputs) {
        const auto from = index_of.find(input);
        if (from != index_of.end() && from->second != static_cast<int>(index)) edges_.emplace_back(from->second, index);
      }
    }
  }

  std::string Draw() {
    const Layout layout = LayOut(static_cast<int>(report_.nodes.size()), edges_, options_);
    std::string svg = fmt::format(
        "<svg id=\"graph\" role=\"img\" aria-label=\"Partitioned network\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
        layout.width + 2 * kMargin, layout.height + 2 * kMargin);
    for (size_t edge = 0; edge < edges_.size(); ++edge) svg += Edge(edges_[edge], layout.edges[edge]);
    for (size_t node = 0; node < report_.nodes.size(); ++node) svg += Box(node, layout.nodes[node]);
    return svg + "</svg>\n";
  }

 private:
  const std::string& Class(const std::string& device) {
    static const std::string none = "d7";
    const auto found = classes_.find(device);
    return found == classes_.end() ? none : found->second;
  }

  std::string Edge(const std::pair<int, int>& edge, const std::vector<Point>& points) {
    const Node& from = report_.nodes[edge.first];
    const Node& to = report_.nodes[edge.second];
    const bool crosses = from.device != to.device;
    std::string tip = EscapeHtml(from.name) + " to " + EscapeHtml(to.name);
    if (from.output_bytes > 0) tip += ", " + FormatBytes(from.output_bytes);
    if (crosses) tip += "; moves from " + EscapeHtml(from.device) + " to " + EscapeHtml(to.device);
    return fmt::format("<path class=\"edge{}\" data-from=\"{}\" data-to=\"{}\" data-tip=\"{}\" d=\"{}\"/>\n",
                       crosses ? " cross" : "", edge.first, edge.second, tip, PathData(points));
  }

  std::string Box(size_t index, const Point& corner) {
    const Node& node = report_.nodes[index];
    const double x = corner.x + kMargin, y = corner.y + kMargin;
    const auto cost = node.costs_us.find(node.device);
    std::string time;
    if (node.actual_us) {
      time = FormatUs(node.actual_us->value);
    } else if (cost != node.costs_us.end()) {
      time = FormatUs(cost->second);
    }
    std::string op = node.op;
    if (!node.fused.empty()) op += " + " + node.fused;
    std::string tip = EscapeHtml(node.name) + ", " + EscapeHtml(op) + " on " + EscapeHtml(node.device);
    return fmt::format(
        "<g class=\"node {0}\" data-node=\"{1}\" data-tip=\"{2}\" tabindex=\"0\" role=\"button\">"
        "<rect x=\"{3:.1f}\" y=\"{4:.1f}\" width=\"{5:.0f}\" height=\"{6:.0f}\" rx=\"7\"/>"
        "<text x=\"{7:.1f}\" y=\"{8:.1f}\" class=\"name\">{9}</text>"
        "<text x=\"{7:.1f}\" y=\"{10:.1f}\" class=\"op\">{11}</text>"
        "<text x=\"{12:.1f}\" y=\"{10:.1f}\" class=\"time\">{13}</text></g>\n",
        Class(node.device), index, tip, x, y, options_.node_width, options_.node_height, x + 12, y + 19,
        EscapeHtml(Shorten(node.name, 25)), y + 36, EscapeHtml(Shorten(op, 17)), x + options_.node_width - 10, time);
  }

  const Report& report_;
  std::map<std::string, std::string> classes_;
  std::vector<std::pair<int, int>> edges_;
  LayoutOptions options_;
};

}  // namespace

std::map<std::string, std::string> DeviceClasses(const Report& report) {
  static const std::map<std::string, int> by_kind = {{"cpu", 0}, {"gpu", 1}, {"accelerator", 2}};
  std::map<std::string, std::string> classes;
  std::vector<bool> taken(8);
  std::vector<const DeviceUse*> late;
  for (const DeviceUse& device : report.devices) {
    const auto kind = by_kind.find(device.kind);
    if (kind == by_kind.end() || taken[kind->second]) {
      late.push_back(&device);
      continue;
    }
    taken[kind->second] = true;
    classes[device.name] = "d" + std::to_string(kind->second);
  }
  size_t next = 3;
  for (const DeviceUse* device : late) classes[device->name] = "d" + std::to_string(std::min<size_t>(next++, 7));
  return classes;
}

std::string GraphSvg(const Report& report) { return Picture(report).Draw(); }

}  // namespace heddle::report
