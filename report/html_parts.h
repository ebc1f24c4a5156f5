// The pieces of index.html. Each returns markup whose tags are balanced and whose texts are escaped.
#ifndef HEDDLE_REPORT_HTML_PARTS_H_
#define HEDDLE_REPORT_HTML_PARTS_H_

#include <map>
#include <string>

#include "report/report.h"

namespace heddle::report {

// Device name → CSS class "d0" to "d7". CPU, GPU and accelerator have colours of their own; further devices take the
// next free ones.
std::map<std::string, std::string> DeviceClasses(const Report& report);

// The network as SVG, layer below layer; nodes carry data-node="INDEX in report.nodes".
std::string GraphSvg(const Report& report);

// Rows of resources over time as SVG; "" where there are no events.
std::string TimelineSvg(const Report& report);

// The accelerator's layers below its roofs as SVG; "" where it has no layer with MACs.
std::string RooflineSvg(const Report& report);

// Sections with tables.
std::string LayersTable(const Report& report);
std::string DetailTables(const Report& report);

}  // namespace heddle::report

#endif  // HEDDLE_REPORT_HTML_PARTS_H_
