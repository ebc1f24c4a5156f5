// The state while a region becomes a Network; shared by the files lower*.cc only.
#ifndef HEDDLE_HLS_LOWERING_H_
#define HEDDLE_HLS_LOWERING_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hls/layer.h"

namespace heddle::hls {

class Lowering {
 public:
  // The operands of the nodes in `rearranged` are copied into the order in which the node would find them as inputs of a region.
  Lowering(const ir::Graph& graph, const AcceleratorParams& params, const std::set<ir::NodeId>& rearranged)
      : graph_(graph), params_(params), rearranged_(rearranged) {}
  absl::StatusOr<Network> Run();
  // The node that Run lowered last.
  ir::NodeId last_node() const { return last_node_; }

 private:
  // lower.cc: order, boundaries, movement.
  absl::Status LowerNode(const ir::Node& node);
  absl::Status CheckTypes(const ir::Node& node) const;
  void AddInput(ir::ValueId value);
  // Reads pixels: rank 4 counts as (batch, channels, height, width).
  static bool IsWindowed(const ir::Node& node);
  bool MadeChannelsFirst(ir::ValueId value, int depth) const;
  bool PrefersChannelsFirst(ir::ValueId value, int depth) const;
  // Storage for a value from outside, as a windowed reader wants it (channels last) or as its elements come.
  View NaturalStorage(const std::string& name, const ir::Shape& shape, bool channels_first);
  absl::Status LowerReshape(const ir::Node& node);
  absl::Status LowerTranspose(const ir::Node& node);
  absl::Status LowerSlice(const ir::Node& node);
  absl::Status LowerSplit(const ir::Node& node);
  // A part of `view` along logical dimension `dim`: positions start, start + step, … (count of them).
  absl::StatusOr<View> SliceView(const ir::Node& node, const View& view, const ir::Shape& shape, int dim, int64_t start,
                                 int64_t count, int64_t step) const;
  absl::Status LowerConcat(const ir::Node& node);
  absl::Status PlaceInConcat(const ir::Node& node, ir::ValueId input, const View& whole, int axis, int64_t position);

  // lower_rearrange.cc: copies for operands whose arrangement a node cannot follow.
  absl::Status RearrangeOperands(const ir::Node& node);
  // An arrangement of an operand that the node certainly follows.
  View ReadableStorage(const ir::Node& node, ir::ValueId value);
  absl::Status CopyElements(const ir::Node& node, const View& from, const View& to, const std::string& name);

  // lower_conv.cc: sums over windows.
  absl::Status LowerConv(const ir::Node& node);
  absl::Status LowerMatMul(const ir::Node& node);
  absl::Status LowerAveragePool(const ir::Node& node);
  absl::Status LowerMaxPool(const ir::Node& node);
  struct Geometry {  // rank 3 counts as height 1
    int64_t n = 1, c = 1, h = 1, w = 1;
  };
  static Geometry GeometryOf(const ir::Shape& shape);
  absl::Status SetWindow(const ir::Node& node, const ir::Shape& kernel, Layer& layer);
  absl::Status SetWindowInput(const ir::Node& node, const View& view, const ir::Shape& shape, Layer& layer);
  // The view, or a copy of it whose pixels the window can read.
  absl::StatusOr<View> AlignedForWindow(const ir::Node& node, const View& view, const ir::Shape& shape);
  void WishForWindow(const Layer& layer);
  absl::Status SetRequantiser(const ir::Node& node, int64_t channels, Layer& layer) const;
  absl::Status FoldZeroPoints(const ir::Node& node, const std::vector<int64_t>& zero_points, const ir::Tensor* bias,
                              int64_t in_zero, Layer& layer) const;
  absl::Status AveragePoolParts(const ir::Node& node, Layer& layer) const;
  void WriteChannelsFirst(ir::ValueId value, Layer& layer);

  // lower_matmul.cc: products of two activations.
  struct MatrixView {
    int storage = -1;
    Box offset{};
    int64_t batch = 1, rows = 1, columns = 1;
    DimRef n, row, column;
  };
  static std::optional<MatrixView> MatrixOf(const View& view, int64_t batch, int64_t rows, int64_t columns);
  absl::StatusOr<MatrixView> WithContiguousRows(const ir::Node& node, const MatrixView& m, const std::string& name);
  absl::StatusOr<int> MakeTiles(const ir::Node& node, const MatrixView& b, const std::vector<std::vector<int64_t>>& added, int again);
  static int64_t RoundUpTo(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
  absl::Status LowerActivationMatMul(const ir::Node& node);

  // lower_elementwise.cc: one element at a time, and what can be fused into the drain of the layer before.
  absl::Status LowerAdd(const ir::Node& node);
  absl::Status LowerMul(const ir::Node& node);
  absl::Status LowerLut(const ir::Node& node);
  absl::Status LowerPad(const ir::Node& node);
  // An element-wise layer that reads `input` and writes a new value in the same arrangement.
  absl::StatusOr<Layer> MakeElementwise(const ir::Node& node, const View& view, const ir::Shape& shape, ir::ValueId output);
  absl::Status SetOperandB(const ir::Node& node, ir::ValueId value, const View& reference, const ir::Shape& shape, Layer& layer);
  int MakeConstant(const ir::Tensor& tensor, const std::string& name, const View& reference, const ir::Shape& shape);
  absl::StatusOr<bool> FuseAdd(const ir::Node& node);
  // The layer whose drain may still take an operation on `value`, which nobody else reads; -1 where there is none.
  int FusableLayer(ir::ValueId value) const;
  static void SetAddition(const ir::Node& node, bool swapped, ComputeFields& fields);

  // Everything a layer needs once its fields are complete.
  absl::Status FinishLayer(const ir::Node& node, ir::ValueId output, Layer layer);
  // Loops are 16 bits wide (hls/isa.h).
  static constexpr int64_t kLargestLoop = 65535;
  // A layer whose loops are set copies elements as they are.
  static void PassThrough(Layer& layer);
  View NewStorage(const std::string& name, const Box& extents, const std::vector<int>& order);
  const View& ViewOf(ir::ValueId value) const { return views_.at(value); }
  ir::Shape ShapeOf(ir::ValueId value) const { return graph_.type(value).static_shape(); }
  absl::Status Unsupported(std::string_view code, const ir::Node& node, const std::string& text) const;

  const ir::Graph& graph_;
  const AcceleratorParams& params_;
  const std::set<ir::NodeId>& rearranged_;
  ir::NodeId last_node_ = ir::kNoNode;
  Network network_;
  std::map<ir::ValueId, View> views_;
  std::map<ir::ValueId, int> producers_;  // layer that writes the value, where it is a layer's whole output
};

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_LOWERING_H_
