// One node's full story, for `heddle explain DIR NODE`.
#include <fmt/format.h>

#include <algorithm>

#include "ir/status.h"
#include "report/format.h"
#include "report/print.h"

namespace heddle::report {
namespace {

// Edits (insert, delete, replace) between two names.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

absl::Status NoSuchNode(const Report& report, const std::string& wanted) {
  std::vector<std::pair<size_t, std::string>> names;
  for (const Node& node : report.nodes) {
    const bool part = node.name.find(wanted) != std::string::npos;
    names.emplace_back(part ? 0 : Distance(wanted, node.name), node.name);
  }
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string nearest;
  for (size_t i = 0; i < std::min<size_t>(3, names.size()); ++i) {
    nearest += (i ? "', '" : "") + Printable(names[i].second);
  }
  return ir::UserError("E-REPORT-002",
                       fmt::format("expected one of the {} nodes of {}, found '{}'", report.nodes.size(),
                                   Printable(report.model.path), Printable(wanted)),
                       nearest.empty() ? "" : "Nearest names: '" + nearest + "'.");
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + Printable(name);
  return text.empty() ? "-" : text;
}

std::string Signed(double us) { return (us >= 0 ? "+" : "") + FormatUs(us); }

class Story {
 public:
  Story(const Report& report, const Node& node, const TextOptions& options)
      : report_(report), node_(node), options_(options) {}

  std::string Print() {
    out_ = options_.color ? "\x1b[1m" + Printable(node_.name) + "\x1b[0m\n" : Printable(node_.name) + "\n";
    Line("op", Printable(node_.op) + (node_.fused.empty() ? "" : ", with " + Printable(node_.fused)));
    if (!node_.sources.empty() && node_.sources != std::vector<std::string>{node_.name}) Line("stands for", Joined(node_.sources));
    if (!node_.shape.empty()) Line("result", Printable(node_.shape) + ", " + FormatBytes(node_.output_bytes));
    Line("work", FormatCount(node_.macs) + " MACs, " + FormatCount(node_.parameters) + " parameters");
    Line("runs on", Printable(node_.device) + (node_.region.empty() ? "" : " in " + Printable(node_.region)));
    if (const auto cost = node_.costs_us.find(node_.device); cost != node_.costs_us.end()) {
      Line("predicted", FormatUs(cost->second) + ", " + Provenance(node_.device));
    }
    Outcome();
    Line("why", Printable(node_.why));
    for (const Alternative& other : node_.alternatives) Elsewhere(other);
    for (const auto& [device, refusal] : node_.not_on) {
      Line("not on " + Printable(device),
           Printable(refusal.code.empty() ? refusal.text : refusal.code + ": " + refusal.text));
    }
    Line("reads", Joined(node_.inputs));
    Line("read by", Joined(Readers()));
    return out_;
  }

 private:
  void Line(const std::string& label, const std::string& text) {
    if (!text.empty()) out_ += fmt::format("  {:<19} {}\n", label, text);
  }

  std::string Provenance(const std::string& device) const {
    const auto found = node_.provenance.find(device);
    return found == node_.provenance.end() ? "modelled" : found->second;
  }

  void Outcome() {
    const auto cost = node_.costs_us.find(node_.device);
    const double predicted_us = cost == node_.costs_us.end() ? 0 : cost->second;
    if (node_.actual_us) {
      Line("found", fmt::format("{}, {} ({})", FormatUs(node_.actual_us->value), node_.actual_us->provenance,
                                FormatDeviation(predicted_us, node_.actual_us->value)));
    }
    if (node_.cycles_simulated > 0) {
      Line("cycles", fmt::format("{} estimated, {} simulated ({})", FormatThousands(node_.cycles_estimated),
                                 FormatThousands(node_.cycles_simulated),
                                 FormatDeviation(node_.cycles_estimated, node_.cycles_simulated)));
    } else if (node_.cycles_estimated > 0) {
      Line("cycles", FormatThousands(node_.cycles_estimated) + " estimated");
    }
  }

  void Elsewhere(const Alternative& other) {
    std::string text = fmt::format("{} there, {}", FormatUs(other.cost_us), Provenance(other.device));
    if (other.transfer_delta_us != 0) text += fmt::format("; transfers {}", Signed(other.transfer_delta_us));
    if (other.launch_delta_us != 0) text += fmt::format("; launches {}", Signed(other.launch_delta_us));
    Line("on " + Printable(other.device), text + "; whole plan " + (other.delta_uj ? (*other.delta_uj >= 0 ? "+" : "") + FormatUj(*other.delta_uj) : Signed(other.delta_us)));
    for (const Flip& flip : node_.flips_if) {
      if (flip.device == other.device) Line("", Printable(flip.text));
    }
  }

  std::vector<std::string> Readers() const {
    std::vector<std::string> readers;
    for (const Node& other : report_.nodes) {
      if (std::find(other.inputs.begin(), other.inputs.end(), node_.name) != other.inputs.end()) {
        readers.push_back(other.name);
      }
    }
    return readers;
  }

  const Report& report_;
  const Node& node_;
  const TextOptions& options_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> PrintNode(const Report& report, const std::string& name, const TextOptions& options) {
  const auto node =
      std::find_if(report.nodes.begin(), report.nodes.end(), [&](const Node& other) { return other.name == name; });
  if (node == report.nodes.end()) return NoSuchNode(report, name);
  return Story(report, *node, options).Print();
}

}  // namespace heddle::report
