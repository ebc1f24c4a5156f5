// Layers that sum or compare over a window: convolution, fully connected, pooling. Zero points are folded into the bias:
// sum (x - zx) w = sum x w - zx sum w, with padding read as zx, so the engine multiplies raw bytes.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hls/lowering.h"
#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int64_t kAccumulatorLimit = int64_t{1} << 31;

// Runs of equal values: [first, last) and the value.
struct CountRun {
  int64_t first = 0, last = 0, value = 0;
};

// Positions [-before, extent + after) that the window's taps cover at each output position, as runs.
std::vector<CountRun> CountRuns(int64_t outputs, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t low, int64_t high) {
  std::vector<CountRun> runs;
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t position = o * stride + k * dilation - pad;
      count += position >= low && position < high;
    }
    if (runs.empty() || runs.back().value != count) runs.push_back({o, o, count});
    runs.back().last = o + 1;
  }
  return runs;
}

}  // namespace

Lowering::Geometry Lowering::GeometryOf(const ir::Shape& shape) {
  return {shape[0], shape[1], shape.size() == 4 ? shape[2] : 1, shape.back()};
}

absl::Status Lowering::SetWindow(const ir::Node& node, const ir::Shape& kernel, Layer& layer) {
  const ir::Shape in = ShapeOf(node.inputs[0]), out = ShapeOf(node.outputs[0]);
  const size_t spatial = in.size() - 2;
  if (spatial < 1 || spatial > 2) return Unsupported("E-ACC-004", node, fmt::format("{} spatial dimensions; expected 1 or 2", spatial));
  const Geometry x = GeometryOf(in), y = GeometryOf(out);
  const std::vector<int64_t> strides = node.Ints("strides", std::vector<int64_t>(spatial, 1));
  const std::vector<int64_t> dilations = node.Ints("dilations", std::vector<int64_t>(spatial, 1));
  const std::vector<int64_t> pads = node.Ints("pads", std::vector<int64_t>(2 * spatial, 0));
  layer.batch = x.n;
  layer.in_h = x.h, layer.in_w = x.w, layer.in_c = x.c;
  layer.out_h = y.h, layer.out_w = y.w, layer.out_c = y.c;
  layer.kernel_w = kernel.back(), layer.stride_w = strides.back(), layer.dilation_w = dilations.back();
  layer.pad_left = pads[spatial - 1];
  if (spatial == 2) {
    layer.kernel_h = kernel[0], layer.stride_h = strides[0], layer.dilation_h = dilations[0], layer.pad_top = pads[0];
  }
  for (const auto& [what, value] : std::initializer_list<std::pair<const char*, int64_t>>{
           {"kernel height", layer.kernel_h}, {"kernel width", layer.kernel_w}, {"vertical stride", layer.stride_h},
           {"horizontal stride", layer.stride_w}, {"vertical dilation", layer.dilation_h}, {"dilation", layer.dilation_w}}) {
    if (value > 255) return Unsupported("E-ACC-011", node, fmt::format("{} is {}; expected at most 255", what, value));
  }
  if (std::max({layer.in_h, layer.in_w, layer.out_h, layer.out_w}) > 16384 || layer.pad_top > 16384) {
    return Unsupported("E-ACC-011", node, "height or width is above 16384");
  }
  layer.parts = {{0, layer.out_h, 0, layer.out_w, 0}};
  return absl::OkStatus();
}

absl::Status Lowering::SetWindowInput(const ir::Node& node, const View& view, const ir::Shape& shape, Layer& layer) {
  const Geometry x = GeometryOf(shape);
  const auto dims = GroupAtoms(view.atoms, {x.n, x.c, x.h, x.w});
  std::array<DimRef, 4> refs;
  for (size_t d = 0; d < 4; ++d) {
    const auto ref = dims ? DimRefOf((*dims)[d]) : std::nullopt;
    if (!ref) return Unsupported("E-ACC-010", node, "its input's dimensions cross those of the layout in memory");
    refs[d] = *ref;
  }
  if (x.c > 1 && refs[1] != DimRef{kAxisC, 1}) {
    return Unsupported("E-ACC-010", node, "its input's channels are not contiguous in memory");
  }
  const auto scaled = [](DimRef ref, int64_t factor) { return DimRef{ref.axis, ref.multiple * factor}; };
  layer.in.storage = view.storage;
  layer.in.offset = view.offset;
  layer.in.n = refs[0];
  layer.in.h = scaled(refs[2], layer.stride_h);
  layer.in.w = scaled(refs[3], layer.stride_w);
  layer.in.kh = scaled(refs[2], layer.dilation_h);
  layer.in.kw = scaled(refs[3], layer.dilation_w);
  return absl::OkStatus();
}

namespace {

// Vectors of one channel a column need pixels and rows that are those of memory, at multiples of the lanes.
bool ReadableByWindow(const Network& network, const Layer& layer, const AcceleratorParams& params) {
  Box origin;
  network.RootOf(layer.in.storage, origin);
  const bool axes = (layer.in.w.axis == kAxisW || layer.in.w.axis == -1) && (layer.in.h.axis == kAxisH || layer.in.h.axis == -1) &&
                    (layer.in.n.axis == kAxisN || layer.in.n.axis == -1);
  return axes && (origin[kAxisC] + layer.in.offset[kAxisC]) % params.output_lanes == 0;
}

}  // namespace

void Lowering::WishForWindow(const Layer& layer) {
  for (int storage : {layer.in.storage, network_.RootOf(layer.in.storage)}) {
    network_.storages[storage].align_pixels = true;
    if (layer.kernel_h > 1) network_.storages[storage].odd_rows = true;
  }
}

void Lowering::WriteChannelsFirst(ir::ValueId value, Layer& layer) {
  const View view = NewStorage(graph_.value(value).name, {layer.batch, layer.out_h, layer.out_w, layer.out_c},
                               {kAxisN, kAxisC, kAxisH, kAxisW});
  layer.out.storage = view.storage;
  layer.out.n = {kAxisN, 1}, layer.out.h = {kAxisH, 1}, layer.out.w = {kAxisW, 1};
  views_[value] = view;
}

absl::Status Lowering::SetRequantiser(const ir::Node& node, int64_t channels, Layer& layer) const {
  ComputeFields& f = layer.drain_fields;
  const bool doubling = node.String("rounding", "half_even") == "doubling_high_mul";
  f.drain = Drain::kRequantise;
  f.rounding = doubling ? RoundingField::kDoublingHighMul : RoundingField::kHalfEven;
  f.out_zero = static_cast<int32_t>(node.Int("y_zero_point"));
  f.clamp_low = static_cast<int32_t>(node.Int("clamp_low", -128));
  f.clamp_high = static_cast<int32_t>(node.Int("clamp_high", 127));
  std::vector<int64_t> multiplier, shift;
  const auto read = [&](const char* key) {
    return std::holds_alternative<int64_t>(node.attributes.at(key)) ? std::vector<int64_t>{node.Int(key)} : node.Ints(key);
  };
  if (!node.Has("multiplier") || !node.Has("shift")) return Unsupported("E-ACC-007", node, "multiplier or shift is missing");
  multiplier = read("multiplier"), shift = read("shift");
  layer.parameters = {std::vector<ChannelParameters>(static_cast<size_t>(channels))};
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    ChannelParameters& p = layer.parameters[0][c];
    p.multiplier = static_cast<int32_t>(multiplier[multiplier.size() == 1 ? 0 : c]);
    p.shift = static_cast<int32_t>(shift[shift.size() == 1 ? 0 : c]);
    if (doubling && p.multiplier == 0) p.shift = std::max(p.shift, 31);  // nothing comes out whatever the shift
    if (doubling && p.shift < 31) {
      return Unsupported("E-ACC-007", node, fmt::format("shift of channel {} is {}; expected 31 to 62 with doubling_high_mul", c, p.shift));
    }
  }
  return absl::OkStatus();
}

absl::Status Lowering::FoldZeroPoints(const ir::Node& node, const std::vector<int64_t>& zero_points, const ir::Tensor* bias,
                                      int64_t in_zero, Layer& layer) const {
  const int64_t products = layer.kernel_h * layer.kernel_w * (layer.in_c / layer.groups);
  const int64_t reach = std::max(std::abs(-128 - in_zero), std::abs(127 - in_zero));
  for (int64_t o = 0; o < layer.out_c; ++o) {
    const int64_t zero = zero_points[zero_points.size() == 1 ? 0 : static_cast<size_t>(o)];
    int64_t sum = 0, magnitude = 0;
    for (int64_t i = 0; i < products; ++i) {
      int8_t& weight = layer.weights[static_cast<size_t>(o * products + i)];
      const int64_t effective = weight - zero;
      if (effective < -128 || effective > 127) {
        return Unsupported("E-ACC-006", node, fmt::format("a weight of channel {} minus its zero point is {}; expected -128 to 127",
                                                          o, effective));
      }
      weight = static_cast<int8_t>(effective);
      sum += effective;
      magnitude += std::abs(effective);
    }
    const int64_t start = bias ? bias->at_int(o) : 0;
    if (magnitude * reach + std::abs(start) >= kAccumulatorLimit) {
      return Unsupported("E-ACC-008", node, fmt::format("the sum of channel {} can reach {}; expected less than 2^31", o,
                                                        magnitude * reach + std::abs(start)));
    }
    layer.parameters[0][static_cast<size_t>(o)].bias = static_cast<int32_t>(static_cast<uint32_t>(start - in_zero * sum));
  }
  return absl::OkStatus();
}

absl::Status Lowering::LowerConv(const ir::Node& node) {
  const ir::Tensor* w = graph_.ConstantOrNull(node.inputs[1]);
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue;
  const ir::Tensor* bias = has_bias ? graph_.ConstantOrNull(node.inputs[2]) : nullptr;
  if (!w || (has_bias && !bias)) return Unsupported("E-ACC-005", node, "weights or bias are not constant");
  const ir::Shape shape = ShapeOf(node.inputs[0]);
  Layer layer;
  layer.kind_name = "conv";
  HEDDLE_RETURN_IF_ERROR(SetWindow(node, ir::Shape(w->shape().begin() + 2, w->shape().end()), layer));
  HEDDLE_RETURN_IF_ERROR(SetWindowInput(node, ViewOf(node.inputs[0]), shape, layer));
  layer.groups = node.Int("group", 1);
  layer.pad_value = static_cast<int32_t>(node.Int("x_zero_point"));
  layer.macs = ir::ElementCount(w->shape()) * layer.out_h * layer.out_w * layer.batch;
  // [M][C/group][kh][kw] to [M][kh][kw][C/group].
  const int64_t taps = layer.kernel_h * layer.kernel_w, channels = layer.in_c / layer.groups;
  const auto source = w->as<int8_t>();
  layer.weights.resize(source.size());
  for (int64_t o = 0; o < layer.out_c; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        layer.weights[static_cast<size_t>((o * taps + t) * channels + c)] = source[static_cast<size_t>((o * channels + c) * taps + t)];
      }
    }
  }
  HEDDLE_RETURN_IF_ERROR(SetRequantiser(node, layer.out_c, layer));
  HEDDLE_RETURN_IF_ERROR(FoldZeroPoints(node, node.Ints("w_zero_point", {0}), bias, layer.pad_value, layer));
  const bool channelwise = layer.groups > 1 && layer.groups == layer.in_c && layer.out_c == layer.in_c;
  if (channelwise) layer.kind_name = "depthwise";
  if (channelwise && params_.depthwise && ReadableByWindow(network_, layer, params_)) {
    layer.kind = LayerKind::kDepthwise;
    WishForWindow(layer);
  }
  WriteChannelsFirst(node.outputs[0], layer);
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

// A matrix product is a convolution whose kernel covers whatever memory dimensions the contracted one is made of, with the
// rows of `a` as output rows.
absl::Status Lowering::LowerMatMul(const ir::Node& node) {
  const ir::Tensor* w = graph_.ConstantOrNull(node.inputs[1]);
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue;
  const ir::Tensor* bias = has_bias ? graph_.ConstantOrNull(node.inputs[2]) : nullptr;
  if (has_bias && !bias) return Unsupported("E-ACC-005", node, "its bias is an activation; expected a constant");
  if (!w || w->elements() != ir::ElementCount(ir::Shape(w->shape().end() - std::min<size_t>(2, w->rank()), w->shape().end()))) {
    return LowerActivationMatMul(node);
  }
  const ir::Shape shape = ShapeOf(node.inputs[0]), w_shape = w->shape();
  const int64_t n = w_shape.back(), k = w_shape[w_shape.size() - 2], rows = ir::ElementCount(shape) / k;
  if (rows > kLargestLoop) return Unsupported("E-ACC-011", node, fmt::format("{} rows; expected at most 65535", rows));
  const View& view = ViewOf(node.inputs[0]);
  const auto dims = GroupAtoms(view.atoms, {rows, k});
  const std::vector<Atom> row_atoms = dims ? MergeAtoms((*dims)[0]) : std::vector<Atom>{};
  if (!dims || row_atoms.size() > 3) return Unsupported("E-ACC-010", node, "its rows are not evenly spaced in memory");
  Layer layer;
  layer.kind_name = "conv";
  layer.bounded = false;
  layer.out_c = n;
  layer.macs = rows * n * k;
  layer.pad_value = static_cast<int32_t>(node.Int("a_zero_point"));
  layer.in.storage = view.storage;
  layer.in.offset = view.offset;
  // Rows that are evenly spaced are output rows; where they are not, columns and batches join in.
  static constexpr int kAxes[3][3] = {{kAxisH, 0, 0}, {kAxisH, kAxisW, 0}, {kAxisN, kAxisH, kAxisW}};
  Box out_extents{1, 1, 1, n};
  std::vector<int> out_order;
  for (size_t i = 0; i < row_atoms.size(); ++i) {
    const int axis = kAxes[row_atoms.size() - 1][i];
    const DimRef ref{row_atoms[i].axis, row_atoms[i].multiple};
    (axis == kAxisN ? layer.in.n : axis == kAxisH ? layer.in.h : layer.in.w) = ref;
    out_extents[axis] = row_atoms[i].extent;
    out_order.push_back(axis);
  }
  out_order.push_back(kAxisC);
  layer.batch = out_extents[kAxisN], layer.out_h = out_extents[kAxisH], layer.out_w = out_extents[kAxisW];
  layer.parts = {{0, layer.out_h, 0, layer.out_w, 0}};
  // Digits of k: channels are contiguous, up to two others become kernel rows and columns.
  std::vector<std::pair<int64_t*, Atom>> digits;  // extent in the layer, atom
  bool rows_used = false;
  for (const Atom& atom : MergeAtoms((*dims)[1])) {
    int64_t* extent = &layer.in_c;
    if (atom.axis != kAxisC || atom.multiple != 1) {
      extent = rows_used ? &layer.kernel_w : &layer.kernel_h;
      (rows_used ? layer.in.kw : layer.in.kh) = {atom.axis, atom.multiple};
      if (layer.kernel_w > 1) return Unsupported("E-ACC-010", node, "its contracted dimension has more than three parts in memory");
      rows_used = true;
    }
    *extent = atom.extent;
    digits.emplace_back(extent, atom);
  }
  if (layer.kernel_h > 255 || layer.kernel_w > 255) return Unsupported("E-ACC-011", node, "its contracted dimension is scattered over more than 255 places");
  const auto source = w->as<int8_t>();
  layer.weights.resize(static_cast<size_t>(n * k));
  for (int64_t i = 0; i < k; ++i) {
    int64_t rest = i, at[3] = {0, 0, 0};  // kernel row, kernel column, channel
    for (size_t d = digits.size(); d-- > 0;) {
      const int64_t* extent = digits[d].first;
      at[extent == &layer.in_c ? 2 : extent == &layer.kernel_w ? 1 : 0] = rest % *extent;
      rest /= *extent;
    }
    const int64_t to = (at[0] * layer.kernel_w + at[1]) * layer.in_c + at[2];
    for (int64_t o = 0; o < n; ++o) layer.weights[static_cast<size_t>(o * k + to)] = source[static_cast<size_t>(i * n + o)];
  }
  HEDDLE_RETURN_IF_ERROR(SetRequantiser(node, n, layer));
  HEDDLE_RETURN_IF_ERROR(FoldZeroPoints(node, node.Ints("b_zero_point", {0}), bias, layer.pad_value, layer));
  const View out = NewStorage(graph_.value(node.outputs[0]).name, out_extents, out_order);
  layer.out.storage = out.storage;
  layer.out.n = {kAxisN, 1}, layer.out.h = {kAxisH, 1}, layer.out.w = {kAxisW, 1};
  views_[node.outputs[0]] = out;
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

absl::Status Lowering::AveragePoolParts(const ir::Node& node, Layer& layer) const {
  const std::vector<int64_t> counts = node.Ints("counts");
  const std::vector<int64_t> pads = node.Ints("pads", {0, 0, 0, 0});
  const bool include_pad = node.Int("count_include_pad") != 0;
  const int64_t pad_bottom = pads.size() == 4 ? pads[2] : 0, pad_right = pads.back();
  const auto runs = [&](int64_t outputs, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t extent, int64_t after) {
    return CountRuns(outputs, kernel, stride, dilation, pad, include_pad ? -pad : 0, extent + (include_pad ? after : 0));
  };
  layer.parts.clear();
  for (const CountRun& y : runs(layer.out_h, layer.kernel_h, layer.stride_h, layer.dilation_h, layer.pad_top, layer.in_h, pad_bottom)) {
    for (const CountRun& x : runs(layer.out_w, layer.kernel_w, layer.stride_w, layer.dilation_w, layer.pad_left, layer.in_w, pad_right)) {
      const auto which = std::find(counts.begin(), counts.end(), x.value * y.value) - counts.begin();
      if (counts.size() > 1 && which == static_cast<int64_t>(counts.size())) {
        return Unsupported("E-ACC-011", node, fmt::format("a window of {} elements is not in counts", x.value * y.value));
      }
      layer.parts.push_back({y.first, y.last, x.first, x.last, counts.size() > 1 ? static_cast<int>(which) : 0});
    }
  }
  return absl::OkStatus();
}

absl::Status Lowering::LowerAveragePool(const ir::Node& node) {
  const ir::Shape shape = ShapeOf(node.inputs[0]);
  Layer layer;
  layer.kind_name = "average_pool";
  HEDDLE_RETURN_IF_ERROR(SetWindow(node, node.Ints("kernel_shape"), layer));
  HEDDLE_RETURN_IF_ERROR(AveragePoolParts(node, layer));
  layer.groups = layer.in_c;
  layer.pad_value = static_cast<int32_t>(node.Int("x_zero_point"));
  const int64_t taps = layer.kernel_h * layer.kernel_w;
  layer.weights.assign(static_cast<size_t>(layer.in_c * taps), 1);
  // One entry for each of counts stands for all channels.
  HEDDLE_RETURN_IF_ERROR(SetRequantiser(node, static_cast<int64_t>(node.Ints("counts").size()), layer));
  std::vector<std::vector<ChannelParameters>> sets;
  for (ChannelParameters p : layer.parameters[0]) {
    p.bias = static_cast<int32_t>(-layer.pad_value * taps);
    sets.push_back({p});
  }
  layer.parameters = std::move(sets);
  layer.uniform_parameters = true;
  HEDDLE_RETURN_IF_ERROR(SetWindowInput(node, ViewOf(node.inputs[0]), shape, layer));
  if (params_.depthwise && layer.in_c > 1 && ReadableByWindow(network_, layer, params_)) {
    layer.kind = LayerKind::kAveragePool;
    WishForWindow(layer);
  }
  WriteChannelsFirst(node.outputs[0], layer);
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

absl::StatusOr<View> Lowering::AlignedForWindow(const ir::Node& node, const View& view, const ir::Shape& shape) {
  Layer probe;
  HEDDLE_RETURN_IF_ERROR(SetWindowInput(node, view, shape, probe));
  if (ReadableByWindow(network_, probe, params_)) return view;
  HEDDLE_ASSIGN_OR_RETURN(Layer copy, MakeElementwise(node, view, shape, ir::kNoValue));
  View aligned{copy.out.storage, {}, {}};
  Box extents;
  if (!DenseCopyOf(view, extents, aligned.atoms)) return Unsupported("E-ACC-010", node, "its input is cut unevenly from memory");
  Layer again;
  HEDDLE_RETURN_IF_ERROR(SetWindowInput(node, aligned, shape, again));
  if (!ReadableByWindow(network_, again, params_)) {
    return Unsupported("E-ACC-010", node, "its input's rows and columns are not those of memory");
  }
  copy.name = node.name + ".align";
  HEDDLE_RETURN_IF_ERROR(FinishLayer(node, ir::kNoValue, std::move(copy)));
  return aligned;
}

absl::Status Lowering::LowerMaxPool(const ir::Node& node) {
  if (!params_.pooling) return Unsupported("E-ACC-009", node, "this accelerator has no pooling unit");
  const ir::Shape shape = ShapeOf(node.inputs[0]);
  Layer layer;
  layer.kind = LayerKind::kMaxPool;
  layer.kind_name = "max_pool";
  HEDDLE_RETURN_IF_ERROR(SetWindow(node, node.Ints("kernel_shape"), layer));
  HEDDLE_ASSIGN_OR_RETURN(const View view, AlignedForWindow(node, ViewOf(node.inputs[0]), shape));
  HEDDLE_RETURN_IF_ERROR(SetWindowInput(node, view, shape, layer));
  WishForWindow(layer);
  layer.groups = layer.in_c;
  layer.pad_value = -128;
  layer.drain_fields.drain = Drain::kPass;
  layer.drain_fields.clamp_low = -128;
  layer.drain_fields.clamp_high = 127;
  WriteChannelsFirst(node.outputs[0], layer);
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

}  // namespace heddle::hls
