// ir/requantise.h as loop expressions of plain integer operations, so that printers need no knowledge of quantisation.
#ifndef HEDDLE_IR_LOOPS_REQUANTISE_EXPR_H_
#define HEDDLE_IR_LOOPS_REQUANTISE_EXPR_H_

#include <vector>

#include "ir/loops/expr.h"
#include "ir/requantise.h"

namespace heddle::ir::loops {

// ScaleValue(value, scale, rounding) as an i64 expression. `value` is i32 or i64, within ScaleValue's bounds.
Expr ScaleValueExpr(Expr value, FixedPointScale scale, Rounding rounding);

// clamp(ScaleValue(accumulator) + zero_point, low, high) converted to `type`: equal to Requantise to the bit.
Expr RequantiseExpr(Expr accumulator, FixedPointScale scale, Rounding rounding, int32_t zero_point, int32_t low, int32_t high,
                    ElementType type);

// As above with scales[channel], one for each channel (the scales become tables; one scale serves all channels).
Expr RequantiseExpr(Expr accumulator, const std::vector<FixedPointScale>& scales, Expr channel, Rounding rounding,
                    int32_t zero_point, int32_t low, int32_t high, ElementType type);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_REQUANTISE_EXPR_H_
