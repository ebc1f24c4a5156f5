// Variables: x[c,d] = 1 where cluster c runs on device d; w[t,s,d] = 1 where tensor t moves from s to d (continuous:
// the objective makes them integral). For each reader c of t on d
//     sum over s of w[t,s,d]  >=  x[c,d] - x[producer,d]      and      w[t,s,d] <= x[producer,s],
// a formulation whose relaxation is the one of multiway cut and mostly integral on real networks.
//
// Launch overhead depends on the best order of execution. On every path of the graph the devices change at least as
// often as the path's own nodes say, so h[v] (the overhead along the dearest path up to v) gives a bound theta >= h[v]
// without any big constant; k[v,d] does the same for region limits. That bound is exact unless two paths want to
// interleave their devices in opposite order. Where it is not, the smallest set K of placed nodes that already forces
// the true overhead R is cut off, theta >= R * (1 - number of nodes of K that moved), and the programme solved again.
//
// Throughput: the objective is theta itself, at least each device's load and each link's; a device's launches are counted
// by r[d] >= k[v,d]. Conflicts are cut off in the same way.
#include "ir/partition/integer_programme.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "ir/partition/cbc_model.h"
#include "ir/partition/evaluate.h"
#include "ir/partition/launch_order.h"
#include "ir/partition/tasks.h"

namespace heddle::ir::partition {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::max();

class Programme {
 public:
  Programme(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters)
      : problem_(problem),
        adjacency_(adjacency),
        clusters_(clusters),
        devices_(static_cast<int>(problem.devices.size())),
        throughput_(problem.objective == Objective::kThroughput),
        loads_(ResourceCount(problem)) {
    AddPlacement();
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) AddTransfers(problem.tensors[tensor]);
    if (throughput_) {
      AddLoads();
    } else if (LaunchesMatter(problem)) {
      AddLaunches();
    }
  }

  Bounded Solve(const std::optional<Heuristic>& start, double time_limit_seconds) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    Bounded result;
    result.best = start;
    while (true) {
      const double left = time_limit_seconds - std::chrono::duration<double>(Clock::now() - begin).count();
      if (left <= 0) return result;
      std::vector<CbcModel::Term> warm;
      if (result.best) warm = PlacementTerms(result.best->device_of);
      const CbcModel::Solution solution = model_.Minimise(warm, left);
      if (solution.infeasible) {
        result.infeasible = !result.best;
        return result;
      }
      result.lower_bound = std::max(result.lower_bound, solution.bound);
      if (solution.values.empty()) return result;
      const bool cut_added = Learn(solution, result);
      if (result.best && IsClosed(result)) return result;
      if (!cut_added || !solution.optimal) return result;
    }
  }

 private:
  static bool IsClosed(const Bounded& result) {
    return result.best->evaluation.cost - result.lower_bound <= 5e-7 * std::max(1.0, result.best->evaluation.cost);
  }

  void AddPlacement() {
    x_.assign(clusters_.nodes.size(), std::vector<int>(devices_));
    for (size_t cluster = 0; cluster < clusters_.nodes.size(); ++cluster) {
      std::vector<CbcModel::Term> one;
      for (int device = 0; device < devices_; ++device) {
        const std::optional<double> cost_us = clusters_.CostUs(problem_, cluster, device);
        x_[cluster][device] = model_.AddBinary(AddLoad(device, cost_us.value_or(0)));
        if (!cost_us) model_.Fix(x_[cluster][device], 0);
        one.emplace_back(x_[cluster][device], 1);
      }
      model_.AddRow(std::move(one), 1, 1);
    }
    for (int device = 0; device < devices_; ++device) {
      if (!problem_.devices[device].capacity) continue;
      std::vector<CbcModel::Term> sizes;
      for (size_t cluster = 0; cluster < clusters_.nodes.size(); ++cluster) {
        sizes.emplace_back(x_[cluster][device], clusters_.Size(problem_, cluster, device));
      }
      model_.AddRow(std::move(sizes), -kInfinity, *problem_.devices[device].capacity);
    }
  }

  // The objective's coefficient of the next column, which keeps `resource` busy for so long.
  double AddLoad(int resource, double us) {
    if (!throughput_) return us;
    loads_[resource].emplace_back(model_.columns(), us);
    return 0;
  }

  int X(int node, int device) const { return x_[clusters_.cluster_of[node]][device]; }

  void AddTransfers(const Tensor& tensor) {
    const int producer = tensor.producer < 0 ? -1 : clusters_.cluster_of[tensor.producer];
    std::vector<int> readers;  // clusters
    for (int consumer : tensor.consumers) readers.push_back(clusters_.cluster_of[consumer]);
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    readers.erase(std::remove(readers.begin(), readers.end(), producer), readers.end());
    const bool host_reads = tensor.to_host && producer >= 0;
    for (int to = 0; to < devices_; ++to) {
      const bool to_host = host_reads && to == problem_.host;
      if (readers.empty() && !to_host) continue;
      if (producer < 0) {
        AddHostInput(tensor, readers, to);
        continue;
      }
      std::vector<CbcModel::Term> arrivals = {{x_[producer][to], 1}};
      for (int from = 0; from < devices_; ++from) {
        if (from == to) continue;
        const int w = AddTransfer(tensor, from, to);
        model_.AddRow({{w, 1}, {x_[producer][from], -1}}, -kInfinity, 0);
        arrivals.emplace_back(w, 1);
      }
      for (int reader : readers) {
        std::vector<CbcModel::Term> row = arrivals;
        row.emplace_back(x_[reader][to], -1);
        model_.AddRow(std::move(row), 0, kInfinity);
      }
      if (to_host) model_.AddRow(arrivals, 1, kInfinity);
    }
  }

  int AddTransfer(const Tensor& tensor, int from, int to) {
    const double us = problem_.links[from][to].TransferUs(tensor.bytes);
    return model_.AddContinuous(AddLoad(ResourceOfLink(problem_, from, to), us), 1);
  }

  void AddHostInput(const Tensor& tensor, const std::vector<int>& readers, int to) {
    if (to == problem_.host) return;
    const int w = AddTransfer(tensor, problem_.host, to);
    for (int reader : readers) model_.AddRow({{w, 1}, {x_[reader][to], -1}}, 0, kInfinity);
  }

  void AddLaunches() {
    theta_ = model_.AddContinuous(1, kInfinity);
    std::vector<CbcModel::Term> used_us = {{theta_, 1}};
    for (int device = 0; device < devices_; ++device) {
      if (problem_.devices[device].launch_us == 0) continue;
      const int used = model_.AddContinuous(0, 1);
      for (const std::vector<int>& x : x_) model_.AddRow({{used, 1}, {x[device], -1}}, 0, kInfinity);
      used_us.emplace_back(used, -problem_.devices[device].launch_us);
    }
    model_.AddRow(std::move(used_us), 0, kInfinity);
    for (size_t node = 0; node < problem_.nodes.size(); ++node) overhead_.push_back(model_.AddContinuous(0, kInfinity));
    AddEntryColumns();
    for (int node = 0; node < static_cast<int>(problem_.nodes.size()); ++node) {
      model_.AddRow({{theta_, 1}, {overhead_[node], -1}}, 0, kInfinity);
      AddEntries(node);
    }
  }

  // k: columns where the launches of a device have to be counted one by one.
  void AddEntryColumns() {
    for (size_t node = 0; node < problem_.nodes.size(); ++node) {
      entries_.emplace_back(devices_, -1);
      for (int device = 0; device < devices_; ++device) {
        const Device& info = problem_.devices[device];
        if (info.max_regions || (throughput_ && info.launch_us > 0)) {
          entries_.back()[device] = model_.AddContinuous(0, info.max_regions ? *info.max_regions : kInfinity);
        }
      }
    }
  }

  void AddEntries(int node) {
    AddEntry(-1, node);
    for (int next : adjacency_.successors[node]) AddEntry(node, next);
  }

  // Throughput: theta is at least every load.
  void AddLoads() {
    theta_ = model_.AddContinuous(1, kInfinity);
    AddEntryColumns();
    for (int device = 0; device < devices_; ++device) {
      if (entries_.empty() || entries_.front()[device] < 0) continue;
      const int launches = model_.AddContinuous(0, kInfinity);
      loads_[device].emplace_back(launches, problem_.devices[device].launch_us);
      for (size_t node = 0; node < problem_.nodes.size(); ++node) {
        model_.AddRow({{launches, 1}, {entries_[node][device], -1}}, 0, kInfinity);
      }
    }
    if (LaunchesMatter(problem_)) {
      for (int node = 0; node < static_cast<int>(problem_.nodes.size()); ++node) AddEntries(node);
    }
    for (std::vector<CbcModel::Term> load : loads_) {
      if (load.empty()) continue;
      for (auto& [column, us] : load) us = -us;
      load.emplace_back(theta_, 1);
      model_.AddRow(std::move(load), 0, kInfinity);
    }
  }

  // Along the edge from → to (from -1: a path may begin at `to`) each change of device is one more launch.
  void AddEntry(int from, int to) {
    std::vector<CbcModel::Term> overhead;
    if (!throughput_) overhead.emplace_back(overhead_[to], 1);
    if (!throughput_ && from >= 0) overhead.emplace_back(overhead_[from], -1);
    for (int device = 0; device < devices_; ++device) {
      const double launch_us = problem_.devices[device].launch_us;
      if (launch_us == 0 && !problem_.devices[device].max_regions) continue;
      int entry = X(to, device);
      if (from >= 0) {
        entry = model_.AddContinuous(0, 1);
        model_.AddRow({{entry, 1}, {X(to, device), -1}, {X(from, device), 1}}, 0, kInfinity);
      }
      overhead.emplace_back(entry, -launch_us);
      if (entries_[to][device] < 0) continue;
      std::vector<CbcModel::Term> count = {{entries_[to][device], 1}, {entry, -1}};
      if (from >= 0) count.emplace_back(entries_[from][device], -1);
      model_.AddRow(std::move(count), 0, kInfinity);
    }
    if (!throughput_) model_.AddRow(std::move(overhead), 0, kInfinity);
  }

  std::vector<CbcModel::Term> PlacementTerms(const Assignment& device_of) const {
    std::vector<CbcModel::Term> terms;
    for (size_t cluster = 0; cluster < clusters_.nodes.size(); ++cluster) {
      const int chosen = device_of[clusters_.nodes[cluster].front()];
      for (int device = 0; device < devices_; ++device) terms.emplace_back(x_[cluster][device], device == chosen);
    }
    return terms;
  }

  // Takes the solution's placement as a plan if it is the best so far; returns whether a cut was added because its true
  // launch overhead is above the programme's bound.
  bool Learn(const CbcModel::Solution& solution, Bounded& result) {
    Assignment device_of(problem_.nodes.size());
    for (size_t node = 0; node < device_of.size(); ++node) {
      for (int device = 0; device < devices_; ++device) {
        if (solution.values[X(node, device)] > 0.5) device_of[node] = device;
      }
    }
    const Evaluation evaluation = Evaluate(problem_, adjacency_, device_of);
    if (evaluation.feasible && (!result.best || evaluation.cost < result.best->evaluation.cost)) {
      result.best = Heuristic{device_of, evaluation};
    }
    if (theta_ < 0) return false;
    const std::optional<LaunchOrder> order = BestLaunchOrder(problem_, adjacency_, device_of);
    if (order && !order->exact) return false;
    if (order && order->cost_us <= solution.values[theta_] + 5e-7 * std::max(1.0, order->cost_us)) return false;
    AddConflict(device_of, order);
    return true;
  }

  void AddConflict(const Assignment& device_of, const std::optional<LaunchOrder>& order) {
    // Leaves out nodes as long as those that stay still force as much.
    Assignment core = device_of;
    for (size_t node = 0; node < core.size(); ++node) {
      const int device = core[node];
      core[node] = kAnywhere;
      const std::optional<LaunchOrder> reduced = BestLaunchOrder(problem_, adjacency_, core);
      const bool as_bad = order ? reduced && reduced->exact && reduced->cost_us >= order->cost_us : !reduced;
      if (!as_bad) core[node] = device;
    }
    std::vector<CbcModel::Term> row;
    const double overhead_us = order ? order->cost_us : 1;
    double lower = overhead_us;
    if (order) row.emplace_back(theta_, 1);
    for (size_t node = 0; node < core.size(); ++node) {
      if (core[node] == kAnywhere) continue;
      row.emplace_back(X(node, core[node]), -overhead_us);
      lower -= overhead_us;
    }
    // theta (or 0) + overhead * (moved nodes) >= overhead, with moved nodes = sum of (1 - x).
    model_.AddRow(std::move(row), lower, kInfinity);
  }

  const Problem& problem_;
  const Adjacency& adjacency_;
  const Clusters& clusters_;
  const int devices_;
  const bool throughput_;
  CbcModel model_;
  std::vector<std::vector<CbcModel::Term>> loads_;  // by resource; throughput only
  std::vector<std::vector<int>> x_;        // [cluster][device] → column
  std::vector<int> overhead_;              // h, by node
  std::vector<std::vector<int>> entries_;  // k, [node][device], -1: not limited
  int theta_ = -1;
};

}  // namespace

Bounded SolveByIntegerProgramme(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                                const std::optional<Heuristic>& start, double time_limit_seconds) {
  return Programme(problem, adjacency, clusters).Solve(start, time_limit_seconds);
}

}  // namespace heddle::ir::partition
