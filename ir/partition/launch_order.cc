// Orders the nodes of an assignment so that as few and as cheap launches as possible are needed.
//
// Once a device is launched, running everything there that is ready is never worse than leaving it for later (any order
// with a node of that device later becomes no longer when the node is pulled into the current run). So a state is
// "executed so far, last device", the only choice is the next device, and with two devices there is no choice but the
// first. With more, uniform-cost search over these states gives the optimum; past a number of states the cheapest state
// is finished greedily and the answer says that it is not proven.
#include "ir/partition/launch_order.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <string>

namespace heddle::ir::partition {
namespace {

using MinHeap = std::priority_queue<int, std::vector<int>, std::greater<int>>;

// How far the execution has come; ready nodes are kept by device so that a run is taken in one go.
class Execution {
 public:
  Execution(const Adjacency& adjacency, const Assignment& device_of, int device_count)
      : adjacency_(&adjacency), device_of_(&device_of), waiting_for_(device_of.size()), ready_(device_count) {
    for (size_t node = 0; node < device_of.size(); ++node) {
      waiting_for_[node] = static_cast<int>(adjacency.predecessors[node].size());
    }
    for (size_t node = 0; node < device_of.size(); ++node) {
      if (adjacency.predecessors[node].empty()) BecomeReady(static_cast<int>(node));
    }
  }

  bool HasReady(int device) const { return !ready_[device].empty(); }
  bool Done() const {
    return std::all_of(ready_.begin(), ready_.end(), [](const MinHeap& heap) { return heap.empty(); });
  }

  // Executes all that is and becomes ready on `device`, lowest index first.
  std::vector<int> RunAll(int device) {
    std::vector<int> run;
    while (!ready_[device].empty()) {
      const int node = ready_[device].top();
      ready_[device].pop();
      run.push_back(node);
      Finish(node);
    }
    return run;
  }

  // Equal for equal sets of executed nodes.
  std::string Key() const {
    std::string key(waiting_for_.size() / 8 + 1, '\0');
    for (size_t node = 0; node < waiting_for_.size(); ++node) {
      if (waiting_for_[node] < 0) key[node / 8] |= static_cast<char>(1 << (node % 8));
    }
    return key;
  }

 private:
  void Finish(int node) {
    waiting_for_[node] = -1;
    for (int next : adjacency_->successors[node]) {
      if (--waiting_for_[next] == 0) BecomeReady(next);
    }
  }
  void BecomeReady(int node) {
    const int device = (*device_of_)[node];
    if (device == kAnywhere) {
      Finish(node);
    } else {
      ready_[device].push(node);
    }
  }

  const Adjacency* adjacency_;
  const Assignment* device_of_;
  std::vector<int> waiting_for_;  // unexecuted predecessors; -1: executed itself
  std::vector<MinHeap> ready_;
};

// The runs so far, last first; states that branch from one another share them.
struct Launched {
  Run run;
  std::shared_ptr<const Launched> before;
};

struct State {
  Execution execution;
  int last_device = -1;
  double cost_us = 0;
  std::vector<int> runs_on;  // by device
  int runs = 0;
  std::shared_ptr<const Launched> launched;
};

// What the runs so far cost, as LaunchOrder::cost_us says.
class Measure {
 public:
  Measure(const Problem& problem, const Assignment& device_of)
      : problem_(problem), largest_load_(problem.objective == Objective::kThroughput), loads_us_(problem.devices.size()) {
    for (size_t node = 0; largest_load_ && node < device_of.size(); ++node) {
      if (device_of[node] == kAnywhere) continue;
      loads_us_[device_of[node]] += problem.nodes[node].on[device_of[node]].cost_us.value_or(0);
    }
  }

  double operator()(const std::vector<int>& runs_on) const {
    double sum_us = 0, largest_us = 0;
    for (size_t device = 0; device < runs_on.size(); ++device) {
      const double launches_us = runs_on[device] * LaunchUs(device);
      sum_us += launches_us;
      largest_us = std::max(largest_us, loads_us_[device] + launches_us);
    }
    return largest_load_ ? largest_us : sum_us;
  }

  // Whether two states of equal progress can differ in what `device` adds later: sums are compared by their value alone.
  bool CountsMatter(int device) const {
    const Device& info = problem_.devices[device];
    return info.max_regions.has_value() || (largest_load_ && info.launch_us > 0);
  }

 private:
  double LaunchUs(size_t device) const {
    const Device& info = problem_.devices[device];
    return problem_.objective == Objective::kEnergy ? info.launch_uj : info.launch_us;
  }

  const Problem& problem_;
  const bool largest_load_;
  std::vector<double> loads_us_;  // of the nodes, by device
};

bool Launch(const Problem& problem, const Measure& measure, int device, State& state) {
  if (problem.devices[device].max_regions && state.runs_on[device] >= *problem.devices[device].max_regions)
    return false;
  state.launched = std::make_shared<Launched>(Launched{{device, state.execution.RunAll(device)}, state.launched});
  ++state.runs;
  state.last_device = device;
  ++state.runs_on[device];
  state.cost_us = measure(state.runs_on);
  return true;
}

bool Better(const State& a, const State& b) {
  if (a.cost_us != b.cost_us) return a.cost_us < b.cost_us;
  return a.runs < b.runs;
}

LaunchOrder ToOrder(const State& state, bool exact) {
  LaunchOrder order{{}, state.cost_us, exact};
  for (const Launched* at = state.launched.get(); at != nullptr; at = at->before.get()) order.runs.push_back(at->run);
  std::reverse(order.runs.begin(), order.runs.end());
  return order;
}

// At most two devices in use: they alternate, and only the first launch is a choice.
std::optional<LaunchOrder> Alternate(const Problem& problem, const Measure& measure, const State& initial,
                                     const std::vector<int>& used) {
  std::optional<State> best;
  for (size_t first = 0; first < used.size(); ++first) {
    State state = initial;
    bool feasible = true;
    if (!state.execution.HasReady(used[first])) continue;
    for (size_t turn = first; feasible && !state.execution.Done(); ++turn) {
      feasible = Launch(problem, measure, used[turn % used.size()], state);
    }
    if (feasible && (!best || Better(state, *best))) best = std::move(state);
  }
  if (!best) return std::nullopt;
  return ToOrder(*best, true);
}

// Free devices first, then the one whose run is longest.
LaunchOrder FinishGreedily(const Problem& problem, const Measure& measure, State state, const std::vector<int>& used) {
  while (!state.execution.Done()) {
    std::optional<State> best;
    for (int device : used) {
      if (!state.execution.HasReady(device)) continue;
      State next = state;
      if (!Launch(problem, measure, device, next)) continue;
      if (problem.devices[device].launch_us == 0) {
        best = std::move(next);
        break;
      }
      if (!best || next.launched->run.nodes.size() > best->launched->run.nodes.size()) best = std::move(next);
    }
    // Stuck at a limit of regions; another order might not be.
    if (!best) return LaunchOrder{{}, std::numeric_limits<double>::infinity(), false};
    state = std::move(*best);
  }
  return ToOrder(state, false);
}

std::optional<LaunchOrder> Search(const Problem& problem, const Measure& measure, const State& initial,
                                  const std::vector<int>& used, int max_states) {
  auto worse = [](const std::shared_ptr<State>& a, const std::shared_ptr<State>& b) { return Better(*b, *a); };
  std::priority_queue<std::shared_ptr<State>, std::vector<std::shared_ptr<State>>, decltype(worse)> queue(worse);
  absl::flat_hash_set<std::string> seen;
  queue.push(std::make_shared<State>(initial));
  int expanded = 0;
  while (!queue.empty()) {
    const std::shared_ptr<State> state = queue.top();
    queue.pop();
    if (state->execution.Done()) return ToOrder(*state, true);
    std::string key = state->execution.Key();
    key.push_back(static_cast<char>(state->last_device + 1));
    for (int device : used) {
      if (measure.CountsMatter(device)) key.push_back(static_cast<char>(std::min(state->runs_on[device], 127)));
    }
    if (!seen.insert(std::move(key)).second) continue;
    if (++expanded > max_states) return FinishGreedily(problem, measure, *state, used);
    for (int device : used) {
      if (!state->execution.HasReady(device)) continue;
      auto next = std::make_shared<State>(*state);
      if (Launch(problem, measure, device, *next)) queue.push(std::move(next));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<LaunchOrder> BestLaunchOrder(const Problem& problem, const Adjacency& adjacency,
                                           const Assignment& device_of, int max_states) {
  const int device_count = static_cast<int>(problem.devices.size());
  std::vector<int> used;
  for (int device = 0; device < device_count; ++device) {
    if (std::find(device_of.begin(), device_of.end(), device) != device_of.end()) used.push_back(device);
  }
  if (used.empty()) return LaunchOrder{};
  const State initial{Execution(adjacency, device_of, device_count), -1, 0.0, std::vector<int>(device_count), 0, nullptr};
  const Measure measure(problem, device_of);
  if (used.size() <= 2) return Alternate(problem, measure, initial, used);
  return Search(problem, measure, initial, used, max_states);
}

}  // namespace heddle::ir::partition
