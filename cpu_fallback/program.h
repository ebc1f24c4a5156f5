// A graph compiled for this CPU: one call of a compiled function for each fused group, values in one arena.
#ifndef HEDDLE_CPU_FALLBACK_PROGRAM_H_
#define HEDDLE_CPU_FALLBACK_PROGRAM_H_

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu_fallback/thread_pool.h"
#include "ir/graph.h"

namespace heddle::cpu {

struct ProgramStats {
  int groups = 0;
  int functions = 0;          // distinct ones: equal groups share code
  int interpreted_nodes = 0;  // by their reference kernels, having no definition in loops
  double compile_seconds = 0;
  int64_t arena_bytes = 0;    // values and scratch
  int64_t packed_bytes = 0;   // constants in the loops' layout
};

struct GroupTime {
  std::string name;  // of the group's last node
  double start_us = 0, end_us = 0;
};

class Program {
 public:
  virtual ~Program() = default;
  // One tensor per graph input, of its type and shape (E-RUN-001 where not); one per graph output. `times` may be null.
  virtual absl::StatusOr<std::vector<ir::Tensor>> Run(const std::vector<ir::Tensor>& inputs, ThreadPool* pool,
                                                      std::vector<GroupTime>* times) = 0;
  virtual const ProgramStats& stats() const = 0;
  virtual std::string LoopText() const = 0;          // the scheduled loops, readable
  virtual const std::string& object() const = 0;     // machine code as a relocatable object
};

// The graph is verified and its types are inferred; it must outlive the program. `progress` may be empty.
absl::StatusOr<std::unique_ptr<Program>> CompileProgram(const ir::Graph& graph,
                                                        const std::function<void(const std::string&)>& progress = nullptr);

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_PROGRAM_H_
