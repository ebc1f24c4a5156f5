// Exit statuses of the command line. Stable: scripts depend on them.
#ifndef HEDDLE_DRIVER_EXIT_CODES_H_
#define HEDDLE_DRIVER_EXIT_CODES_H_

#include <absl/status/status.h>

#include "ir/status.h"

namespace heddle::driver {

enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitUsage = 2,
  kExitBadModel = 3,
  kExitBudgetMissed = 4,
  kExitMismatch = 5,
  kExitToolFailed = 6,
  kExitInterrupted = 130,
};

// From the area of the error's code: E-USAGE, E-TARGET, E-ACCEL, E-INPUT and E-QUANT-1xx are usage, E-BUDGET a missed budget, E-VERIFY a
// mismatch, E-TOOL a failed program; an error with any other code is the model's; one without a code is ours.
inline int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  const std::string code = ir::ErrorCode(status);
  auto area = [&](std::string_view name) { return code.starts_with(name); };
  if (area("E-USAGE") || area("E-TARGET") || area("E-ACCEL") || area("E-INPUT") || area("E-QUANT-1")) return kExitUsage;
  if (area("E-BUDGET")) return kExitBudgetMissed;
  if (area("E-VERIFY")) return kExitMismatch;
  if (area("E-TOOL")) return kExitToolFailed;
  return code.empty() ? kExitInternal : kExitBadModel;
}

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_EXIT_CODES_H_
