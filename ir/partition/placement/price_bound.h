// Lower bounds on throughput where a device may have any items, by prices on the items.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_PRICE_BOUND_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_PRICE_BOUND_H_

#include <memory>

#include "ir/partition/placement/deadline.h"
#include "ir/partition/placement/items.h"
#include "ir/partition/placement/pipeline_programme.h"

namespace heddle::ir::partition {

class PriceBound {
 public:
  // Prepares the search for sets of items; may find the graph too wide for it (`usable` is then false).
  PriceBound(const ItemGraph& graph, const Fleet& fleet, const Deadline& deadline);
  ~PriceBound();
  bool usable() const;
  // True: no plan has all loads at most `load_us`. False: not proven by the deadline, or not provable by prices.
  bool Excludes(double load_us, const Deadline& deadline);

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_PRICE_BOUND_H_
