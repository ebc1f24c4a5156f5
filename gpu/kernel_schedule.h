// From one compute definition to one kernel: which output elements a work-item computes, and what it keeps in registers.
//
// A plain stage gives one element to each work-item. A reduction gives a tile: `rows` elements along an axis for which one of
// its operands can be reused, times `lanes` neighbours in memory along the innermost axis (a vectorised loop). Where a tile
// does not divide the extent, the last tile is moved back to end at it: a few elements are then computed by two work-items,
// with the same result. Work-items next to each other in x touch memory next to each other.
#ifndef HEDDLE_GPU_KERNEL_SCHEDULE_H_
#define HEDDLE_GPU_KERNEL_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/loops/stmt.h"
#include "ir/loops/tensor_expr.h"

namespace heddle::gpu {

struct ScheduleOptions {
  int max_lanes = 4;      // widest vector: 2, 4, 8 or 16; 1: none
  int max_rows = 8;       // widest tile across lanes
  int64_t group_size = 64;  // work-items of a group
};

// Index space of a kernel: groups times work-items of a group, x first.
struct Grid {
  std::array<int64_t, 3> groups = {1, 1, 1};
  std::array<int64_t, 3> items = {1, 1, 1};
  bool is_empty() const { return groups[0] * groups[1] * groups[2] * items[0] * items[1] * items[2] == 0; }
};

struct Kernel {
  ir::loops::Function function;            // outermost loops are bound to GPU indices; buffers are one-dimensional views
  std::vector<ir::loops::Buffer> arguments;  // arguments[i]: the stage's buffer (or table) that params[i] is a view of
};

// Never fails on a stage that LowerToFunction accepts. `name` is a C identifier.
Kernel ScheduleStage(const ir::loops::TensorExpr& stage, const std::string& name, const ScheduleOptions& options);

// Extents of the loops bound to GPU indices.
Grid GridOf(const ir::loops::Function& function);

// What a device must offer to run a function as the loop IR defines it.
struct KernelNeeds {
  bool fp64 = false;
  // The kernel converts between floats and integers: its roundings are part of a network's integer arithmetic, so multiplies
  // and adds are not contracted.
  bool exact_rounding = false;
  bool exact_division = false;  // correctly rounded float32 division, where rounding is exact
};
KernelNeeds NeedsOf(const ir::loops::Function& function);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_KERNEL_SCHEDULE_H_
