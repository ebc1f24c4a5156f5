// Rows are walked by strides: [outer, extent, inner] with the softmax's axis in the middle.

#include "ir/quantise/softmax_input.h"

#include <algorithm>
#include <cmath>

#include "ir/passes/rewrite.h"

namespace heddle::ir::quantise {

Tensor VisibleToSoftmax(const Tensor& x, int64_t axis) {
  Tensor visible = x;
  const Shape& shape = x.shape();
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t extent = shape[static_cast<size_t>(axis)];
  const std::span<float> values = visible.as<float>();
  for (int64_t first = 0; first < x.elements(); first += extent * inner) {
    for (int64_t lane = 0; lane < inner; ++lane) {
      const auto at = [&](int64_t i) -> float& { return values[static_cast<size_t>(first + i * inner + lane)]; };
      float largest = -HUGE_VALF;
      for (int64_t i = 0; i < extent; ++i) largest = std::max(largest, at(i));
      if (!std::isfinite(largest)) continue;
      const float least = largest - static_cast<float>(kSoftmaxReach);
      for (int64_t i = 0; i < extent; ++i) {
        if (at(i) < least) at(i) = least;  // NaN stays, for whoever counts it
      }
    }
  }
  return visible;
}

std::map<ValueId, int64_t> SoftmaxInputs(const Graph& graph) {
  std::map<ValueId, int64_t> axes;
  for (NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != "Softmax" || !HasSingleUse(graph, node.inputs[0])) continue;
    const auto rank = static_cast<int64_t>(graph.type(node.inputs[0]).shape.size());
    const int64_t axis = IntOr(node, "axis", -1);
    if (rank > 0) axes[node.inputs[0]] = axis < 0 ? axis + rank : axis;
  }
  return axes;
}

}  // namespace heddle::ir::quantise
