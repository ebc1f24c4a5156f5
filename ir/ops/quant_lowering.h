// Expressions that the loop definitions of the integer ops share.
#ifndef HEDDLE_IR_OPS_QUANT_LOWERING_H_
#define HEDDLE_IR_OPS_QUANT_LOWERING_H_

#include <vector>

#include "ir/loops/op_lowering.h"
#include "ir/loops/requantise_expr.h"
#include "ir/ops/common.h"
#include "ir/ops/quant_common.h"

namespace heddle::ir {

// element - zero as i32.
loops::Expr Centred(const loops::Expr& element, int64_t zero);

// Requantiser::Apply as an i8 expression of an i32 accumulator; `channel` may be empty where there is one scale.
loops::Expr RequantisedExpr(const Requantiser& requantiser, const loops::Expr& accumulator, const loops::Expr& channel);

// Zero points as an i32 table indexed by channel.
loops::Buffer ZeroPointTable(loops::OpLowering& lowering, const std::vector<int64_t>& zeros);

// Appends to `at` the spatial input indices of window tap r[first_tap…] at output i[2…]. Returns whether they lie inside the
// input; empty where they always do.
loops::Expr WindowPositions(const Window& window, const loops::Indices& i, const loops::Indices& r, size_t first_tap,
                            loops::Indices& at);

// buffer at the last indices of `index`, batch dimensions broadcast; the last two are taken as they are.
loops::Expr MatrixRead(const loops::Buffer& buffer, const loops::Indices& index);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_QUANT_LOWERING_H_
