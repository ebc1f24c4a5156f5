// A wrong result is worse than a slow one: the verdict comes first, budgets only matter where it holds.

#include "driver/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/format.h"

namespace heddle::driver {
namespace {

std::string VerdictText(const report::Verdict& verdict) {
  if (!verdict.compared) return "nothing was compared";
  if (verdict.bit_exact) return fmt::format("bit-exact in {}", fmt::join(verdict.compared_against, ", "));
  double error = 0;
  int64_t elements = 0, mismatches = 0;
  for (const report::OutputCheck& output : verdict.outputs) {
    elements += output.elements;
    mismatches += output.mismatches;
    error = std::max(error, output.max_abs_error);
  }
  if (verdict.within_bounds) return fmt::format("within bounds, not bit-exact: largest error {:.3g}", error);
  return fmt::format("{} of {} output elements differ, by up to {:.6g}", mismatches, elements, error);
}

absl::Status JudgeVerdict(const report::Verdict& verdict, bool within_bounds) {
  if (!verdict.compared) {
    return ir::UserError("E-VERIFY-002", "the run compared nothing with the reference interpreter", "run it without --verify none");
  }
  if (verdict.bit_exact || (within_bounds && verdict.within_bounds)) return absl::OkStatus();
  return ir::UserError("E-VERIFY-003", "the verdict is not bit-exact: " + VerdictText(verdict),
                       verdict.within_bounds ? "allow floating-point results with --within-bounds" : "see verify/diff.json of the run");
}

class BudgetList {
 public:
  explicit BudgetList(std::string& text) : text_(text) {}

  // `found` is absent where the report has no such figure.
  void Check(const std::string& name, std::optional<double> found, double allowed, const std::string& unit) {
    const bool met = found && *found <= allowed;
    const std::string line = found ? fmt::format("{} {} found, {} allowed", Number(*found), unit, Number(allowed))
                                   : fmt::format("no figure in the report, {} {} allowed", Number(allowed), unit);
    text_ += fmt::format("{:<8} {:<6} {}\n", name, met ? "ok" : "MISSED", line);
    if (!met) misses_ += fmt::format("{}{}: {}", misses_.empty() ? "" : "; ", name, line);
  }

  absl::Status Judge() const {
    if (misses_.empty()) return absl::OkStatus();
    return ir::UserError("E-BUDGET-003", "the run misses its budget: " + misses_, "the report's lines 'bottleneck' and 'knob' say what to change");
  }

 private:
  static std::string Number(double value) {
    return value == static_cast<double>(static_cast<int64_t>(value)) ? report::FormatThousands(static_cast<int64_t>(value)) : fmt::format("{:.2f}", value);
  }

  std::string& text_;
  std::string misses_;
};

}  // namespace

absl::Status CheckReport(const report::Report& report, const Budgets& budgets, std::string& text) {
  const absl::Status verdict = JudgeVerdict(report.verdict, budgets.within_bounds);
  text = fmt::format("{:<8} {:<6} {}\n", "verdict", verdict.ok() ? "ok" : "WRONG", VerdictText(report.verdict));
  BudgetList list(text);
  if (budgets.max_cycles) {
    const bool simulated = report.accelerator && report.accelerator->cycles_simulated > 0;
    list.Check("cycles", simulated ? std::optional<double>(report.accelerator->cycles_simulated) : std::nullopt,
               static_cast<double>(*budgets.max_cycles), "cycles");
  }
  if (budgets.max_latency_us) list.Check("latency", report.latency_us.value, *budgets.max_latency_us, "us");
  if (budgets.max_luts) {
    list.Check("lut", report.resources ? std::optional<double>(report.resources->lut) : std::nullopt,
               static_cast<double>(*budgets.max_luts), "LUT");
  }
  return verdict.ok() ? list.Judge() : verdict;
}

}  // namespace heddle::driver
