// Between a factor at which a node is elsewhere and one at which it has come, halving (of the logarithm) finds a factor
// just below which it is elsewhere and above which it is there. All nodes share the solutions; the lower half goes
// first, so that the first threshold of each node is found.
#include "ir/partition/link_flips.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace heddle::ir::partition {
namespace {

constexpr double kLargestFactor = 65536;
constexpr double kPrecision = 1e-6;
constexpr double kMargin = 1e-4;
// Solutions for all devices together: some seconds for most graphs, since one takes a little more than a time
// proportional to the nodes. Wide graphs take longer: then the time limit of the options ends the search.
constexpr double kMostSolutions = 2000, kSolutionsTimesSquaredNodes = 1e6;

using Clock = std::chrono::steady_clock;

class Halving {
 public:
  Halving(const Problem& problem, const SolveOptions& options, int device, int solutions, Clock::time_point end,
          Result& result)
      : problem_(problem), options_(options), device_(device), solutions_(solutions), end_(end), result_(result) {
    options_.alternatives = false;
  }

  void Run() {
    const std::optional<Assignment> fastest = Solution(kLargestFactor);
    if (fastest) Between(1, result_.device_of, kLargestFactor, *fastest);
    for (std::vector<Alternative>& moves : result_.alternatives) {
      for (Alternative& move : moves) {
        if (move.device == device_) move.link_flip_sought = complete_ || move.flip_link_factor;
      }
    }
  }

 private:
  std::optional<Assignment> Solution(double factor) {
    const double left = std::chrono::duration<double>(end_ - Clock::now()).count();
    if (--solutions_ >= 0 && left > 0) {
      options_.time_limit_seconds = left;
      const absl::StatusOr<Result> result = Solve(WithFasterLinks(problem_, device_, factor), options_);
      if (result.ok() && result->gap_percent == 0) return result->device_of;
    }
    complete_ = false;
    return std::nullopt;
  }

  Alternative* Open(size_t node) {
    for (Alternative& move : result_.alternatives[node]) {
      if (move.device == device_ && move.supported && !move.flip_link_factor) return &move;
    }
    return nullptr;
  }

  void Between(double low, const Assignment& at_low, double high, const Assignment& at_high) {
    if (Coming(at_low, at_high).empty()) return;
    const double middle = std::sqrt(low * high);
    if (high < low * (1 + kPrecision)) {
      Confirm(middle);
      return;
    }
    const std::optional<Assignment> at_middle = Solution(middle);
    if (!at_middle) return;
    Between(low, at_low, middle, *at_middle);
    Between(middle, *at_middle, high, at_high);
  }

  // The moves of nodes that are elsewhere in one plan and here in the other, and have no threshold yet.
  std::vector<Alternative*> Coming(const Assignment& from, const Assignment& to) {
    std::vector<Alternative*> moves;
    for (size_t node = 0; node < from.size(); ++node) {
      if (from[node] == device_ || to[node] != device_) continue;
      if (Alternative* move = Open(node)) moves.push_back(move);
    }
    return moves;
  }

  // Plans of equal cost may differ by accident so close to a threshold; a little away from it they must not.
  void Confirm(double factor) {
    const std::optional<Assignment> below = Solution(factor * (1 - kMargin));
    const std::optional<Assignment> above = Solution(factor * (1 + kMargin));
    if (!below || !above) return;
    for (Alternative* move : Coming(*below, *above)) SetFlip(factor, *move);
  }

  void SetFlip(double factor, Alternative& move) const {
    double slowest = 0;
    for (size_t other = 0; other < problem_.devices.size(); ++other) {
      for (const Link& link : {problem_.links[device_][other], problem_.links[other][device_]}) {
        const double bandwidth = link.bandwidth_bytes_per_us;
        if (static_cast<int>(other) == device_ || bandwidth == 0) continue;
        slowest = slowest == 0 ? bandwidth : std::min(slowest, bandwidth);
      }
    }
    move.flip_link_factor = factor;
    move.flip_bandwidth_bytes_per_us = slowest * factor;
  }

  const Problem& problem_;
  SolveOptions options_;
  const int device_;
  int solutions_;  // that may still be computed
  const Clock::time_point end_;
  bool complete_ = true;
  Result& result_;
};

}  // namespace

Problem WithFasterLinks(const Problem& problem, int device, double factor) {
  Problem result = problem;
  for (size_t other = 0; other < problem.devices.size(); ++other) {
    if (static_cast<int>(other) == device) continue;
    result.links[device][other].bandwidth_bytes_per_us *= factor;
    result.links[other][device].bandwidth_bytes_per_us *= factor;
  }
  return result;
}

void FindLinkFlips(const Problem& problem, const SolveOptions& options, Result& result) {
  const int devices = static_cast<int>(problem.devices.size());
  const bool by_time = problem.objective == Objective::kSerial || problem.objective == Objective::kLatency;
  if (devices < 2 || !by_time || result.gap_percent > 0) return;
  const auto nodes = static_cast<double>(problem.nodes.size());
  const double solutions = std::min(kMostSolutions, kSolutionsTimesSquaredNodes / (nodes * nodes)) / devices;
  const Clock::time_point begin = Clock::now();
  for (int device = 0; device < devices; ++device) {
    const std::chrono::duration<double> share(options.time_limit_seconds * (device + 1) / devices);
    const Clock::time_point end = begin + std::chrono::duration_cast<Clock::duration>(share);
    Halving(problem, options, device, static_cast<int>(solutions), end, result).Run();
  }
}

}  // namespace heddle::ir::partition
