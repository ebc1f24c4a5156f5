// The part of the CUDA driver interface that Heddle calls, as documented in NVIDIA's "CUDA Driver API" reference: handles are
// opaque pointers, results are 0 or an error number.
#ifndef HEDDLE_GPU_CUDA_DRIVER_H_
#define HEDDLE_GPU_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ir/status.h"

namespace heddle::gpu {

using CudaResult = int;
using CudaDevice = int;
using CudaAddress = uint64_t;  // of device memory
using CudaHandle = void*;      // context, module, function, stream, event

// Numbers of CUdevice_attribute and CUjit_option.
inline constexpr int kCudaMaxThreadsPerBlock = 1;
inline constexpr int kCudaComputeCapabilityMajor = 75;
inline constexpr int kCudaComputeCapabilityMinor = 76;
inline constexpr int kCudaJitErrorLogBuffer = 5;
inline constexpr int kCudaJitErrorLogBufferSizeBytes = 6;

struct CudaDriver {
  // Opens the library and finds every function. E-GPU-011.
  static absl::StatusOr<std::unique_ptr<CudaDriver>> Open(const std::string& library);
  ~CudaDriver();
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  // An error E-GPU-022 that names what was tried; OK for 0.
  absl::Status Check(CudaResult result, const std::string& what) const;

  CudaResult (*init)(unsigned flags) = nullptr;
  CudaResult (*driver_get_version)(int* version) = nullptr;
  CudaResult (*device_get_count)(int* count) = nullptr;
  CudaResult (*device_get)(CudaDevice* device, int ordinal) = nullptr;
  CudaResult (*device_get_name)(char* name, int length, CudaDevice device) = nullptr;
  CudaResult (*device_get_attribute)(int* value, int attribute, CudaDevice device) = nullptr;
  CudaResult (*device_total_mem)(size_t* bytes, CudaDevice device) = nullptr;
  CudaResult (*primary_context_retain)(CudaHandle* context, CudaDevice device) = nullptr;
  CudaResult (*primary_context_release)(CudaDevice device) = nullptr;
  CudaResult (*context_set_current)(CudaHandle context) = nullptr;
  CudaResult (*module_load_data)(CudaHandle* module, const void* image, unsigned num_options, int* options, void** values) = nullptr;
  CudaResult (*module_unload)(CudaHandle module) = nullptr;
  CudaResult (*module_get_function)(CudaHandle* function, CudaHandle module, const char* name) = nullptr;
  CudaResult (*mem_alloc)(CudaAddress* address, size_t bytes) = nullptr;
  CudaResult (*mem_free)(CudaAddress address) = nullptr;
  CudaResult (*copy_to_device)(CudaAddress to, const void* from, size_t bytes, CudaHandle stream) = nullptr;
  CudaResult (*copy_from_device)(void* to, CudaAddress from, size_t bytes, CudaHandle stream) = nullptr;
  CudaResult (*launch_kernel)(CudaHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                              unsigned block_z, unsigned shared_bytes, CudaHandle stream, void** arguments, void** extra) = nullptr;
  CudaResult (*stream_create)(CudaHandle* stream, unsigned flags) = nullptr;
  CudaResult (*stream_synchronize)(CudaHandle stream) = nullptr;
  CudaResult (*stream_destroy)(CudaHandle stream) = nullptr;
  CudaResult (*event_create)(CudaHandle* event, unsigned flags) = nullptr;
  CudaResult (*event_record)(CudaHandle event, CudaHandle stream) = nullptr;
  CudaResult (*event_elapsed_ms)(float* milliseconds, CudaHandle start, CudaHandle end) = nullptr;
  CudaResult (*event_destroy)(CudaHandle event) = nullptr;
  CudaResult (*get_error_name)(CudaResult error, const char** name) = nullptr;

 private:
  CudaDriver() = default;
  void* library_ = nullptr;
};

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_CUDA_DRIVER_H_
