// `heddle partition GRAPH.json`: placement instances instead of models.
#ifndef HEDDLE_DRIVER_PARTITION_GRAPH_H_
#define HEDDLE_DRIVER_PARTITION_GRAPH_H_

#include <string>

#include "driver/options.h"
#include "ir/status.h"

namespace heddle::driver {

// Whether the file's content is a placement graph (see docs/partitioning.md).
bool IsPlacementGraphFile(const std::string& path);

// Solves it and prints the plan, as a table or with `json` as partition{objective, …, assignment}.
absl::Status PartitionGraphCommand(const RunOptions& options);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_PARTITION_GRAPH_H_
