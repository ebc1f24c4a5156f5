// Two runs' accelerators side by side: why so many times the MACs a cycle gave so few times the speed.
//
// With all lanes busy all the time, cycles shrink as the MACs a cycle grow. Each cause's excess is what it takes beyond its
// share of that; the excesses add up to the distance from the ideal, so the sentence accounts for all of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/format.h"
#include "report/report.h"

namespace heddle::report {
namespace {

int64_t CyclesOf(const Accelerator& a) { return a.cycles_simulated > 0 ? a.cycles_simulated : a.cycles_estimated; }

}  // namespace

const LayerCycles* WorstLayer(const Accelerator& accelerator) {
  const LayerCycles* worst = nullptr;
  double worst_error = -1;
  for (const LayerCycles& layer : accelerator.layers) {
    if (layer.cycles_simulated <= 0) continue;
    const double error = std::abs(static_cast<double>(layer.cycles_estimated - layer.cycles_simulated)) / static_cast<double>(layer.cycles_simulated);
    if (error <= worst_error) continue;
    worst = &layer;
    worst_error = error;
  }
  return worst;
}

std::string CompareAccelerators(const Report& before, const Report& after) {
  if (!before.accelerator || !after.accelerator) return "";
  const Accelerator& a = *before.accelerator;
  const Accelerator& b = *after.accelerator;
  if (CyclesOf(a) <= 0 || CyclesOf(b) <= 0 || a.macs_per_cycle_peak <= 0 || b.macs_per_cycle_peak <= 0) return "";
  const double lanes = static_cast<double>(b.macs_per_cycle_peak) / static_cast<double>(a.macs_per_cycle_peak);
  const double speed = static_cast<double>(CyclesOf(a)) / static_cast<double>(CyclesOf(b));
  std::string text = fmt::format("{:.4g} times the MACs a cycle ({} -> {}) gave {:.3g} times the speed: {} -> {} cycles", lanes,
                                 a.macs_per_cycle_peak, b.macs_per_cycle_peak, speed, FormatThousands(CyclesOf(a)), FormatThousands(CyclesOf(b)));
  const double ideal = static_cast<double>(CyclesOf(a)) / lanes;
  if (static_cast<double>(CyclesOf(b)) <= ideal || b.cycles_by_cause.empty()) return text + ".";
  std::vector<std::pair<double, std::string>> excesses;
  for (const auto& [cause, cycles] : b.cycles_by_cause) {
    const auto found = a.cycles_by_cause.find(cause);
    const double share = found == a.cycles_by_cause.end() ? 0 : static_cast<double>(found->second) / lanes;
    const double excess = static_cast<double>(cycles) - share;
    if (excess >= 0.5) excesses.emplace_back(-excess, Words(cause));
  }
  std::sort(excesses.begin(), excesses.end());
  text += fmt::format("; of the {} above the ideal {}, ", FormatThousands(std::llround(static_cast<double>(CyclesOf(b)) - ideal)),
                      FormatThousands(std::llround(ideal)));
  for (size_t i = 0; i < std::min<size_t>(4, excesses.size()); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", FormatThousands(std::llround(-excesses[i].first)), excesses[i].second);
  }
  return text + (b.knob.empty() ? "." : "; the knob now: " + b.knob + ".");
}

}  // namespace heddle::report
