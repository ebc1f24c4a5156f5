// A device's load depends on its own items alone, so a move changes two loads only. The annealed energy is a high power
// mean of the loads: the largest dominates, and the others still guide moves that do not touch it.
#include "ir/partition/placement/balance.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Balancer {
 public:
  Balancer(const ItemGraph& graph, const Fleet& fleet, std::vector<int> device_of)
      : graph_(graph), fleet_(fleet), loads_(fleet.accelerators + fleet.cpus, DeviceLoad(graph)), device_of_(std::move(device_of)) {
    for (size_t item = 0; item < device_of_.size(); ++item) {
      if (device_of_[item] >= 0) loads_[device_of_[item]].Add(static_cast<int>(item));
    }
  }

  double LoadUs(int device) const {
    const DeviceLoad& load = loads_[device];
    if (device >= fleet_.accelerators) return load.CpuUs();
    if (!load.AcceleratorSupported() || load.Size() > fleet_.capacity) return kNever;
    return load.AcceleratorUs();
  }

  double MaxUs() const {
    double most = 0;
    for (int device = 0; device < Devices(); ++device) most = std::max(most, LoadUs(device));
    return most;
  }

  void PlaceTheRest() {
    for (size_t item = 0; item < device_of_.size(); ++item) {
      if (device_of_[item] >= 0) continue;
      int best = 0;
      double best_energy = kNever;
      scale_us_ = std::max(MaxUs(), 1e-30);
      for (int device = 0; device < Devices(); ++device) {
        const double before = Term(LoadUs(device));
        loads_[device].Add(static_cast<int>(item));
        const double energy = Term(LoadUs(device)) - before;
        loads_[device].Remove(static_cast<int>(item));
        if (energy < best_energy) {
          best_energy = energy;
          best = device;
        }
      }
      device_of_[item] = best;
      loads_[best].Add(static_cast<int>(item));
    }
  }

  std::vector<int> Anneal(const std::vector<int>& movable, double goal_us, int64_t steps, unsigned seed,
                          const Deadline& deadline) {
    std::mt19937 random(seed);
    PlaceTheRest();
    std::vector<int> best = device_of_;
    double best_us = MaxUs();
    if (movable.empty() || Devices() < 2) return best;
    for (int64_t step = 0; step < steps && best_us > goal_us; ++step) {
      if (step % 256 == 0) {
        if (deadline.Passed()) break;
        scale_us_ = std::max(MaxUs(), 1e-30);
        if (scale_us_ == kNever) scale_us_ = 1;
      }
      const double temperature = 0.3 * std::pow(1e-4, static_cast<double>(step) / static_cast<double>(steps));
      if (!TryMove(movable, temperature, random)) continue;
      const double most = MaxUs();
      if (most < best_us * (1 - 1e-12)) {
        best_us = most;
        best = device_of_;
      }
    }
    return best;
  }

 private:
  int Devices() const { return static_cast<int>(loads_.size()); }
  double Term(double load_us) const { return load_us == kNever ? 1e30 : std::pow(load_us / scale_us_, 12); }

  // One item, an item with its neighbours on the same device, or two items that change places.
  bool TryMove(const std::vector<int>& movable, double temperature, std::mt19937& random) {
    const int item = movable[random() % movable.size()];
    const int from = device_of_[item];
    int to = static_cast<int>(random() % Devices());
    moves_.clear();
    const unsigned kind = random() % 8;
    if (kind < 4) {  // to a neighbour's device
      const std::vector<int>& nets = graph_.items[item].nets;
      if (!nets.empty()) {
        const Net& net = graph_.nets[nets[random() % nets.size()]];
        const size_t at = random() % (net.readers.size() + 1);
        to = device_of_[at == net.readers.size() ? net.source : net.readers[at]];
      }
    }
    if (to == from) return false;
    moves_.emplace_back(item, to);
    if (kind == 7) {
      const int other = movable[random() % movable.size()];
      if (device_of_[other] != from) {
        to = device_of_[other];
        moves_[0].second = to;
        moves_.emplace_back(other, from);
      }
    } else if (kind >= 5) {
      Grow(movable, from, to, random() % 6, random);
    }
    const double before = Term(LoadUs(from)) + Term(LoadUs(to));
    for (const auto& [moved, device] : moves_) Move(moved, device);
    const double after = Term(LoadUs(from)) + Term(LoadUs(to));
    const double uniform = static_cast<double>(random() % 1'000'000) / 1e6;
    if (after <= before || uniform < std::exp((before - after) / temperature)) return true;
    for (const auto& [moved, device] : moves_) Move(moved, device == to ? from : to);
    return false;
  }

  // Adds up to `count` items of the same device that exchange results with those already in moves_.
  void Grow(const std::vector<int>& movable, int from, int to, unsigned count, std::mt19937& random) {
    if (may_move_.empty()) {
      may_move_.assign(graph_.items.size(), false);
      for (int item : movable) may_move_[item] = true;
    }
    for (unsigned n = 0; n < count; ++n) {
      const std::vector<int>& nets = graph_.items[moves_[random() % moves_.size()].first].nets;
      if (nets.empty()) return;
      const Net& net = graph_.nets[nets[random() % nets.size()]];
      const size_t at = random() % (net.readers.size() + 1);
      const int other = at == net.readers.size() ? net.source : net.readers[at];
      if (!may_move_[other] || device_of_[other] != from) continue;
      if (std::any_of(moves_.begin(), moves_.end(), [&](const auto& move) { return move.first == other; })) continue;
      moves_.emplace_back(other, to);
    }
  }

  void Move(int item, int to) {
    loads_[device_of_[item]].Remove(item);
    loads_[to].Add(item);
    device_of_[item] = to;
  }

  const ItemGraph& graph_;
  const Fleet fleet_;
  std::vector<DeviceLoad> loads_;
  std::vector<int> device_of_;
  std::vector<std::pair<int, int>> moves_;
  std::vector<char> may_move_;
  double scale_us_ = 1;
};

}  // namespace

double MaxLoadUs(const ItemGraph& graph, const Fleet& fleet, const std::vector<int>& device_of) {
  return Balancer(graph, fleet, device_of).MaxUs();
}

std::vector<int> BalanceLoads(const ItemGraph& graph, const Fleet& fleet, std::vector<int> device_of,
                              const std::vector<int>& movable, double goal_us, int64_t steps, unsigned seed,
                              const Deadline& deadline) {
  return Balancer(graph, fleet, std::move(device_of)).Anneal(movable, goal_us, steps, seed, deadline);
}

}  // namespace heddle::ir::partition
