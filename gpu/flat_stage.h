// A compute definition over one-dimensional views of its buffers, with as few axes as its accesses allow.
#ifndef HEDDLE_GPU_FLAT_STAGE_H_
#define HEDDLE_GPU_FLAT_STAGE_H_

#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/loops/simplify.h"
#include "ir/loops/tensor_expr.h"

namespace heddle::gpu {

struct FlatStage {
  std::vector<ir::loops::Axis> axes;         // none of extent 1; neighbours that are contiguous in every access are one axis
  std::vector<ir::loops::Axis> reduce_axes;
  bool is_reduction = false;
  ir::loops::Expr value, init, combine, epilogue;  // as in TensorExpr; every load has one index
  ir::loops::Expr accumulator, term;
  ir::loops::Buffer output;  // a view
  ir::loops::Expr output_index;

  // The stage's buffers and their views, inputs in order of first use, the output last.
  std::vector<std::pair<ir::loops::Buffer, ir::loops::Buffer>> views;

  ir::loops::VarIntervals Intervals() const;  // of all axes
};

// `stage` is not imperative.
FlatStage Flatten(const ir::loops::TensorExpr& stage);

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_FLAT_STAGE_H_
