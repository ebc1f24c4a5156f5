// Copies for operands that lie in memory in an order the node cannot follow: a node that the engine takes alone, whose operands
// then lie as their elements come, it also takes behind any transpositions, cuts and reshapes.

#include <fmt/format.h>

#include <algorithm>

#include "hls/lowering.h"
#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr size_t kLoops = 3;         // batches, rows and columns of one layer
constexpr int64_t kMostCopies = 64;  // layers for one operand

}  // namespace

void Lowering::PassThrough(Layer& layer) {
  layer.kind = LayerKind::kElementwise;
  layer.kind_name = "copy";
  layer.drain_fields.drain = Drain::kPass;
  layer.drain_fields.clamp_low = -128;
  layer.drain_fields.clamp_high = 127;
  layer.parts = {{0, layer.out_h, 0, layer.out_w, 0}};
}

View Lowering::ReadableStorage(const ir::Node& node, ir::ValueId value) {
  const ir::Shape shape = ShapeOf(value);
  const std::string name = node.name + "." + graph_.value(value).name;
  if (node.op != "Concat") return NaturalStorage(name, shape, IsWindowed(node) && value == node.inputs[0] && shape.size() >= 3);
  // The joined dimension has a memory axis of its own.
  const auto rank = static_cast<int64_t>(shape.size());
  const auto axis = shape.begin() + (node.Int("axis") + rank) % rank;
  return NewStorage(name, {ir::ElementCount(ir::Shape(shape.begin(), axis)), *axis, 1, ir::ElementCount(ir::Shape(axis + 1, shape.end()))},
                    {kAxisN, kAxisH, kAxisC});
}

absl::Status Lowering::RearrangeOperands(const ir::Node& node) {
  for (ir::ValueId value : std::set<ir::ValueId>(node.inputs.begin(), node.inputs.end())) {
    if (!views_.contains(value)) continue;
    const View from = ViewOf(value), to = ReadableStorage(node, value);
    if (from.atoms == to.atoms && from.offset == Box{}) {
      network_.storages.pop_back();
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(CopyElements(node, from, to, network_.storages[to.storage].name));
    views_[value] = to;
    producers_.erase(value);
  }
  return absl::OkStatus();
}

// The digits that both arrangements have in common become loops: the innermost one channels where it is contiguous in both, the
// longest others batches, rows and columns, and one layer for each position of the rest. Where they have none in common, by way
// of one row of all elements.
absl::Status Lowering::CopyElements(const ir::Node& node, const View& from, const View& to, const std::string& name) {
  auto digits = CommonDigits(to.atoms, from.atoms);
  if (!digits) {
    int64_t elements = 1;
    for (const Atom& atom : to.atoms) elements *= atom.extent;
    const View row = NewStorage(name + ".row", {1, 1, 1, elements}, {kAxisC});
    HEDDLE_RETURN_IF_ERROR(CopyElements(node, from, row, name + ".row"));
    return CopyElements(node, row, to, name);
  }
  Layer layer;
  layer.bounded = false;
  layer.in = {from.storage, from.offset, {}, {}, {}, {}, {}};
  layer.out = {to.storage, to.offset, {}, {}, {}, {}, {}};
  const Atom channel_a{kAxisC, 1, digits->empty() ? 1 : digits->back().a.extent};
  if (!digits->empty() && digits->back().a == channel_a && digits->back().b == channel_a) {
    layer.out_c = layer.in_c = channel_a.extent;
    digits->pop_back();
  }
  std::stable_sort(digits->begin(), digits->end(), [](const CommonDigit& x, const CommonDigit& y) { return x.a.extent > y.a.extent; });
  int64_t copies = 1;
  for (size_t i = kLoops; i < digits->size(); ++i) copies *= (*digits)[i].a.extent;
  if (copies > kMostCopies) return Unsupported("E-ACC-010", node, "its input is scattered over memory in more than four dimensions");
  if (!digits->empty() && digits->front().a.extent > kLargestLoop) return Unsupported("E-ACC-011", node, "a dimension of its input is above 65535");
  // Rows before columns before batches: whatever is tiled is rows.
  static constexpr DimRef Operand::* kRefs[kLoops] = {&Operand::h, &Operand::w, &Operand::n};
  int64_t* const out_extents[kLoops] = {&layer.out_h, &layer.out_w, &layer.batch};
  for (size_t i = 0; i < std::min(kLoops, digits->size()); ++i) {
    const CommonDigit& digit = (*digits)[i];
    layer.out.*kRefs[i] = {digit.a.axis, digit.a.multiple};
    layer.in.*kRefs[i] = {digit.b.axis, digit.b.multiple};
    *out_extents[i] = digit.a.extent;
  }
  layer.in_h = layer.out_h, layer.in_w = layer.out_w;
  PassThrough(layer);
  for (int64_t copy = 0; copy < copies; ++copy) {
    Layer part = layer;
    part.name = copies == 1 ? name : fmt::format("{}.{}", name, copy);
    int64_t rest = copy;
    for (size_t i = kLoops; i < digits->size(); ++i) {
      const CommonDigit& digit = (*digits)[i];
      const int64_t index = rest % digit.a.extent;
      rest /= digit.a.extent;
      part.out.offset[digit.a.axis] += index * digit.a.multiple;
      part.in.offset[digit.b.axis] += index * digit.b.multiple;
    }
    HEDDLE_RETURN_IF_ERROR(FinishLayer(node, ir::kNoValue, std::move(part)));
  }
  return absl::OkStatus();
}

}  // namespace heddle::hls
