// Expressions that the loop definitions of the integer ops share.
#ifndef HEDDLE_IR_OPS_QUANT_LOWERING_H_
#define HEDDLE_IR_OPS_QUANT_LOWERING_H_

#include <functional>
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

// Appends to `at` the spatial input indices of window tap r[first_tap…] at output i[2…]. Returns whether they lie inside the
// input; empty where they always do.
loops::Expr WindowPositions(const Window& window, const loops::Indices& i, const loops::Indices& r, size_t first_tap,
                            loops::Indices& at);

// Adds the stage output = epilogue(sum over channels of the group and window taps of x_value(x) * w_value(w, m), i), of input 0
// [N, C, spatial…] and input 1 [M, C/group, kernel…]; both values are i32 and pads add nothing.
using ChannelValue = std::function<loops::Expr(const loops::Expr& element, const loops::Expr& channel)>;
void LowerConvolution(loops::OpLowering& lowering, const Window& window, int64_t group,
                      const std::function<loops::Expr(const loops::Expr&)>& x_value, const ChannelValue& w_value,
                      const std::function<loops::Expr(loops::Expr, const loops::Indices&)>& epilogue);

// Adds the stage output = epilogue(sum over k of a_value(a[…, m, k]) * b_value(b[…, k, n], n), i) of inputs `a` and `b`.
void LowerMatrixProduct(loops::OpLowering& lowering, int64_t k, const std::function<loops::Expr(const loops::Expr&)>& a_value,
                        const ChannelValue& b_value,
                        const std::function<loops::Expr(loops::Expr, const loops::Indices&)>& epilogue);

// element - zeros[channel] as i32: one zero point for all channels, or a table.
ChannelValue CentredByChannel(loops::OpLowering& lowering, const std::vector<int64_t>& zeros);

// buffer at the last indices of `index`, batch dimensions broadcast; the last two are taken as they are.
loops::Expr MatrixRead(const loops::Buffer& buffer, const loops::Indices& index);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_QUANT_LOWERING_H_
