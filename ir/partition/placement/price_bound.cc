// Give each item a price. If no set of items with an accelerator's load of at most T is worth more than P, and none with
// a core's load of at most T more than Q, then k accelerators and l cores carry at most k P + l Q; where all items
// together are worth more, T is impossible. This is the dual of the configuration programme (Gilmore and Gomory's
// pattern formulation of bin packing, with transfers in the patterns). Prices are found by cutting planes: a linear
// programme proposes prices against the sets known, the search finds the most valuable set at these prices, and the
// next proposal has to respect it.
//
// The most valuable set is found exactly, items one after the other. A state is what the nets that reach across still
// have to pay for; each state keeps its points (load, price) of which none is worse than another in both. Points that
// cannot reach the value in question even if what remains were divisible and sent for nothing are dropped.
#include "ir/partition/placement/price_bound.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "ir/partition/cbc_model.h"

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMaxItems = 1'200;
constexpr size_t kMaxTransitions = 3'000'000;
constexpr size_t kMaxPoints = 3'000;  // of a state; beyond, neighbours become one that has the better of both
constexpr int kMaxCuts = 400;

// What is known of a net while its ends are decided one by one.
enum Status : char {
  kNothing,    // no end decided
  kReadersIn,  // source not decided, readers so far in the set
  kReadersOut,
  kSourceIn,   // nothing to pay so far
  kSourceOut,
  kSettled,    // paid, whatever follows
};

// The next status where one more end is in or out of the set; `pays` where that settles the payment.
Status Next(Status status, bool is_source, bool in, bool& pays) {
  pays = false;
  switch (status) {
    case kNothing:
      if (is_source) return in ? kSourceIn : kSourceOut;
      return in ? kReadersIn : kReadersOut;
    case kReadersIn:
    case kReadersOut: {
      if (in == (status == kReadersIn)) return is_source ? (in ? kSourceIn : kSourceOut) : status;
      pays = true;  // an end is here and another one is not
      return kSettled;
    }
    case kSourceIn:
    case kSourceOut: {
      if (in == (status == kSourceIn)) return status;
      pays = true;
      return kSettled;
    }
    case kSettled: return kSettled;
  }
  return kSettled;
}

struct Transition {
  int from;
  int to;
  bool in;
  double transfer_us;
};

struct Layer {
  int item = 0;
  int states = 0;  // after this item
  std::vector<Transition> transitions;
};

struct Point {
  double load_us;
  double price;
  int32_t parent;  // index of the point in the layer before, times two, plus one where the item is in
};

}  // namespace

class PriceBound::Search {
 public:
  Search(const ItemGraph& graph, const Fleet& fleet, const Deadline& deadline) : graph_(graph), fleet_(fleet) {
    usable_ = graph.items.size() <= kMaxItems && fleet.accelerators > 0 && BuildLayers(deadline);
  }
  bool usable() const { return usable_; }

  bool Excludes(double limit_us, const Deadline& deadline) {
    const size_t count = graph_.items.size();
    limit_us_ = limit_us;
    std::vector<double> best(count);
    for (size_t item = 0; item < count; ++item) best[item] = graph_.items[item].accelerator_us;
    double best_ratio = -1;
    std::vector<double> proposal = best;
    std::vector<std::vector<int>> sets, cpu_sets;
    for (int cut = 0; cut < kMaxCuts && !deadline.Passed(); ++cut) {
      const double sum = std::accumulate(proposal.begin(), proposal.end(), 0.0);
      if (sum <= 0) return false;
      std::vector<int> cpu_set;
      const double cpu_price = CpuPrice(proposal, &cpu_set);
      const double needed = (sum * (1 - 1e-9) - fleet_.cpus * cpu_price) / fleet_.accelerators;
      if (needed <= 0) return false;
      std::vector<int> set;
      const double price = MostValuable(proposal, needed, &set, deadline);
      if (price == kNever) return false;  // out of time
      if (price < needed) return true;
      const double ratio = sum / (fleet_.accelerators * price + fleet_.cpus * cpu_price);
      if (ratio > best_ratio) {
        best_ratio = ratio;
        best = proposal;
        for (double& value : best) value /= fleet_.accelerators * price + fleet_.cpus * cpu_price;
      }
      sets.push_back(std::move(set));
      if (!cpu_set.empty()) cpu_sets.push_back(std::move(cpu_set));
      std::vector<double> extreme;
      const double most = Propose(sets, cpu_sets, deadline, &extreme);
      if (most <= 1 + 1e-7) return false;  // the sets known already carry everything
      for (size_t item = 0; item < count; ++item) {
        proposal[item] = cut % 4 == 3 ? extreme[item] : 0.6 * best[item] + 0.4 * extreme[item];
      }
    }
    return false;
  }

 private:
  // An order that keeps few nets open: of the items next to open nets the one that opens fewest more.
  std::vector<int> NarrowOrder() const {
    std::vector<int> left, order;
    for (const Net& net : graph_.nets) left.push_back(static_cast<int>(net.readers.size()) + 1);
    std::vector<char> done(graph_.items.size());
    while (order.size() < graph_.items.size()) {
      int best = -1, best_growth = 0;
      for (size_t item = 0; item < graph_.items.size(); ++item) {
        if (done[item]) continue;
        int growth = 0;
        bool touches = false;
        for (int net : graph_.items[item].nets) {
          const int ends = static_cast<int>(graph_.nets[net].readers.size()) + 1;
          const bool open = left[net] < ends;
          touches = touches || open;
          growth += (left[net] > 1) - open;
        }
        growth = 2 * growth - touches;
        if (best >= 0 && growth >= best_growth) continue;
        best = static_cast<int>(item);
        best_growth = growth;
      }
      done[best] = true;
      order.push_back(best);
      for (int net : graph_.items[best].nets) --left[net];
    }
    return order;
  }

  bool BuildLayers(const Deadline& deadline) {
    std::vector<int> left;
    for (const Net& net : graph_.nets) left.push_back(static_cast<int>(net.readers.size()) + 1);
    std::vector<int> live;  // nets, in the order of a state's characters
    std::vector<std::string> states = {""};
    size_t transitions = 0;
    for (int item : NarrowOrder()) {
      if (deadline.Passed()) return false;
      const std::vector<int>& nets = graph_.items[item].nets;
      std::vector<int> all = live;
      for (int net : nets) {
        if (std::find(live.begin(), live.end(), net) == live.end()) all.push_back(net);
        --left[net];
      }
      std::vector<int> next_live;
      for (int net : all) {
        if (left[net] > 0) next_live.push_back(net);
      }
      Layer layer;
      layer.item = item;
      absl::flat_hash_map<std::string, int> known;
      std::vector<std::string> next_states;
      for (size_t from = 0; from < states.size(); ++from) {
        for (bool in : {false, true}) {
          if (in && !graph_.items[item].accelerator_supported) continue;
          Transition transition{static_cast<int>(from), 0, in, 0};
          std::string next;
          for (size_t at = 0; at < all.size(); ++at) {
            Status status = at < live.size() ? static_cast<Status>(states[from][at]) : kNothing;
            const Net& net = graph_.nets[all[at]];
            if (std::find(nets.begin(), nets.end(), all[at]) != nets.end()) {
              bool pays = false;
              status = Next(status, net.source == item, in, pays);
              if (pays) transition.transfer_us += net.us;
            }
            if (left[all[at]] > 0) next.push_back(status);
          }
          const auto [entry, inserted] = known.try_emplace(next, static_cast<int>(next_states.size()));
          if (inserted) next_states.push_back(next);
          transition.to = entry->second;
          layer.transitions.push_back(transition);
        }
      }
      transitions += layer.transitions.size();
      if (transitions > kMaxTransitions) return false;
      layer.states = static_cast<int>(next_states.size());
      layers_.push_back(std::move(layer));
      states = std::move(next_states);
      live = std::move(next_live);
    }
    return true;
  }

  // Fractional: an upper bound on what a core can carry, and a set of whole items nearly as valuable.
  double CpuPrice(const std::vector<double>& price, std::vector<int>* set) const {
    if (fleet_.cpus == 0) return 0;
    std::vector<int> items;
    for (size_t item = 0; item < price.size(); ++item) {
      if (price[item] > 0 && graph_.items[item].cpu_us <= limit_us_) items.push_back(static_cast<int>(item));
    }
    std::sort(items.begin(), items.end(), [&](int a, int b) {
      return price[a] * graph_.items[b].cpu_us > price[b] * graph_.items[a].cpu_us;
    });
    double room = limit_us_, sum = 0;
    for (int item : items) {
      const double us = graph_.items[item].cpu_us;
      if (us > room) return sum + price[item] * room / us;
      room -= us;
      sum += price[item];
      set->push_back(item);
    }
    return sum;
  }

  // For each layer, the most that the items after it can add within a remaining load, as if divisible.
  class Future {
   public:
    Future(const std::vector<Layer>& layers, const ItemGraph& graph, const std::vector<double>& price, double limit_us)
        : layers_(layers), graph_(graph), price_(price), step_us_(limit_us / kSteps), by_density_(layers.size()) {
      std::iota(by_density_.begin(), by_density_.end(), 0);
      std::sort(by_density_.begin(), by_density_.end(), [&](int a, int b) {
        const int x = layers[a].item, y = layers[b].item;
        return price[x] * graph.items[y].accelerator_us > price[y] * graph.items[x].accelerator_us;
      });
      table_.resize(kSteps + 2);
    }
    // Makes the table for what follows layer `after`.
    void Prepare(int after) {
      double room = 0, sum = 0;
      size_t at = 0;
      double rest_us = 0, rest_price = 0;
      for (int step = 0; step <= kSteps + 1; ++step) {
        room += step == 0 ? 0 : step_us_;
        while (true) {
          if (rest_us <= 0) {
            sum += rest_price;
            rest_price = 0;
            while (at < by_density_.size() && by_density_[at] <= after) ++at;
            if (at == by_density_.size()) break;
            const int item = layers_[by_density_[at++]].item;
            rest_us = graph_.items[item].accelerator_us;
            rest_price = price_[item];
            if (rest_us <= 0) continue;
          }
          const double take = std::min(rest_us, room);
          sum += rest_price * take / rest_us;
          rest_price -= rest_price * take / rest_us;
          rest_us -= take;
          room -= take;
          if (rest_us > 0) break;
          rest_price = 0;
        }
        table_[step] = sum;
      }
    }
    double Most(double room_us) const {
      return table_[std::min<int>(kSteps + 1, static_cast<int>(room_us / step_us_) + 1)];
    }

   private:
    static constexpr int kSteps = 2'000;
    const std::vector<Layer>& layers_;
    const ItemGraph& graph_;
    const std::vector<double>& price_;
    const double step_us_;
    std::vector<int> by_density_;
    std::vector<double> table_;
  };

  // The most valuable set; below `needed` where there is none that valuable, infinite where the deadline passed.
  double MostValuable(const std::vector<double>& price, double needed, std::vector<int>* set, const Deadline& deadline) {
    Future future(layers_, graph_, price, limit_us_);
    std::vector<std::vector<Point>> points = {{{0, 0, 0}}};
    std::vector<std::vector<int32_t>> parents;
    for (size_t index = 0; index < layers_.size(); ++index) {
      if (deadline.Passed()) return kNever;
      const Layer& layer = layers_[index];
      future.Prepare(static_cast<int>(index));
      std::vector<std::vector<Point>> next(layer.states);
      std::vector<int> base(points.size());
      int total = 0;
      for (size_t state = 0; state < points.size(); ++state) {
        base[state] = total;
        total += static_cast<int>(points[state].size());
      }
      for (const Transition& transition : layer.transitions) {
        const double us = transition.transfer_us + (transition.in ? graph_.items[layer.item].accelerator_us : 0);
        const double worth = transition.in ? price[layer.item] : 0;
        const std::vector<Point>& from = points[transition.from];
        for (size_t at = 0; at < from.size(); ++at) {
          const double load_us = from[at].load_us + us;
          if (load_us > limit_us_) break;  // sorted by load
          if (from[at].price + worth + future.Most(limit_us_ - load_us) < needed) continue;
          const int parent = (base[transition.from] + static_cast<int>(at)) * 2 + transition.in;
          next[transition.to].push_back({load_us, from[at].price + worth, parent});
        }
      }
      std::vector<int32_t> layer_parents;
      for (std::vector<Point>& list : next) {
        KeepBest(list);
        for (const Point& point : list) layer_parents.push_back(point.parent);
      }
      parents.push_back(std::move(layer_parents));
      points = std::move(next);
    }
    double most = -1;
    int at = -1, offset = 0;
    for (const std::vector<Point>& list : points) {
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].price <= most) continue;
        most = list[i].price;
        at = offset + static_cast<int>(i);
      }
      offset += static_cast<int>(list.size());
    }
    if (at < 0) return -1;
    for (size_t index = layers_.size(); index-- > 0;) {
      const int32_t parent = parents[index][at];
      if (parent & 1) set->push_back(layers_[index].item);
      at = parent / 2;
    }
    return most;
  }

  static void KeepBest(std::vector<Point>& list) {
    std::sort(list.begin(), list.end(), [](const Point& a, const Point& b) {
      return a.load_us != b.load_us ? a.load_us < b.load_us : a.price > b.price;
    });
    size_t kept = 0;
    for (const Point& point : list) {
      if (kept == 0 || point.price > list[kept - 1].price) list[kept++] = point;
    }
    list.resize(kept);
    while (list.size() > kMaxPoints) {
      // Pairs become one point with the smaller load and the larger price: more than any real set is worth.
      for (size_t pair = 0; pair * 2 + 1 < list.size(); ++pair) {
        list[pair] = {list[pair * 2].load_us, list[pair * 2 + 1].price, list[pair * 2 + 1].parent};
      }
      if (list.size() % 2 == 1) list[list.size() / 2] = list.back();
      list.resize((list.size() + 1) / 2);
    }
  }

  // Prices that are worth most where no known set is worth more than its device's share; returns their sum.
  double Propose(const std::vector<std::vector<int>>& sets, const std::vector<std::vector<int>>& cpu_sets,
                 const Deadline& deadline, std::vector<double>* price) const {
    CbcModel model;
    const int count = static_cast<int>(graph_.items.size());
    for (int item = 0; item < count; ++item) model.AddContinuous(-1, 1);
    const int accelerator = model.AddContinuous(0, 1), cpu = model.AddContinuous(0, 1);
    model.AddRow({{accelerator, fleet_.accelerators}, {cpu, fleet_.cpus}}, 1, 1);
    auto add = [&](const std::vector<int>& set, int share) {
      std::vector<CbcModel::Term> row = {{share, -1}};
      for (int item : set) row.emplace_back(item, 1);
      model.AddRow(std::move(row), -std::numeric_limits<double>::max(), 0);
    };
    for (const std::vector<int>& set : sets) add(set, accelerator);
    for (const std::vector<int>& set : cpu_sets) add(set, cpu);
    const CbcModel::Solution solution = model.Minimise({}, std::max(0.1, deadline.SecondsLeft()));
    if (solution.values.empty()) return 0;
    price->assign(solution.values.begin(), solution.values.begin() + count);
    return std::accumulate(price->begin(), price->end(), 0.0);
  }

  const ItemGraph& graph_;
  const Fleet fleet_;
  bool usable_ = false;
  std::vector<Layer> layers_;
  double limit_us_ = 0;
};

PriceBound::PriceBound(const ItemGraph& graph, const Fleet& fleet, const Deadline& deadline)
    : search_(std::make_unique<Search>(graph, fleet, deadline)) {}
PriceBound::~PriceBound() = default;
bool PriceBound::usable() const { return search_->usable(); }
bool PriceBound::Excludes(double load_us, const Deadline& deadline) { return search_->Excludes(load_us, deadline); }

}  // namespace heddle::ir::partition
