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

loops::Buffer ZeroPointTable(loops::OpLowering& lowering, const std::vector<int64_t>& zeros) {
  const std::vector<int32_t> narrow(zeros.begin(), zeros.end());
  return lowering.Table("zero_points", Tensor::Of<int32_t>({static_cast<int64_t>(zeros.size())}, narrow));
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

}  // namespace heddle::ir
