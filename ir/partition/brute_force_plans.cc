// Written for obviousness: a plan, or its first part, is played from its beginning each time.
//
// Latency: depth first over all sequences, a node at a time, in the open region or a new one. Two parts after which
// everything is equal (same nodes done, same times everywhere) are continued once.
// Throughput and energy: depth first over all assignments; then all orders of execution for the launches.
#include "ir/partition/brute_force_plans.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool Reads(const Tensor& tensor, int node) {
  return std::find(tensor.consumers.begin(), tensor.consumers.end(), node) != tensor.consumers.end();
}

// Plays a plan on devices and links.
class Play {
 public:
  Play(const Problem& problem, const std::vector<PlainRegion>& sequence)
      : problem_(problem),
        sequence_(sequence),
        devices_(static_cast<int>(problem.devices.size())),
        free_us_(devices_ * devices_),
        load_us_(devices_ * devices_),
        there_us_(problem.tensors.size() * devices_, kNever),
        device_of_(problem.nodes.size(), -1),
        node_end_us_(problem.nodes.size(), kNever) {
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
      if (problem.tensors[tensor].producer < 0) There(tensor, problem.host) = 0;
    }
    for (const PlainRegion& region : sequence) Run(region);
  }

  double end_us() const { return *std::max_element(free_us_.begin(), free_us_.end()); }
  double LargestLoadUs() const { return *std::max_element(load_us_.begin(), load_us_.end()); }

  double SumOfDeviceEndsUs() const {
    double sum_us = 0;
    for (int device = 0; device < devices_; ++device) sum_us += free_us_[device * devices_ + device];
    return sum_us;
  }

  double energy_uj() const { return energy_uj_; }
  double node_end_us(int node) const { return node_end_us_[node]; }
  int device_of(int node) const { return device_of_[node]; }

  // Everything on which the rest can depend.
  std::vector<double> State() const {
    std::vector<double> state;
    for (int device : device_of_) state.push_back(device >= 0);
    state.insert(state.end(), free_us_.begin(), free_us_.end());
    for (size_t tensor = 0; tensor < problem_.tensors.size(); ++tensor) AddTensor(static_cast<int>(tensor), state);
    if (sequence_.empty()) return state;
    state.push_back(sequence_.back().device);
    state.push_back(ready_us_);
    for (int node : sequence_.back().nodes) state.push_back(node);  // whose outputs will still be sent
    return state;
  }

 private:
  int Resource(int from, int to) const { return from * devices_ + to; }

  void AddTensor(int tensor, std::vector<double>& state) const {
    const Tensor& info = problem_.tensors[tensor];
    bool live = false;
    for (int consumer : info.consumers) live = live || device_of_[consumer] < 0;
    if (!live) return;
    state.push_back(info.producer < 0 ? problem_.host : device_of_[info.producer]);
    state.insert(state.end(), there_us_.begin() + tensor * devices_, there_us_.begin() + (tensor + 1) * devices_);
  }

  double& There(size_t tensor, int device) { return there_us_[tensor * devices_ + device]; }

  void Run(const PlainRegion& region) {
    for (int node : region.nodes) device_of_[node] = region.device;
    double start_us = free_us_[Resource(region.device, region.device)];
    double us = problem_.devices[region.device].launch_us;
    energy_uj_ += problem_.devices[region.device].launch_uj;
    for (int node : region.nodes) {
      const Option& option = problem_.nodes[node].on[region.device];
      us += *option.cost_us;
      energy_uj_ += option.energy_uj;
      for (size_t tensor = 0; tensor < problem_.tensors.size(); ++tensor) {
        const Tensor& info = problem_.tensors[tensor];
        if (!Reads(info, node)) continue;
        const bool own = info.producer >= 0 &&
                         std::find(region.nodes.begin(), region.nodes.end(), info.producer) != region.nodes.end();
        if (!own) start_us = std::max(start_us, Bring(static_cast<int>(tensor), region.device));
      }
    }
    ready_us_ = start_us;
    const double end_us = start_us + us;
    free_us_[Resource(region.device, region.device)] = end_us;
    load_us_[Resource(region.device, region.device)] += us;
    for (int node : region.nodes) node_end_us_[node] = end_us;
    for (size_t tensor = 0; tensor < problem_.tensors.size(); ++tensor) {
      const int producer = problem_.tensors[tensor].producer;
      if (producer < 0 || node_end_us_[producer] == kNever) continue;
      if (There(tensor, device_of_[producer]) == kNever) {
        There(tensor, region.device) = end_us;
        if (problem_.tensors[tensor].to_host) Bring(static_cast<int>(tensor), problem_.host);
      }
    }
  }

  // The time at which a tensor is on a device, after it was sent there if need be.
  double Bring(int tensor, int device) {
    if (There(tensor, device) != kNever) return There(tensor, device);
    const int producer = problem_.tensors[tensor].producer;
    const int from = producer < 0 ? problem_.host : device_of_[producer];
    const Link& link = problem_.links[from][device];
    const double us = link.TransferUs(problem_.tensors[tensor].bytes);
    double& free_us = free_us_[Resource(from, device)];
    free_us = std::max(free_us, There(tensor, from)) + us;
    load_us_[Resource(from, device)] += us;
    energy_uj_ += problem_.tensors[tensor].bytes * link.uj_per_byte;
    return There(tensor, device) = free_us;
  }

  const Problem& problem_;
  const std::vector<PlainRegion>& sequence_;
  const int devices_;
  std::vector<double> free_us_, load_us_;  // [from][to]; a device is the link to itself
  std::vector<double> there_us_;           // [tensor][device], kNever: not there
  std::vector<int> device_of_;
  std::vector<double> node_end_us_;
  double energy_uj_ = 0;
  double ready_us_ = 0;
};

bool WithinLimits(const Problem& problem, const std::vector<PlainRegion>& sequence) {
  std::vector<double> used(problem.devices.size());
  std::vector<int> regions(problem.devices.size());
  std::map<int, int> device_of_group;
  for (const PlainRegion& region : sequence) {
    ++regions[region.device];
    for (int node : region.nodes) {
      if (!problem.nodes[node].on[region.device].cost_us) return false;
      used[region.device] += problem.nodes[node].on[region.device].size;
      const int group = problem.nodes[node].group;
      if (group >= 0 && device_of_group.try_emplace(group, region.device).first->second != region.device) return false;
    }
  }
  double area = 0;
  for (int device = 0; device < static_cast<int>(problem.devices.size()); ++device) {
    const Device& info = problem.devices[device];
    if (info.capacity && used[device] > *info.capacity) return false;
    if (info.max_regions && regions[device] > *info.max_regions) return false;
    if (regions[device] > 0 && device != problem.host) area += info.area;
  }
  return !problem.max_area || area <= *problem.max_area;
}

double CostOf(const Problem& problem, const Play& play) {
  if (problem.objective == Objective::kEnergy) return play.energy_uj();
  return problem.objective == Objective::kThroughput ? play.LargestLoadUs() : play.end_us();
}

bool MayFollow(const Problem& problem, const std::vector<bool>& done, int node) {
  if (done[node]) return false;
  return std::all_of(problem.tensors.begin(), problem.tensors.end(), [&](const Tensor& tensor) {
    return tensor.producer < 0 || done[tensor.producer] || !Reads(tensor, node);
  });
}

// Latency: all sequences.
class Sequences {
 public:
  Sequences(const Problem& problem, double cost) : problem_(problem), cost_(cost), done_(problem.nodes.size()) {}

  std::optional<double> Find() {
    Continue(0);
    if (!found_) return std::nullopt;
    return cost_;
  }

 private:
  void Continue(size_t count) {
    if (!WithinLimits(problem_, sequence_)) return;
    const Play play(problem_, sequence_);
    if (AtLeastUs(play) >= cost_) return;
    if (count == problem_.nodes.size()) {
      cost_ = play.end_us();
      found_ = true;
      return;
    }
    if (!seen_.insert(Digest(play.State())).second) return;
    for (int node = 0; node < static_cast<int>(problem_.nodes.size()); ++node) {
      if (!MayFollow(problem_, done_, node)) continue;
      done_[node] = true;
      for (int device = 0; device < static_cast<int>(problem_.devices.size()); ++device) Try(node, device, count);
      done_[node] = false;
    }
  }

  // 128 bits stand for the state: two of a few million are mistaken for one with a chance below 10^-24.
  static std::pair<uint64_t, uint64_t> Digest(const std::vector<double>& state) {
    uint64_t a = 0x9e3779b97f4a7c15, b = 0xc2b2ae3d27d4eb4f;
    for (double value : state) {
      const uint64_t bits = std::bit_cast<uint64_t>(value);
      a = (a ^ bits) * 0xff51afd7ed558ccd;
      a ^= a >> 32;
      b = (b + bits) * 0xc4ceb9fe1a85ec53;
      b ^= b >> 29;
    }
    return {a, b};
  }

  void Try(int node, int device, size_t count) {
    if (!problem_.nodes[node].on[device].cost_us) return;
    if (!sequence_.empty() && sequence_.back().device == device) {
      sequence_.back().nodes.push_back(node);
      Continue(count + 1);
      sequence_.back().nodes.pop_back();
    }
    sequence_.push_back({device, {node}});
    Continue(count + 1);
    sequence_.pop_back();
  }

  double LeastUs(int node) const {
    double least_us = kNever;
    for (const Option& option : problem_.nodes[node].on) least_us = std::min(least_us, option.cost_us.value_or(kNever));
    return least_us;
  }

  // No completion ends before this: what is left takes its least costs along each path (indices are topological here),
  // and all of it shares the devices.
  double AtLeastUs(const Play& play) const {
    double least_us = play.end_us(), shared_us = play.SumOfDeviceEndsUs();
    std::vector<double> end_us(problem_.nodes.size());
    for (int node = 0; node < static_cast<int>(problem_.nodes.size()); ++node) {
      if (done_[node]) {
        end_us[node] = play.node_end_us(node);
        continue;
      }
      for (const Tensor& tensor : problem_.tensors) {
        if (tensor.producer >= 0 && Reads(tensor, node)) end_us[node] = std::max(end_us[node], end_us[tensor.producer]);
      }
      end_us[node] += LeastUs(node);
      shared_us += LeastUs(node);
      least_us = std::max(least_us, end_us[node]);
    }
    return std::max(least_us, shared_us / static_cast<double>(problem_.devices.size()));
  }

  const Problem& problem_;
  double cost_;
  bool found_ = false;
  std::vector<PlainRegion> sequence_;
  std::vector<bool> done_;
  std::set<std::pair<uint64_t, uint64_t>> seen_;
};

// Throughput and energy: all assignments, for each all numbers of regions that an order of execution can have.
class Assignments {
 public:
  Assignments(const Problem& problem, double cost) : problem_(problem), free_(problem), cost_(cost) {
    for (Device& device : free_.devices) {
      device.launch_us = device.launch_uj = 0;
      device.max_regions.reset();
    }
  }

  std::optional<double> Find() {
    Continue();
    if (!found_) return std::nullopt;
    return cost_;
  }

 private:
  // One region a node, free of launches, in the order of the indices, which is topological.
  double WithoutLaunches() const {
    std::vector<PlainRegion> sequence;
    for (size_t node = 0; node < device_of_.size(); ++node) sequence.push_back({device_of_[node], {static_cast<int>(node)}});
    if (!WithinLimits(free_, sequence)) return kNever;
    return CostOf(free_, Play(free_, sequence));
  }

  void Continue() {
    const double part = WithoutLaunches();
    if (part >= cost_) return;
    if (device_of_.size() < problem_.nodes.size()) {
      for (int device = 0; device < static_cast<int>(problem_.devices.size()); ++device) {
        device_of_.push_back(device);
        Continue();
        device_of_.pop_back();
      }
      return;
    }
    if (WithLaunches(part, OneRegionEach()) >= cost_) return;  // every order has at least that many
    for (const std::vector<int>& regions : RegionCounts()) {
      const double cost = WithLaunches(part, regions);
      if (cost >= cost_) continue;
      cost_ = cost;
      found_ = true;
    }
  }

  std::vector<int> OneRegionEach() const {
    std::vector<int> regions(problem_.devices.size());
    for (int device : device_of_) regions[device] = 1;
    return regions;
  }

  double WithLaunches(double part, const std::vector<int>& regions) const {
    double cost = part;
    for (size_t device = 0; device < regions.size(); ++device) {
      const Device& info = problem_.devices[device];
      if (info.max_regions && regions[device] > *info.max_regions) return kNever;
      if (problem_.objective == Objective::kEnergy) {
        cost += regions[device] * info.launch_uj;
        continue;
      }
      double load_us = regions[device] * info.launch_us;
      for (size_t node = 0; node < device_of_.size(); ++node) {
        if (device_of_[node] == static_cast<int>(device)) load_us += *problem_.nodes[node].on[device].cost_us;
      }
      cost = std::max(cost, load_us);
    }
    return cost;
  }

  // The numbers of regions by device, over all topological orders, consecutive nodes of a device being one region.
  std::set<std::vector<int>> RegionCounts() const {
    using Progress = std::tuple<std::vector<bool>, int, std::vector<int>>;  // done, last device, regions
    std::set<Progress> now = {{std::vector<bool>(device_of_.size()), -1, std::vector<int>(problem_.devices.size())}};
    for (size_t step = 0; step < device_of_.size(); ++step) {
      std::set<Progress> next;
      for (const auto& [done, last, regions] : now) {
        for (int node = 0; node < static_cast<int>(device_of_.size()); ++node) {
          if (!MayFollow(problem_, done, node)) continue;
          Progress after{done, device_of_[node], regions};
          std::get<0>(after)[node] = true;
          if (device_of_[node] != last) ++std::get<2>(after)[device_of_[node]];
          next.insert(std::move(after));
        }
      }
      now = std::move(next);
    }
    std::set<std::vector<int>> counts;
    for (const auto& [done, last, regions] : now) counts.insert(regions);
    return counts;
  }

  const Problem& problem_;
  Problem free_;  // the same without launches and limits of regions
  double cost_;
  bool found_ = false;
  std::vector<int> device_of_;
};

}  // namespace

std::optional<double> PlainCost(const Problem& problem, const std::vector<PlainRegion>& sequence) {
  std::vector<bool> done(problem.nodes.size());
  for (const PlainRegion& region : sequence) {
    for (int node : region.nodes) {
      if (!MayFollow(problem, done, node)) return std::nullopt;
      done[node] = true;
    }
  }
  if (std::find(done.begin(), done.end(), false) != done.end() || !WithinLimits(problem, sequence)) return std::nullopt;
  return CostOf(problem, Play(problem, sequence));
}

std::optional<double> CheaperThan(const Problem& problem, double cost) {
  if (problem.objective == Objective::kLatency) return Sequences(problem, cost).Find();
  return Assignments(problem, cost).Find();
}

}  // namespace heddle::ir::partition
