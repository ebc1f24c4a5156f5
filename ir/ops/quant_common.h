// What the integer ops share: checked attributes, the requantisation at their end, and sliding-window geometry.
//
// Error codes of the integer ops: E-OP-201 inputs, E-OP-202 shapes, E-OP-203 an attribute is missing or has another type,
// E-OP-204 an attribute's value is out of range, E-OP-205 an accumulator could leave 32 bits.
#ifndef HEDDLE_IR_OPS_QUANT_COMMON_H_
#define HEDDLE_IR_OPS_QUANT_COMMON_H_

#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/ops/window.h"
#include "ir/requantise.h"

namespace heddle::ir {

// Ops of the IR that ONNX does not have.
bool IsOwnOp(const std::string& op);

// "half_even" or "doubling_high_mul", the values of the attribute `rounding`.
std::string_view RoundingName(Rounding rounding);

// E-OP-203 unless attribute `key` holds a T; an absent attribute passes where it is not required.
template <typename T>
absl::Status CheckAttribute(const Node& node, const std::string& key, bool required) {
  auto it = node.attributes.find(key);
  if (it == node.attributes.end()) {
    return required ? NodeError("E-OP-203", node, "attribute '" + key + "' is missing") : absl::OkStatus();
  }
  if (std::holds_alternative<T>(it->second)) return absl::OkStatus();
  return NodeError("E-OP-203", node, "attribute '" + key + "' has another type than the op needs");
}

// An int attribute (default 0) within [low, high].
absl::Status CheckIntRange(const Node& node, const std::string& key, int64_t low, int64_t high, bool required = false);

// Between `least` and `most` inputs, the first `least` present.
absl::Status CheckInputCount(const NodeContext& context, int least, int most);
absl::Status CheckInputType(const NodeContext& context, int input, ElementType type);

// The end of every integer op: scale(s), rounding, zero point, clamp. Attributes multiplier and shift (lists of one entry or
// `channels` entries; plain ints where `channels` is 0), rounding (string), y_zero_point, clamp_low, clamp_high (default -128, 127).
struct Requantiser {
  std::vector<FixedPointScale> scales;
  Rounding rounding = Rounding::kHalfEven;
  int32_t y_zero_point = 0;
  int32_t clamp_low = -128;
  int32_t clamp_high = 127;
  int8_t Apply(int64_t accumulator, int64_t channel) const {
    const FixedPointScale& scale = scales[scales.size() == 1 ? 0 : static_cast<size_t>(channel)];
    return static_cast<int8_t>(Requantise(accumulator, scale, rounding, y_zero_point, clamp_low, clamp_high));
  }
};
absl::Status VerifyRequantiser(const NodeContext& context, int64_t channels);
Requantiser RequantiserOf(const Node& node);  // of a verified node
absl::Status VerifyClamp(const Node& node);   // y_zero_point, clamp_low, clamp_high alone
void SetRequantiser(const Requantiser& requantiser, Attributes& attributes, bool as_list = true);

// Scales as attribute lists.
void SetScales(const std::vector<FixedPointScale>& scales, Attributes& attributes);
std::vector<FixedPointScale> ScalesOf(const Node& node);

// Lowest and highest value of an integer type of at most 32 bits (i32 for others).
std::pair<int64_t, int64_t> IntegerRange(ElementType type);
// ONNX QuantizeLinear of one value: saturate(rint(x / scale) + zero_point) to the range of `type`.
int64_t QuantiseValue(float x, float scale, int64_t zero_point, ElementType type);
// The parameters of a QuantizeLinear or DequantizeLinear node (inputs 1 and 2) where they are constants.
std::optional<Quantisation> ConstantQuantisation(const NodeContext& context);

// The window of a node with explicit pads (attributes strides, pads, dilations) over spatial extents: attributes checked, then
// as WindowOf (ir/ops/window.h).
absl::StatusOr<Window> CheckedWindowOf(const NodeContext& context, const Shape& input_spatial, const Shape& kernel);

// The distinct numbers of elements that the window's averages divide by, ascending: the taps that lie on the input or, with
// include_pad, on input or pads.
std::vector<int64_t> WindowCounts(const Window& window, bool include_pad);

// QSoftmax's exp_table for an input of this scale: i32 [256], 2^23 exp(-d scale) rounded.
Tensor SoftmaxExpTable(double scale);

// Calls `visit(index)` for every index below `extents`, row-major.
template <typename Visit>
void ForEachIndex(const Shape& extents, Visit visit) {
  for (int64_t extent : extents) {
    if (extent == 0) return;
  }
  Shape index(extents.size(), 0);
  while (true) {
    visit(static_cast<const Shape&>(index));
    int d = static_cast<int>(extents.size()) - 1;
    for (; d >= 0; --d) {
      if (++index[static_cast<size_t>(d)] < extents[static_cast<size_t>(d)]) break;
      index[static_cast<size_t>(d)] = 0;
    }
    if (d < 0) return;
  }
}

// NumPy broadcasting of two shapes, or nullopt.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);
// Row-major strides in elements of `shape` seen as `target` (0 along broadcast dimensions).
Shape BroadcastStrides(const Shape& shape, const Shape& target);

// ---- For samplers.
int64_t RandomInt(Random& random, int64_t low, int64_t high);  // uniform, both ends included
Tensor RandomTensor(Random& random, ElementType type, const Shape& shape, int64_t low, int64_t high);
// A scale so that accumulators up to `magnitude` spread over, or overrun, the 8-bit range.
FixedPointScale RandomScale(Random& random, int64_t magnitude);
Requantiser RandomRequantiser(Random& random, int64_t channels, int64_t magnitude);
// Finishes a sampled graph: infers the node's types and marks its output.
RandomCase FinishCase(Graph graph, NodeId node, std::vector<Tensor> inputs);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_QUANT_COMMON_H_
