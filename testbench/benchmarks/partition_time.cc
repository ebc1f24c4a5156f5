// Solve time of the partitioner against graph size: residual networks of 10 to 10,000 nodes on three devices, each
// objective. Prints one line of CSV for each solution; testbench/benchmarks/partition_time.py draws them.
//
//     bazel run //testbench/benchmarks:partition_time [SECONDS [LARGEST]]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "ir/partition/solve.h"

namespace {

namespace part = heddle::ir::partition;

// A chain of blocks of three convolutions and an addition of the block's input; costs and sizes drawn from the seed.
class Residual {
 public:
  explicit Residual(unsigned seed) : random_(seed) {
    problem_ = part::Problem::WithDevices({{"cpu", "cpu"}, {"gpu", "gpu", 12}, {"accelerator", "accelerator", 4}});
    for (int a = 0; a < 3; ++a) {
      for (int b = a + 1; b < 3; ++b) problem_.Connect(a, b, {Uniform(1, 4), Uniform(1000, 4000), 60e-6});
    }
    problem_.devices[1].launch_uj = 18;
    problem_.devices[2].launch_uj = 1;
  }

  part::Problem Build(int nodes) {
    int last = -1;
    while (static_cast<int>(problem_.nodes.size()) < nodes) {
      const int block_input = last;
      for (double work : {40.0, 20.0, 40.0}) {
        if (static_cast<int>(problem_.nodes.size()) < nodes) last = Add({last}, work);
      }
      if (static_cast<int>(problem_.nodes.size()) < nodes) last = Add({last, block_input}, 5);
    }
    problem_.tensors[static_cast<size_t>(last)].to_host = true;
    return problem_;
  }

 private:
  double Uniform(double low, double high) { return low + (high - low) * static_cast<double>(random_() % 10000) / 10000; }

  int Add(const std::vector<int>& inputs, double work) {
    std::vector<part::Option> on;
    const double watts[] = {0.4, 1.5, 0.25};
    const double slowest[] = {2, 1.5, 0.8};
    for (int device = 0; device < 3; ++device) {
      on.push_back(part::Option::Cost(work * Uniform(0.1, slowest[device])));
      on.back().energy_uj = watts[device] * *on.back().cost_us;
    }
    const int node = problem_.AddNode(fmt::format("n{}", problem_.nodes.size()), std::move(on));
    problem_.tensors.push_back({"t", node, {}, false, Uniform(1e3, 2e4)});
    for (int input : inputs) {
      if (input >= 0) problem_.tensors[static_cast<size_t>(input)].consumers.push_back(node);
    }
    return node;
  }

  std::mt19937 random_;
  part::Problem problem_;
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const int largest = argc > 2 ? std::atoi(argv[2]) : 10000;
  fmt::print("objective,nodes,seconds,gap_percent,solver\n");
  for (int nodes : {10, 30, 100, 300, 1000, 3000, 10000}) {
    if (nodes > largest) break;
    part::Problem problem = Residual(7).Build(nodes);
    for (part::Objective objective : {part::Objective::kLatency, part::Objective::kThroughput, part::Objective::kEnergy}) {
      problem.objective = objective;
      const auto result = part::Solve(problem, {.time_limit_seconds = seconds, .alternatives = false});
      if (!result.ok()) {
        fmt::print(stderr, "{} nodes: {}\n", nodes, std::string(result.status().message()));
        return 1;
      }
      fmt::print("{},{},{:.4f},{:.4f},{}\n", part::NameOf(objective), nodes, result->solve_seconds, result->gap_percent, result->solver);
      std::fflush(stdout);
    }
  }
  return 0;
}
