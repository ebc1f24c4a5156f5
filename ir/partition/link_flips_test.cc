// Links a little faster than a flip's factor bring the node to the device, a little slower do not: the whole problem is
// solved again on both sides. And every single move's change of cost is that of a plan which the oracle can play.
#include "ir/partition/link_flips.h"

#include <gtest/gtest.h>

#include "ir/partition/random_problem.h"

namespace heddle::ir::partition {
namespace {

// The number of flips checked.
int CheckFlips(const Problem& problem) {
  const absl::StatusOr<Result> result = Solve(problem);
  EXPECT_TRUE(result.ok()) << result.status().message();
  int flips = 0;
  for (size_t node = 0; result.ok() && node < problem.nodes.size(); ++node) {
    for (const Alternative& move : result->alternatives[node]) {
      if (!move.flip_link_factor) continue;
      SCOPED_TRACE(problem.nodes[node].name + ": " + move.flips_if);
      for (double side : {0.9999, 1.0001}) {
        const Problem changed = WithFasterLinks(problem, move.device, *move.flip_link_factor * side);
        const absl::StatusOr<Result> again = Solve(changed, {.alternatives = false});
        EXPECT_TRUE(again.ok());
        EXPECT_EQ(again->device_of[node] == move.device, side > 1) << side;
      }
      ++flips;
    }
  }
  return flips;
}

class LinkFlips : public testing::TestWithParam<Objective> {};

TEST_P(LinkFlips, BringTheNodeAboveAndNotBelow) {
  const unsigned graphs = GetParam() == Objective::kLatency ? 40 : 120;
  int flips = 0;
  for (unsigned seed = 1; seed <= graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Problem problem = RandomProblem(seed, {.max_nodes = 8, .devices = static_cast<int>(2 + seed % 2), .launches = seed % 3 == 0,
                                           .groups = seed % 4 == 0});
    problem.objective = GetParam();
    flips += CheckFlips(problem);
  }
  printf("%d flips\n", flips);
  EXPECT_GE(flips, 50);
}

INSTANTIATE_TEST_SUITE_P(Objectives, LinkFlips, testing::Values(Objective::kSerial, Objective::kLatency),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace heddle::ir::partition
