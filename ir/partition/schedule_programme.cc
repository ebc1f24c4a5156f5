// A label is a partial schedule: which nodes have been put into the sequence, the region that is still open (nodes can
// join it), when each device and link is free, where each tensor that is still to be read has been made and when it is
// there. It grows by one node, which joins the open region or opens another. Of two labels with the same nodes, places
// and open region, one that is nowhere later, nowhere fuller and not busier makes the other superfluous. A label goes
// too where its bound (BoundRemainingTime) does not beat the best plan known.
//
// Throughput is the same with loads instead of times: nothing waits, and what is free "at" is how much it has to do.
//
// Layer by layer (number of nodes), at most `width` labels live, those with the least bounds. If none had to go for want
// of room the best plan is proven; if not, the least bound among those that went is a bound on all plans, and the width
// grows as long as time is left.
#include "ir/partition/schedule_programme.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "ir/partition/evaluate.h"
#include "ir/partition/remaining_time.h"
#include "ir/partition/tasks.h"

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;  // relative: sums of priced costs may be off by so much
constexpr size_t kFirstWidth = 200, kLargestWidth = 400'000;
constexpr size_t kGrowth = 10;

struct Step {
  int parent = -1;
  int node = -1;
  int device = -1;
  bool opens = false;  // a region
};

// What follows from the set of nodes in the sequence.
struct Frontier {
  std::string done;                // one bit a node
  std::vector<int> waiting_for;    // by node: predecessors not done
  std::vector<int> candidates;     // nodes that may come next
  std::vector<int> live;           // tensors made (or graph inputs) with readers not done, ascending
  std::vector<int> open_clusters;  // with nodes done and not done
  double least_left_us = 0;        // least cost of the nodes not done
  std::vector<double> priced_left_us;  // by prices: least priced cost of the nodes not done
};

struct LiveTensor {
  int made_on = 0;
  bool in_open = false;           // made in the open region: there when that ends
  std::vector<double> there_us;   // by device, kNever: not there
};

struct Label {
  int frontier = 0;
  int open = -1;             // device of the open region
  double ready_us = 0;       // its start, as far as its inputs so far say
  double open_us = 0;        // its launch and nodes
  std::vector<double> free_us;       // by resource (tasks.h)
  std::vector<LiveTensor> live;      // in the order of Frontier::live
  std::vector<int> outputs;          // made in the open region, to be sent to the host at its end; ascending
  std::vector<int> cluster_device;   // in the order of Frontier::open_clusters
  std::vector<double> used;          // of each device's capacity, and its number of regions
  double busy_us = 0;
  double bound = 0;                  // on the Score of every completion
  int step = -1;
};

struct Layer {
  std::vector<Frontier> frontiers;
  absl::flat_hash_map<std::string, int> frontier_of;
  // Labels that can be compared stand together, in the order in which they came: the same plan every time.
  std::vector<std::vector<Label>> labels;
  absl::flat_hash_map<std::string, int> labels_of;  // what must be equal → index
  size_t count = 0;
};

class Programme {
 public:
  Programme(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters)
      : problem_(problem),
        adjacency_(adjacency),
        clusters_(clusters),
        devices_(static_cast<int>(problem.devices.size())),
        loads_only_(problem.objective == Objective::kThroughput),
        remaining_(BoundRemainingTime(problem, adjacency, clusters)),
        reads_(ReadsOfNodes(problem)),
        makes_(problem.nodes.size()) {
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
      if (problem.tensors[tensor].producer >= 0) makes_[problem.tensors[tensor].producer].push_back(static_cast<int>(tensor));
    }
    for (const Device& device : problem.devices) limited_ = limited_ || device.capacity || device.max_regions;
  }

  Bounded Solve(const std::optional<Heuristic>& start, double time_limit_seconds) {
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time_limit_seconds));
    Bounded result;
    result.best = start;
    for (size_t width = kFirstWidth; width <= kLargestWidth; width *= kGrowth) {
      best_score_ = result.best ? Score(problem_, result.best->evaluation) : kNever;
      const std::optional<Heuristic> found = Pass(width);
      if (found) result.best = found;
      const double score = result.best ? Score(problem_, result.best->evaluation) : kNever;
      result.lower_bound = std::max(result.lower_bound, std::min(score, least_dropped_));
      if (least_dropped_ >= score) {  // also where no plan exists and nothing was dropped
        result.infeasible = !result.best;
        if (result.best) result.lower_bound = result.best->evaluation.cost;
        return result;
      }
      if (Clock::now() >= deadline_) return result;
    }
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // One pass with so many labels a layer; the best plan found if it beats best_score_. Sets least_dropped_.
  std::optional<Heuristic> Pass(size_t width) {
    least_dropped_ = kNever;
    steps_.clear();
    Layer layer = FirstLayer();
    for (size_t done = 0; done < problem_.nodes.size(); ++done) {
      if (Clock::now() >= deadline_) return Abandon(layer);
      Layer next;
      for (const std::vector<Label>& labels : layer.labels) {
        for (const Label& label : labels) Expand(layer.frontiers[label.frontier], label, next);
      }
      Narrow(width, next);
      layer = std::move(next);
    }
    const Label* best = nullptr;
    for (const std::vector<Label>& labels : layer.labels) {
      for (const Label& label : labels) {
        if (!best || label.bound < best->bound) best = &label;
      }
    }
    return best ? PlanOf(*best) : std::nullopt;
  }

  // Out of time: what is still alive bounds what it could have become.
  std::optional<Heuristic> Abandon(const Layer& layer) {
    for (const std::vector<Label>& labels : layer.labels) {
      for (const Label& label : labels) least_dropped_ = std::min(least_dropped_, label.bound);
    }
    return std::nullopt;
  }

  std::optional<Heuristic> PlanOf(const Label& label) const {
    std::vector<Step> way;
    for (int step = label.step; step >= 0; step = steps_[step].parent) way.push_back(steps_[step]);
    Heuristic plan{Assignment(problem_.nodes.size()), {}};
    std::vector<Run> sequence;
    for (auto step = way.rbegin(); step != way.rend(); ++step) {
      if (step->opens) sequence.push_back({step->device, {}});
      sequence.back().nodes.push_back(step->node);
      plan.device_of[step->node] = step->device;
    }
    plan.evaluation = EvaluateSequence(problem_, plan.device_of, sequence);
    if (!plan.evaluation.feasible || Score(problem_, plan.evaluation) >= best_score_) return std::nullopt;
    return plan;
  }

  Layer FirstLayer() const {
    Frontier frontier;
    frontier.done.assign(problem_.nodes.size() / 8 + 1, '\0');
    for (size_t node = 0; node < problem_.nodes.size(); ++node) {
      frontier.waiting_for.push_back(static_cast<int>(adjacency_.predecessors[node].size()));
      frontier.least_left_us += remaining_.least_us[node];
    }
    for (const RemainingTime::Prices& prices : remaining_.prices) {
      frontier.priced_left_us.push_back(std::accumulate(prices.least_us.begin(), prices.least_us.end(), 0.0));
    }
    Derive(frontier);
    Label label;
    label.free_us.assign(ResourceCount(problem_), 0);
    if (limited_) label.used.assign(2 * devices_, 0);
    for (size_t i = 0; i < frontier.live.size(); ++i) {
      LiveTensor tensor{problem_.host, false, std::vector<double>(devices_, kNever)};
      tensor.there_us[problem_.host] = 0;
      label.live.push_back(std::move(tensor));
    }
    Layer layer;
    layer.labels.emplace_back().push_back(std::move(label));
    layer.frontiers.push_back(std::move(frontier));
    layer.count = 1;
    return layer;
  }

  static bool IsDone(const Frontier& frontier, int node) { return frontier.done[node / 8] >> (node % 8) & 1; }

  void Derive(Frontier& frontier) const {
    for (int tensor = 0; tensor < static_cast<int>(problem_.tensors.size()); ++tensor) {
      const Tensor& info = problem_.tensors[tensor];
      if (info.producer >= 0 && !IsDone(frontier, info.producer)) continue;
      const bool alive = std::any_of(info.consumers.begin(), info.consumers.end(), [&](int c) { return !IsDone(frontier, c); });
      if (alive) frontier.live.push_back(tensor);
    }
    for (int cluster = 0; cluster < static_cast<int>(clusters_.nodes.size()); ++cluster) {
      const std::vector<int>& nodes = clusters_.nodes[cluster];
      const auto done = std::count_if(nodes.begin(), nodes.end(), [&](int node) { return IsDone(frontier, node); });
      if (done > 0 && done < static_cast<int>(nodes.size())) frontier.open_clusters.push_back(cluster);
    }
    for (int node = 0; node < static_cast<int>(problem_.nodes.size()); ++node) {
      if (frontier.waiting_for[node] == 0 && !IsDone(frontier, node)) frontier.candidates.push_back(node);
    }
  }

  int Intern(const Frontier& from, int node, Layer& next) const {
    std::string done = from.done;
    done[node / 8] |= static_cast<char>(1 << (node % 8));
    const auto [entry, inserted] = next.frontier_of.try_emplace(done, static_cast<int>(next.frontiers.size()));
    if (!inserted) return entry->second;
    Frontier frontier;
    frontier.done = std::move(done);
    frontier.waiting_for = from.waiting_for;
    for (int successor : adjacency_.successors[node]) --frontier.waiting_for[successor];
    frontier.least_left_us = from.least_left_us - remaining_.least_us[node];
    frontier.priced_left_us = from.priced_left_us;
    for (size_t i = 0; i < remaining_.prices.size(); ++i) frontier.priced_left_us[i] -= remaining_.prices[i].least_us[node];
    Derive(frontier);
    next.frontiers.push_back(std::move(frontier));
    return static_cast<int>(next.frontiers.size()) - 1;
  }

  void Expand(const Frontier& frontier, const Label& label, Layer& next) {
    for (int node : frontier.candidates) {
      const int target = Intern(frontier, node, next);
      for (int device = 0; device < devices_; ++device) {
        if (remaining_.tail_us[node][device] == kNever || !ClusterAllows(frontier, label, node, device)) continue;
        if (label.open == device) Append(frontier, label, node, device, false, target, next);
        Append(frontier, label, node, device, true, target, next);
      }
    }
  }

  bool ClusterAllows(const Frontier& frontier, const Label& label, int node, int device) const {
    for (size_t i = 0; i < frontier.open_clusters.size(); ++i) {
      if (frontier.open_clusters[i] == clusters_.cluster_of[node]) return label.cluster_device[i] == device;
    }
    return true;
  }

  void Append(const Frontier& frontier, const Label& from, int node, int device, bool opens, int target, Layer& next) {
    Label label = from;
    if (opens && !Open(frontier, device, label)) return;
    if (!TakeCapacity(node, device, label)) return;
    for (int tensor : reads_[node]) Fetch(frontier, tensor, device, label);
    const double cost_us = *problem_.nodes[node].on[device].cost_us;
    Work(cost_us, label);
    Advance(frontier, next.frontiers[target], node, device, label);
    label.frontier = target;
    if (next.frontiers[target].candidates.empty()) Close(next.frontiers[target], label);
    label.bound = Bound(next.frontiers[target], label);
    if (label.bound >= best_score_ * (1 - 1e-12)) return;
    Record({from.step, node, device, opens}, std::move(label), next);
  }

  bool TakeCapacity(int node, int device, Label& label) const {
    if (!limited_) return true;
    label.used[device] += problem_.nodes[node].on[device].size;
    return !problem_.devices[device].capacity || label.used[device] <= *problem_.devices[device].capacity;
  }

  bool Open(const Frontier& frontier, int device, Label& label) const {
    Close(frontier, label);
    if (limited_) {
      ++label.used[devices_ + device];
      const auto& limit = problem_.devices[device].max_regions;
      if (limit && label.used[devices_ + device] > *limit) return false;
    }
    label.open = device;
    label.ready_us = loads_only_ ? 0 : label.free_us[device];
    Work(problem_.devices[device].launch_us, label);
    return true;
  }

  // Time of the open region: in a steady stream it only adds to the device's load.
  void Work(double us, Label& label) const {
    (loads_only_ ? label.free_us[label.open] : label.open_us) += us;
    label.busy_us += us;
  }

  // Ends the open region: its results are there, outputs of the graph set out for the host.
  void Close(const Frontier& frontier, Label& label) const {
    if (label.open < 0) return;
    const double end_us = label.ready_us + label.open_us;
    if (!loads_only_) label.free_us[label.open] = end_us;
    for (LiveTensor& tensor : label.live) {
      if (!tensor.in_open) continue;
      tensor.in_open = false;
      tensor.there_us[label.open] = end_us;
    }
    for (int output : label.outputs) {
      const double there_us = Send(output, label.open, problem_.host, end_us, label);
      const auto live = std::lower_bound(frontier.live.begin(), frontier.live.end(), output);
      if (live != frontier.live.end() && *live == output) label.live[live - frontier.live.begin()].there_us[problem_.host] = there_us;
    }
    label.outputs.clear();
    label.open = -1;
    label.ready_us = label.open_us = 0;
  }

  double Send(int tensor, int from, int to, double made_us, Label& label) const {
    const double us = problem_.links[from][to].TransferUs(problem_.tensors[tensor].bytes);
    double& free_us = label.free_us[ResourceOfLink(problem_, from, to)];
    label.busy_us += us;
    if (loads_only_) {
      free_us += us;
      return 0;
    }
    return free_us = std::max(free_us, made_us) + us;
  }

  // Makes `tensor` an input of the open region.
  void Fetch(const Frontier& frontier, int tensor, int device, Label& label) const {
    LiveTensor& live = label.live[std::lower_bound(frontier.live.begin(), frontier.live.end(), tensor) - frontier.live.begin()];
    if (live.in_open) return;
    if (live.there_us[device] == kNever) live.there_us[device] = Send(tensor, live.made_on, device, live.there_us[live.made_on], label);
    label.ready_us = std::max(label.ready_us, live.there_us[device]);
  }

  // Brings the lists that follow the frontier to the next one.
  void Advance(const Frontier& from, const Frontier& to, int node, int device, Label& label) const {
    std::vector<LiveTensor> live;
    for (int tensor : to.live) {
      const auto known = std::lower_bound(from.live.begin(), from.live.end(), tensor);
      if (known != from.live.end() && *known == tensor) {
        live.push_back(std::move(label.live[known - from.live.begin()]));
      } else {
        live.push_back({device, true, std::vector<double>(devices_, kNever)});
      }
    }
    label.live = std::move(live);
    std::vector<int> cluster_device;
    for (int cluster : to.open_clusters) {
      const auto known = std::lower_bound(from.open_clusters.begin(), from.open_clusters.end(), cluster);
      const bool was_open = known != from.open_clusters.end() && *known == cluster;
      cluster_device.push_back(was_open ? label.cluster_device[known - from.open_clusters.begin()] : device);
    }
    label.cluster_device = std::move(cluster_device);
    for (int tensor : makes_[node]) {
      if (!problem_.tensors[tensor].to_host || device == problem_.host) continue;
      label.outputs.insert(std::upper_bound(label.outputs.begin(), label.outputs.end(), tensor), tensor);
    }
  }

  // The least end of the rest through one unread tensor.
  double ThroughUs(const Frontier& frontier, const Label& label, size_t index) const {
    const Tensor& info = problem_.tensors[frontier.live[index]];
    std::vector<double> start_us(devices_);  // earliest start of a reader, by device, the launch before it included
    for (int device = 0; device < devices_; ++device) start_us[device] = StartUs(info, label, index, device);
    double through_us = 0;
    for (int reader : info.consumers) {
      if (IsDone(frontier, reader)) continue;
      double least_us = kNever;
      for (int device = 0; device < devices_; ++device) {
        least_us = std::min(least_us, start_us[device] + remaining_.tail_us[reader][device]);
      }
      through_us = std::max(through_us, least_us);
    }
    return through_us;
  }

  double StartUs(const Tensor& info, const Label& label, size_t index, int device) const {
    const LiveTensor& tensor = label.live[index];
    const double open_end_us = label.ready_us + label.open_us;
    if (tensor.in_open && device == label.open) return open_end_us;
    const double launch_us = problem_.devices[device].launch_us;
    double there_us = tensor.there_us[device];
    if (there_us == kNever) {
      const double made_us = tensor.in_open ? open_end_us : tensor.there_us[tensor.made_on];
      const double link_us = label.free_us[ResourceOfLink(problem_, tensor.made_on, device)];
      there_us = std::max(made_us, link_us) + problem_.links[tensor.made_on][device].TransferUs(info.bytes);
    }
    if (device != label.open) return std::max(there_us, label.free_us[device]) + launch_us;
    return std::min(std::max(there_us, label.ready_us) + label.open_us, std::max(there_us, open_end_us) + launch_us);
  }

  // The work left, spread over the devices as well as fractions could be.
  double PricedEndUs(const Frontier& frontier, const Label& label, size_t index) const {
    const std::vector<double>& prices = remaining_.prices[index].of_device;
    double sum_us = frontier.priced_left_us[index];
    for (int device = 0; device < devices_; ++device) {
      const bool open = !loads_only_ && device == label.open;
      sum_us += prices[device] * (open ? label.ready_us + label.open_us : label.free_us[device]);
    }
    return sum_us * (1 - kRounding);
  }

  double Bound(const Frontier& frontier, const Label& label) const {
    double end_us = label.ready_us + label.open_us;
    for (double free_us : label.free_us) end_us = std::max(end_us, free_us);
    for (size_t i = 0; i < remaining_.prices.size(); ++i) end_us = std::max(end_us, PricedEndUs(frontier, label, i));
    if (loads_only_) return Score(problem_, end_us, label.busy_us + frontier.least_left_us);
    for (size_t index = 0; index < frontier.live.size(); ++index) end_us = std::max(end_us, ThroughUs(frontier, label, index));
    for (int output : label.outputs) {
      end_us = std::max(end_us, label.ready_us + label.open_us +
                                    problem_.links[label.open][problem_.host].TransferUs(problem_.tensors[output].bytes));
    }
    return Score(problem_, end_us, label.busy_us + frontier.least_left_us);
  }

  static void Put(std::string& key, int value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); }

  std::string KeyOf(const Label& label) const {
    std::string key;
    Put(key, label.frontier);
    key.push_back(static_cast<char>(label.open));
    for (const LiveTensor& tensor : label.live) {
      int where = tensor.made_on << 1 | tensor.in_open;
      for (int device = 0; device < devices_; ++device) where = where << 1 | (tensor.there_us[device] != kNever);
      Put(key, where);
    }
    for (int device : label.cluster_device) key.push_back(static_cast<char>(device));
    for (int output : label.outputs) Put(key, output);
    return key;
  }

  static bool NotLater(const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] > b[i]) return false;
    }
    return true;
  }

  static bool Dominates(const Label& a, const Label& b) {
    if (a.busy_us > b.busy_us || a.open_us > b.open_us || a.ready_us + a.open_us > b.ready_us + b.open_us) return false;
    if (!NotLater(a.free_us, b.free_us) || !NotLater(a.used, b.used)) return false;
    for (size_t i = 0; i < a.live.size(); ++i) {
      if (!NotLater(a.live[i].there_us, b.live[i].there_us)) return false;
    }
    return true;
  }

  void Record(const Step& step, Label label, Layer& next) {
    const auto [entry, inserted] = next.labels_of.try_emplace(KeyOf(label), static_cast<int>(next.labels.size()));
    if (inserted) next.labels.emplace_back();
    std::vector<Label>& rivals = next.labels[entry->second];
    for (const Label& rival : rivals) {
      if (Dominates(rival, label)) return;
    }
    const size_t before = rivals.size();
    std::erase_if(rivals, [&](const Label& rival) { return Dominates(label, rival); });
    next.count -= before - rivals.size();
    steps_.push_back(step);
    label.step = static_cast<int>(steps_.size()) - 1;
    rivals.push_back(std::move(label));
    ++next.count;
  }

  // Keeps the `width` labels of least bound.
  void Narrow(size_t width, Layer& layer) {
    if (layer.count <= width) return;
    std::vector<double> bounds;
    for (const std::vector<Label>& labels : layer.labels) {
      for (const Label& label : labels) bounds.push_back(label.bound);
    }
    std::nth_element(bounds.begin(), bounds.begin() + static_cast<std::ptrdiff_t>(width), bounds.end());
    const double first_out = bounds[width];
    least_dropped_ = std::min(least_dropped_, first_out);
    const auto surely_in = std::count_if(bounds.begin(), bounds.end(), [&](double bound) { return bound < first_out; });
    size_t ties = width - static_cast<size_t>(surely_in);  // as many of those at the edge as there is room for
    for (std::vector<Label>& labels : layer.labels) {
      std::erase_if(labels, [&](const Label& label) {
        return label.bound > first_out || (label.bound == first_out && (ties == 0 || ties-- == 0));
      });
    }
    layer.count = width;
  }

  const Problem& problem_;
  const Adjacency& adjacency_;
  const Clusters& clusters_;
  const int devices_;
  const bool loads_only_;
  const RemainingTime remaining_;
  const std::vector<std::vector<int>> reads_;
  std::vector<std::vector<int>> makes_;
  bool limited_ = false;
  std::vector<Step> steps_;
  double best_score_ = kNever;
  double least_dropped_ = kNever;
  Clock::time_point deadline_;
};

}  // namespace

Bounded SolveBySchedules(const Problem& problem, const Adjacency& adjacency, const Clusters& clusters,
                         const std::optional<Heuristic>& start, double time_limit_seconds) {
  return Programme(problem, adjacency, clusters).Solve(start, time_limit_seconds);
}

}  // namespace heddle::ir::partition
