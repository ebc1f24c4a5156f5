// The bundled network on a target with three devices, for each objective: proven plans, no objective beats another at its own
// figure, and a faster link past a flip's threshold moves the node while one just below does not. With any lanes, a plan takes as
// long as was predicted.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/partition_model.h"
#include "ir/partition/link_flips.h"
#include "ir/partition/solve.h"
#include "ir/passes/pass.h"

namespace heddle::driver {
namespace {

namespace part = ir::partition;

constexpr char kModel[] = "testbench/models/digits/digits_int8_qdq.onnx";

struct Planned {
  PartitionModel model;
  part::Result result;
};

Planned Plan(const std::string& target_name, const std::string& objective) {
  const absl::StatusOr<Target> target = LoadTarget(target_name);
  EXPECT_TRUE(target.ok()) << target.status().message();
  absl::StatusOr<DeviceSet> set = MakeDevices(*target, {}, 1);
  EXPECT_TRUE(set.ok()) << set.status().message();
  absl::StatusOr<ir::Graph> graph = LoadModel(kModel, {}, false);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(ir::RunDefaultPipeline(*graph).ok());
  absl::StatusOr<PartitionModel> model = BuildPartitionModel(*graph, set->devices, *target, objective, {});
  EXPECT_TRUE(model.ok()) << model.status().message();
  absl::StatusOr<part::Result> result = part::Solve(model->problem);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return {*std::move(model), *std::move(result)};
}

TEST(Objectives, EachIsProvenAndBestAtItsOwnFigure) {
  const Planned latency = Plan("edge-soc", "latency"), throughput = Plan("edge-soc", "throughput"), energy = Plan("edge-soc", "energy");
  for (const Planned* plan : {&latency, &throughput, &energy}) {
    const part::Evaluation& e = plan->result.evaluation;
    printf("%s: latency %.2f us, period %.2f us, energy %.2f uJ, gap %.2f %%, %s, %.3f s\n", part::NameOf(plan->model.problem.objective).c_str(),
           e.latency_us, e.period_us, e.energy_uj, plan->result.gap_percent, plan->result.solver.c_str(), plan->result.solve_seconds);
    EXPECT_EQ(plan->result.gap_percent, 0);
    EXPECT_GE(e.latency_us, latency.result.cost);
    EXPECT_GE(e.period_us, throughput.result.cost * (1 - 1e-6));
    EXPECT_GE(e.energy_uj, energy.result.cost);
    EXPECT_LE(e.latency_us, e.BusyUs() * (1 + 1e-12));
  }
}

// The target with other lanes, its CPU and GPU modelled: every time but the accelerator's is then the plan's own.
std::string TargetWithLanes(const std::string& preset, int rows, int columns) {
  nlohmann::json json = LoadTarget(preset)->json;
  for (nlohmann::json& device : json["devices"]) {
    if (device["kind"] != "accelerator") continue;
    device["parameters"]["contraction_lanes"] = rows;
    device["parameters"]["output_lanes"] = columns;
  }
  const std::string path = fmt::format("{}/{}_{}x{}.json", testing::TempDir(), preset, rows, columns);
  std::ofstream(path) << json;
  return path;
}

TEST(Predictions, AreThoseOfTheCompiledRegions) {
  for (const char* preset : {"zynq7020", "edge-soc"}) {
    for (const auto& [rows, columns] : {std::pair{8, 8}, {24, 16}, {16, 32}, {4, 4}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}", preset, rows, columns));
      RunOptions options;
      options.model = kModel;
      options.target = TargetWithLanes(preset, rows, columns);
      options.simulator = "fast";  // cycles are the RTL's (accelerator_models_test)
      options.verify = VerifyMode::kPlan;
      options.out = fmt::format("{}/{}_{}x{}", testing::TempDir(), preset, rows, columns);
      report::Report report;
      const absl::Status status = RunModel(options, report);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(report.partition.gap_percent, 0);
      // A region on the accelerator says what its compiled program takes, the plan what the partitioner counted with.
      double compiled_us = 0;
      for (const report::Region& region : report.partition.regions) compiled_us += region.predicted_us.value;
      EXPECT_NEAR(report.partition.node_us + report.partition.launch_us, compiled_us, 1e-6 * compiled_us);
    }
  }
}

class Flips : public testing::TestWithParam<std::string> {};

TEST_P(Flips, MoveTheNodeAboveTheThresholdAndNotBelow) {
  const Planned plan = Plan(GetParam(), "latency");
  int flips = 0;
  for (size_t node = 0; node < plan.model.problem.nodes.size(); ++node) {
    for (const part::Alternative& move : plan.result.alternatives[node]) {
      if (!move.flip_link_factor) continue;
      SCOPED_TRACE(plan.model.problem.nodes[node].name + " " + move.flips_if);
      for (double side : {0.9999, 1.0001}) {
        const part::Problem changed = part::WithFasterLinks(plan.model.problem, move.device, *move.flip_link_factor * side);
        const absl::StatusOr<part::Result> again = part::Solve(changed, {.alternatives = false});
        ASSERT_TRUE(again.ok());
        EXPECT_EQ(again->device_of[node] == move.device, side > 1) << side;
      }
      ++flips;
    }
  }
  printf("%d nodes on %s have a flip by a link\n", flips, GetParam().c_str());
}

INSTANTIATE_TEST_SUITE_P(Targets, Flips, testing::Values("edge-soc", "zynq7020"), [](const auto& info) {
  return info.param == "edge-soc" ? "edge_soc" : info.param;
});

}  // namespace
}  // namespace heddle::driver
