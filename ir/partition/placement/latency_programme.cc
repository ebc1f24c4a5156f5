// Labels on ideals. Any plan's blocks (an accelerator's nodes, or one item on the CPU) can be put in a row so that each
// waits only for earlier ones; what has been executed after each block is an ideal. All that the rest can depend on is
// the number of accelerators used, when each result that still has readers is there, and the latest end so far: that is
// a label. At an ideal, a label that is nowhere better than another is dropped, and so is one that cannot end below the
// best plan known, by the longest path that remains.
#include "ir/partition/placement/latency_programme.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/partition/placement/block_walk.h"

namespace heddle::ir::partition {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

constexpr int kParts = 512;  // of an accelerator's capacity, in the bound

std::vector<int> NodeOrder(const PlacementGraph& graph) {
  std::vector<int> waiting_for, ready, order;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    waiting_for.push_back(static_cast<int>(graph.nodes[node].predecessors.size()));
    if (waiting_for.back() == 0) ready.push_back(static_cast<int>(node));
  }
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (int next : graph.nodes[node].successors) {
      if (--waiting_for[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

// How a label came about: a block of items from one ideal to another.
struct Step {
  int parent = -1;
  int from = 0;
  int to = 0;
  bool on_cpu = false;
};

// Labels of one ideal; `times` has one row for each label.
struct Labels {
  std::vector<int> live;     // nodes with readers that are not executed yet, ascending
  std::vector<double> tail;  // by live node: the least time from its result to the end of the whole
  std::vector<int> used;  // accelerators
  std::vector<double> latest, bound;
  std::vector<int> step;
  std::vector<double> times;
  size_t count() const { return used.size(); }
};

class Programme {
 public:
  Programme(const PlacementGraph& graph, const ItemGraph& items, const Ideals& ideals, double upper_us, int width,
            const Deadline& deadline)
      : graph_(graph),
        items_(items),
        ideals_(ideals),
        upper_us_(upper_us),
        width_(static_cast<size_t>(width)),
        deadline_(deadline),
        tails_(ComputeTails(graph, items)),
        load_(items),
        labels_(ideals.count()),
        in_block_(graph.nodes.size()),
        walk_(ideals),
        time_of_(graph.nodes.size()) {
    for (const Item& item : items.items) item_order_.push_back(item.nodes);
    std::vector<int> position(graph.nodes.size());
    const std::vector<int> order = NodeOrder(graph);
    for (size_t at = 0; at < order.size(); ++at) position[order[at]] = static_cast<int>(at);
    for (std::vector<int>& nodes : item_order_) {
      std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return position[a] < position[b]; });
    }
    FindLive();
  }

  LatencyAnswer Run() {
    LatencyAnswer answer;
    steps_.push_back({});
    Labels& first = labels_[0];
    first.used = {0};
    first.latest = {0};
    first.bound = {tails_.all_us};
    first.step = {0};
    bool in_time = true;
    double abandoned_us = kNever;
    for (int ideal = 0; ideal + 1 < ideals_.count(); ++ideal) {
      if (labels_[ideal].count() == 0) continue;
      in_time = in_time && !deadline_.Passed();
      if (!in_time) {
        for (double bound : labels_[ideal].bound) abandoned_us = std::min(abandoned_us, bound);
        continue;
      }
      Expand(ideal);
      if (ideal > 0) labels_[ideal] = Labels();
    }
    const Labels& last = labels_[ideals_.count() - 1];
    size_t best = last.count();
    for (size_t label = 0; label < last.count(); ++label) {
      if (last.latest[label] < upper_us_ && (best == last.count() || last.latest[label] < last.latest[best])) best = label;
    }
    const double unseen_us = std::min(given_up_us_, abandoned_us);
    answer.lower_bound_us = std::max(tails_.all_us, std::min(unseen_us, upper_us_));
    if (best == last.count()) return answer;
    answer.found = true;
    answer.latency_us = last.latest[best];
    answer.lower_bound_us = std::max(tails_.all_us, std::min(unseen_us, answer.latency_us));
    ReadPlan(last.step[best], answer);
    return answer;
  }

 private:
  // Results alive at each ideal.
  void FindLive() {
    std::vector<int> from(ideals_.count(), -1), added(ideals_.count(), -1);
    for (int ideal = 0; ideal < ideals_.count(); ++ideal) {
      for (const auto& [item, next] : ideals_.steps[ideal]) {
        from[next] = ideal;
        added[next] = item;
      }
    }
    std::vector<int> mark(items_.items.size(), -1);
    for (int ideal = 1; ideal < ideals_.count(); ++ideal) {
      for (int at = ideal; at != 0; at = from[at]) mark[added[at]] = ideal;
      // Only what was alive before, and the new item's nodes, can be alive.
      std::vector<int> candidates = labels_[from[ideal]].live;
      const std::vector<int>& nodes = items_.items[added[ideal]].nodes;
      candidates.insert(candidates.end(), nodes.begin(), nodes.end());
      std::sort(candidates.begin(), candidates.end());
      for (int node : candidates) {
        const std::vector<int>& readers = graph_.nodes[node].successors;
        double tail = -1;
        for (size_t at = 0; at < readers.size(); ++at) {
          if (mark[items_.item_of[readers[at]]] != ideal) tail = std::max(tail, tails_.outside_us[node][at]);
        }
        if (tail < 0) continue;
        labels_[ideal].live.push_back(node);
        labels_[ideal].tail.push_back(tail);
      }
    }
    via_ = std::move(from);
    added_ = std::move(added);
  }

  void Expand(int ideal) {
    const Labels& from = labels_[ideal];
    if (graph_.cpus > 0) {
      for (const auto& [item, next] : ideals_.steps[ideal]) RunOnCpu(from, ideal, item, next);
    }
    const int least_used = *std::min_element(from.used.begin(), from.used.end());
    if (least_used < graph_.accelerators) Walk(ideal);
  }

  void RunOnCpu(const Labels& from, int ideal, int item, int next) {
    for (size_t label = 0; label < from.count(); ++label) {
      LoadTimes(from, label);
      double latest = from.latest[label];
      for (int node : item_order_[item]) {
        double start = 0;
        for (int before : graph_.nodes[node].predecessors) start = std::max(start, time_of_[before]);
        time_of_[node] = start + graph_.nodes[node].cpu_us;
        latest = std::max(latest, time_of_[node]);
      }
      Offer(next, from.used[label], latest, {from.step[label], ideal, next, true});
    }
  }

  void LoadTimes(const Labels& from, size_t label) {
    for (size_t at = 0; at < from.live.size(); ++at) time_of_[from.live[at]] = from.times[label * from.live.size() + at];
  }

  // Every block of an accelerator that can come next.
  void Walk(int from) {
    const auto try_add = [&](int item) {
      if (!items_.items[item].accelerator_supported) return false;
      load_.Add(item);
      if (load_.Size() > graph_.accelerator_capacity || load_.ComputeUs() >= upper_us_) {
        load_.Remove(item);
        return false;
      }
      for (int node : items_.items[item].nodes) in_block_[node] = true;
      return true;
    };
    const auto remove = [&](int item) {
      load_.Remove(item);
      for (int node : items_.items[item].nodes) in_block_[node] = false;
    };
    walk_.From(from, try_add, [&](int next) { RunOnAccelerator(from, next); }, remove);
  }

  void RunOnAccelerator(int ideal, int next) {
    const Labels& from = labels_[ideal];
    const double load_us = load_.AcceleratorUs();
    feeding_.clear();
    for (size_t at = 0; at < from.live.size(); ++at) {
      const std::vector<int>& readers = graph_.nodes[from.live[at]].successors;
      if (std::any_of(readers.begin(), readers.end(), [&](int reader) { return in_block_[reader]; })) {
        feeding_.push_back(static_cast<int>(at));
      }
    }
    for (size_t label = 0; label < from.count(); ++label) {
      if (from.used[label] >= graph_.accelerators) continue;
      const double* times = from.times.data() + label * from.live.size();
      double end = 0;
      for (int at : feeding_) end = std::max(end, times[at]);
      end += load_us;
      if (std::max(end, from.latest[label]) >= upper_us_) continue;
      LoadTimes(from, label);
      block_end_us_ = end;
      Offer(next, from.used[label] + 1, std::max(end, from.latest[label]), {from.step[label], ideal, next, false});
    }
  }

  // Records a label at `next`; the times are in time_of_, those of an accelerator's block in block_end_us_.
  void Offer(int next, int used, double latest, const Step& step) {
    Labels& to = labels_[next];
    const size_t live = to.live.size();
    row_.resize(live);
    double bound = latest;
    for (size_t at = 0; at < live; ++at) {
      const int node = to.live[at];
      row_[at] = !step.on_cpu && in_block_[node] ? block_end_us_ : time_of_[node];
      bound = std::max(bound, row_[at] + to.tail[at]);
    }
    if (bound >= upper_us_) return;
    for (size_t label = 0; label < to.count(); ++label) {
      if (to.used[label] > used || to.latest[label] > latest) continue;
      const double* times = to.times.data() + label * live;
      if (std::equal(times, times + live, row_.begin(), [](double a, double b) { return a <= b; })) return;
    }
    for (size_t label = 0; label < to.count();) {
      const double* times = to.times.data() + label * live;
      const bool worse = to.used[label] >= used && to.latest[label] >= latest &&
                         std::equal(times, times + live, row_.begin(), [](double a, double b) { return a >= b; });
      if (worse) {
        Erase(to, label);
      } else {
        ++label;
      }
    }
    if (to.count() >= width_) {
      const size_t worst = std::max_element(to.bound.begin(), to.bound.end()) - to.bound.begin();
      given_up_us_ = std::min(given_up_us_, std::max(bound, to.bound[worst]));
      if (to.bound[worst] <= bound) return;
      Erase(to, worst);
    }
    to.used.push_back(used);
    to.latest.push_back(latest);
    to.bound.push_back(bound);
    to.step.push_back(static_cast<int>(steps_.size()));
    to.times.insert(to.times.end(), row_.begin(), row_.end());
    steps_.push_back(step);
  }

  static void Erase(Labels& labels, size_t label) {
    const size_t last = labels.count() - 1;
    const size_t live = labels.live.size();
    labels.used[label] = labels.used[last];
    labels.latest[label] = labels.latest[last];
    labels.bound[label] = labels.bound[last];
    labels.step[label] = labels.step[last];
    std::copy_n(labels.times.begin() + static_cast<std::ptrdiff_t>(last * live), live,
                labels.times.begin() + static_cast<std::ptrdiff_t>(label * live));
    labels.used.pop_back();
    labels.latest.pop_back();
    labels.bound.pop_back();
    labels.step.pop_back();
    labels.times.resize(last * live);
  }

  void ReadPlan(int step, LatencyAnswer& answer) const {
    answer.device_of.assign(items_.items.size(), -1);
    int accelerator = 0;
    std::vector<char> before(items_.items.size());
    for (; step > 0; step = steps_[step].parent) {
      std::fill(before.begin(), before.end(), false);
      for (int at = steps_[step].from; at != 0; at = via_[at]) before[added_[at]] = true;
      for (int at = steps_[step].to; at != 0; at = via_[at]) {
        if (!before[added_[at]]) answer.device_of[added_[at]] = steps_[step].on_cpu ? graph_.accelerators : accelerator;
      }
      if (!steps_[step].on_cpu) ++accelerator;
    }
  }

  const PlacementGraph& graph_;
  const ItemGraph& items_;
  const Ideals& ideals_;
  const double upper_us_;
  const size_t width_;
  const Deadline deadline_;
  const Tails tails_;
  DeviceLoad load_;
  std::vector<Labels> labels_;
  std::vector<Step> steps_;
  std::vector<std::vector<int>> item_order_;  // nodes of each item in topological order
  std::vector<int> via_, added_;              // one way to each ideal
  std::vector<char> in_block_;                // by node
  BlockWalk walk_;
  std::vector<double> time_of_;  // by node: when its result is there
  std::vector<int> feeding_;
  std::vector<double> row_;
  double block_end_us_ = 0;
  double given_up_us_ = kNever;  // least bound of a label that was dropped for want of room
};

}  // namespace

Tails ComputeTails(const PlacementGraph& graph, const ItemGraph& items) {
  // within[node][b]: the node is in an accelerator's block whose items on the path so far take b parts of the capacity,
  // rounded down.
  const double part = graph.accelerator_capacity / kParts;
  auto parts_of = [&](int node) {
    const double size = items.items[items.item_of[node]].size;
    if (size > graph.accelerator_capacity) return kParts + 1;
    return size <= 0 ? 0 : static_cast<int>(std::min<double>(kParts, std::floor(size / part * (1 - 1e-9))));
  };
  const size_t count = graph.nodes.size();
  Tails tails{std::vector<std::vector<double>>(count), 0};
  std::vector<double> after_us(count);
  std::vector<std::vector<double>> within(count);
  std::vector<int> readers_left(count);
  for (size_t node = 0; node < count; ++node) readers_left[node] = static_cast<int>(graph.nodes[node].predecessors.size());
  std::vector<int> order = NodeOrder(graph);
  std::reverse(order.begin(), order.end());
  auto begun = [&](int node) {  // a block begins with this node
    const int parts = parts_of(node);
    return parts <= kParts ? within[node][parts] : kNever;
  };
  auto on_cpu = [&](int node) { return graph.cpus > 0 ? graph.nodes[node].cpu_us + after_us[node] : kNever; };
  for (int node : order) {
    const PlacementNode& info = graph.nodes[node];
    const bool supported = items.items[items.item_of[node]].accelerator_supported && graph.accelerators > 0;
    std::vector<double> rest(kParts + 1, 0);
    double after = 0;
    for (int next : info.successors) {
      // The reader is on the CPU, or in a block that receives the result first.
      const double outside = std::min(on_cpu(next), info.send_us + begun(next));
      const bool same_item = items.item_of[next] == items.item_of[node];
      const int more = same_item ? 0 : parts_of(next);
      tails.outside_us[node].push_back(outside);
      after = std::max(after, same_item ? after_us[next] : outside);
      for (int used = 0; used <= kParts; ++used) {
        const double inside = used + more <= kParts ? within[next][used + more] : kNever;
        rest[used] = std::max(rest[used], same_item ? inside : std::min(inside, info.send_us + outside));
      }
    }
    for (double& value : rest) value = supported ? info.accelerator_us + value : kNever;
    within[node] = std::move(rest);
    after_us[node] = after;
    if (info.predecessors.empty()) tails.all_us = std::max(tails.all_us, std::min(on_cpu(node), begun(node)));
    for (int next : info.successors) {
      if (--readers_left[next] == 0) within[next] = {};
    }
  }
  return tails;
}

LatencyAnswer BestLatency(const PlacementGraph& graph, const ItemGraph& items, const Ideals& ideals, double upper_us,
                          int width, const Deadline& deadline) {
  return Programme(graph, items, ideals, upper_us, width, deadline).Run();
}

}  // namespace heddle::ir::partition
