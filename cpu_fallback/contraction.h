// Recognises what convolutions, matrix products, depthwise convolutions and pooling have in common, whatever operator (or
// user's definition) they come from.
#ifndef HEDDLE_CPU_FALLBACK_CONTRACTION_H_
#define HEDDLE_CPU_FALLBACK_CONTRACTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/loops/tensor_expr.h"

namespace heddle::cpu {

// A column axis of the output that slides over its operand together with a reduction axis: position = column * stride +
// tap * dilation.
struct Window {
  ir::loops::Axis column;
  ir::loops::Axis tap;  // var empty and extent 1 where nothing slides
  int64_t stride = 1;
  int64_t dilation = 1;
  bool slides() const { return static_cast<bool>(tap.var); }
  // Positions are stored by their remainder modulo the stride, so that neighbours in a row are neighbours in memory.
  int64_t phases() const { return slides() ? stride : 1; }
  int64_t stored_extent() const { return column.extent + (slides() ? (tap.extent - 1) * dilation / stride : 0); }
};

// output[outer, row, columns] = epilogue(fold over depth and taps of vector_operand * scalar_operand).
struct Contraction {
  ir::loops::TensorExpr stage;           // its output axes of extent 1 are replaced by 0, grouped channels are split
  ir::loops::Expr vector_operand;        // of outer, depth, columns and taps: lanes lie along the last column axis
  ir::loops::Expr scalar_operand;        // of outer, row, depth, taps: broadcast; empty for pooling
  std::vector<ir::loops::Axis> outer;    // axes of both operands or of neither
  ir::loops::Axis row;                   // axis of the scalar operand alone; extent 1 and no variable where there is none
  std::vector<Window> columns;           // one or more, outermost first; only the last two may slide
  std::vector<ir::loops::Axis> depth;    // reduction axes that are no taps
  std::vector<ir::loops::Expr> indices;  // of the output, in terms of the axes above
  int64_t terms() const;                 // products for one output element
};

std::optional<Contraction> MatchContraction(const ir::loops::TensorExpr& stage);

// `operand` with every position of a sliding window replaced: column * stride + tap * dilation becomes `position`.
ir::loops::Expr AtPosition(const ir::loops::Expr& operand, const Window& window, const ir::loops::Expr& position);

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_CONTRACTION_H_
