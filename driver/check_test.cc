// Verdicts and budgets: each is met, missed and absent once.

#include "driver/check.h"

#include <gtest/gtest.h>

#include "driver/reproducible.h"

namespace heddle::driver {
namespace {

report::Report FinishedRun() {
  report::Report report;
  report.verdict.compared = report.verdict.bit_exact = report.verdict.within_bounds = true;
  report.verdict.compared_against = {"reference interpreter", "plan (cpu + accelerator RTL)"};
  report.verdict.outputs = {{"out", 10, 0, 0}};
  report.latency_us = {41.6, "mixed"};
  report.accelerator.emplace();
  report.accelerator->cycles_simulated = 2982;
  report.resources.emplace();
  report.resources->lut = 33590;
  return report;
}

std::string CodeOf(const report::Report& report, const Budgets& budgets) {
  std::string text;
  return ir::ErrorCode(CheckReport(report, budgets, text));
}

TEST(CheckTest, BitExactWithoutBudgetsPasses) { EXPECT_EQ(CodeOf(FinishedRun(), {}), ""); }

TEST(CheckTest, BudgetsAreInclusive) {
  EXPECT_EQ(CodeOf(FinishedRun(), {.max_cycles = 2982, .max_latency_us = 41.6, .max_luts = 33590}), "");
  EXPECT_EQ(CodeOf(FinishedRun(), {.max_cycles = 2981}), "E-BUDGET-003");
  EXPECT_EQ(CodeOf(FinishedRun(), {.max_latency_us = 41.5}), "E-BUDGET-003");
  EXPECT_EQ(CodeOf(FinishedRun(), {.max_luts = 33589}), "E-BUDGET-003");
}

TEST(CheckTest, NamesEveryMissedBudget) {
  std::string text;
  const absl::Status status = CheckReport(FinishedRun(), {.max_cycles = 1, .max_latency_us = 1, .max_luts = 99999}, text);
  const std::string message(status.message());
  EXPECT_NE(message.find("cycles: 2,982 cycles found, 1 allowed"), std::string::npos) << message;
  EXPECT_NE(message.find("latency: 41.60 us found, 1 allowed"), std::string::npos) << message;
  EXPECT_EQ(message.find("lut:"), std::string::npos) << message;
  EXPECT_NE(text.find("lut      ok"), std::string::npos) << text;
}

TEST(CheckTest, ABudgetWithoutAFigureIsMissed) {
  report::Report report = FinishedRun();
  report.accelerator->cycles_simulated = 0;  // estimated only
  EXPECT_EQ(CodeOf(report, {.max_cycles = 1'000'000}), "E-BUDGET-003");
  report.accelerator.reset();
  EXPECT_EQ(CodeOf(report, {.max_cycles = 1'000'000}), "E-BUDGET-003");
}

TEST(CheckTest, AWrongResultComesBeforeABudget) {
  report::Report report = FinishedRun();
  report.verdict.bit_exact = report.verdict.within_bounds = false;
  report.verdict.outputs[0].mismatches = 3;
  EXPECT_EQ(CodeOf(report, {.max_cycles = 1, .within_bounds = true}), "E-VERIFY-003");
  report.verdict.compared = false;
  EXPECT_EQ(CodeOf(report, {}), "E-VERIFY-002");
}

TEST(CheckTest, FloatsWithinBoundsMustBeAllowed) {
  report::Report report = FinishedRun();
  report.verdict.bit_exact = false;
  report.verdict.outputs[0].max_abs_error = 1e-6;
  EXPECT_EQ(CodeOf(report, {}), "E-VERIFY-003");
  EXPECT_EQ(CodeOf(report, {.within_bounds = true}), "");
}

TEST(ReproducibleTest, RefusesWhatDependsOnTheMachine) {
  PartitionModel model;
  model.problem.devices.resize(1);
  model.problem.devices[0].name = "cpu";
  model.costs = {{ir::Cost{}}};
  model.costs[0][0].time_us = 1;
  ir::partition::Result result;
  EXPECT_TRUE(CheckPlanReproducible(model, result).ok());
  result.gap_percent = 0.5;
  EXPECT_EQ(ir::ErrorCode(CheckPlanReproducible(model, result)), "E-USAGE-042");
  model.costs[0][0].provenance = ir::Provenance::kMeasured;
  EXPECT_EQ(ir::ErrorCode(CheckPlanReproducible(model, result)), "E-USAGE-041");
  EXPECT_EQ(ir::ErrorCode(CheckNothingLeftOut({"gpu is left out: no driver"})), "E-USAGE-040");
  EXPECT_TRUE(CheckNothingLeftOut({}).ok());
}

TEST(ReproducibleTest, WallClockFiguresGo) {
  report::Report report = FinishedRun();
  report.partition.solve_seconds = 0.1;
  report.accelerator->simulated_cycles_per_second = report.accelerator->estimated_cycles_per_second = 1e6;
  DropWallClock(report);
  EXPECT_EQ(report.partition.solve_seconds, 0);
  EXPECT_EQ(report.accelerator->simulated_cycles_per_second + report.accelerator->estimated_cycles_per_second, 0);
}

}  // namespace
}  // namespace heddle::driver
