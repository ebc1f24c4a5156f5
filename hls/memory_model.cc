// Reads the main memory's timing from a target file.

#include "hls/memory_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "ir/status.h"

namespace heddle::hls {
namespace {

struct Row {
  const char* name;
  int MemoryModel::*member;
  int low, high;
};

constexpr Row kRows[] = {
    {"latency_cycles", &MemoryModel::latency_cycles, 0, 100000},
    {"max_reads", &MemoryModel::max_reads, 1, 1024},
    {"max_writes", &MemoryModel::max_writes, 1, 1024},
    {"banks", &MemoryModel::banks, 1, 1024},
    {"row_bytes", &MemoryModel::row_bytes, 64, 1 << 20},
    {"row_miss_cycles", &MemoryModel::row_miss_cycles, 0, 100000},
    {"row_cycle_cycles", &MemoryModel::row_cycle_cycles, 0, 100000},
    {"refresh_interval_cycles", &MemoryModel::refresh_interval_cycles, 0, 100000000},
    {"refresh_cycles", &MemoryModel::refresh_cycles, 0, 10000000},
};

absl::Status Wrong(const std::string& message) {
  return ir::UserError("E-ACCEL-010", message, "correct the accelerator's memory section of the target file");
}

}  // namespace

absl::StatusOr<MemoryModel> MemoryModelFromJson(const nlohmann::json& json) {
  MemoryModel memory;
  if (!json.is_object()) return Wrong("the accelerator's memory is not a JSON object");
  for (const auto& [key, value] : json.items()) {
    const bool known = std::any_of(std::begin(kRows), std::end(kRows), [&key = key](const Row& row) { return key == row.name; });
    if (!known && key != "bytes_per_cycle" && key != "stall_probability" && key != "seed") return Wrong(fmt::format("unknown key '{}'", key));
  }
  for (const Row& row : kRows) {
    const auto it = json.find(row.name);
    if (it == json.end()) continue;
    if (!it->is_number_integer() || *it < row.low || *it > row.high) {
      return Wrong(fmt::format("{} is {}; expected an integer from {} to {}", row.name, it->dump(), row.low, row.high));
    }
    memory.*row.member = it->get<int>();
  }
  if (const auto it = json.find("bytes_per_cycle"); it != json.end()) {
    if (!it->is_number() || *it <= 0 || *it > 4096) {
      return Wrong(fmt::format("bytes_per_cycle is {}; expected a number above 0, at most 4096", it->dump()));
    }
    memory.bytes_per_cycle = it->get<double>();
  }
  if (memory.refresh_interval_cycles > 0 && memory.refresh_cycles >= memory.refresh_interval_cycles) {
    return Wrong(fmt::format("refresh_cycles is {}; expected less than refresh_interval_cycles, {}", memory.refresh_cycles,
                             memory.refresh_interval_cycles));
  }
  return memory;
}

}  // namespace heddle::hls
