// The devices of a target.
#ifndef HEDDLE_DRIVER_DEVICES_H_
#define HEDDLE_DRIVER_DEVICES_H_

#include <memory>
#include <string>
#include <vector>

#include "driver/options.h"
#include "driver/partition_model.h"
#include "driver/target.h"
#include "ir/device.h"

namespace heddle::driver {

struct DeviceSet {
  DeviceList devices;
  std::vector<std::string> notes;  // what a reader must know: "gpu: left out, this machine offers no OpenCL GPU"
};

// Makes the target's devices that `allowed` names (by name or kind; empty: all), in the target's order, the host always
// among them. A device that is optional and cannot be had is left out with a note. `threads` replaces the CPU's number where it
// is not 0. E-USAGE-004 for an unknown name.
absl::StatusOr<DeviceSet> MakeDevices(const Target& target, const std::vector<std::string>& allowed, int threads);

// The first CPU: inputs and outputs lie there.
ir::Device& HostOf(const DeviceList& devices);

// An OpenCL device for cross-checks where the target has no GPU of its own; null where this machine has no driver.
std::unique_ptr<ir::Device> MakeCrossCheckGpu();

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_DEVICES_H_
