// The CPU as the partitioner and the driver see it.
#ifndef HEDDLE_CPU_FALLBACK_CPU_DEVICE_H_
#define HEDDLE_CPU_FALLBACK_CPU_DEVICE_H_

#include <absl/status/statusor.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "ir/device.h"

namespace heddle::cpu {

// From the device's object in a target file: name, kind, timing ("measured" or "modelled"), threads, and the roofline's rates
// (docs/targets.md). Code always runs on this machine; a "modelled" CPU reports the times that the rates give.
//   E-TARGET-003 for a key that is unknown or missing, E-TARGET-004 for a value out of range.
absl::StatusOr<std::unique_ptr<ir::Device>> MakeCpuDevice(const nlohmann::json& section);

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_CPU_DEVICE_H_
