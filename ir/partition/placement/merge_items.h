// Presolve: items that some best plan keeps together become one item.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_MERGE_ITEMS_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_MERGE_ITEMS_H_

#include "ir/partition/placement/items.h"

namespace heddle::ir::partition {

// Merges items of at most `max_size`. Where sizes do not matter, the best throughput or latency of the result equals the
// best of `graph`. Where they do, a plan for the result is one for `graph`, and with `free_size` taken off every size the
// result's best is a lower bound; with `max_size` 0 both are equal. Keeps node indices; item numbers change.
ItemGraph MergeFreeItems(const ItemGraph& graph, double max_size);

// The graph without what MergeFreeItems put into items' sizes.
ItemGraph WithoutFreeSizes(ItemGraph graph);

// Puts items together that the caller names: the items with the same value of `target` (a number of items' range) become
// one. `new_of`, where given, receives the new item of each old one.
ItemGraph JoinItems(const ItemGraph& graph, const std::vector<int>& target, std::vector<int>* new_of = nullptr);

// Items of one cycle of the order become one: a pipeline cannot part them.
ItemGraph JoinCycles(const ItemGraph& graph);

// Items that share a net of at least `limit_us` become one, with cycles: no plan with at most one core and a load below
// `limit_us` parts them.
ItemGraph JoinHeavyNets(const ItemGraph& graph, double limit_us);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_MERGE_ITEMS_H_
