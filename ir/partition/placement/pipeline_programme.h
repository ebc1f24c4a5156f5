// The best pipeline along a lattice of ideals: the throughput objective with contiguous devices, exactly.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_PIPELINE_PROGRAMME_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_PIPELINE_PROGRAMME_H_

#include <limits>
#include <vector>

#include "ir/partition/placement/deadline.h"
#include "ir/partition/placement/ideals.h"
#include "ir/partition/placement/items.h"

namespace heddle::ir::partition {

struct Fleet {
  int accelerators = 0;
  int cpus = 0;
  double capacity = std::numeric_limits<double>::infinity();
};

struct PipelineAnswer {
  bool found = false;
  double load_us = 0;          // of the plan found, with every device's own choice of items without order
  std::vector<int> device_of;  // by item, numbered as in Placement; -1 for items without order
  std::vector<std::vector<int>> claims;  // by item without order: the devices that chose it
  double lower_bound_us = 0;             // every pipeline along these ideals has at least this load
};

// No pipeline has a smaller load than this, whatever the order: the work spread evenly, and the dearest item.
double EvenLoadUs(const ItemGraph& graph, const Fleet& fleet);

// Finds the best pipeline with a load below `upper_us`; lower_bound_us is then `upper_us` where there is none.
//
// Items without order may be with any device. The programme lets each device choose those that make it least loaded,
// independently of the others: a bound, and a plan where every such item has exactly one claim. Items in `apart` are
// chosen by no device: others pay for exchanging results with them.
PipelineAnswer BestPipeline(const ItemGraph& graph, const Ideals& ideals, const Fleet& fleet, double upper_us,
                            const Deadline& deadline, const std::vector<char>& apart = {});

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_PIPELINE_PROGRAMME_H_
