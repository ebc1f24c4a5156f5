// The dynamic programme of Tarnawski et al. over down-closed sets, made fast by a threshold.
//
// value[a, c](I) is the least load of a pipeline of a accelerators and c cores that executes exactly the ideal I. From
// each ideal with a finite value a depth-first walk through the lattice visits the larger ideals J whose difference
// J \ I still computes less than the threshold, with the difference's load kept up to date step by step. Only values
// that can still end below the threshold are kept: what remains must fit on the devices that remain. A threshold near
// the lower bound leaves a thin band of ideals; it is raised until a pipeline is found, which then is the best one, and
// each failure raises the proven bound.
#include "ir/partition/placement/pipeline_programme.h"

#include <algorithm>
#include <cmath>

#include "ir/partition/placement/block_walk.h"

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1 + 1e-9;  // sums are made in different orders

constexpr size_t kMaxChoices = 8;  // items without order that are chosen together

// The graph without results from or to items in `drop`: loads can only become smaller.
ItemGraph WithoutNetsOf(ItemGraph graph, const std::vector<char>& drop) {
  for (Net& net : graph.nets) {
    std::erase_if(net.readers, [&](int reader) { return drop[reader]; });
    if (drop[net.source] || net.readers.empty()) net.us = 0;
  }
  for (Item& item : graph.items) {
    std::erase_if(item.nets, [&](int net) { return graph.nets[net].us == 0; });
  }
  for (size_t item = 0; item < graph.items.size(); ++item) {
    if (drop[item]) graph.items[item].nets.clear();
  }
  return graph;
}

// Items without order that exchange results with each other, directly or through other such items.
std::vector<std::vector<int>> Choices(const ItemGraph& graph, const std::vector<char>& apart) {
  auto free = [&](int item) { return !graph.items[item].ordered && (apart.empty() || !apart[item]); };
  std::vector<std::vector<int>> result;
  std::vector<char> seen(graph.items.size());
  for (int root = 0; root < static_cast<int>(graph.items.size()); ++root) {
    if (!free(root) || seen[root]) continue;
    std::vector<int> group = {root};
    seen[root] = true;
    for (size_t at = 0; at < group.size(); ++at) {
      for (int net : graph.items[group[at]].nets) {
        std::vector<int> ends = graph.nets[net].readers;
        ends.push_back(graph.nets[net].source);
        for (int end : ends) {
          if (!free(end) || seen[end]) continue;
          seen[end] = true;
          group.push_back(end);
        }
      }
    }
    result.push_back(std::move(group));
  }
  return result;
}

class Programme {
 public:
  Programme(const ItemGraph& graph, const Ideals& ideals, const Fleet& fleet, const Deadline& deadline,
            std::vector<std::vector<int>> choices)
      : graph_(graph),
        ideals_(ideals),
        fleet_(fleet),
        deadline_(deadline),
        states_((fleet.accelerators + 1) * (fleet.cpus + 1)),
        load_(graph),
        walk_(ideals),
        choices_(std::move(choices)),
        choices_of_(graph.items.size()) {
    for (size_t choice = 0; choice < choices_.size(); ++choice) {
      for (int item : choices_[choice]) {
        for (int net : graph.items[item].nets) {
          choices_of_[graph.nets[net].source].push_back(static_cast<int>(choice));
          for (int reader : graph.nets[net].readers) choices_of_[reader].push_back(static_cast<int>(choice));
        }
      }
    }
    for (std::vector<int>& list : choices_of_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    touched_.resize(choices_.size());
    for (const Item& item : graph.items) {
      if (!item.ordered) continue;
      total_us_ += item.accelerator_us;
      if (item.accelerator_us > 0) {
        cpu_gain_ = std::max(cpu_gain_, item.cpu_us > 0 ? item.accelerator_us / item.cpu_us : kNever);
      }
    }
    done_us_.resize(ideals.count());
    for (int ideal = 0; ideal < ideals.count(); ++ideal) {
      for (const auto& [item, next] : ideals.steps[ideal]) {
        done_us_[next] = done_us_[ideal] + graph.items[item].accelerator_us;
      }
    }
  }

  // Loads up to the threshold; false where the deadline passed.
  bool Pass(double threshold_us) {
    threshold_us_ = threshold_us;
    const size_t cells = static_cast<size_t>(ideals_.count()) * states_;
    value_.assign(cells, kNever);
    parent_.assign(cells, -1);
    value_[Cell(0, 0)] = 0;
    for (int ideal = 0; ideal + 1 < ideals_.count(); ++ideal) {
      const double* values = &value_[Cell(ideal, 0)];
      if (std::all_of(values, values + states_, [](double value) { return value == kNever; })) continue;
      if (deadline_.Passed()) return false;
      Walk(ideal);
    }
    return true;
  }

  double BestUs() const {
    const double* values = &value_[Cell(ideals_.count() - 1, 0)];
    return *std::min_element(values, values + states_);
  }

  void ReadPlan(PipelineAnswer& answer) {
    std::vector<int>& device_of = answer.device_of;
    device_of.assign(graph_.items.size(), -1);
    answer.claims.assign(graph_.items.size(), {});
    int ideal = ideals_.count() - 1;
    const double* values = &value_[Cell(ideal, 0)];
    int state = static_cast<int>(std::min_element(values, values + states_) - values);
    int next_accelerator = 0, next_cpu = fleet_.accelerators;
    while (ideal != 0) {
      const int64_t parent = parent_[Cell(ideal, state)];
      const int from = static_cast<int>(parent / 2);
      const int device = parent % 2 ? next_cpu++ : next_accelerator++;
      const std::vector<int> items = PathItems(from, ideal);
      for (int item : items) {
        device_of[item] = device;
        Add(item);
      }
      if (device < fleet_.accelerators) {
        std::vector<int> chosen;
        LeastUs(&chosen);
        for (int item : chosen) answer.claims[item].push_back(device);
      }
      for (int item : items) Remove(item);
      state -= parent % 2 ? 1 : fleet_.cpus + 1;
      ideal = from;
    }
  }

 private:
  // A state is accelerators * (cpus + 1) + cores used.
  size_t Cell(int ideal, int state) const { return static_cast<size_t>(ideal) * states_ + state; }

  // The items of one path of steps between two ideals (the difference is the same along every path).
  std::vector<int> PathItems(int from, int to) {
    std::vector<int> via(ideals_.count(), -1), item_of(ideals_.count(), -1), stack = {from};
    via[from] = from;
    while (via[to] < 0) {
      const int ideal = stack.back();
      stack.pop_back();
      for (const auto& [item, next] : ideals_.steps[ideal]) {
        if (next > to || via[next] >= 0) continue;
        via[next] = ideal;
        item_of[next] = item;
        stack.push_back(next);
      }
    }
    std::vector<int> items;
    for (int ideal = to; ideal != from; ideal = via[ideal]) items.push_back(item_of[ideal]);
    return items;
  }

  // Whether what remains after `ideal` can fit on the devices that a state leaves.
  bool CanFinish(int ideal, int state) const {
    const int accelerators = fleet_.accelerators - state / (fleet_.cpus + 1);
    const int cpus = fleet_.cpus - state % (fleet_.cpus + 1);
    const double room = threshold_us_ * (accelerators + (cpus > 0 ? cpus * cpu_gain_ : 0));
    return total_us_ - done_us_[ideal] <= room * kSlack + 1e-12;
  }

  // Visits every larger ideal whose difference to `from` may still be one device's.
  void Walk(int from) {
    const auto try_add = [&](int item) {
      Add(item);
      if (MayGrow()) return true;
      Remove(item);
      return false;
    };
    walk_.From(from, try_add, [&](int next) { Offer(from, next); }, [&](int item) { Remove(item); });
  }

  void Add(int item) {
    load_.Add(item);
    for (int choice : choices_of_[item]) ++touched_[choice];
  }
  void Remove(int item) {
    load_.Remove(item);
    for (int choice : choices_of_[item]) --touched_[choice];
  }

  // The accelerator's load with the choice of items without order that makes it least.
  double LeastUs(std::vector<int>* chosen) {
    double sum = load_.AcceleratorUs();
    for (size_t choice = 0; choice < choices_.size(); ++choice) {
      if (touched_[choice] == 0) continue;
      const double before = load_.AcceleratorUs();
      double least = before;
      unsigned best = 0;
      TryChoices(choices_[choice], 0, 0, least, best);
      sum += least - before;
      for (size_t bit = 0; chosen && bit < choices_[choice].size(); ++bit) {
        if (best >> bit & 1) chosen->push_back(choices_[choice][bit]);
      }
    }
    return sum;
  }

  void TryChoices(const std::vector<int>& items, size_t at, unsigned mask, double& least, unsigned& best) {
    if (at == items.size()) {
      if (load_.AcceleratorSupported() && load_.AcceleratorUs() < least) {
        least = load_.AcceleratorUs();
        best = mask;
      }
      return;
    }
    TryChoices(items, at + 1, mask, least, best);
    load_.Add(items[at]);
    TryChoices(items, at + 1, mask | 1u << at, least, best);
    load_.Remove(items[at]);
  }

  bool MayGrow() const {
    return load_.ComputeUs() <= threshold_us_ * kSlack || (fleet_.cpus > 0 && load_.CpuUs() <= threshold_us_ * kSlack);
  }

  void Offer(int from, int to) {
    if (fleet_.accelerators > 0 && load_.AcceleratorSupported() && load_.Size() <= fleet_.capacity) {
      Record(from, to, std::max(0.0, LeastUs(nullptr)), fleet_.cpus + 1, 0);
    }
    if (fleet_.cpus > 0) Record(from, to, std::max(0.0, load_.CpuUs()), 1, 1);
  }

  void Record(int from, int to, double load_us, int step, int parity) {
    if (load_us > threshold_us_ * kSlack) return;
    for (int state = 0; state + step < states_; ++state) {
      if (parity == 1 && state % (fleet_.cpus + 1) == fleet_.cpus) continue;
      const double before = value_[Cell(from, state)];
      if (before == kNever) continue;
      const double value = std::max(before, load_us);
      double& known = value_[Cell(to, state + step)];
      if (value >= known || !CanFinish(to, state + step)) continue;
      known = value;
      parent_[Cell(to, state + step)] = static_cast<int64_t>(from) * 2 + parity;
    }
  }

  const ItemGraph& graph_;
  const Ideals& ideals_;
  const Fleet fleet_;
  const Deadline deadline_;
  const int states_;
  DeviceLoad load_;
  BlockWalk walk_;
  const std::vector<std::vector<int>> choices_;  // items without order, in groups that are chosen together
  std::vector<std::vector<int>> choices_of_;     // by item: the choices whose nets it reads or feeds
  std::vector<int> touched_;                     // by choice: items of the current device that have to do with it
  std::vector<double> done_us_;  // accelerator time of each ideal
  std::vector<double> value_;
  std::vector<int64_t> parent_;  // ideal * 2 + (1: the last device is a core)
  double total_us_ = 0;
  double cpu_gain_ = 0;  // accelerator time that one unit of a core's time can replace, at best
  double threshold_us_ = 0;
};

}  // namespace

double EvenLoadUs(const ItemGraph& graph, const Fleet& fleet) {
  // Fractional: cores take the items for which they are best first, both kinds of device end at the same time. By
  // bisection on the load: a core's load t replaces the most accelerator time when it takes items by falling ratio.
  std::vector<const Item*> items;
  double high = 0, dearest = 0, accelerator_us = 0;
  for (const Item& item : graph.items) {
    items.push_back(&item);
    const double on_accelerator = fleet.accelerators > 0 && item.accelerator_supported ? item.accelerator_us : kNever;
    const double on_cpu = fleet.cpus > 0 ? item.cpu_us : kNever;
    dearest = std::max(dearest, std::min(on_accelerator, on_cpu));
    high += std::min(on_accelerator, on_cpu);
    accelerator_us += item.accelerator_us;
  }
  if (!std::isfinite(high)) return kNever;
  auto ratio = [](const Item* item) {
    if (!item->accelerator_supported) return kNever;
    return item->cpu_us > 0 ? item->accelerator_us / item->cpu_us : item->accelerator_us > 0 ? kNever : 0;
  };
  std::sort(items.begin(), items.end(), [&](const Item* a, const Item* b) { return ratio(a) > ratio(b); });
  auto fits = [&](double load_us) {
    double room = fleet.cpus * load_us, remaining = accelerator_us;
    for (const Item* item : items) {
      const bool must = !item->accelerator_supported || fleet.accelerators == 0;
      if (item->cpu_us > room) {
        if (must) return false;
        remaining -= item->accelerator_us * room / item->cpu_us;
        break;
      }
      room -= item->cpu_us;
      remaining -= item->accelerator_us;
    }
    return remaining <= fleet.accelerators * load_us;
  };
  double low = 0;
  for (int round = 0; round < 100; ++round) {
    const double middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return std::max(low * (1 - 1e-12), dearest);
}

PipelineAnswer BestPipeline(const ItemGraph& graph, const Ideals& ideals, const Fleet& fleet, double upper_us,
                            const Deadline& deadline, const std::vector<char>& apart) {
  std::vector<char> drop(graph.items.size());
  std::vector<std::vector<int>> choices = Choices(graph, apart);
  for (const std::vector<int>& choice : choices) {
    if (choice.size() <= kMaxChoices) continue;
    for (int item : choice) drop[item] = true;
  }
  std::erase_if(choices, [](const std::vector<int>& choice) { return choice.size() > kMaxChoices; });
  const ItemGraph weakened = WithoutNetsOf(graph, drop);
  PipelineAnswer answer;
  answer.lower_bound_us = std::min(upper_us, EvenLoadUs(graph, fleet));
  if (ideals.count() == 1) {
    answer.found = true;
    answer.device_of.assign(graph.items.size(), -1);
    answer.claims.resize(graph.items.size());
    return answer;
  }
  Programme programme(weakened, ideals, fleet, deadline, std::move(choices));
  double everything_us = 0;
  for (const Item& item : graph.items) everything_us += item.accelerator_us + item.cpu_us;
  for (const Net& net : graph.nets) everything_us += 2 * net.us;
  const double most = std::min(upper_us, everything_us);
  const double start = std::max(answer.lower_bound_us, most * 1e-6);
  for (double margin = 0.001;; margin *= 3) {
    const double threshold = std::min(most, start * (1 + margin));
    if (!programme.Pass(threshold)) return answer;
    const double best = programme.BestUs();
    if (best < kNever && best < upper_us) {
      answer.found = true;
      answer.load_us = answer.lower_bound_us = best;
      programme.ReadPlan(answer);
      return answer;
    }
    answer.lower_bound_us = std::max(answer.lower_bound_us, threshold);
    if (threshold >= most) {
      answer.lower_bound_us = upper_us;
      return answer;
    }
  }
}

}  // namespace heddle::ir::partition
