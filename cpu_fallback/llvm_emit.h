// Loop IR to LLVM IR. Internal to cpu_fallback: includes LLVM only by name.
#ifndef HEDDLE_CPU_FALLBACK_LLVM_EMIT_H_
#define HEDDLE_CPU_FALLBACK_LLVM_EMIT_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "ir/loops/stmt.h"

namespace llvm {
class Module;
}

namespace heddle::cpu {

// What the generated code calls to run a parallel loop; handed to it at run time.
struct Runtime {
  void (*parallel_for)(const Runtime* runtime, void (*body)(void*, int64_t, int64_t), void* context, int64_t extent);
  void* pool;
};

// Adds `void NAME(void* const* buffers, void* workspace, const Runtime* runtime)` to the module and returns the bytes of
// workspace that it uses.
absl::StatusOr<int64_t> EmitFunction(const ir::loops::Function& function, llvm::Module& module);

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_LLVM_EMIT_H_
