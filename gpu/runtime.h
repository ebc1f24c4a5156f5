// What Heddle needs of a GPU driver. One implementation a driver interface: opencl_runtime.h, cuda_runtime.h.
#ifndef HEDDLE_GPU_RUNTIME_H_
#define HEDDLE_GPU_RUNTIME_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/kernel_schedule.h"
#include "ir/loops/stmt.h"

namespace heddle::gpu {

struct GpuCapabilities {
  std::string device_name;   // as the driver spells it
  std::string driver;        // interface and version
  bool fp64 = false;
  bool exact_division = false;  // float32 division and square root correctly rounded
  int max_lanes = 4;            // widest vector that pays
  int64_t max_group_size = 256;
  int64_t memory_bytes = 0;
  int64_t max_buffer_bytes = 0;
};

// Device memory; freed with the object.
class GpuBuffer {
 public:
  virtual ~GpuBuffer() = default;
  virtual int64_t bytes() const = 0;
};

// A command's stretch of time on the device's own clock.
struct GpuTimes {
  double start_us = 0;
  double end_us = 0;
};

class GpuProgram {
 public:
  virtual ~GpuProgram() = default;
  // Enqueues kernel `index` of the functions that the program was built from; arguments in the order of its parameters.
  virtual absl::Status Launch(int index, const std::vector<const GpuBuffer*>& arguments) = 0;
};

// Commands run in the order in which they are enqueued. All errors are coded E-GPU-….
class GpuRuntime {
 public:
  virtual ~GpuRuntime() = default;
  virtual const GpuCapabilities& capabilities() const = 0;

  // The kernels as this driver's source text, and the ending of a file that holds it ("cl", "ptx").
  virtual absl::StatusOr<std::string> Print(const std::vector<ir::loops::Function>& kernels) const = 0;
  virtual std::string source_extension() const = 0;
  // `source` is what Print gave for `kernels`. E-GPU-020 with the driver's log where it does not build.
  virtual absl::StatusOr<std::unique_ptr<GpuProgram>> Build(const std::string& source,
                                                            const std::vector<ir::loops::Function>& kernels) = 0;

  virtual absl::StatusOr<std::unique_ptr<GpuBuffer>> Allocate(int64_t bytes) = 0;
  // Enqueue a copy of the first `bytes` of the buffer; `data` must stay valid until Finish.
  virtual absl::Status Upload(GpuBuffer& buffer, const void* data, int64_t bytes) = 0;
  virtual absl::Status Download(const GpuBuffer& buffer, void* data, int64_t bytes) = 0;
  // Waits, and returns when each command since the last Finish ran, in their order.
  virtual absl::StatusOr<std::vector<GpuTimes>> Finish() = 0;
};

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_RUNTIME_H_
