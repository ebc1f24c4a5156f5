// The printers of a Report. Deterministic: equal reports give equal bytes.
#ifndef HEDDLE_REPORT_PRINT_H_
#define HEDDLE_REPORT_PRINT_H_

#include <absl/status/statusor.h>

#include <string>

#include "report/report.h"

namespace heddle::report {

struct TextOptions {
  bool color = false;  // ANSI colours
};

// The first screen: at most 80 columns; verdict, devices, total, accelerator, certificate, bottleneck.
std::string PrintText(const Report& report, const TextOptions& options = {});

// report.json; two spaces of indentation, keys in the order of the schema, one line feed at the end.
std::string PrintJson(const Report& report);

// index.html: one file without any reference to the network.
std::string PrintHtml(const Report& report);

// trace.json for Perfetto or chrome://tracing: one track for each resource, microseconds.
std::string PrintTrace(const Report& report);

// All that is known about one node, for `heddle explain DIR NODE`. E-REPORT-002 where there is no such node; the
// message names the nearest names.
absl::StatusOr<std::string> PrintNode(const Report& report, const std::string& node, const TextOptions& options = {});

// The plan's story, for `heddle explain DIR`: regions and what cuts them apart, what crosses the borders and which nodes were
// added there, everything on one device, who is busy and how much of it at the same time.
std::string PrintPlan(const Report& report, const TextOptions& options = {});

// Reads what PrintJson wrote. E-REPORT-001 where the text is no report or of another schema version.
absl::StatusOr<Report> ReadReport(const std::string& json);

}  // namespace heddle::report

#endif  // HEDDLE_REPORT_PRINT_H_
