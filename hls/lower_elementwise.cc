// Layers of one element: add, multiply, lookup, pad, copy; and their fusion into the drain of the layer that makes their
// operand, where they cost at most one read more.

#include <fmt/format.h>

#include <algorithm>

#include "hls/lowering.h"
#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

bool ChannelsMatch(const std::array<DimRef, 4>& refs, int64_t channels) {
  return channels == 1 || refs[kAxisC] == DimRef{kAxisC, 1};
}

}  // namespace

absl::Status Lowering::FinishLayer(const ir::Node& node, ir::ValueId output, Layer layer) {
  if (layer.name.empty()) layer.name = node.name;
  if (output != ir::kNoValue) {
    layer.nodes = {node.name};
    producers_[output] = static_cast<int>(network_.layers.size());
  }
  network_.layers.push_back(std::move(layer));
  return absl::OkStatus();
}

int Lowering::FusableLayer(ir::ValueId value) const {
  const auto producer = producers_.find(value);
  if (producer == producers_.end() || graph_.value(value).uses.size() != 1 || graph_.IsOutput(value)) return -1;
  return producer->second;
}

absl::StatusOr<Layer> Lowering::MakeElementwise(const ir::Node& node, const View& view, const ir::Shape& shape, ir::ValueId output) {
  Box extents;
  std::vector<Atom> atoms;
  if (!DenseCopyOf(view, extents, atoms)) return Unsupported("E-ACC-010", node, "its input is cut unevenly from memory");
  if (std::max({extents[kAxisN], extents[kAxisH], extents[kAxisW]}) > kLargestLoop) {
    return Unsupported("E-ACC-011", node, "a dimension is above 65535");
  }
  View out = NewStorage(output == ir::kNoValue ? node.name + ".copy" : graph_.value(output).name, extents, {});
  out.atoms = atoms;
  const auto refs = AlignViews(out, shape, view, shape);
  if (!refs || !ChannelsMatch(*refs, extents[kAxisC])) return Unsupported("E-ACC-010", node, "its input's elements are not contiguous in memory");
  Layer layer;
  layer.bounded = false;
  layer.batch = extents[kAxisN], layer.out_h = extents[kAxisH], layer.out_w = extents[kAxisW], layer.out_c = extents[kAxisC];
  layer.in_h = layer.out_h, layer.in_w = layer.out_w, layer.in_c = layer.out_c;
  PassThrough(layer);
  layer.in = {view.storage, view.offset, (*refs)[kAxisN], (*refs)[kAxisH], (*refs)[kAxisW], {}, {}};
  layer.out.storage = out.storage;
  layer.out.n = {kAxisN, 1}, layer.out.h = {kAxisH, 1}, layer.out.w = {kAxisW, 1};
  if (output != ir::kNoValue) views_[output] = out;
  return layer;
}

int Lowering::MakeConstant(const ir::Tensor& tensor, const std::string& name, const View& reference, const ir::Shape& shape) {
  Storage storage;
  storage.name = name;
  Box& extents = storage.extents;
  for (const Atom& atom : reference.atoms) extents[atom.axis] = std::max(extents[atom.axis], atom.multiple * atom.extent);
  ir::Shape padded(shape.size() - std::min(shape.size(), tensor.shape().size()), 1);
  padded.insert(padded.end(), tensor.shape().begin(), tensor.shape().end());
  storage.constant.resize(static_cast<size_t>(extents[0] * extents[1] * extents[2] * extents[3]));
  const auto dims = *GroupAtoms(reference.atoms, shape);
  const auto source = tensor.as<int8_t>();
  for (int64_t i = 0; i < ir::ElementCount(shape); ++i) {
    Box at{};
    int64_t rest = i, from = 0, from_stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      int64_t index = rest % shape[d];
      rest /= shape[d];
      if (padded[d] > 1) from += index * from_stride;
      from_stride *= padded[d];
      for (size_t a = dims[d].size(); a-- > 0;) {
        at[dims[d][a].axis] += index % dims[d][a].extent * dims[d][a].multiple;
        index /= dims[d][a].extent;
      }
    }
    const int64_t to = ((at[0] * extents[1] + at[1]) * extents[2] + at[2]) * extents[3] + at[3];
    storage.constant[static_cast<size_t>(to)] = source[static_cast<size_t>(from)];
  }
  // Where every pixel is the same, one is kept.
  const int64_t channels = extents[kAxisC];
  bool same = true;
  for (size_t i = static_cast<size_t>(channels); i < storage.constant.size() && same; ++i) {
    same = storage.constant[i] == storage.constant[i - static_cast<size_t>(channels)];
  }
  if (same) {
    extents = {1, 1, 1, channels};
    storage.constant.resize(static_cast<size_t>(channels));
  }
  network_.storages.push_back(std::move(storage));
  return static_cast<int>(network_.storages.size()) - 1;
}

absl::Status Lowering::SetOperandB(const ir::Node& node, ir::ValueId value, const View& reference, const ir::Shape& shape, Layer& layer) {
  if (!params_.elementwise) return Unsupported("E-ACC-009", node, "this accelerator has no elementwise unit");
  layer.drain_fields.use_b = 1;
  if (const ir::Tensor* constant = graph_.ConstantOrNull(value)) {
    layer.b.storage = MakeConstant(*constant, graph_.value(value).name, reference, shape);
    const Box& extents = network_.storages[layer.b.storage].extents;
    const auto step = [&](int axis) { return extents[axis] > 1 ? DimRef{axis, 1} : DimRef{}; };
    layer.b.n = step(kAxisN), layer.b.h = step(kAxisH), layer.b.w = step(kAxisW);
    return absl::OkStatus();
  }
  const View& view = ViewOf(value);
  const auto refs = AlignViews(reference, shape, view, ShapeOf(value));
  if (!refs || !ChannelsMatch(*refs, layer.out_c)) {
    return Unsupported("E-ACC-010", node, "its operands are arranged differently in memory or one is broadcast along channels");
  }
  layer.b = {view.storage, view.offset, (*refs)[kAxisN], (*refs)[kAxisH], (*refs)[kAxisW], {}, {}};
  return absl::OkStatus();
}

void Lowering::SetAddition(const ir::Node& node, bool swapped, ComputeFields& f) {
  const char* a = swapped ? "b" : "a";
  const char* b = swapped ? "a" : "b";
  f.add_b = 1;
  f.a_zero = static_cast<int32_t>(node.Int(std::string(a) + "_zero_point"));
  f.b_zero = static_cast<int32_t>(node.Int(std::string(b) + "_zero_point"));
  f.a_multiplier = static_cast<uint32_t>(node.Int(std::string(a) + "_multiplier"));
  f.b_multiplier = static_cast<uint32_t>(node.Int(std::string(b) + "_multiplier"));
  f.add_shift = static_cast<uint32_t>(node.Int("shift"));
  f.add_zero = static_cast<int32_t>(node.Int("y_zero_point"));
  f.add_low = static_cast<int32_t>(node.Int("clamp_low", -128));
  f.add_high = static_cast<int32_t>(node.Int("clamp_high", 127));
}

// Into the layer that makes one of the operands: the later one, so that the other operand exists when it runs; or the
// earlier one, moved behind the other's.
absl::StatusOr<bool> Lowering::FuseAdd(const ir::Node& node) {
  const ir::Shape shape = ShapeOf(node.outputs[0]);
  const int layers[2] = {FusableLayer(node.inputs[0]), FusableLayer(node.inputs[1])};
  std::vector<int> candidates;
  for (int i : {layers[0] > layers[1] ? 0 : 1, layers[0] > layers[1] ? 1 : 0}) {
    if (layers[i] < 0 || ShapeOf(node.inputs[i]) != shape) continue;
    const Layer& layer = network_.layers[layers[i]];
    if (!layer.drain_fields.use_b && layer.out.storage == ViewOf(node.inputs[i]).storage) candidates.push_back(i);
  }
  for (int i : candidates) {
    Layer layer = network_.layers[layers[i]];
    const View view = ViewOf(node.inputs[i]);
    if (network_.storages[view.storage].parent >= 0) continue;
    const auto storages = network_.storages.size();
    if (!SetOperandB(node, node.inputs[1 - i], view, shape, layer).ok()) {
      network_.storages.resize(storages);
      continue;
    }
    SetAddition(node, i == 1, layer.drain_fields);
    layer.name += "+" + node.name;
    layer.nodes.push_back(node.name);
    // The moved layer goes to the end; producers behind it move up.
    network_.layers.erase(network_.layers.begin() + layers[i]);
    network_.layers.push_back(std::move(layer));
    for (auto& [value, index] : producers_) {
      if (index > layers[i]) --index;
    }
    producers_[node.outputs[0]] = static_cast<int>(network_.layers.size()) - 1;
    producers_.erase(node.inputs[i]);
    views_[node.outputs[0]] = view;
    network_.storages[view.storage].name = graph_.value(node.outputs[0]).name;
    return true;
  }
  return false;
}

absl::Status Lowering::LowerAdd(const ir::Node& node) {
  if (!params_.elementwise) return Unsupported("E-ACC-009", node, "this accelerator has no elementwise unit");
  HEDDLE_ASSIGN_OR_RETURN(const bool fused, FuseAdd(node));
  if (fused) return absl::OkStatus();
  const ir::Shape shape = ShapeOf(node.outputs[0]);
  const bool swapped = graph_.IsConstant(node.inputs[0]) || ShapeOf(node.inputs[0]) != shape;
  const ir::ValueId a = node.inputs[swapped ? 1 : 0], b = node.inputs[swapped ? 0 : 1];
  if (graph_.IsConstant(a) || ShapeOf(a) != shape) return Unsupported("E-ACC-014", node, "no operand is an activation of the result's shape");
  HEDDLE_ASSIGN_OR_RETURN(Layer layer, MakeElementwise(node, ViewOf(a), shape, node.outputs[0]));
  layer.kind_name = "add";
  HEDDLE_RETURN_IF_ERROR(SetOperandB(node, b, ViewOf(node.outputs[0]), shape, layer));
  SetAddition(node, swapped, layer.drain_fields);
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

absl::Status Lowering::LowerMul(const ir::Node& node) {
  if (!params_.elementwise) return Unsupported("E-ACC-009", node, "this accelerator has no elementwise unit");
  const ir::Shape shape = ShapeOf(node.outputs[0]);
  const bool swapped = graph_.IsConstant(node.inputs[0]) || ShapeOf(node.inputs[0]) != shape;
  const ir::ValueId a = node.inputs[swapped ? 1 : 0], b = node.inputs[swapped ? 0 : 1];
  if (graph_.IsConstant(a) || ShapeOf(a) != shape) return Unsupported("E-ACC-014", node, "no operand is an activation of the result's shape");
  HEDDLE_ASSIGN_OR_RETURN(Layer layer, MakeElementwise(node, ViewOf(a), shape, node.outputs[0]));
  layer.kind_name = "multiply";
  HEDDLE_RETURN_IF_ERROR(SetRequantiser(node, 1, layer));
  layer.uniform_parameters = true;
  HEDDLE_RETURN_IF_ERROR(SetOperandB(node, b, ViewOf(node.outputs[0]), shape, layer));
  layer.drain_fields.drain = Drain::kMultiply;
  layer.drain_fields.a_zero = static_cast<int32_t>(node.Int(swapped ? "b_zero_point" : "a_zero_point"));
  layer.drain_fields.b_zero = static_cast<int32_t>(node.Int(swapped ? "a_zero_point" : "b_zero_point"));
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

absl::Status Lowering::LowerLut(const ir::Node& node) {
  if (!params_.lookup) return Unsupported("E-ACC-009", node, "this accelerator has no lookup unit");
  const auto table = node.TensorAttribute("table");
  const std::vector<int8_t> entries(table->as<int8_t>().begin(), table->as<int8_t>().end());
  const int producer = FusableLayer(node.inputs[0]);
  if (producer >= 0 && !network_.layers[producer].drain_fields.use_lookup && !network_.layers[producer].drain_fields.add_b) {
    Layer& layer = network_.layers[producer];
    layer.drain_fields.use_lookup = 1;
    layer.table = entries;
    layer.name += "+" + node.name;
    layer.nodes.push_back(node.name);
    views_[node.outputs[0]] = ViewOf(node.inputs[0]);
    producers_[node.outputs[0]] = producer;
    return absl::OkStatus();
  }
  const ir::Shape shape = ShapeOf(node.inputs[0]);
  HEDDLE_ASSIGN_OR_RETURN(Layer layer, MakeElementwise(node, ViewOf(node.inputs[0]), shape, node.outputs[0]));
  layer.kind_name = "lookup";
  layer.drain_fields.use_lookup = 1;
  layer.table = entries;
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

// A copy that reads outside its input: the address generator fills in the constant.
absl::Status Lowering::LowerPad(const ir::Node& node) {
  const ir::Tensor* pads = node.inputs.size() > 1 ? graph_.ConstantOrNull(node.inputs[1]) : nullptr;
  const bool has_value = node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue;
  const ir::Tensor* value = has_value ? graph_.ConstantOrNull(node.inputs[2]) : nullptr;
  const ir::Shape shape = ShapeOf(node.inputs[0]), out_shape = ShapeOf(node.outputs[0]);
  if (!pads || (has_value && !value) || (node.inputs.size() > 3 && node.inputs[3] != ir::kNoValue)) {
    return Unsupported("E-ACC-005", node, "its pads or its value are not constant, or it names axes");
  }
  if (node.String("mode", "constant") != "constant") return Unsupported("E-ACC-001", node, "the engine pads with a constant only");
  if (shape.size() != 4 || shape[0] != out_shape[0] || shape[1] != out_shape[1] || pads->at_int(0) != 0 || pads->at_int(1) != 0) {
    return Unsupported("E-ACC-010", node, "the engine pads height and width of a rank 4 tensor only");
  }
  Layer layer;
  layer.batch = shape[0], layer.in_c = layer.out_c = shape[1];
  layer.in_h = shape[2], layer.in_w = shape[3], layer.out_h = out_shape[2], layer.out_w = out_shape[3];
  layer.pad_top = pads->at_int(2), layer.pad_left = pads->at_int(3);
  if (std::max({layer.in_h, layer.in_w, layer.out_h, layer.out_w}) > 16384) return Unsupported("E-ACC-011", node, "height or width is above 16384");
  layer.pad_value = value ? static_cast<int32_t>(value->at_int(0)) : 0;
  PassThrough(layer);
  HEDDLE_RETURN_IF_ERROR(SetWindowInput(node, ViewOf(node.inputs[0]), shape, layer));
  WriteChannelsFirst(node.outputs[0], layer);
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

}  // namespace heddle::hls
