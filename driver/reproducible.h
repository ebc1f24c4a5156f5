// What `--reproducible` asks of a run: the same bytes for the same inputs and flags, whenever and wherever it is made, so that
// a build system may keep its results in a cache and share them.
#ifndef HEDDLE_DRIVER_REPRODUCIBLE_H_
#define HEDDLE_DRIVER_REPRODUCIBLE_H_

#include <string>
#include <vector>

#include "driver/partition_model.h"
#include "ir/partition/plan.h"
#include "ir/status.h"
#include "report/report.h"

namespace heddle::driver {

// E-USAGE-040 where a device was left out because this machine cannot run it (`notes` of MakeDevices says so).
absl::Status CheckNothingLeftOut(const std::vector<std::string>& notes);

// E-USAGE-041 where a cost was measured on this machine; E-USAGE-042 where the solver stopped at its time limit, so that a
// faster machine could find another plan.
absl::Status CheckPlanReproducible(const PartitionModel& model, const ir::partition::Result& result);

// Wall-clock figures become 0: seconds of the solver, speed of the simulators.
void DropWallClock(report::Report& report);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_REPRODUCIBLE_H_
