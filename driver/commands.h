// The commands beside the main job. Each prints to stdout.
#ifndef HEDDLE_DRIVER_COMMANDS_H_
#define HEDDLE_DRIVER_COMMANDS_H_

#include <string>

#include "driver/check.h"
#include "driver/options.h"
#include "ir/status.h"

namespace heddle::driver {

absl::Status RunCommand(const RunOptions& options);        // run, compile
absl::Status PartitionCommand(const RunOptions& options);  // the plan as JSON, nothing written
// Repeats a directory's run with its own configuration and other inputs or waves.
absl::Status SimulateCommand(const std::string& directory, const RunOptions& changes);
absl::Status ReportCommand(const std::string& directory, const std::string& format);
absl::Status CheckCommand(const std::string& directory, const Budgets& budgets);
absl::Status ExplainCommand(const std::string& directory, const std::string& node);  // node empty: the plan
// E-BUDGET-002 where b is slower than a by more than `max_slowdown_percent` (negative: no limit).
absl::Status DiffCommand(const std::string& a, const std::string& b, double max_slowdown_percent);
absl::Status ImportCommand(const RunOptions& options, bool full);
absl::Status TargetsCommand();
absl::Status OpsCommand();
absl::Status PassesCommand();
absl::Status VersionCommand();

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_COMMANDS_H_
