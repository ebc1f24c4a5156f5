// The timeline of one inference: transfers, launches and regions one after the other, as the plan's objective assumes.
#ifndef HEDDLE_DRIVER_TIMELINE_H_
#define HEDDLE_DRIVER_TIMELINE_H_

#include <optional>

#include "driver/fill_report.h"
#include "report/report.h"

namespace heddle::driver {

// What region `index` took on the target's device: RTL cycles, or wall time where the device is this machine's; nothing
// where another processor stood in for the target's.
std::optional<report::Quantity> ActualTime(const RunFacts& facts, size_t index);

// Fills report.timeline and report.latency_us. Needs report.partition.
void BuildTimeline(const RunFacts& facts, report::Report& report);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_TIMELINE_H_
