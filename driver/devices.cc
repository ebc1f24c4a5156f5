// The one place that names the device packages. A new kind of device is a line in MakeDevice.

#include "driver/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cpu_fallback/cpu_device.h"
#include "gpu/gpu_device.h"
#include "ir/check.h"
#include "sim/accelerator_device.h"

namespace heddle::driver {
namespace {

absl::StatusOr<std::unique_ptr<ir::Device>> MakeDevice(const std::string& kind, const nlohmann::json& section) {
  if (kind == "cpu") return cpu::MakeCpuDevice(section);
  if (kind == "gpu") return gpu::MakeGpuDevice(section);
  HEDDLE_CHECK(kind == "accelerator", "a kind that LoadTarget let through: " + kind);
  auto device = sim::MakeAcceleratorDevice(section);
  if (!device.ok()) return device.status();
  return std::unique_ptr<ir::Device>(std::move(*device));
}

bool Allowed(const TargetDevice& device, const std::vector<std::string>& allowed) {
  return allowed.empty() || std::any_of(allowed.begin(), allowed.end(), [&](const std::string& name) {
           return name == device.name || name == device.kind;
         });
}

absl::Status CheckAllowed(const Target& target, const std::vector<std::string>& allowed) {
  for (const std::string& name : allowed) {
    const bool known = std::any_of(target.devices.begin(), target.devices.end(), [&](const TargetDevice& device) {
      return device.name == name || device.kind == name;
    });
    if (known) continue;
    std::vector<std::string> names;
    for (const TargetDevice& device : target.devices) names.push_back(device.name);
    return ir::UserError("E-USAGE-004", fmt::format("target {} has no device '{}'", target.name, name),
                         fmt::format("choose among {}", fmt::join(names, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeviceSet> MakeDevices(const Target& target, const std::vector<std::string>& allowed, int threads) {
  HEDDLE_RETURN_IF_ERROR(CheckAllowed(target, allowed));
  DeviceSet set;
  bool have_host = false;
  for (const TargetDevice& description : target.devices) {
    const bool is_host = description.kind == "cpu" && !have_host;
    if (!is_host && !Allowed(description, allowed)) continue;
    nlohmann::json section = description.section;
    if (description.kind == "cpu" && threads > 0) section["threads"] = threads;
    auto device = MakeDevice(description.kind, section);
    if (!device.ok()) {
      if (!description.optional) return device.status();
      set.notes.push_back(fmt::format("{} is left out: {}", description.name, std::string(device.status().message())));
      continue;
    }
    have_host = have_host || is_host;
    set.devices.push_back(*std::move(device));
  }
  return set;
}

ir::Device& HostOf(const DeviceList& devices) {
  const auto host = std::find_if(devices.begin(), devices.end(), [](const auto& device) { return device->kind() == "cpu"; });
  HEDDLE_CHECK(host != devices.end(), "a target without a CPU");
  return **host;
}

std::unique_ptr<ir::Device> MakeCrossCheckGpu() {
  auto device = gpu::MakeGpuDevice({{"name", "gpu (OpenCL)"}, {"kind", "gpu"}, {"timing", "measured"}});
  return device.ok() ? *std::move(device) : nullptr;
}

}  // namespace heddle::driver
