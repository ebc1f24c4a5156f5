// Every solver against brute force on thousands of random small problems (seed printed on failure), hand-made cases
// whose answers are known, and the time that a network of a thousand nodes takes.
#include "ir/partition/solve.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <utility>

#include "ir/partition/brute_force.h"
#include "ir/partition/problem.h"
#include "ir/partition/random_problem.h"
#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

// The solver finds the optimum, proves it, and reports sums that add up.
void ExpectOptimal(const Problem& problem, Solver solver, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::optional<BruteForceOptimum> best = BruteForce(problem);
  const absl::StatusOr<Result> result = Solve(problem, {.solver = solver, .alternatives = false});
  if (!best) {
    ASSERT_FALSE(result.ok()) << "cost " << result->cost;
    EXPECT_EQ(ErrorCode(result.status()), "E-PARTITION-004");
    return;
  }
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_DOUBLE_EQ(result->cost, best->cost_us) << result->solver;
  EXPECT_DOUBLE_EQ(result->lower_bound, best->cost_us) << result->solver;
  EXPECT_EQ(result->gap_percent, 0);
  EXPECT_EQ(BruteForceCostUs(problem, result->device_of), result->cost);
  double regions_us = result->evaluation.transfer_us;
  size_t nodes = 0;
  for (const Region& region : result->evaluation.regions) {
    regions_us += region.node_us + region.launch_us;
    nodes += region.nodes.size();
  }
  EXPECT_DOUBLE_EQ(regions_us, result->cost);
  EXPECT_EQ(nodes, problem.nodes.size());
}

void ExpectOptimalOnMany(const Shape& shape, Solver solver, unsigned first_seed, unsigned count) {
  for (unsigned seed = first_seed; seed < first_seed + count && !testing::Test::HasFailure(); ++seed) {
    ExpectOptimal(RandomProblem(seed, shape), solver, seed);
  }
}

TEST(RandomProblems, MinimumCut) {
  ExpectOptimalOnMany({.max_nodes = 9, .devices = 2, .groups = true}, Solver::kMinimumCut, 1, 3000);
}
TEST(RandomProblems, DynamicProgrammeAdditive) {
  ExpectOptimalOnMany({.max_nodes = 7, .devices = 3, .groups = true}, Solver::kDynamicProgramme, 10001, 1500);
}
TEST(RandomProblems, DynamicProgrammeWithLaunches) {
  ExpectOptimalOnMany({.max_nodes = 6, .devices = 3, .launches = true, .groups = true}, Solver::kDynamicProgramme,
                      20001, 1500);
}
TEST(RandomProblems, DynamicProgrammeWithRegionLimits) {
  ExpectOptimalOnMany({.max_nodes = 7, .devices = 2, .launches = true, .region_limits = true},
                      Solver::kDynamicProgramme, 30001, 1500);
}
TEST(RandomProblems, IntegerProgrammeAdditive) {
  ExpectOptimalOnMany({.max_nodes = 7, .devices = 3, .groups = true}, Solver::kIntegerProgramme, 40001, 150);
}
TEST(RandomProblems, IntegerProgrammeWithCapacities) {
  ExpectOptimalOnMany({.max_nodes = 7, .devices = 3, .capacities = true}, Solver::kIntegerProgramme, 50001, 200);
}
TEST(RandomProblems, IntegerProgrammeWithEverything) {
  ExpectOptimalOnMany(
      {.max_nodes = 6, .devices = 3, .launches = true, .region_limits = true, .capacities = true, .groups = true},
      Solver::kIntegerProgramme, 60001, 200);
}
TEST(RandomProblems, ChosenSolverOnFourDevices) {
  ExpectOptimalOnMany({.max_nodes = 5, .devices = 4, .launches = true, .region_limits = true}, Solver::kAuto, 70001,
                      500);
}

// cpu → accelerator → cpu → accelerator along a chain, where the accelerator refuses the third node.
Problem Chain(double launch_us) {
  Problem problem = Problem::WithDevices({{"cpu", "cpu"}, {"accelerator", "accelerator", launch_us}});
  problem.Connect(0, 1, {1, 100});
  for (int node = 0; node < 4; ++node) {
    std::vector<Option> on = {Option::Cost(50),
                              node == 2 ? Option::Refused("E-ACCEL-001", "kernel 9x9, at most 7x7") : Option::Cost(5)};
    problem.AddNode("n" + std::to_string(node), std::move(on));
  }
  problem.tensors = {{"in", -1, {0}, false, 100},
                     {"a", 0, {1}, false, 100},
                     {"b", 1, {2}, false, 100},
                     {"c", 2, {3}, false, 100},
                     {"out", 3, {}, true, 100}};
  return problem;
}

TEST(Solve, PaysOneLaunchForEachConvexRegion) {
  const absl::StatusOr<Result> result = Solve(Chain(10));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->device_of, (Assignment{1, 1, 0, 1}));
  EXPECT_EQ(result->evaluation.regions.size(), 3u);
  EXPECT_DOUBLE_EQ(result->evaluation.launch_us, 20);
  EXPECT_DOUBLE_EQ(result->cost, 5 + 5 + 50 + 5 + 4 * 2 + 20);
  EXPECT_DOUBLE_EQ(*result->single_device_us[0], 200);
  EXPECT_FALSE(result->single_device_us[1].has_value());
}

TEST(Solve, SmallOffloadsThatDoNotRepayTheirLaunchStay) {
  const absl::StatusOr<Result> result = Solve(Chain(60));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->device_of, (Assignment{1, 1, 0, 0}));
}

TEST(Solve, ATensorIsMovedOncePerDestination) {
  Problem problem = Problem::WithDevices({{"cpu", "cpu"}, {"gpu", "gpu"}});
  problem.Connect(0, 1, {3, 0});
  problem.AddNode("source", {Option::Cost(1), Option::Refused("E-GPU-001", "int8 only")});
  for (int node = 0; node < 3; ++node) problem.AddNode("reader", {Option::Cost(2), Option::Cost(0.5)});
  problem.tensors = {{"t", 0, {1, 2, 3}, false, 8}};
  const absl::StatusOr<Result> result = Solve(problem);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->solver, "minimum cut");
  EXPECT_DOUBLE_EQ(result->cost, 1 + 3 + 1.5);
  EXPECT_EQ(result->evaluation.transfers.size(), 1u);
}

TEST(Solve, TwoRegionsThatEachAreConvexButWaitForEachOtherArePaidAsThree) {
  // a1 → b1 and b2 → a2: one region on each device would wait for the other in a circle.
  Problem problem = Problem::WithDevices({{"cpu", "cpu"}, {"a", "accelerator", 1}, {"b", "accelerator", 1}});
  auto only = [](int device) {
    std::vector<Option> on(3, Option::Refused("E-TEST-001", "elsewhere only"));
    on[device] = Option::Cost(1);
    return on;
  };
  problem.AddNode("a1", only(1));
  problem.AddNode("b1", only(2));
  problem.AddNode("b2", only(2));
  problem.AddNode("a2", only(1));
  problem.tensors = {{"t", 0, {1}, false, 1}, {"u", 2, {3}, false, 1}};
  for (Solver solver : {Solver::kDynamicProgramme, Solver::kIntegerProgramme}) {
    const absl::StatusOr<Result> result = Solve(problem, {.solver = solver});
    ASSERT_TRUE(result.ok());
    EXPECT_DOUBLE_EQ(result->cost, 4 + 3);
    EXPECT_EQ(result->evaluation.regions.size(), 3u);
    EXPECT_EQ(result->gap_percent, 0);
  }
}

TEST(Solve, NamesEveryNodeThatRunsNowhere) {
  Problem problem = Problem::WithDevices({{"cpu", "cpu"}});
  problem.AddNode("first", {Option::Refused("E-CPU-007", "no int4")});
  problem.AddNode("second", {Option::Refused("E-CPU-008", "no fp8")});
  const absl::Status status = Solve(problem).status();
  EXPECT_EQ(ErrorCode(status), "E-PARTITION-003");
  for (const char* text : {"first", "second", "E-CPU-007", "no fp8"}) {
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status.message();
  }
}

TEST(Solve, RefusesMalformedProblems) {
  Problem cycle = Chain(0);
  cycle.tensors.push_back({"back", 3, {0}, false, 1});
  EXPECT_EQ(ErrorCode(Solve(cycle).status()), "E-PARTITION-002");
  Problem negative = Chain(0);
  negative.nodes[0].on[0].cost_us = -1;
  EXPECT_EQ(ErrorCode(Solve(negative).status()), "E-PARTITION-001");
  Problem wrong_index = Chain(0);
  wrong_index.tensors[0].consumers = {9};
  EXPECT_EQ(ErrorCode(Solve(wrong_index).status()), "E-PARTITION-001");
  EXPECT_EQ(ErrorCode(Solve(Chain(1), {.solver = Solver::kMinimumCut}).status()), "E-PARTITION-005");
}

// Each alternative's delta is the difference of two brute-force costs, and just past a threshold the move pays.
TEST(Alternatives, DeltasAndThresholdsAreExact) {
  int thresholds = 0;
  for (unsigned seed = 80001; seed < 80301; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = RandomProblem(seed, {.max_nodes = 7, .devices = 3, .launches = true});
    const absl::StatusOr<Result> result = Solve(problem);
    ASSERT_TRUE(result.ok());
    for (size_t node = 0; node < problem.nodes.size(); ++node) {
      for (const Alternative& move : result->alternatives[node]) {
        if (!move.feasible) continue;
        Assignment moved = result->device_of;
        moved[node] = move.device;
        EXPECT_NEAR(*BruteForceCostUs(problem, moved) - result->cost, move.delta, 1e-9);
        EXPECT_GE(move.delta, -1e-9);
        for (double factor : {0.999, 1.001}) {
          if (move.flip_cost_us) {
            Problem changed = problem;
            changed.nodes[node].on[move.device].cost_us = *move.flip_cost_us * factor;
            const double delta = *BruteForceCostUs(changed, moved) - *BruteForceCostUs(changed, result->device_of);
            EXPECT_EQ(delta < 0, factor < 1) << delta;
            ++thresholds;
          }
        }
      }
    }
  }
  EXPECT_GT(thresholds, 200);
}

// A residual network of `blocks` blocks of four nodes.
Problem Residual(int blocks, int devices, double launch_us, unsigned seed) {
  std::mt19937 random(seed);
  auto uniform = [&](double low, double high) { return low + (high - low) * (random() % 10000) / 10000.0; };
  std::vector<Device> list = {{"cpu", "cpu"}};
  for (int device = 1; device < devices; ++device) list.push_back({"d" + std::to_string(device), "gpu", launch_us});
  Problem problem = Problem::WithDevices(list);
  for (int a = 0; a < devices; ++a) {
    for (int b = a + 1; b < devices; ++b) problem.Connect(a, b, {uniform(1, 4), uniform(1000, 4000)});
  }
  int last = -1;
  auto add = [&](std::vector<int> inputs, double work) {
    std::vector<Option> on = {Option::Cost(work * uniform(0.5, 2))};
    for (int device = 1; device < devices; ++device) on.push_back(Option::Cost(work * uniform(0.1, 2.5)));
    const int node = problem.AddNode("n" + std::to_string(problem.nodes.size()), std::move(on));
    problem.tensors.push_back({"t", node, {}, false, uniform(1e3, 1e5)});
    for (int input : inputs) {
      if (input >= 0) problem.tensors[input].consumers.push_back(node);
    }
    return node;
  };
  for (int block = 0; block < blocks; ++block) {
    const int a = add({last}, 40);
    const int b = add({a}, 20);
    const int c = add({b}, 40);
    last = add({c, last}, 5);
  }
  problem.tensors[last].to_host = true;
  return problem;
}

// `branches` chains of `length` nodes side by side, joined at the end, on three devices.
Problem Wide(int branches, int length, unsigned seed) {
  std::mt19937 random(seed);
  auto uniform = [&](double low, double high) { return low + (high - low) * (random() % 10000) / 10000.0; };
  Problem problem = Problem::WithDevices({{"cpu", "cpu"}, {"gpu", "gpu", 6}, {"accelerator", "accelerator", 3}});
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b < 3; ++b) problem.Connect(a, b, {uniform(1, 4), uniform(1000, 4000)});
  }
  auto add = [&](const std::string& name) {
    const double work = uniform(2, 40);
    const int node = problem.AddNode(
        name, {Option::Cost(work), Option::Cost(work * uniform(0.1, 2)), Option::Cost(work * uniform(0.1, 2))});
    problem.tensors.push_back({name + "_out", node, {}, false, uniform(1e3, 5e4)});
    return node;
  };
  std::vector<int> ends;
  for (int branch = 0; branch < branches; ++branch) {
    int last = -1;
    for (int at = 0; at < length; ++at) {
      const int node = add("b" + std::to_string(branch) + "_" + std::to_string(at));
      if (last >= 0) problem.tensors[last].consumers.push_back(node);
      last = node;
    }
    ends.push_back(last);
  }
  const int join = add("join");
  for (int end : ends) problem.tensors[end].consumers.push_back(join);
  return problem;
}

TEST(Scale, AWideGraphEndsNearItsTimeLimitWithAnHonestGap) {
  for (const auto& [branches, length] : {std::pair{4, 6}, {8, 40}}) {
    const Problem problem = Wide(branches, length, 11);
    const auto begin = std::chrono::steady_clock::now();
    const absl::StatusOr<Result> result = Solve(problem, {.time_limit_seconds = 3});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ASSERT_TRUE(result.ok()) << result.status().message();
    printf("%zu nodes in %d branches: %s, %.3f s, cost %g us, bound %g us, gap %g %%\n", problem.nodes.size(), branches,
           result->solver.c_str(), seconds, result->cost, result->lower_bound, result->gap_percent);
    EXPECT_LE(result->lower_bound, result->cost);
    EXPECT_GT(result->lower_bound, 0);
    EXPECT_LT(seconds, 40);
    for (const std::optional<double>& alone : result->single_device_us) EXPECT_LE(result->cost, *alone);
  }
}

TEST(Scale, AThousandNodesInAboutASecond) {
  struct Case {
    int devices;
    double launch_us;
    const char* solver;
  };
  for (const Case& c : {Case{2, 0, "minimum cut"}, Case{2, 8, "dynamic programme"}, Case{3, 8, "dynamic programme"}}) {
    const Problem problem = Residual(250, c.devices, c.launch_us, 7);
    const absl::StatusOr<Result> result = Solve(problem);
    ASSERT_TRUE(result.ok()) << result.status().message();
    printf("%zu nodes, %d devices, launch %g us: %s, %.3f s, gap %g %%, %zu regions\n", problem.nodes.size(), c.devices,
           c.launch_us, result->solver.c_str(), result->solve_seconds, result->gap_percent,
           result->evaluation.regions.size());
    EXPECT_EQ(result->solver, c.solver);
    EXPECT_EQ(result->gap_percent, 0);
    EXPECT_LT(result->solve_seconds, 10);
  }
}

}  // namespace
}  // namespace heddle::ir::partition
