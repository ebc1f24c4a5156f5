// Starts from each single device, from each node's cheapest device and from the minimum cut of each pair of devices;
// improves the best few by moving whole regions (small offloads that do not repay their launch go back at once) and
// then single clusters, until no such move pays.
#include "ir/partition/local_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/partition/evaluate.h"
#include "ir/partition/min_cut.h"

namespace heddle::ir::partition {
namespace {

constexpr int kMaxRounds = 20;
constexpr size_t kImprovedStarts = 2;
constexpr int kLaunchStates = 50;          // a rough order of execution will do here
constexpr int kNodeEvaluations = 400'000;  // times nodes: about half a second

class Search {
 public:
  Search(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters)
      : problem_(problem), adjacency_(adjacency), clusters_(clusters) {}

  std::optional<Heuristic> Run() {
    const int devices = static_cast<int>(problem_.devices.size());
    std::vector<Assignment> starts;
    for (int device = 0; device < devices; ++device) starts.push_back(Prefer(device));
    starts.push_back(Prefer(-1));
    for (int a = 0; a < devices; ++a) {
      for (int b = a + 1; b < devices; ++b) {
        if (std::optional<Cut> cut = MinimumCut(problem_, clusters_, a, b)) starts.push_back(cut->device_of);
      }
    }
    std::vector<Heuristic> plans;
    for (Assignment& start : starts) {
      Evaluation evaluation = EvaluateRoughly(start);
      plans.push_back({std::move(start), std::move(evaluation)});
    }
    auto cheaper = [&](const Heuristic& a, const Heuristic& b) { return ScoreOf(a) < ScoreOf(b); };
    std::stable_sort(plans.begin(), plans.end(), cheaper);
    if (plans.size() > kImprovedStarts) plans.resize(kImprovedStarts);
    for (Heuristic& plan : plans) ImprovePlan(plan);
    std::stable_sort(plans.begin(), plans.end(), cheaper);
    if (!plans.front().evaluation.feasible) return std::nullopt;
    return plans.front();
  }

  void ImprovePlan(Heuristic& plan) {
    bool improved = true;
    evaluations_ = 0;
    for (int round = 0; improved && round < kMaxRounds; ++round) {
      improved = false;
      const std::vector<Region> regions = plan.evaluation.regions;  // a move replaces them
      for (const Region& region : regions) {
        if (HasTime()) improved = TryMoves(region.nodes, plan) || improved;
      }
      for (const std::vector<int>& cluster : clusters_.nodes) {
        if (HasTime()) improved = TryMoves(cluster, plan) || improved;
      }
    }
  }

 private:
  // Everything on `device`; what it refuses, or with -1 everything, on its cheapest device.
  Assignment Prefer(int device) const {
    Assignment result(problem_.nodes.size());
    for (size_t cluster = 0; cluster < clusters_.nodes.size(); ++cluster) {
      int chosen = device;
      if (device < 0 || !clusters_.CostUs(problem_, cluster, device)) {
        double least = std::numeric_limits<double>::infinity();
        for (int other = 0; other < static_cast<int>(problem_.devices.size()); ++other) {
          const std::optional<double> cost_us = clusters_.CostUs(problem_, cluster, other);
          if (cost_us && *cost_us < least) {
            least = *cost_us;
            chosen = other;
          }
        }
      }
      for (int node : clusters_.nodes[cluster]) result[node] = chosen;
    }
    return result;
  }

  Evaluation EvaluateRoughly(const Assignment& device_of) {
    ++evaluations_;
    return Evaluate(problem_, adjacency_, device_of, kLaunchStates);
  }

  double ScoreOf(const Heuristic& plan) const {
    return plan.evaluation.feasible ? Score(problem_, plan.evaluation) : std::numeric_limits<double>::infinity();
  }

  // Moves `nodes` (and their clusters) to each other device; keeps the best if it pays.
  bool TryMoves(const std::vector<int>& nodes, Heuristic& plan) {
    Heuristic best = plan;
    for (int device = 0; device < static_cast<int>(problem_.devices.size()); ++device) {
      Assignment moved = plan.device_of;
      for (int node : nodes) {
        const int cluster = clusters_.cluster_of[node];
        if (!clusters_.CostUs(problem_, cluster, device)) continue;
        for (int member : clusters_.nodes[cluster]) moved[member] = device;
      }
      if (moved == plan.device_of) continue;
      Evaluation evaluation = EvaluateRoughly(moved);
      Heuristic candidate{std::move(moved), std::move(evaluation)};
      if (ScoreOf(candidate) < ScoreOf(best)) best = std::move(candidate);
    }
    if (!(ScoreOf(best) < ScoreOf(plan))) return false;
    plan = std::move(best);
    return true;
  }

  bool HasTime() const { return evaluations_ * static_cast<int64_t>(problem_.nodes.size()) < kNodeEvaluations; }

  const Problem& problem_;
  const Adjacency& adjacency_;
  const Clusters& clusters_;
  int64_t evaluations_ = 0;
};

}  // namespace

std::optional<Heuristic> LocalSearch(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters) {
  return Search(problem, adjacency, clusters).Run();
}

void Improve(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters, Heuristic& plan) {
  Search(problem, adjacency, clusters).ImprovePlan(plan);
}

}  // namespace heddle::ir::partition
