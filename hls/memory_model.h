// The main memory as the fast timing model sees it: constant latency, constant bandwidth, in accelerator cycles.
#ifndef HEDDLE_HLS_MEMORY_MODEL_H_
#define HEDDLE_HLS_MEMORY_MODEL_H_

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>

namespace heddle::hls {

struct MemoryModel {
  int latency_cycles = 30;      // from a read address being accepted to its first data beat; for writes, last beat to response
  double bytes_per_cycle = 8;   // both directions together; at most the bus width counts

  bool operator==(const MemoryModel&) const = default;
};

// The "memory" object of an accelerator in a target file: {"latency_cycles": 30, "bytes_per_cycle": 8}; absent keys keep
// their default and keys of other memory models are ignored. A wrong type or range is E-ACCEL-010.
absl::StatusOr<MemoryModel> MemoryModelFromJson(const nlohmann::json& json);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_MEMORY_MODEL_H_
