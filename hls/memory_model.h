// The main memory of a target file: MemoryModel (hls/memory/memory_timing.h) from JSON.
#ifndef HEDDLE_HLS_MEMORY_MODEL_H_
#define HEDDLE_HLS_MEMORY_MODEL_H_

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>

#include "hls/memory/memory_timing.h"

namespace heddle::hls {

// The "memory" object of an accelerator in a target file: the members of MemoryModel by name; absent keys keep their default
// and keys of the simulation alone (stall_probability, seed) are left to it. A wrong type or range is E-ACCEL-010.
absl::StatusOr<MemoryModel> MemoryModelFromJson(const nlohmann::json& json);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_MEMORY_MODEL_H_
