// Shared parts of the integer ops' loop definitions.

#include "ir/ops/quant_lowering.h"

namespace heddle::ir {

loops::Expr Centred(const loops::Expr& element, int64_t zero) {
  const loops::Expr wide = loops::Cast(ElementType::kInt32, element);
  return zero == 0 ? wide : wide - zero;
}

loops::Expr RequantisedExpr(const Requantiser& r, const loops::Expr& accumulator, const loops::Expr& channel) {
  return loops::RequantiseExpr(accumulator, r.scales, channel, r.rounding, r.y_zero_point, r.clamp_low, r.clamp_high,
                               ElementType::kInt8);
}

ChannelValue CentredByChannel(loops::OpLowering& lowering, const std::vector<int64_t>& zeros) {
  if (zeros.size() == 1) return [zero = zeros[0]](const loops::Expr& element, const loops::Expr&) { return Centred(element, zero); };
  const std::vector<int32_t> narrow(zeros.begin(), zeros.end());
  const loops::Buffer table = lowering.Table("zero_points", Tensor::Of<int32_t>({static_cast<int64_t>(zeros.size())}, narrow));
  return [table](const loops::Expr& element, const loops::Expr& channel) {
    return loops::Cast(ElementType::kInt32, element) - table(channel);
  };
}

loops::Expr WindowPositions(const Window& w, const loops::Indices& i, const loops::Indices& r, size_t first_tap,
                            loops::Indices& at) {
  loops::Indices positions;
  for (int d = 0; d < w.rank(); ++d) {
    const auto axis = static_cast<size_t>(d);
    positions.push_back(WindowIndex(w, d, i[2 + axis], r[first_tap + axis]));
  }
  at.insert(at.end(), positions.begin(), positions.end());
  return WindowGuard(w, positions);
}

loops::Expr MatrixRead(const loops::Buffer& buffer, const loops::Indices& index) {
  const auto rank = static_cast<size_t>(buffer.rank());
  loops::Indices own;
  for (size_t d = 0; d < rank; ++d) {
    const bool batch = d + 2 < rank;
    own.push_back(batch && buffer.shape()[d] == 1 ? loops::Expr(0) : index[index.size() - rank + d]);
  }
  return buffer.At(own);
}

void LowerConvolution(loops::OpLowering& l, const Window& w, int64_t group,
                      const std::function<loops::Expr(const loops::Expr&)>& x_value, const ChannelValue& w_value,
                      const std::function<loops::Expr(loops::Expr, const loops::Indices&)>& epilogue) {
  const loops::Buffer x = l.input(0), weights = l.input(1);
  const int64_t group_inputs = weights.shape()[1], group_outputs = weights.shape()[0] / group;
  auto value = [&](const loops::Indices& i, const loops::Indices& r) {
    loops::Indices at = {i[0], r[0]}, weight_at = {i[1]};
    if (group_inputs != x.shape()[1]) {
      const loops::Expr which = group_outputs == 1 ? i[1] : loops::FloorDiv(i[1], group_outputs);
      at[1] = group_inputs == 1 ? which : which * group_inputs + r[0];
    }
    const loops::Expr guard = WindowPositions(w, i, r, 1, at);
    weight_at.insert(weight_at.end(), r.begin(), r.end());
    loops::Expr element = x_value(x.At(at));
    if (guard) element = loops::Select(guard, element, loops::Constant(ElementType::kInt32, 0));
    return element * w_value(weights.At(weight_at), i[1]);
  };
  Shape reduce = {group_inputs};
  reduce.insert(reduce.end(), w.kernel.begin(), w.kernel.end());
  l.Add(loops::Reduce(l.output(), reduce, loops::Combiner::kSum, value, epilogue));
}

void LowerMatrixProduct(loops::OpLowering& l, int64_t k, const std::function<loops::Expr(const loops::Expr&)>& a_value,
                        const ChannelValue& b_value,
                        const std::function<loops::Expr(loops::Expr, const loops::Indices&)>& epilogue) {
  auto value = [&](const loops::Indices& i, const loops::Indices& r) {
    loops::Indices a_at = i, b_at = i;
    a_at.back() = r[0];
    b_at[b_at.size() - 2] = r[0];
    return a_value(MatrixRead(l.input(0), a_at)) * b_value(MatrixRead(l.input(1), b_at), i.back());
  };
  l.Add(loops::Reduce(l.output(), {k}, loops::Combiner::kSum, value, epilogue));
}

}  // namespace heddle::ir
