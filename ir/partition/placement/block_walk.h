// Depth first through the ideals that one device's block of items can lead to from a given ideal.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_BLOCK_WALK_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_BLOCK_WALK_H_

#include <cstddef>
#include <vector>

#include "ir/partition/placement/ideals.h"

namespace heddle::ir::partition {

class BlockWalk {
 public:
  explicit BlockWalk(const Ideals& ideals) : ideals_(ideals), seen_(static_cast<size_t>(ideals.count()), 0) {}

  // Visits each larger ideal once. try_add(item): whether the block may take the item, which it then has; where not, nothing has
  // changed. visit(ideal): of the block as it is. remove(item): takes the item out again.
  template <typename TryAdd, typename Visit, typename Remove>
  void From(int from, const TryAdd& try_add, const Visit& visit, const Remove& remove) {
    struct Place {
      int ideal;
      int item;  // that led here; -1 at the start
      size_t step;
    };
    ++round_;
    seen_[static_cast<size_t>(from)] = round_;
    std::vector<Place> stack = {{from, -1, 0}};
    while (!stack.empty()) {
      Place& place = stack.back();
      const auto& steps = ideals_.steps[static_cast<size_t>(place.ideal)];
      if (place.step == steps.size()) {
        if (place.item >= 0) remove(place.item);
        stack.pop_back();
        continue;
      }
      const auto [item, next] = steps[place.step++];
      if (seen_[static_cast<size_t>(next)] == round_) continue;
      seen_[static_cast<size_t>(next)] = round_;
      if (!try_add(item)) continue;
      visit(next);
      stack.push_back({next, item, 0});
    }
  }

 private:
  const Ideals& ideals_;
  std::vector<int> seen_;  // the round in which an ideal was seen last
  int round_ = 0;
};

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_BLOCK_WALK_H_
