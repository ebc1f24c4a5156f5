// The plan's full story, for `heddle explain DIR`: its regions, what cuts them apart, what crosses the borders, who is busy when.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/format.h"
#include "report/print.h"

namespace heddle::report {
namespace {

constexpr size_t kMostLines = 20;  // of one list; the rest is counted

class PlanStory {
 public:
  PlanStory(const Report& report, const TextOptions& options) : report_(report), options_(options) {
    for (const Node& node : report.nodes) nodes_[node.name] = &node;
    for (const DeviceUse& device : report.devices) kinds_[device.name] = device.kind;
  }

  std::string Print() {
    Regions();
    for (const DeviceUse& device : report_.devices) {
      if (device.kind != "cpu") Cuts(device.name);
    }
    Borders();
    Alone();
    Busy();
    return out_;
  }

 private:
  void Heading(const std::string& text) { out_ += (out_.empty() ? "" : "\n") + (options_.color ? "\x1b[1m" + text + "\x1b[0m" : text) + "\n"; }
  void Line(const std::string& text) { out_ += "  " + text + "\n"; }

  static std::string Span(const Region& region) {
    if (region.nodes.empty()) return "";
    return region.nodes.size() == 1 ? Printable(region.nodes[0]) : Printable(region.nodes.front()) + " … " + Printable(region.nodes.back());
  }

  void Regions() {
    const std::vector<Region>& regions = report_.partition.regions;
    Heading(fmt::format("{} region{} in the order of execution", regions.size(), regions.size() == 1 ? "" : "s"));
    for (const Region& region : regions) {
      std::string found = region.actual_us ? fmt::format(", {} found", FormatUs(region.actual_us->value)) : "";
      Line(fmt::format("{}  {:<12} {:>4} node{} {:>10} predicted{}  {}", Printable(region.name), Printable(region.device), region.nodes.size(),
                       region.nodes.size() == 1 ? " " : "s", FormatUs(region.predicted_us.value), found, Span(region)));
    }
  }

  // Why a node is not on `device`.
  std::string Reason(const Node& node, const std::string& device) const {
    if (const auto refusal = node.not_on.find(device); refusal != node.not_on.end()) {
      return "cannot run there, " + Printable(refusal->second.code.empty() ? refusal->second.text : refusal->second.code + ": " + refusal->second.text);
    }
    for (const Alternative& other : node.alternatives) {
      if (other.device == device) return fmt::format("not worth it, the plan would take {} longer", FormatUs(other.delta_us));
    }
    return Printable(node.why);
  }

  // The nodes elsewhere between the device's first and last region: without them it would be one region.
  void Cuts(const std::string& device) {
    const std::vector<Region>& regions = report_.partition.regions;
    const auto on_device = [&](const Region& region) { return region.device == device; };
    const auto first = std::find_if(regions.begin(), regions.end(), on_device);
    const auto last = std::find_if(regions.rbegin(), regions.rend(), on_device).base();
    const auto count = std::count_if(regions.begin(), regions.end(), on_device);
    std::vector<const Node*> inside, outside;
    for (auto region = regions.begin(); region != regions.end(); ++region) {
      if (region->device == device) continue;
      for (const std::string& name : region->nodes) {
        if (const auto node = nodes_.find(name); node != nodes_.end()) (count > 0 && region > first && region < last ? inside : outside).push_back(node->second);
      }
    }
    Heading(count == 0 ? Printable(device) + " runs nothing" : fmt::format("{} runs {} region{}", Printable(device), count, count == 1 ? "" : "s"));
    if (count > 1) List("cut apart by", Grouped(inside, device));
    if (count == 1) Line("nothing cuts it apart");
    List(count == 0 ? "all nodes are elsewhere" : "before, after or beside it", Grouped(outside, device));
  }

  // "88 Add on gpu, first layer.0/add: cannot run there, E-ACC-002: …": one line for each kind of reason, the largest first.
  std::vector<std::string> Grouped(const std::vector<const Node*>& nodes, const std::string& device) const {
    struct Group {
      const Node* first;
      int count = 0;
    };
    std::map<std::string, Group> groups;
    for (const Node* node : nodes) {
      const auto refusal = node->not_on.find(device);
      const std::string kind = refusal == node->not_on.end() ? "" : refusal->second.code;
      ++groups.try_emplace(node->op + "\n" + node->device + "\n" + kind, Group{node}).first->second.count;
    }
    std::vector<const Group*> order;
    for (const auto& [key, group] : groups) order.push_back(&group);
    std::stable_sort(order.begin(), order.end(), [](const Group* a, const Group* b) { return a->count > b->count; });
    std::vector<std::string> lines;
    for (const Group* group : order) {
      const std::string name = Printable(group->first->name) + " on " + Printable(group->first->device);
      const std::string what = group->count == 1 ? name : fmt::format("{} {}, first {}", group->count, Printable(group->first->op), name);
      lines.push_back(what + ": " + Reason(*group->first, device));
    }
    return lines;
  }

  void List(const std::string& label, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    Line(label + ":");
    for (size_t i = 0; i < std::min(texts.size(), kMostLines); ++i) Line("  " + texts[i]);
    if (texts.size() > kMostLines) Line(fmt::format("  and {} more (report.json has all)", texts.size() - kMostLines));
  }

  void Borders() {
    Heading("what crosses from device to device");
    if (report_.partition.transfers.empty()) Line("nothing");
    std::vector<std::string> lines;
    for (const Transfer& transfer : report_.partition.transfers) {
      lines.push_back(fmt::format("{} from {} to {}: {}, {}", Printable(transfer.tensor), Printable(transfer.from), Printable(transfer.to),
                                  FormatBytes(static_cast<double>(transfer.bytes)), FormatUs(transfer.us)));
    }
    List(fmt::format("{} transfer{}, {} together", lines.size(), lines.size() == 1 ? "" : "s", FormatUs(report_.partition.transfer_us)), lines);
    const bool known = std::any_of(report_.nodes.begin(), report_.nodes.end(), [](const Node& node) { return !node.sources.empty(); });
    if (!known) return;  // a report of an earlier version
    std::vector<std::string> added;
    for (const Node& node : report_.nodes) {
      if (node.sources.empty()) added.push_back(fmt::format("{} ({}) on {}", Printable(node.name), Printable(node.op), Printable(node.device)));
    }
    if (added.empty()) {
      Line("every node computes something that the model has; none was added");
    } else {
      List("nodes that the model does not have", added);
    }
  }

  void Alone() {
    Heading("everything on one device");
    for (const DeviceUse& device : report_.devices) {
      const auto refused = std::count_if(report_.nodes.begin(), report_.nodes.end(), [&](const Node& node) { return node.not_on.count(device.name) > 0; });
      Line(fmt::format("{:<12} {}", Printable(device.name),
                       device.alone_us ? fmt::format("{} {}; the plan takes {}", FormatUs(device.alone_us->value), device.alone_us->provenance,
                                                     FormatUs(report_.latency_us.value))
                                       : fmt::format("not possible: it refuses {} node{}", refused, refused == 1 ? "" : "s")));
    }
  }

  // "accelerator.load" is the accelerator's.
  std::string DeviceOf(const Event& event) const {
    const std::string device = event.resource.substr(0, event.resource.find('.'));
    return kinds_.count(device) ? device : "";
  }

  void Busy() {
    std::map<std::string, std::vector<std::pair<double, double>>> spans;  // by device or link
    double end_us = 0;
    for (const Event& event : report_.timeline) {
      const std::string device = DeviceOf(event);
      spans[device.empty() ? event.resource : device].emplace_back(event.start_us, event.end_us);
      end_us = std::max(end_us, event.end_us);
    }
    if (!(end_us > 0)) return;
    Heading(fmt::format("who is busy during one inference of {}", FormatUs(end_us)));
    std::pair<double, std::string> busiest;
    std::vector<std::pair<double, int>> edges;  // of devices: when one starts (+1) and ends (-1)
    for (auto& [name, list] : spans) {
      double busy_us = 0;
      for (const auto& [start, end] : Union(list)) {
        busy_us += end - start;
        if (!kinds_.count(name)) continue;
        edges.emplace_back(start, 1);
        edges.emplace_back(end, -1);
      }
      busiest = std::max(busiest, {busy_us, name});
      Line(fmt::format("{:<24} {:>10}  {}", Printable(name), FormatUs(busy_us), FormatPercent(100 * busy_us / end_us)));
    }
    Line(fmt::format("two devices at work at once: {} of {}", FormatUs(Together(edges)), FormatUs(end_us)));
    Line(fmt::format("{} holds up the others: with these regions inferences can follow each other every {} at best", Printable(busiest.second),
                     FormatUs(busiest.first)));
  }

  static std::vector<std::pair<double, double>> Union(std::vector<std::pair<double, double>> spans) {
    std::sort(spans.begin(), spans.end());
    std::vector<std::pair<double, double>> merged;
    for (const auto& [start, end] : spans) {
      if (merged.empty() || start > merged.back().second) {
        merged.emplace_back(start, end);
      } else {
        merged.back().second = std::max(merged.back().second, end);
      }
    }
    return merged;
  }

  static double Together(std::vector<std::pair<double, int>> edges) {
    std::sort(edges.begin(), edges.end());  // an end before a start at the same time
    double together_us = 0, since = 0;
    int at_work = 0;
    for (const auto& [us, change] : edges) {
      if (at_work > 1) together_us += us - since;
      at_work += change;
      since = us;
    }
    return together_us;
  }

  const Report& report_;
  const TextOptions options_;
  std::map<std::string, const Node*> nodes_;
  std::map<std::string, std::string> kinds_;
  std::string out_;
};

}  // namespace

std::string PrintPlan(const Report& report, const TextOptions& options) { return PlanStory(report, options).Print(); }

}  // namespace heddle::report
