// Sliding windows: attribute checks, output extents (ONNX's formulas) and loop indices.

#include "ir/ops/window.h"

#include <algorithm>

namespace heddle::ir {

bool Window::has_padding() const {
  for (int d = 0; d < rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t last = (output[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] - pads_begin[i];
    if (pads_begin[i] > 0 || last >= input[i]) return true;
  }
  return false;
}

absl::Status VerifyWindowAttributes(const NodeContext& c, int rank, std::initializer_list<std::string_view> auto_pads) {
  if (rank < 1 || rank > 3) {
    return NodeError("E-OP-003", c.node(), fmt::format("{} spatial dimensions; 1 to 3 are supported", rank));
  }
  constexpr int64_t kLargest = int64_t{1} << 24;  // of strides, pads, kernels: products of two stay far from overflow
  HEDDLE_RETURN_IF_ERROR(ExpectString(c, "auto_pad", auto_pads));
  HEDDLE_RETURN_IF_ERROR(ExpectInts(c, "kernel_shape", rank, 1, kLargest));
  HEDDLE_RETURN_IF_ERROR(ExpectInts(c, "strides", rank, 1, kLargest));
  HEDDLE_RETURN_IF_ERROR(ExpectInts(c, "dilations", rank, 1, kLargest));
  return ExpectInts(c, "pads", 2 * rank, 0, kLargest);
}

absl::StatusOr<Window> WindowOf(const NodeContext& c, Shape input, Shape kernel, bool ceil_mode) {
  const size_t rank = kernel.size();
  Window w;
  w.strides = c.node().Ints("strides", std::vector<int64_t>(rank, 1));
  w.dilations = c.node().Ints("dilations", std::vector<int64_t>(rank, 1));
  const std::vector<int64_t> pads = c.node().Ints("pads", std::vector<int64_t>(2 * rank, 0));
  w.pads_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  w.pads_end.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  for (size_t d = 0; d < rank; ++d) {
    const int64_t padded = input[d] + w.pads_begin[d] + w.pads_end[d];
    const int64_t extent = (kernel[d] - 1) * w.dilations[d] + 1;
    if (kernel[d] < 1 || extent > padded) {
      return NodeError("E-OP-003", c.node(), fmt::format("a window of {} does not fit into {} padded positions (dimension {})",
                                                         extent, padded, d + 2));
    }
    int64_t count = (padded - extent + (ceil_mode ? w.strides[d] - 1 : 0)) / w.strides[d] + 1;
    if (ceil_mode && (count - 1) * w.strides[d] >= input[d] + w.pads_begin[d]) --count;
    w.output.push_back(count);
  }
  w.input = std::move(input);
  w.kernel = std::move(kernel);
  return w;
}

Window ToThreeDimensions(Window w) {
  const int64_t missing = 3 - w.rank();
  HEDDLE_CHECK(missing >= 0, "more than three spatial dimensions");
  for (auto* list : {&w.input, &w.kernel, &w.output, &w.strides, &w.dilations}) {
    list->insert(list->begin(), static_cast<size_t>(missing), 1);
  }
  for (auto* list : {&w.pads_begin, &w.pads_end}) list->insert(list->begin(), static_cast<size_t>(missing), 0);
  return w;
}

std::pair<int64_t, int64_t> ValidRange(int64_t offset, int64_t stride, int64_t extent, int64_t count) {
  const int64_t low = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t high = extent - 1 - offset < 0 ? 0 : (extent - 1 - offset) / stride + 1;
  return {std::min(low, count), std::min(std::max(high, std::min(low, count)), count)};
}

loops::Expr Times(const loops::Expr& value, int64_t factor) { return factor == 1 ? value : value * factor; }
loops::Expr Plus(const loops::Expr& value, int64_t offset) { return offset == 0 ? value : value + offset; }

loops::Expr WindowIndex(const Window& w, int d, const loops::Expr& o, const loops::Expr& k) {
  const auto i = static_cast<size_t>(d);
  loops::Expr index = Times(o, w.strides[i]);
  if (w.kernel[i] != 1) index = index + Times(k, w.dilations[i]);
  return Plus(index, -w.pads_begin[i]);
}

loops::Expr WindowGuard(const Window& w, const loops::Indices& positions) {
  loops::Expr guard;
  for (int d = 0; d < w.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t last = (w.output[i] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] - w.pads_begin[i];
    if (w.pads_begin[i] == 0 && last < w.input[i]) continue;
    const loops::Expr inside = loops::InRange(positions[i], 0, w.input[i]);
    guard = guard ? loops::And(guard, inside) : inside;
  }
  return guard;
}

Window RandomWindow(CaseBuilder& b, int rank, bool with_dilations, bool pads_below_kernel) {
  Window w;
  for (int d = 0; d < rank; ++d) {
    const int64_t kernel = b.Int(1, 3);
    const int64_t dilation = with_dilations ? b.Int(1, 2) : 1;
    const int64_t largest_pad = pads_below_kernel ? kernel - 1 : 2;
    w.kernel.push_back(kernel);
    w.dilations.push_back(dilation);
    w.strides.push_back(b.Int(1, 3));
    w.pads_begin.push_back(b.Int(0, largest_pad));
    w.pads_end.push_back(b.Int(0, largest_pad));
    w.input.push_back((kernel - 1) * dilation + b.Int(1, 6));
  }
  return w;
}

Attributes WindowAttributes(const Window& w) {
  std::vector<int64_t> pads = w.pads_begin;
  pads.insert(pads.end(), w.pads_end.begin(), w.pads_end.end());
  return {{"kernel_shape", w.kernel}, {"strides", w.strides}, {"dilations", w.dilations}, {"pads", pads}};
}

int64_t CoveredPositions(const Window& w, int d, int64_t o, bool padded) {
  const auto i = static_cast<size_t>(d);
  const int64_t start = o * w.strides[i] - w.pads_begin[i];
  const int64_t low = padded ? -w.pads_begin[i] : 0;
  const int64_t high = w.input[i] + (padded ? w.pads_end[i] : 0);
  const auto [first, last] = ValidRange(start - low, w.dilations[i], high - low, w.kernel[i]);
  return last - first;
}

}  // namespace heddle::ir
