// A placement graph as the solvers see it: what must stay together is one item, and results that move are nets.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_ITEMS_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_ITEMS_H_

#include <vector>

#include "ir/partition/placement/placement_graph.h"

namespace heddle::ir::partition {

struct Item {
  std::vector<int> nodes;
  bool accelerator_supported = true;
  double accelerator_us = 0;
  double cpu_us = 0;
  double size = 0;
  double free_size = 0;  // part of `size` that MergeFreeItems put here and that a plan may have elsewhere
  bool ordered = false;  // has forward nodes: takes part in the pipeline order
  std::vector<int> nets;  // that it feeds or reads
};

// Results of one item with the same readers; results that never leave the item are left out.
struct Net {
  int source = 0;
  std::vector<int> readers;  // items other than the source, ascending
  double us = 0;
};

struct ItemGraph {
  std::vector<Item> items;
  std::vector<Net> nets;
  std::vector<int> item_of;  // by node
  // Order among items, by edges between `ordered` nodes; acyclic where built with `pipeline`.
  std::vector<std::vector<int>> successors;
  std::vector<std::vector<int>> predecessors;
};

// What the order of items looks at.
enum class Order {
  kNone,     // items are colour classes, no order
  kForward,  // order by edges between forward nodes; items in a cycle of that order become one
  kAll,      // order by all edges
};
ItemGraph BuildItems(const PlacementGraph& graph, Order order);

// Number of the strongly connected component of each vertex.
std::vector<int> StronglyConnected(const std::vector<std::vector<int>>& successors);

// Load of one device, kept up to date while items come and go.
class DeviceLoad {
 public:
  explicit DeviceLoad(const ItemGraph& graph) : graph_(&graph), has_(graph.items.size()), readers_(graph.nets.size()) {}
  void Add(int item);
  void Remove(int item);
  bool Has(int item) const { return has_[item]; }
  double AcceleratorUs() const { return accelerator_us_ + transfer_us_; }
  double ComputeUs() const { return accelerator_us_; }
  double CpuUs() const { return cpu_us_; }
  double Size() const { return size_; }
  bool AcceleratorSupported() const { return unsupported_ == 0; }
  int count() const { return count_; }

 private:
  double Transfer(int net) const {
    const Net& info = graph_->nets[net];
    const bool pays = has_[info.source] ? readers_[net] < static_cast<int>(info.readers.size()) : readers_[net] > 0;
    return pays ? info.us : 0;
  }
  const ItemGraph* graph_;
  std::vector<char> has_;
  std::vector<int> readers_;  // by net: how many readers are here
  double accelerator_us_ = 0;
  double transfer_us_ = 0;
  double cpu_us_ = 0;
  double size_ = 0;
  int unsupported_ = 0;
  int count_ = 0;
};

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_ITEMS_H_
