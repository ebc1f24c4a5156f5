// Derives the figures that follow from others: what binds the run, and which knob promises most.
//
// The gain of a knob is what the plan as it stands would save; a plan made anew for the changed target can only do
// better, so it is a lower estimate.
#include <fmt/format.h>

#include <algorithm>

#include "report/format.h"
#include "report/report.h"

namespace heddle::report {
namespace {

struct Share {
  std::string what;
  double us = 0;
  std::string knob;
};

// The accelerator's time by cause, if it was simulated.
void SplitAccelerator(const Report& report, const DeviceUse& device, std::vector<Share>& shares) {
  const Accelerator& accelerator = *report.accelerator;
  const double us_per_cycle = accelerator.clock_mhz > 0 ? 1 / accelerator.clock_mhz : 0;
  double rest_us = device.time_us.value;
  if (!accelerator.cycles_by_cause.empty()) {
    for (const auto& [cause, cycles] : accelerator.cycles_by_cause) {
      const double us = static_cast<double>(cycles) * us_per_cycle;
      rest_us -= us;
      std::string knob = accelerator.knob;
      if (knob.empty() && cause == "multiplying") knob = fmt::format("twice the MACs a cycle: about {} less if they can be kept busy", FormatUs(us / 2));
      if (knob.empty()) knob = fmt::format("without it about {} less", FormatUs(us));
      shares.push_back({fmt::format("{}: {}", device.name, Words(cause)), us, knob});
    }
    if (rest_us > 0) shares.push_back({device.name + ": starting regions", rest_us, "fewer regions, or one start for several inferences"});
    return;
  }
  for (const auto& [cause, cycles] : accelerator.stall_cycles) {
    // Units stall side by side: no single cause can be larger than what is left of the device's time.
    const double us = std::min(rest_us, static_cast<double>(cycles) * us_per_cycle);
    rest_us -= us;
    shares.push_back(
        {fmt::format("{}: {}", device.name, Words(cause)), us, fmt::format("without it about {} less", FormatUs(us))});
  }
  shares.push_back(
      {device.name + ": multiplying", rest_us,
       fmt::format("twice the MACs a cycle: about {} less if they can be kept busy", FormatUs(rest_us / 2))});
}

}  // namespace

void Summarise(Report& report) {
  for (const DeviceUse& device : report.devices) {
    if (device.kind == "cpu" && device.alone_us && !report.cpu_only_us) report.cpu_only_us = device.alone_us;
  }
  if (!report.bottleneck.what.empty()) return;
  std::vector<Share> shares;
  for (const DeviceUse& device : report.devices) {
    if (device.time_us.value <= 0) continue;
    if (device.kind == "accelerator" && report.accelerator && report.accelerator->cycles_simulated > 0) {
      SplitAccelerator(report, device, shares);
    } else {
      shares.push_back(
          {device.name + ": computing", device.time_us.value,
           fmt::format("the {} twice as fast: about {} less", device.name, FormatUs(device.time_us.value / 2))});
    }
  }
  if (report.partition.transfer_us > 0) {
    const double transfer_us = report.partition.transfer_us;
    shares.push_back({"transfers between devices", transfer_us,
                      fmt::format("links twice as fast: about {} less", FormatUs(transfer_us / 2))});
  }
  const auto largest =
      std::max_element(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.us < b.us; });
  double total_us = 0;
  for (const Share& share : shares) total_us += share.us;
  if (largest == shares.end() || total_us <= 0) return;
  report.bottleneck = {largest->what, 100 * largest->us / total_us, largest->knob};
}

}  // namespace heddle::report
