// Throughput with contiguous devices.
//
// The lattice holds the items with forward nodes. Backward nodes that share no colour with any forward node have no
// place in the order: each device of the programme chooses them as suits it, which is a bound. Where two devices or none
// chose one, the search branches: the item is with one of its neighbours, or with none of them.
// Capacity is left out first, which allows the strongest presolve; where the plan exceeds it, the programme runs again
// with capacities on items that were merged only where sizes do not matter.
#include <algorithm>
#include <numeric>

#include "ir/partition/placement/balance.h"
#include "ir/partition/placement/evaluate_placement.h"
#include "ir/partition/placement/merge_items.h"
#include "ir/partition/placement/pipeline_programme.h"
#include "ir/partition/placement/throughput.h"

namespace heddle::ir::partition {
namespace {

constexpr int64_t kMaxCells = 40'000'000;  // of the dynamic programme: ideals times numbers of devices used
constexpr int kMaxOrderedIdeals = 2'000;   // as long as there are fewer, items without order join the lattice
constexpr int64_t kBalanceSteps = 1'500;   // for each item without order

class PipelineSolver {
 public:
  PipelineSolver(const PlacementGraph& graph, const Deadline& deadline)
      : graph_(graph), deadline_(deadline), items_(BuildItems(graph, Order::kForward)) {}

  BoundedPlacement Run() {
    const double total = std::accumulate(items_.items.begin(), items_.items.end(), 0.0,
                                         [](double sum, const Item& item) { return sum + item.size; });
    const bool sizes_matter = total > graph_.accelerator_capacity;
    const Fleet limited{graph_.accelerators, graph_.cpus, graph_.accelerator_capacity};
    Fleet unlimited = limited;
    unlimited.capacity = std::numeric_limits<double>::infinity();
    result_.solver = "dynamic programme over ideals";
    result_.lower_bound_us = EvenLoadUs(items_, limited);
    Attempt(MergeFreeItems(items_, kNever), unlimited);
    if (sizes_matter && !Closed()) Attempt(MergeFreeItems(items_, 0), limited);
    return std::move(result_);
  }

 private:
  bool Closed() const {
    return result_.lower_bound_us == kNever ||
           (result_.device_of && result_.cost_us <= result_.lower_bound_us * (1 + 1e-9) + 1e-12);
  }

  // A part of the search: some items without order are joined with others, some are on devices of nobody else.
  struct Part {
    ItemGraph graph;
    std::vector<char> apart;
    double bound_us = 0;
  };

  void Attempt(const ItemGraph& graph, const Fleet& fleet) {
    const PipelineAnswer rough = BestPipeline(graph, IdealsOfOrder(DepthFirstOrder(graph)), fleet, kNever, deadline_);
    if (rough.found) Take(graph, rough);
    std::vector<Part> open;
    open.push_back({graph, std::vector<char>(graph.items.size()), result_.lower_bound_us});
    double unresolved_us = kNever;  // least bound of parts that were given up
    auto worse = [](const Part& a, const Part& b) { return a.bound_us > b.bound_us; };
    while (!open.empty()) {
      std::pop_heap(open.begin(), open.end(), worse);
      Part part = std::move(open.back());
      open.pop_back();
      if (part.bound_us >= Upper()) continue;
      if (!Explore(std::move(part), fleet, open)) unresolved_us = std::min(unresolved_us, last_bound_us_);
      std::make_heap(open.begin(), open.end(), worse);
      if (deadline_.Passed()) break;
    }
    for (const Part& part : open) unresolved_us = std::min(unresolved_us, part.bound_us);
    result_.lower_bound_us = std::max(result_.lower_bound_us, std::min(unresolved_us, Upper()));
  }

  double Upper() const { return result_.device_of ? result_.cost_us : kNever; }

  // Solves one part and adds the parts into which it falls. False where it ends without proof; last_bound_us_ then
  // holds below any plan of it.
  bool Explore(Part part, const Fleet& fleet, std::vector<Part>& open) {
    last_bound_us_ = part.bound_us;
    if (graph_.cpus <= 1 && result_.device_of) JoinHeavy(part);
    const int states = (fleet.accelerators + 1) * (fleet.cpus + 1);
    const std::optional<Ideals> ideals = AllIdeals(part.graph, static_cast<int>(kMaxCells / states), deadline_);
    if (!ideals) {
      result_.solver = "dynamic programme along one order";
      return false;
    }
    const PipelineAnswer answer = BestPipeline(part.graph, *ideals, fleet, Upper(), deadline_, part.apart);
    last_bound_us_ = std::max(last_bound_us_, answer.lower_bound_us);
    if (!answer.found) return last_bound_us_ >= Upper();
    Take(part.graph, answer);
    if (last_bound_us_ >= Upper() * (1 - 1e-9)) return true;
    int item = Disputed(part, answer);
    const bool small = 2 * ideals->count() <= kMaxOrderedIdeals;
    if (item < 0 && small) item = AnyUnordered(part);
    if (item < 0) return false;
    if (small && !part.apart[item]) {
      // Part of the lattice, without constraints: its device is then a choice like any other.
      part.graph.items[item].ordered = true;
      part.bound_us = last_bound_us_;
      open.push_back(std::move(part));
    } else {
      Branch(part, item, open);
    }
    return true;
  }

  static int AnyUnordered(const Part& part) {
    for (size_t item = 0; item < part.graph.items.size(); ++item) {
      if (!part.graph.items[item].ordered && !part.apart[item]) return static_cast<int>(item);
    }
    return -1;
  }

  void JoinHeavy(Part& part) const {
    ItemGraph joined = JoinHeavyNets(part.graph, Upper());
    std::vector<char> apart(joined.items.size());
    for (size_t item = 0; item < part.apart.size(); ++item) {
      if (part.apart[item]) apart[joined.item_of[part.graph.items[item].nodes[0]]] = true;
    }
    part = {std::move(joined), std::move(apart), part.bound_us};
  }

  // The item without order, claimed by none or by several devices, that exchanges most.
  static int Disputed(const Part& part, const PipelineAnswer& answer) {
    int disputed = -1;
    double most_us = 0;
    for (size_t item = 0; item < part.graph.items.size(); ++item) {
      const Item& info = part.graph.items[item];
      if (info.ordered || part.apart[item] || answer.claims[item].size() == 1) continue;
      double us = info.accelerator_us + 1e-30;
      for (int net : info.nets) us += part.graph.nets[net].us;
      if (us <= most_us) continue;
      most_us = us;
      disputed = static_cast<int>(item);
    }
    return disputed;
  }

  // The item is with one of its neighbours, or with none.
  void Branch(const Part& part, int item, std::vector<Part>& open) const {
    std::vector<int> neighbours;
    for (int index : part.graph.items[item].nets) {
      const Net& net = part.graph.nets[index];
      neighbours.push_back(net.source);
      neighbours.insert(neighbours.end(), net.readers.begin(), net.readers.end());
    }
    std::sort(neighbours.begin(), neighbours.end());
    neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
    for (int neighbour : neighbours) {
      if (neighbour == item || part.apart[neighbour]) continue;
      std::vector<int> target(part.graph.items.size()), new_of;
      std::iota(target.begin(), target.end(), 0);
      target[item] = neighbour;
      Part child{JoinItems(part.graph, target, &new_of), {}, last_bound_us_};
      child.apart.assign(child.graph.items.size(), false);
      for (size_t old = 0; old < new_of.size(); ++old) {
        if (part.apart[old]) child.apart[new_of[old]] = true;
      }
      open.push_back(std::move(child));
    }
    Part child = part;
    child.apart[item] = true;
    child.bound_us = last_bound_us_;
    open.push_back(std::move(child));
  }

  // Completes a plan of the ordered items and keeps it if it is the best.
  void Take(const ItemGraph& graph, const PipelineAnswer& answer) {
    std::vector<int> device_of = answer.device_of;
    std::vector<int> rest;
    for (size_t item = 0; item < device_of.size(); ++item) {
      if (device_of[item] >= 0) continue;
      rest.push_back(static_cast<int>(item));
      if (answer.claims[item].size() == 1) device_of[item] = answer.claims[item][0];
    }
    const Fleet fleet{graph_.accelerators, graph_.cpus, graph_.accelerator_capacity};
    const std::vector<int> complete =
        BalanceLoads(graph, fleet, device_of, rest, result_.lower_bound_us, kBalanceSteps * static_cast<int64_t>(rest.size()), 1, deadline_);
    Placement placement;
    for (int item : graph.item_of) placement.push_back(complete[item]);
    if (!KeepsLimits(graph_, placement)) return;
    const double cost_us = MaxLoadUs(graph_, placement);
    if (result_.device_of && result_.cost_us <= cost_us) return;
    result_.device_of = std::move(placement);
    result_.cost_us = cost_us;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  const PlacementGraph& graph_;
  const Deadline deadline_;
  const ItemGraph items_;
  BoundedPlacement result_;
  double last_bound_us_ = 0;
};

}  // namespace

BoundedPlacement SolvePipeline(const PlacementGraph& graph, const Deadline& deadline) {
  return PipelineSolver(graph, deadline).Run();
}

}  // namespace heddle::ir::partition
