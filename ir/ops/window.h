// The geometry of sliding windows: Conv, ConvTranspose and the pooling ops share it.
#ifndef HEDDLE_IR_OPS_WINDOW_H_
#define HEDDLE_IR_OPS_WINDOW_H_

#include <utility>
#include <vector>

#include "ir/ops/common.h"

namespace heddle::ir {

// One entry for each spatial dimension, outermost first. Element o of the output covers the input positions
// o·stride + k·dilation - pad_begin for k in [0, kernel).
struct Window {
  Shape input, kernel, output;
  std::vector<int64_t> strides, dilations, pads_begin, pads_end;
  int rank() const { return static_cast<int>(kernel.size()); }
  bool has_padding() const;  // some window reaches outside the input
  int64_t kernel_elements() const { return ElementCount(kernel); }
};

// Attributes strides, dilations, pads, kernel_shape and auto_pad (by default only NOTSET: importers resolve the others) of a node
// with `rank` spatial dimensions: counts and ranges.
absl::Status VerifyWindowAttributes(const NodeContext& c, int rank, std::initializer_list<std::string_view> auto_pads = {"NOTSET"});
// The window of a node whose attributes passed; `input` and `kernel` are spatial extents. With ceil_mode the output is rounded up, but
// no window starts beyond the input and its left padding. E-OP-003 where the window does not fit.
absl::StatusOr<Window> WindowOf(const NodeContext& c, Shape input, Shape kernel, bool ceil_mode = false);

// The same window with ones put in front, so that kernels are written for three spatial dimensions. rank() <= 3.
Window ToThreeDimensions(Window window);
// [low, high): the output positions for which o·stride + offset lies within [0, extent), of `count` positions.
std::pair<int64_t, int64_t> ValidRange(int64_t offset, int64_t stride, int64_t extent, int64_t count);

// The attributes above, for VerifySignature.
#define HEDDLE_WINDOW_ATTRIBUTES                                                                              \
  {"auto_pad", AttributeKind::kString}, {"kernel_shape", AttributeKind::kInts}, {"strides", AttributeKind::kInts}, \
      {"pads", AttributeKind::kInts}, {"dilations", AttributeKind::kInts}

// Input index of window position k at output index o along dimension d.
loops::Expr WindowIndex(const Window& window, int d, const loops::Expr& o, const loops::Expr& k);
// Whether the window position lies within the input along all dimensions: empty (false as a handle) where it always does.
loops::Expr WindowGuard(const Window& window, const loops::Indices& positions);
// value * factor and value + offset without the trivial operation.
loops::Expr Times(const loops::Expr& value, int64_t factor);
loops::Expr Plus(const loops::Expr& value, int64_t offset);

// Random geometry for samplers: strides, pads and dilations for the kernel, with an input large enough for one window.
Window RandomWindow(CaseBuilder& b, int rank, bool with_dilations, bool pads_below_kernel);
Attributes WindowAttributes(const Window& window);

// Output positions of a window that do not lie inside the input contribute nothing; the count of those that do, per output
// index along one dimension, clipped to the input or (padded) to the input and its padding.
int64_t CoveredPositions(const Window& window, int d, int64_t o, bool padded);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_WINDOW_H_
