// The timeline of the plan: one inference, devices and links side by side as the plan's sequence has them, and a steady
// stream of inferences.
#ifndef HEDDLE_DRIVER_TIMELINE_H_
#define HEDDLE_DRIVER_TIMELINE_H_

#include <optional>

#include "driver/fill_report.h"
#include "report/report.h"

namespace heddle::driver {

// What region `index` took on the target's device: RTL cycles, or wall time where the device is this machine's; nothing
// where another processor stood in for the target's.
std::optional<report::Quantity> ActualTime(const RunFacts& facts, size_t index);

// Fills report.timeline, report.latency_us and report.steady.
void BuildTimeline(const RunFacts& facts, report::Report& report);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_TIMELINE_H_
