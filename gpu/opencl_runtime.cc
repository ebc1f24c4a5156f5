// The OpenCL driver interface: one in-order queue with profiling. Programs that were built once are kept on disk as the driver's
// binaries, by the content of their source and the driver that built them, since vendors' compilers are slow.

#include "gpu/opencl_runtime.h"

#include <CL/cl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <type_traits>
#include <utility>

#include <unistd.h>

#include "gpu/opencl_printer.h"
#include "ir/sha256.h"
#include "ir/status.h"

namespace heddle::gpu {
namespace {

namespace fs = std::filesystem;
using ir::UserError;

// Owns one OpenCL object.
template <typename T, auto Release>
struct Releaser {
  using pointer = T;
  void operator()(T object) const { Release(object); }
};
template <typename T, auto Release>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Releaser<T, Release>>;
using Context = Handle<cl_context, clReleaseContext>;
using Queue = Handle<cl_command_queue, clReleaseCommandQueue>;
using Program = Handle<cl_program, clReleaseProgram>;
using KernelHandle = Handle<cl_kernel, clReleaseKernel>;
using Memory = Handle<cl_mem, clReleaseMemObject>;
using Event = Handle<cl_event, clReleaseEvent>;

absl::Status ClError(const std::string& what, cl_int code) {
  return UserError("E-GPU-021", fmt::format("the OpenCL driver refused to {} (error {})", what, code),
                   "Free memory on the device, or take another one with \"opencl_device_type\" in the target file.");
}

template <typename T>
T DeviceInfo(cl_device_id device, cl_device_info info, T fallback = T()) {
  T value = fallback;
  return clGetDeviceInfo(device, info, sizeof(value), &value, nullptr) == CL_SUCCESS ? value : fallback;
}

std::string DeviceText(cl_device_id device, cl_device_info info) {
  size_t size = 0;
  if (clGetDeviceInfo(device, info, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  clGetDeviceInfo(device, info, size, text.data(), nullptr);
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

// Vectors wider than the registers spill; GPUs hide latency with work-items instead.
int MaxLanes(cl_device_id device) {
  if ((DeviceInfo<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) == 0) return 4;
  const cl_uint native = DeviceInfo<cl_uint>(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 4);
  return native >= 16 ? 16 : native >= 8 ? 8 : 4;
}

GpuCapabilities CapabilitiesOf(cl_device_id device) {
  GpuCapabilities capabilities;
  capabilities.device_name = DeviceText(device, CL_DEVICE_NAME);
  capabilities.driver = DeviceText(device, CL_DEVICE_VERSION) + ", driver " + DeviceText(device, CL_DRIVER_VERSION);
  capabilities.fp64 = DeviceInfo<cl_device_fp_config>(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  capabilities.exact_division =
      (DeviceInfo<cl_device_fp_config>(device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  capabilities.max_lanes = MaxLanes(device);
  capabilities.max_group_size = static_cast<int64_t>(DeviceInfo<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, 64));
  capabilities.memory_bytes = static_cast<int64_t>(DeviceInfo<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE));
  capabilities.max_buffer_bytes = static_cast<int64_t>(DeviceInfo<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  return capabilities;
}

// $XDG_CACHE_HOME/heddle/opencl or ~/.cache/heddle/opencl; empty where there is no home.
fs::path CacheFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') return fs::path(cache) / "heddle" / "opencl";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "heddle" / "opencl";
  return {};
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A cache that cannot be written is no error: the next run builds again.
void WriteCacheFile(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return;
  const fs::path temporary = path.string() + fmt::format(".{}.tmp", getpid());
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out) return;
  }
  fs::rename(temporary, path, error);
}

class OpenClBuffer : public GpuBuffer {
 public:
  OpenClBuffer(Memory memory, int64_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  int64_t bytes() const override { return bytes_; }
  cl_mem memory() const { return memory_.get(); }

 private:
  Memory memory_;
  int64_t bytes_;
};

class OpenClRuntime;

class OpenClProgram : public GpuProgram {
 public:
  OpenClProgram(OpenClRuntime& runtime, Program program, std::vector<KernelHandle> kernels, std::vector<Grid> grids)
      : runtime_(runtime), program_(std::move(program)), kernels_(std::move(kernels)), grids_(std::move(grids)) {}
  absl::Status Launch(int index, const std::vector<const GpuBuffer*>& arguments) override;

 private:
  OpenClRuntime& runtime_;
  Program program_;
  std::vector<KernelHandle> kernels_;
  std::vector<Grid> grids_;
};

class OpenClRuntime : public GpuRuntime {
 public:
  OpenClRuntime(cl_device_id device, bool caches_itself, Context context, Queue queue)
      : device_(device), caches_itself_(caches_itself), context_(std::move(context)), queue_(std::move(queue)),
        capabilities_(CapabilitiesOf(device)) {}

  const GpuCapabilities& capabilities() const override { return capabilities_; }
  absl::StatusOr<std::string> Print(const std::vector<ir::loops::Function>& kernels) const override { return PrintOpenCl(kernels); }
  std::string source_extension() const override { return "cl"; }

  absl::StatusOr<std::unique_ptr<GpuProgram>> Build(const std::string& source,
                                                    const std::vector<ir::loops::Function>& functions) override {
    HEDDLE_ASSIGN_OR_RETURN(Program program, BuildProgram(source));
    std::vector<KernelHandle> kernels;
    std::vector<Grid> grids;
    for (const auto& function : functions) {
      cl_int code = CL_SUCCESS;
      kernels.emplace_back(clCreateKernel(program.get(), function.name.c_str(), &code));
      if (code != CL_SUCCESS) return ClError("make kernel " + function.name, code);
      grids.push_back(GridOf(function));
    }
    return std::make_unique<OpenClProgram>(*this, std::move(program), std::move(kernels), std::move(grids));
  }

  absl::StatusOr<std::unique_ptr<GpuBuffer>> Allocate(int64_t bytes) override {
    cl_int code = CL_SUCCESS;
    Memory memory(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, static_cast<size_t>(std::max<int64_t>(bytes, 1)), nullptr, &code));
    if (code != CL_SUCCESS) return ClError(fmt::format("allocate {} bytes", bytes), code);
    return std::make_unique<OpenClBuffer>(std::move(memory), bytes);
  }

  absl::Status Upload(GpuBuffer& buffer, const void* data, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    cl_event event = nullptr;
    const cl_int code = clEnqueueWriteBuffer(queue_.get(), static_cast<OpenClBuffer&>(buffer).memory(), CL_FALSE, 0,
                                             static_cast<size_t>(bytes), data, 0, nullptr, &event);
    if (code != CL_SUCCESS) return ClError(fmt::format("copy {} bytes to the device", bytes), code);
    events_.emplace_back(event);
    return absl::OkStatus();
  }

  absl::Status Download(const GpuBuffer& buffer, void* data, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    cl_event event = nullptr;
    const cl_int code = clEnqueueReadBuffer(queue_.get(), static_cast<const OpenClBuffer&>(buffer).memory(), CL_FALSE, 0,
                                            static_cast<size_t>(bytes), data, 0, nullptr, &event);
    if (code != CL_SUCCESS) return ClError(fmt::format("copy {} bytes from the device", bytes), code);
    events_.emplace_back(event);
    return absl::OkStatus();
  }

  absl::Status Enqueue(cl_kernel kernel, const Grid& grid) {
    size_t global[3], local[3];
    for (size_t d = 0; d < 3; ++d) {
      local[d] = static_cast<size_t>(grid.items[d]);
      global[d] = static_cast<size_t>(grid.groups[d] * grid.items[d]);
    }
    cl_event event = nullptr;
    const cl_int code = clEnqueueNDRangeKernel(queue_.get(), kernel, 3, nullptr, global, local, 0, nullptr, &event);
    if (code != CL_SUCCESS) return ClError("launch a kernel", code);
    events_.emplace_back(event);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<GpuTimes>> Finish() override {
    const cl_int code = clFinish(queue_.get());
    const std::vector<Event> events = std::exchange(events_, {});
    if (code != CL_SUCCESS) return ClError("finish its queue", code);
    std::vector<GpuTimes> times;
    for (const Event& event : events) {
      cl_int status = CL_COMPLETE;
      clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
      if (status < 0) return ClError("run a command", status);
      cl_ulong start_ns = 0, end_ns = 0;
      clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_START, sizeof(start_ns), &start_ns, nullptr);
      clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof(end_ns), &end_ns, nullptr);
      times.push_back({static_cast<double>(start_ns) * 1e-3, static_cast<double>(end_ns) * 1e-3});
    }
    return times;
  }

 private:
  std::string BuildOptions() const {
    return std::string("-cl-std=CL1.2 -w") + (capabilities_.exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
  }

  std::string BuildLog(cl_program program) const {
    size_t size = 0;
    clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    return log;
  }

  absl::StatusOr<Program> BuildProgram(const std::string& source) {
    fs::path cached;
    if (!caches_itself_ && !CacheFolder().empty()) {
      const std::string key = source + BuildOptions() + capabilities_.device_name + capabilities_.driver;
      cached = CacheFolder() / (ir::Sha256Hex(key) + ".bin");
      if (Program program = ProgramFromBinary(ReadFile(cached))) return program;
    }
    cl_int code = CL_SUCCESS;
    const char* text = source.c_str();
    const size_t length = source.size();
    Program program(clCreateProgramWithSource(context_.get(), 1, &text, &length, &code));
    if (code != CL_SUCCESS) return ClError("take a program", code);
    if (clBuildProgram(program.get(), 1, &device_, BuildOptions().c_str(), nullptr, nullptr) != CL_SUCCESS) {
      return UserError("E-GPU-020", "the OpenCL driver does not compile the kernels: " + BuildLog(program.get()),
                       "Run with --devices cpu, or report the .cl file of the run directory.");
    }
    if (!cached.empty()) WriteCacheFile(cached, BinaryOf(program.get()));
    return program;
  }

  // Null where the bytes are no binary that the driver still accepts.
  Program ProgramFromBinary(const std::string& bytes) {
    if (bytes.empty()) return nullptr;
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    const size_t length = bytes.size();
    cl_int status = CL_SUCCESS, code = CL_SUCCESS;
    Program program(clCreateProgramWithBinary(context_.get(), 1, &device_, &length, &data, &status, &code));
    if (code != CL_SUCCESS || status != CL_SUCCESS) return nullptr;
    if (clBuildProgram(program.get(), 1, &device_, BuildOptions().c_str(), nullptr, nullptr) != CL_SUCCESS) return nullptr;
    return program;
  }

  std::string BinaryOf(cl_program program) const {
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) != CL_SUCCESS) return "";
    std::string bytes(size, '\0');
    auto* data = reinterpret_cast<unsigned char*>(bytes.data());
    return clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) == CL_SUCCESS ? bytes : "";
  }

  cl_device_id device_;
  bool caches_itself_;
  Context context_;
  Queue queue_;
  std::vector<Event> events_;
  GpuCapabilities capabilities_;
};

absl::Status OpenClProgram::Launch(int index, const std::vector<const GpuBuffer*>& arguments) {
  cl_kernel kernel = kernels_[static_cast<size_t>(index)].get();
  for (size_t a = 0; a < arguments.size(); ++a) {
    cl_mem memory = static_cast<const OpenClBuffer*>(arguments[a])->memory();
    const cl_int code = clSetKernelArg(kernel, static_cast<cl_uint>(a), sizeof(memory), &memory);
    if (code != CL_SUCCESS) return ClError(fmt::format("take argument {} of a kernel", a), code);
  }
  return runtime_.Enqueue(kernel, grids_[static_cast<size_t>(index)]);
}

// PoCL finds no device where it cannot write its cache: give it a folder that it can write to.
void GivePoclACache() {
  const char* home = std::getenv("HOME");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const fs::path folder = cache != nullptr && *cache != '\0' ? fs::path(cache) : fs::path(home == nullptr ? "" : home) / ".cache";
  std::error_code error;
  fs::create_directories(folder, error);
  if (access(folder.c_str(), W_OK) == 0) return;
  const fs::path temporary = fs::temp_directory_path(error) / fmt::format("heddle-pocl-{}", getuid());
  setenv("POCL_CACHE_DIR", temporary.c_str(), 0);
}

struct FoundDevice {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
};

// The first device of the type, GPUs before others.
absl::StatusOr<FoundDevice> FindDevice(const std::string& device_type) {
  cl_uint count = 0;
  clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) clGetPlatformIDs(count, platforms.data(), &count);
  std::vector<cl_device_type> wanted;
  if (device_type != "cpu") wanted.push_back(CL_DEVICE_TYPE_GPU);
  if (device_type != "gpu") wanted.push_back(CL_DEVICE_TYPE_CPU);
  if (device_type == "any") wanted.push_back(CL_DEVICE_TYPE_ALL);
  for (cl_device_type type : wanted) {
    for (cl_platform_id platform : platforms) {
      cl_device_id device = nullptr;
      if (clGetDeviceIDs(platform, type, 1, &device, nullptr) == CL_SUCCESS) return FoundDevice{platform, device};
    }
  }
  return UserError("E-GPU-010",
                   fmt::format("no OpenCL device of type \"{}\" ({} OpenCL platform{} installed)", device_type, count, count == 1 ? "" : "s"),
                   "Install a driver (PoCL runs on any CPU: pocl-opencl-icd), or leave the GPU out with --devices.");
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuRuntime>> MakeOpenClRuntime(const std::string& device_type) {
  GivePoclACache();
  HEDDLE_ASSIGN_OR_RETURN(const FoundDevice found, FindDevice(device_type));
  cl_int code = CL_SUCCESS;
  Context context(clCreateContext(nullptr, 1, &found.device, nullptr, nullptr, &code));
  if (code != CL_SUCCESS) return ClError("make a context", code);
  Queue queue(clCreateCommandQueue(context.get(), found.device, CL_QUEUE_PROFILING_ENABLE, &code));
  if (code != CL_SUCCESS) return ClError("make a command queue", code);
  // PoCL keeps what it compiles by itself, and making a binary would compile every kernel a second time.
  char name[256] = {};
  clGetPlatformInfo(found.platform, CL_PLATFORM_NAME, sizeof(name) - 1, name, nullptr);
  const bool caches_itself = std::string(name) == "Portable Computing Language";
  return std::make_unique<OpenClRuntime>(found.device, caches_itself, std::move(context), std::move(queue));
}

}  // namespace heddle::gpu
