// Loop IR to machine code of this CPU, in memory (LLVM's ORC JIT) or as an object file.
//
// Numerics: integer results are those of the loop IR to the bit. Float operations are IEEE; a multiplication and an addition may
// be contracted; exp of f32 has at most 2 ulp of error, other functions are those of the C library. Results do not
// depend on the number of threads.
#ifndef HEDDLE_CPU_FALLBACK_JIT_H_
#define HEDDLE_CPU_FALLBACK_JIT_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu_fallback/thread_pool.h"
#include "ir/loops/stmt.h"

namespace heddle::cpu {

struct CompileOptions {
  int optimisation_level = 2;   // 0 to 3, as of clang
  bool keep_llvm_ir = false;    // CompiledModule::llvm_ir() then returns the optimised text
  bool keep_assembly = false;   // and assembly()
};

class CompiledModule {
 public:
  // Opaque outside jit.cc: owns the code.
  class Code;
  explicit CompiledModule(std::unique_ptr<Code> code);
  CompiledModule(CompiledModule&&) noexcept;
  CompiledModule& operator=(CompiledModule&&) noexcept;
  ~CompiledModule();

  int num_functions() const;
  // Index of the function of that name, or -1.
  int FindFunction(std::string_view name) const;
  // Bytes of scratch memory that a run of the function needs (64-byte aligned).
  int64_t WorkspaceBytes(int function) const;

  // Runs the function. buffers[i] is the memory of params[i], dense row-major; `workspace` has WorkspaceBytes; `pool` may be
  // null (serial). Different workspaces may run at the same time, with different pools.
  void Run(int function, std::span<void* const> buffers, void* workspace, ThreadPool* pool = nullptr) const;
  // As above, with a workspace of its own for the run.
  void Run(int function, std::span<void* const> buffers, ThreadPool* pool = nullptr) const;

  const std::string& object() const;  // the relocatable object that was loaded
  const std::string& llvm_ir() const;
  const std::string& assembly() const;

 private:
  std::unique_ptr<Code> code_;
};

//   E-CPU-001: a function cannot be compiled for a CPU (barriers, wrong nesting); E-CPU-002: LLVM refused.
absl::StatusOr<CompiledModule> Compile(const ir::loops::Module& module, const CompileOptions& options = {});

// The bytes of a relocatable object (ELF on Linux) with one C symbol for each function,
//   void NAME(void* const* buffers, void* workspace, const void* runtime);
// `runtime` null runs parallel loops serially. `cpu` is LLVM's name of the processor ("" for this one, "x86-64-v3", …).
absl::StatusOr<std::string> CompileToObject(const ir::loops::Module& module, const std::string& cpu = "",
                                            const CompileOptions& options = {});

// Median wall-clock time of one run, in microseconds, over at least `min_runs` runs and `min_us` of time.
double TimeFunction(const CompiledModule& module, int function, std::span<void* const> buffers, ThreadPool* pool = nullptr,
                    int min_runs = 5, double min_us = 2000);

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_JIT_H_
