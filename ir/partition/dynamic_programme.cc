// A state is what the rest of the execution can depend on: the set of executed nodes, the device of the current run,
// for each tensor that still has readers where it was made and where it has been moved to, the device of each group
// that is only partly executed, and the regions used so far of devices that limit them. Its value is the least cost of
// reaching it. Networks are narrow (few tensors alive at once), so there are few states even for a thousand nodes;
// on a wide graph the number explodes and the search gives up.
//
// Where launches cost nothing and are not limited, the order of execution does not matter and one fixed order is
// enough. With them every order is tried, each set of executed nodes once.
#include "ir/partition/dynamic_programme.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <limits>
#include <string>

#include "ir/check.h"
#include "ir/partition/evaluate.h"

namespace heddle::ir::partition {
namespace {

// How a state was reached; the chain of parents is the plan.
struct Step {
  int parent = -1;
  int node = -1;
  int device = -1;
};

// A set of executed nodes that can be reached, with what follows from it.
struct Frontier {
  std::string executed;            // one bit a node
  std::vector<int> waiting_for;    // unexecuted predecessors of each node
  std::vector<int> candidates;     // nodes that may run next
  std::vector<int> live;           // tensors made (or graph inputs) with unexecuted readers, ascending
  std::vector<int> open_clusters;  // clusters with executed and unexecuted nodes, ascending
  double remaining_us = 0;         // least cost of all unexecuted nodes
};

struct State {
  int frontier = 0;  // index into the layer's frontiers
  std::string key;   // the rest of the state, packed by Programme::Pack
  double cost_us = 0;
  int runs = 0;
  int step = -1;
};

struct Layer {
  std::vector<Frontier> frontiers;
  absl::flat_hash_map<std::string, int> frontier_of;  // executed → index
  std::vector<State> states;
  absl::flat_hash_map<std::string, int> state_of;  // frontier and key → index
};

// An unpacked State::key.
struct Situation {
  int last_device = -1;
  std::vector<int> runs_on;            // by device
  std::vector<uint8_t> made_on;        // by tensor
  std::vector<uint8_t> present_on;     // by tensor: bit per device
  std::vector<int8_t> cluster_device;  // by cluster, -1: not decided
};

class Programme {
 public:
  Programme(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters, double upper_bound_us,
            int max_states)
      : problem_(problem),
        adjacency_(adjacency),
        clusters_(clusters),
        limit_us_(upper_bound_us * (1 + 1e-12) + 1e-12),
        max_states_(max_states),
        launches_(LaunchesMatter(problem)),
        reads_(problem.nodes.size()),
        makes_(problem.nodes.size()) {
    for (size_t index = 0; index < problem.tensors.size(); ++index) {
      const Tensor& tensor = problem.tensors[index];
      if (tensor.producer >= 0) makes_[tensor.producer].push_back(index);
      std::vector<int> consumers = tensor.consumers;
      std::sort(consumers.begin(), consumers.end());
      consumers.erase(std::unique(consumers.begin(), consumers.end()), consumers.end());
      for (int consumer : consumers) reads_[consumer].push_back(index);
    }
    for (size_t cluster = 0; cluster < clusters.nodes.size(); ++cluster) {
      allowed_.emplace_back();
      for (size_t device = 0; device < problem.devices.size(); ++device) {
        allowed_.back().push_back(clusters.CostUs(problem, cluster, device).has_value());
      }
    }
    for (size_t node = 0; node < problem.nodes.size(); ++node) least_us_.push_back(LeastUs(node));
    situation_.runs_on.assign(problem.devices.size(), 0);
    situation_.made_on.assign(problem.tensors.size(), 0);
    situation_.present_on.assign(problem.tensors.size(), 0);
    situation_.cluster_device.assign(clusters.nodes.size(), -1);
  }

  Optimum Run() {
    Layer layer = FirstLayer();
    for (size_t executed = 0; executed < problem_.nodes.size(); ++executed) {
      Layer next;
      for (const State& state : layer.states) {
        Expand(layer.frontiers[state.frontier], state, next);
        if (Effort() > max_states_) return {.gave_up = true};
      }
      layer = std::move(next);
    }
    Optimum result;
    const auto best = std::min_element(layer.states.begin(), layer.states.end(), [](const State& a, const State& b) {
      return a.cost_us != b.cost_us ? a.cost_us < b.cost_us : a.runs < b.runs;
    });
    if (best == layer.states.end()) return result;
    result.feasible = true;
    result.cost_us = best->cost_us;
    result.device_of.assign(problem_.nodes.size(), 0);
    for (int step = best->step; step >= 0; step = steps_[step].parent) {
      if (steps_[step].node >= 0) result.device_of[steps_[step].node] = steps_[step].device;
    }
    return result;
  }

 private:
  // Deriving a frontier costs about as much as recording one state for every ten nodes.
  int64_t Effort() const { return steps_.size() + frontier_count_ * (problem_.nodes.size() / 10); }

  double LeastUs(size_t node) const {
    double least = std::numeric_limits<double>::infinity();
    for (size_t device = 0; device < problem_.devices.size(); ++device) {
      if (!allowed_[clusters_.cluster_of[node]][device]) continue;
      least = std::min(least, *problem_.nodes[node].on[device].cost_us);
    }
    return least;
  }

  Layer FirstLayer() {
    Layer layer;
    Frontier frontier;
    frontier.executed.assign(problem_.nodes.size() / 8 + 1, '\0');
    for (size_t node = 0; node < problem_.nodes.size(); ++node) {
      frontier.waiting_for.push_back(static_cast<int>(adjacency_.predecessors[node].size()));
      frontier.remaining_us += least_us_[node];
    }
    DeriveFrontier(frontier);
    for (size_t tensor = 0; tensor < problem_.tensors.size(); ++tensor) {
      if (problem_.tensors[tensor].producer >= 0) continue;
      situation_.made_on[tensor] = problem_.host;
      situation_.present_on[tensor] = 1 << problem_.host;
    }
    steps_.push_back({});
    layer.states.push_back({0, Pack(frontier), 0, 0, 0});
    layer.frontiers.push_back(std::move(frontier));
    return layer;
  }

  static bool Executed(const Frontier& frontier, int node) { return frontier.executed[node / 8] >> (node % 8) & 1; }

  // Fills the lists that follow from `executed` and `waiting_for`.
  void DeriveFrontier(Frontier& frontier) const {
    for (int tensor = 0; tensor < static_cast<int>(problem_.tensors.size()); ++tensor) {
      const Tensor& info = problem_.tensors[tensor];
      if (info.producer >= 0 && !Executed(frontier, info.producer)) continue;
      const bool alive = std::any_of(info.consumers.begin(), info.consumers.end(),
                                     [&](int consumer) { return !Executed(frontier, consumer); });
      if (alive) frontier.live.push_back(tensor);
    }
    for (int cluster = 0; cluster < static_cast<int>(clusters_.nodes.size()); ++cluster) {
      const std::vector<int>& nodes = clusters_.nodes[cluster];
      if (nodes.size() < 2) continue;
      const auto done = std::count_if(nodes.begin(), nodes.end(), [&](int node) { return Executed(frontier, node); });
      if (done > 0 && done < static_cast<int>(nodes.size())) frontier.open_clusters.push_back(cluster);
    }
    for (int node = 0; node < static_cast<int>(problem_.nodes.size()); ++node) {
      if (frontier.waiting_for[node] == 0 && !Executed(frontier, node)) frontier.candidates.push_back(node);
    }
    if (!launches_ && frontier.candidates.size() > 1) frontier.candidates = {Narrowest(frontier)};
  }

  // The candidate that leaves the fewest tensors alive, so that the fixed order has few states.
  int Narrowest(const Frontier& frontier) const {
    int best = -1;
    int best_growth = std::numeric_limits<int>::max();
    for (int node : frontier.candidates) {
      int growth = static_cast<int>(makes_[node].size());
      for (int tensor : reads_[node]) {
        const std::vector<int>& consumers = problem_.tensors[tensor].consumers;
        const bool last = std::all_of(consumers.begin(), consumers.end(),
                                      [&](int reader) { return reader == node || Executed(frontier, reader); });
        if (last) --growth;
      }
      if (growth < best_growth) {
        best = node;
        best_growth = growth;
      }
    }
    return best;
  }

  // Packs situation_ as far as the frontier's future depends on it.
  std::string Pack(const Frontier& frontier) const {
    std::string key;
    key.reserve(1 + problem_.devices.size() + frontier.open_clusters.size() + 2 * frontier.live.size());
    key.push_back(static_cast<char>(launches_ ? situation_.last_device : -1));
    for (size_t device = 0; device < problem_.devices.size(); ++device) {
      if (problem_.devices[device].max_regions) key.push_back(static_cast<char>(situation_.runs_on[device]));
    }
    for (int cluster : frontier.open_clusters) key.push_back(situation_.cluster_device[cluster]);
    for (int tensor : frontier.live) {
      key.push_back(static_cast<char>(situation_.made_on[tensor]));
      key.push_back(static_cast<char>(situation_.present_on[tensor]));
    }
    return key;
  }

  void Unpack(const Frontier& frontier, const std::string& key) {
    size_t at = 0;
    situation_.last_device = static_cast<int8_t>(key[at++]);
    for (size_t device = 0; device < problem_.devices.size(); ++device) {
      if (problem_.devices[device].max_regions) situation_.runs_on[device] = static_cast<uint8_t>(key[at++]);
    }
    for (int cluster : frontier.open_clusters) situation_.cluster_device[cluster] = key[at++];
    for (int tensor : frontier.live) {
      situation_.made_on[tensor] = key[at++];
      situation_.present_on[tensor] = key[at++];
    }
  }

  int InternFrontier(const Frontier& from, int node, Layer& next) {
    std::string executed = from.executed;
    executed[node / 8] |= static_cast<char>(1 << (node % 8));
    const auto [entry, inserted] = next.frontier_of.try_emplace(executed, next.frontiers.size());
    if (!inserted) return entry->second;
    ++frontier_count_;
    Frontier frontier;
    frontier.executed = std::move(executed);
    frontier.waiting_for = from.waiting_for;
    for (int successor : adjacency_.successors[node]) --frontier.waiting_for[successor];
    frontier.remaining_us = from.remaining_us - least_us_[node];
    DeriveFrontier(frontier);
    next.frontiers.push_back(std::move(frontier));
    return static_cast<int>(next.frontiers.size()) - 1;
  }

  void Expand(const Frontier& frontier, const State& state, Layer& next) {
    for (int node : frontier.candidates) {
      const int target = InternFrontier(frontier, node, next);
      const int cluster = clusters_.cluster_of[node];
      const bool open = std::binary_search(frontier.open_clusters.begin(), frontier.open_clusters.end(), cluster);
      for (int device = 0; device < static_cast<int>(problem_.devices.size()); ++device) {
        if (!allowed_[cluster][device]) continue;
        Unpack(frontier, state.key);
        if (open && situation_.cluster_device[cluster] != device) continue;
        Execute(state, node, device, target, next);
      }
    }
  }

  // Runs `node` on `device` from the situation just unpacked and records the state that this leads to.
  void Execute(const State& state, int node, int device, int target, Layer& next) {
    double cost_us = state.cost_us + *problem_.nodes[node].on[device].cost_us;
    int runs = state.runs;
    if (launches_ && situation_.last_device != device) {
      const Device& info = problem_.devices[device];
      if (info.max_regions && situation_.runs_on[device] >= std::min(*info.max_regions, 255)) return;
      cost_us += info.launch_us;
      ++runs;
      ++situation_.runs_on[device];
      situation_.last_device = device;
    }
    for (int tensor : reads_[node]) cost_us += MoveTo(tensor, device);
    for (int tensor : makes_[node]) {
      situation_.made_on[tensor] = device;
      situation_.present_on[tensor] = 1 << device;
      if (problem_.tensors[tensor].to_host) cost_us += MoveTo(tensor, problem_.host);
    }
    const Frontier& frontier = next.frontiers[target];
    if (cost_us + frontier.remaining_us > limit_us_) return;
    situation_.cluster_device[clusters_.cluster_of[node]] = device;
    Record(state, node, device, target, cost_us, runs, next);
  }

  double MoveTo(int tensor, int device) {
    if (situation_.present_on[tensor] >> device & 1) return 0;
    situation_.present_on[tensor] |= 1 << device;
    return problem_.links[situation_.made_on[tensor]][device].TransferUs(problem_.tensors[tensor].bytes);
  }

  void Record(const State& from, int node, int device, int target, double cost_us, int runs, Layer& next) {
    std::string key = Pack(next.frontiers[target]);
    std::string full_key = key;
    full_key.append(reinterpret_cast<const char*>(&target), sizeof target);
    const auto [entry, inserted] = next.state_of.try_emplace(std::move(full_key), next.states.size());
    if (inserted) {
      steps_.push_back({from.step, node, device});
      next.states.push_back({target, std::move(key), cost_us, runs, static_cast<int>(steps_.size()) - 1});
      return;
    }
    State& known = next.states[entry->second];
    if (cost_us > known.cost_us || (cost_us == known.cost_us && runs >= known.runs)) return;
    known.cost_us = cost_us;
    known.runs = runs;
    steps_[known.step] = {from.step, node, device};
  }

  const Problem& problem_;
  const Adjacency& adjacency_;
  const Clusters& clusters_;
  const double limit_us_;
  const int max_states_;
  const bool launches_;
  std::vector<std::vector<int>> reads_;  // tensors by node
  std::vector<std::vector<int>> makes_;
  std::vector<std::vector<bool>> allowed_;  // [cluster][device]
  std::vector<double> least_us_;
  std::vector<Step> steps_;
  int64_t frontier_count_ = 0;
  Situation situation_;
};

}  // namespace

Optimum SolveByDynamicProgramme(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                                double upper_bound_us, int max_states) {
  for (const Device& device : problem.devices) {
    HEDDLE_CHECK(!device.capacity, "the dynamic programme does not track capacities");
  }
  return Programme(problem, adjacency, clusters, upper_bound_us, max_states).Run();
}

}  // namespace heddle::ir::partition
