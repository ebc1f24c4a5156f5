// `heddle check`: a finished run's verdict and figures against what is allowed, as an exit status for tests and CI.
#ifndef HEDDLE_DRIVER_CHECK_H_
#define HEDDLE_DRIVER_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ir/status.h"
#include "report/report.h"

namespace heddle::driver {

struct Budgets {
  std::optional<int64_t> max_cycles;      // of the accelerator, simulated
  std::optional<double> max_latency_us;   // of one inference, everything included
  std::optional<int64_t> max_luts;
  bool within_bounds = false;             // floating point within its stated bounds is enough
};

// One line for each thing that was checked in `text`. Errors: E-VERIFY-002 nothing was compared, E-VERIFY-003 outputs differ;
// then E-BUDGET-003, which names every budget that is missed or that the report has no figure for.
absl::Status CheckReport(const report::Report& report, const Budgets& budgets, std::string& text);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_CHECK_H_
