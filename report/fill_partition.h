// From the partitioner's result to the report's words.
#ifndef HEDDLE_REPORT_FILL_PARTITION_H_
#define HEDDLE_REPORT_FILL_PARTITION_H_

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"
#include "report/report.h"

namespace heddle::report {

// Sets report.partition; for each node of the problem, found by name in report.nodes or appended there: device, region,
// inputs, costs_us, provenance, not_on, alternatives, flips_if and why; and the alone_us of the devices found by name
// in report.devices. Regions are named region_000, region_001, … in the order of result.evaluation.regions.
void FillPartition(const ir::partition::Problem& problem, const ir::partition::Result& result, Report& report);

}  // namespace heddle::report

#endif  // HEDDLE_REPORT_FILL_PARTITION_H_
