// Opens the driver library and binds its functions by name; "_v2" names are the present forms of functions that once took
// 32-bit sizes.

#include "gpu/cuda_driver.h"

#include <dlfcn.h>

namespace heddle::gpu {

absl::StatusOr<std::unique_ptr<CudaDriver>> CudaDriver::Open(const std::string& library) {
  std::unique_ptr<CudaDriver> driver(new CudaDriver);
  driver->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (driver->library_ == nullptr) {
    const char* why = dlerror();
    return ir::UserError("E-GPU-011", "no CUDA driver: " + std::string(why == nullptr ? library : why),
                         "Install NVIDIA's driver, or use OpenCL: \"api\": \"opencl\" in the target file.");
  }
  std::string missing;
  auto bind = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(driver->library_, name));
    if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  bind(driver->init, "cuInit");
  bind(driver->driver_get_version, "cuDriverGetVersion");
  bind(driver->device_get_count, "cuDeviceGetCount");
  bind(driver->device_get, "cuDeviceGet");
  bind(driver->device_get_name, "cuDeviceGetName");
  bind(driver->device_get_attribute, "cuDeviceGetAttribute");
  bind(driver->device_total_mem, "cuDeviceTotalMem_v2");
  bind(driver->primary_context_retain, "cuDevicePrimaryCtxRetain");
  bind(driver->primary_context_release, "cuDevicePrimaryCtxRelease_v2");
  bind(driver->context_set_current, "cuCtxSetCurrent");
  bind(driver->module_load_data, "cuModuleLoadDataEx");
  bind(driver->module_unload, "cuModuleUnload");
  bind(driver->module_get_function, "cuModuleGetFunction");
  bind(driver->mem_alloc, "cuMemAlloc_v2");
  bind(driver->mem_free, "cuMemFree_v2");
  bind(driver->copy_to_device, "cuMemcpyHtoDAsync_v2");
  bind(driver->copy_from_device, "cuMemcpyDtoHAsync_v2");
  bind(driver->launch_kernel, "cuLaunchKernel");
  bind(driver->stream_create, "cuStreamCreate");
  bind(driver->stream_synchronize, "cuStreamSynchronize");
  bind(driver->stream_destroy, "cuStreamDestroy_v2");
  bind(driver->event_create, "cuEventCreate");
  bind(driver->event_record, "cuEventRecord");
  bind(driver->event_elapsed_ms, "cuEventElapsedTime");
  bind(driver->event_destroy, "cuEventDestroy_v2");
  bind(driver->get_error_name, "cuGetErrorName");
  if (!missing.empty()) {
    return ir::UserError("E-GPU-011", fmt::format("{} is no CUDA driver that Heddle can use: it lacks {}", library, missing),
                         "Update NVIDIA's driver, or use OpenCL: \"api\": \"opencl\" in the target file.");
  }
  return driver;
}

CudaDriver::~CudaDriver() {
  if (library_ != nullptr) dlclose(library_);
}

absl::Status CudaDriver::Check(CudaResult result, const std::string& what) const {
  if (result == 0) return absl::OkStatus();
  const char* name = nullptr;
  get_error_name(result, &name);
  return ir::UserError("E-GPU-022", fmt::format("the CUDA driver refused to {} ({})", what, name == nullptr ? std::to_string(result) : name),
                       "Free memory on the device, or use OpenCL: \"api\": \"opencl\" in the target file.");
}

}  // namespace heddle::gpu
