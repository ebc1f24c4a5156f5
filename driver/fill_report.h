// Gathers what a run found into the one Report value.
#ifndef HEDDLE_DRIVER_FILL_REPORT_H_
#define HEDDLE_DRIVER_FILL_REPORT_H_

#include <vector>

#include "driver/execute.h"
#include "driver/partition_model.h"
#include "driver/target.h"
#include "driver/verify.h"
#include "hls/synthesis.h"
#include "ir/graph.h"
#include "ir/partition/plan.h"
#include "report/report.h"

namespace heddle::driver {

struct RunFacts {
  const ir::Graph& graph;
  const DeviceList& devices;
  const Target& target;
  const PartitionModel& model;
  const ir::partition::Result& result;
  const std::vector<CompiledPlanRegion>& regions;
  const PlanRun* run;  // null: nothing was run
  const std::vector<CrossCheck>& checks;
  const hls::Synthesis* synthesis = nullptr;  // null: not asked for
};

// Everything but model, target, version and notes, which are set before.
void FillReport(const RunFacts& facts, report::Report& report);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_FILL_REPORT_H_
