// Latency with overlap, throughput and energy against every plan of thousands of random small problems: up to 12 nodes,
// 4 devices (several of one kind), groups, launches, limits of regions, capacities and area.
// HEDDLE_RANDOM_GRAPHS=20000 runs that many problems; a failure prints the seed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <random>

#include "ir/partition/brute_force_plans.h"
#include "ir/partition/random_problem.h"
#include "ir/partition/solve.h"
#include "ir/partition/tasks.h"
#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

constexpr Objective kObjectives[] = {Objective::kLatency, Objective::kThroughput, Objective::kEnergy};

int RandomGraphs() {
  const char* wanted = std::getenv("HEDDLE_RANDOM_GRAPHS");
  return wanted ? std::atoi(wanted) : 300;
}

// One graph in five of 12 nodes at most, the others smaller; denser where there are more nodes.
Shape ShapeOf(unsigned seed) {
  std::mt19937 random(seed);
  const auto coin = [&] { return random() % 2 == 0; };
  const int sizes[] = {4, 6, 7, 8, 12};
  Shape shape{.max_nodes = sizes[random() % 5], .devices = static_cast<int>(2 + random() % 3)};
  shape.launches = coin();
  shape.region_limits = coin();
  shape.capacities = coin();
  shape.groups = coin();
  shape.energies = true;
  shape.readers_of_ten = shape.max_nodes > 8 ? 6 : 3;
  return shape;
}

std::vector<PlainRegion> SequenceOf(const Result& result) {
  std::vector<PlainRegion> sequence;
  for (const Region& region : result.evaluation.regions) sequence.push_back({region.device, region.nodes});
  return sequence;
}

class Tally {
 public:
  void Check(unsigned seed, const Problem& problem) {
    SCOPED_TRACE(NameOf(problem.objective) + ", seed " + std::to_string(seed));
    auto begin = std::chrono::steady_clock::now();
    const absl::StatusOr<Result> result = Solve(problem, {.time_limit_seconds = 60, .alternatives = false});
    solve_s_[problem.objective] += Since(begin);
    begin = std::chrono::steady_clock::now();
    if (!result.ok()) {
      ASSERT_EQ(ErrorCode(result.status()), "E-PARTITION-004");
      ASSERT_FALSE(CheaperThan(problem, 1e9).has_value());
      ++infeasible_;
    } else {
      // The plan costs what the solver says, the proof is claimed, and no plan is cheaper.
      ASSERT_EQ(PlainCost(problem, SequenceOf(*result)), result->cost);
      ASSERT_EQ(result->lower_bound, result->cost) << result->solver;
      const std::optional<double> cheaper = CheaperThan(problem, result->cost);
      ASSERT_FALSE(cheaper.has_value()) << "found " << *cheaper << ", solver " << result->cost;
    }
    oracle_s_[problem.objective] += Since(begin);
  }

  void Print(int graphs) {
    printf("%d graphs; %d times no plan\n", graphs, infeasible_);
    fflush(stdout);
    for (Objective objective : kObjectives) {
      printf("  %-10s solver %.1f s, oracle %.1f s\n", NameOf(objective).c_str(), solve_s_[objective], oracle_s_[objective]);
    }
  }

 private:
  static double Since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::map<Objective, double> solve_s_, oracle_s_;
  int infeasible_ = 0;
};

TEST(RandomGraphs, AgreeWithAllPlans) {
  const int graphs = RandomGraphs();
  std::map<int, int> sizes;
  Tally tally;
  for (unsigned seed = 1; seed <= static_cast<unsigned>(graphs) && !HasFailure(); ++seed) {
    Problem problem = RandomProblem(seed, ShapeOf(seed));
    ++sizes[static_cast<int>(problem.nodes.size())];
    for (Objective objective : kObjectives) {
      problem.objective = objective;
      tally.Check(seed, problem);
    }
    if (seed % 1000 == 0) tally.Print(static_cast<int>(seed));
  }
  tally.Print(graphs);
  for (const auto& [nodes, count] : sizes) printf("  %d nodes: %d\n", nodes, count);
}

}  // namespace
}  // namespace heddle::ir::partition
