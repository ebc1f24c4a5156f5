// Reads the fast model's view of the main memory from a target file.

#include "hls/memory_model.h"

#include <nlohmann/json.hpp>

#include "ir/status.h"

namespace heddle::hls {

absl::StatusOr<MemoryModel> MemoryModelFromJson(const nlohmann::json& json) {
  MemoryModel memory;
  const auto wrong = [](const std::string& message) {
    return ir::UserError("E-ACCEL-010", message, "correct the accelerator's memory section of the target file");
  };
  if (!json.is_object()) return wrong("the accelerator's memory is not a JSON object");
  if (json.contains("latency_cycles")) {
    if (!json["latency_cycles"].is_number_integer() || json["latency_cycles"] < 0 || json["latency_cycles"] > 100000) {
      return wrong("latency_cycles is not an integer from 0 to 100000");
    }
    memory.latency_cycles = json["latency_cycles"].get<int>();
  }
  if (json.contains("bytes_per_cycle")) {
    if (!json["bytes_per_cycle"].is_number() || json["bytes_per_cycle"] <= 0 || json["bytes_per_cycle"] > 4096) {
      return wrong("bytes_per_cycle is not a number above 0, at most 4096");
    }
    memory.bytes_per_cycle = json["bytes_per_cycle"].get<double>();
  }
  return memory;
}

}  // namespace heddle::hls
