// The down-closed sets of an order ("ideals"): what may have been executed at some moment. A pipeline is a chain of them.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_IDEALS_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_IDEALS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/partition/placement/deadline.h"
#include "ir/partition/placement/items.h"

namespace heddle::ir::partition {

struct Ideals {
  // steps[i]: the ideals that are i and one item more, as (item, ideal). Ideal 0 is empty, the last one is full; a step
  // goes to a larger number.
  std::vector<std::vector<std::pair<int, int>>> steps;
  int count() const { return static_cast<int>(steps.size()); }
};

// All ideals of the ordered items; absent where there are more than `limit` or the deadline passes.
std::optional<Ideals> AllIdeals(const ItemGraph& graph, int limit, const Deadline& deadline);

// A topological order of the ordered items that finishes one branch before it begins the next.
std::vector<int> DepthFirstOrder(const ItemGraph& graph);

// The ideals that are beginnings of one order of the items.
Ideals IdealsOfOrder(const std::vector<int>& order);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_IDEALS_H_
