// One stream on the first device; every command stands between two events, which give its times. The driver keeps the machine
// code of PTX that it has compiled before in a cache of its own.

#include "gpu/cuda_runtime.h"

#include <algorithm>
#include <utility>

#include "gpu/cuda_driver.h"
#include "gpu/ptx_emitter.h"
#include "ir/status.h"

namespace heddle::gpu {
namespace {

using ir::UserError;
using Driver = std::shared_ptr<CudaDriver>;

constexpr int kNewestCapability = 90;  // that this LLVM is asked for; newer devices run it as well

// Device, context and stream: outlives everything made in it.
struct CudaContext {
  explicit CudaContext(Driver d) : driver(std::move(d)) {}
  ~CudaContext() {
    if (stream != nullptr) driver->stream_destroy(stream);
    if (has_context) driver->primary_context_release(device);
  }
  absl::Status Enter() const { return driver->Check(driver->context_set_current(context), "switch to its context"); }

  Driver driver;
  CudaDevice device = 0;
  CudaHandle context = nullptr;
  CudaHandle stream = nullptr;
  bool has_context = false;
};
using Context = std::shared_ptr<CudaContext>;

class CudaBuffer : public GpuBuffer {
 public:
  CudaBuffer(Context context, CudaAddress address, int64_t bytes) : context_(std::move(context)), address_(address), bytes_(bytes) {}
  ~CudaBuffer() override { context_->driver->mem_free(address_); }
  int64_t bytes() const override { return bytes_; }
  CudaAddress address() const { return address_; }

 private:
  Context context_;
  CudaAddress address_;
  int64_t bytes_;
};

class CudaEvent {
 public:
  static absl::StatusOr<std::unique_ptr<CudaEvent>> Record(const Context& context) {
    CudaHandle handle = nullptr;
    HEDDLE_RETURN_IF_ERROR(context->driver->Check(context->driver->event_create(&handle, 0), "make an event"));
    auto event = std::make_unique<CudaEvent>(context, handle);
    HEDDLE_RETURN_IF_ERROR(context->driver->Check(context->driver->event_record(handle, context->stream), "record an event"));
    return event;
  }
  CudaEvent(Context context, CudaHandle handle) : context_(std::move(context)), handle_(handle) {}
  ~CudaEvent() { context_->driver->event_destroy(handle_); }
  absl::StatusOr<double> UsSince(const CudaEvent& start) const {
    float milliseconds = 0;
    HEDDLE_RETURN_IF_ERROR(context_->driver->Check(context_->driver->event_elapsed_ms(&milliseconds, start.handle_, handle_), "read a time"));
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  Context context_;
  CudaHandle handle_;
};

// The stream's commands since the last Finish, each between two events.
class CudaLog {
 public:
  explicit CudaLog(Context context) : context_(std::move(context)) {}

  template <typename Command>
  absl::Status Run(const std::string& what, Command command) {
    HEDDLE_RETURN_IF_ERROR(context_->Enter());
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<CudaEvent> start, CudaEvent::Record(context_));
    HEDDLE_RETURN_IF_ERROR(context_->driver->Check(command(*context_), what));
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<CudaEvent> end, CudaEvent::Record(context_));
    events_.emplace_back(std::move(start), std::move(end));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<GpuTimes>> Finish() {
    const auto events = std::exchange(events_, {});
    HEDDLE_RETURN_IF_ERROR(context_->Enter());
    HEDDLE_RETURN_IF_ERROR(context_->driver->Check(context_->driver->stream_synchronize(context_->stream), "run the kernels"));
    std::vector<GpuTimes> times;
    for (const auto& [start, end] : events) {
      HEDDLE_ASSIGN_OR_RETURN(const double start_us, start->UsSince(*events.front().first));
      HEDDLE_ASSIGN_OR_RETURN(const double end_us, end->UsSince(*events.front().first));
      times.push_back({start_us, end_us});
    }
    return times;
  }

 private:
  Context context_;
  std::vector<std::pair<std::unique_ptr<CudaEvent>, std::unique_ptr<CudaEvent>>> events_;
};

class CudaProgram : public GpuProgram {
 public:
  CudaProgram(Context context, std::shared_ptr<CudaLog> log, CudaHandle module)
      : context_(std::move(context)), log_(std::move(log)), module_(module) {}
  ~CudaProgram() override { context_->driver->module_unload(module_); }

  absl::Status Add(const ir::loops::Function& function) {
    CudaHandle handle = nullptr;
    HEDDLE_RETURN_IF_ERROR(context_->driver->Check(context_->driver->module_get_function(&handle, module_, function.name.c_str()),
                                                   "find kernel " + function.name));
    kernels_.emplace_back(handle, GridOf(function));
    return absl::OkStatus();
  }

  absl::Status Launch(int index, const std::vector<const GpuBuffer*>& arguments) override {
    const auto& [function, grid] = kernels_[static_cast<size_t>(index)];
    std::vector<CudaAddress> addresses;
    for (const GpuBuffer* argument : arguments) addresses.push_back(static_cast<const CudaBuffer*>(argument)->address());
    std::vector<void*> pointers;
    for (CudaAddress& address : addresses) pointers.push_back(&address);
    return log_->Run("launch a kernel", [&, f = function, g = grid](const CudaContext& context) {
      auto size = [](int64_t extent) { return static_cast<unsigned>(extent); };
      return context.driver->launch_kernel(f, size(g.groups[0]), size(g.groups[1]), size(g.groups[2]), size(g.items[0]), size(g.items[1]),
                                           size(g.items[2]), 0, context.stream, pointers.data(), nullptr);
    });
  }

 private:
  Context context_;
  std::shared_ptr<CudaLog> log_;
  CudaHandle module_;
  std::vector<std::pair<CudaHandle, Grid>> kernels_;
};

class CudaRuntime : public GpuRuntime {
 public:
  CudaRuntime(Context context, GpuCapabilities capabilities, int compute_capability)
      : context_(context), log_(std::make_shared<CudaLog>(context)), capabilities_(std::move(capabilities)),
        compute_capability_(compute_capability) {}

  const GpuCapabilities& capabilities() const override { return capabilities_; }
  std::string source_extension() const override { return "ptx"; }
  absl::StatusOr<std::string> Print(const std::vector<ir::loops::Function>& kernels) const override {
    return EmitPtx(kernels, {.compute_capability = compute_capability_});
  }

  absl::StatusOr<std::unique_ptr<GpuProgram>> Build(const std::string& source, const std::vector<ir::loops::Function>& kernels) override {
    HEDDLE_RETURN_IF_ERROR(context_->Enter());
    std::string log(16384, '\0');
    int options[] = {kCudaJitErrorLogBuffer, kCudaJitErrorLogBufferSizeBytes};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CudaHandle module = nullptr;
    if (context_->driver->module_load_data(&module, source.c_str(), 2, options, values) != 0) {
      return UserError("E-GPU-020", "the CUDA driver does not compile the kernels: " + std::string(log.c_str()),
                       "Use OpenCL: \"api\": \"opencl\" in the target file, and report the .ptx file of the run directory.");
    }
    auto program = std::make_unique<CudaProgram>(context_, log_, module);
    for (const auto& kernel : kernels) HEDDLE_RETURN_IF_ERROR(program->Add(kernel));
    return program;
  }

  absl::StatusOr<std::unique_ptr<GpuBuffer>> Allocate(int64_t bytes) override {
    HEDDLE_RETURN_IF_ERROR(context_->Enter());
    CudaAddress address = 0;
    HEDDLE_RETURN_IF_ERROR(context_->driver->Check(context_->driver->mem_alloc(&address, static_cast<size_t>(std::max<int64_t>(bytes, 1))),
                                                   fmt::format("allocate {} bytes", bytes)));
    return std::make_unique<CudaBuffer>(context_, address, bytes);
  }

  absl::Status Upload(GpuBuffer& buffer, const void* data, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    const CudaAddress address = static_cast<CudaBuffer&>(buffer).address();
    return log_->Run("copy to the device", [&](const CudaContext& context) {
      return context.driver->copy_to_device(address, data, static_cast<size_t>(bytes), context.stream);
    });
  }

  absl::Status Download(const GpuBuffer& buffer, void* data, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    const CudaAddress address = static_cast<const CudaBuffer&>(buffer).address();
    return log_->Run("copy from the device", [&](const CudaContext& context) {
      return context.driver->copy_from_device(data, address, static_cast<size_t>(bytes), context.stream);
    });
  }

  absl::StatusOr<std::vector<GpuTimes>> Finish() override { return log_->Finish(); }

 private:
  Context context_;
  std::shared_ptr<CudaLog> log_;
  GpuCapabilities capabilities_;
  int compute_capability_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GpuRuntime>> MakeCudaRuntime(const std::string& library) {
  HEDDLE_ASSIGN_OR_RETURN(Driver driver, CudaDriver::Open(library));
  int count = 0;
  if (driver->init(0) != 0 || driver->device_get_count(&count) != 0 || count == 0) {
    return UserError("E-GPU-012", "the CUDA driver is installed but has no device", "Use OpenCL: \"api\": \"opencl\" in the target file.");
  }
  auto context = std::make_shared<CudaContext>(driver);
  HEDDLE_RETURN_IF_ERROR(driver->Check(driver->device_get(&context->device, 0), "open device 0"));
  HEDDLE_RETURN_IF_ERROR(driver->Check(driver->primary_context_retain(&context->context, context->device), "make a context"));
  context->has_context = true;
  HEDDLE_RETURN_IF_ERROR(context->Enter());
  HEDDLE_RETURN_IF_ERROR(driver->Check(driver->stream_create(&context->stream, 0), "make a stream"));

  char name[256] = {};
  int version = 0, major = 0, minor = 0, threads = 256;
  size_t bytes = 0;
  driver->device_get_name(name, sizeof(name) - 1, context->device);
  driver->driver_get_version(&version);
  driver->device_get_attribute(&major, kCudaComputeCapabilityMajor, context->device);
  driver->device_get_attribute(&minor, kCudaComputeCapabilityMinor, context->device);
  driver->device_get_attribute(&threads, kCudaMaxThreadsPerBlock, context->device);
  driver->device_total_mem(&bytes, context->device);
  GpuCapabilities capabilities;
  capabilities.device_name = name;
  capabilities.driver = fmt::format("CUDA {}.{}, compute capability {}.{}", version / 1000, version % 1000 / 10, major, minor);
  capabilities.fp64 = true;
  capabilities.exact_division = true;
  capabilities.max_lanes = 4;
  capabilities.max_group_size = threads;
  capabilities.memory_bytes = capabilities.max_buffer_bytes = static_cast<int64_t>(bytes);
  return std::make_unique<CudaRuntime>(std::move(context), std::move(capabilities), std::min(10 * major + minor, kNewestCapability));
}

}  // namespace heddle::gpu
