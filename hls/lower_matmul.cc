// Products of two activations. The second operand becomes weight tiles: it is copied into the order of the tiles, stored to DRAM
// and loaded into the weight memory, one matrix of the batch at a time.
//
// Zero points of both operands, exactly: sum (a - za)(b - zb) = sum ab - zb sum a - za sum b + K za zb. The last term is bias. The
// engine forms the others as further segments of the contraction: a against tiles of -zb, and a vector of -za (which is what
// padding reads as) against b once more; only where the zero point is not 0.

#include <fmt/format.h>

#include <algorithm>

#include "hls/lowering.h"
#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

// -zero as a sum of i8 values: none for 0, two for 128.
std::vector<int64_t> Parts(int64_t negated) {
  if (negated == 0) return {};
  if (negated <= 127) return {negated};
  return {negated / 2, negated - negated / 2};
}

bool Contiguous(const DimRef& ref, int64_t extent) { return extent == 1 || ref == DimRef{kAxisC, 1}; }

}  // namespace

std::optional<Lowering::MatrixView> Lowering::MatrixOf(const View& view, int64_t batch, int64_t rows, int64_t columns) {
  const auto dims = GroupAtoms(view.atoms, {batch, rows, columns});
  if (!dims) return std::nullopt;
  const auto n = DimRefOf((*dims)[0]), row = DimRefOf((*dims)[1]), column = DimRefOf((*dims)[2]);
  if (!n || !row || !column) return std::nullopt;
  return MatrixView{view.storage, view.offset, batch, rows, columns, *n, *row, *column};
}

// The same matrices with contiguous rows. One element at a time where they are not: a transposition.
absl::StatusOr<Lowering::MatrixView> Lowering::WithContiguousRows(const ir::Node& node, const MatrixView& m, const std::string& name) {
  if (Contiguous(m.column, m.columns)) return m;
  if (std::max(m.rows, m.columns) > kLargestLoop) return Unsupported("E-ACC-011", node, "a matrix has a dimension above 65535");
  Layer copy;
  copy.bounded = false;
  copy.batch = m.batch, copy.out_h = copy.in_h = m.rows, copy.out_w = copy.in_w = m.columns;
  PassThrough(copy);
  copy.in = {m.storage, m.offset, m.n, m.row, m.column, {}, {}};
  const View out = NewStorage(node.name + "." + name, {m.batch, m.rows, 1, m.columns}, {});
  copy.out.storage = out.storage;
  copy.out.n = {kAxisN, 1}, copy.out.h = {kAxisH, 1}, copy.out.w = {kAxisC, 1};
  copy.name = node.name + "." + name;
  HEDDLE_RETURN_IF_ERROR(FinishLayer(node, ir::kNoValue, std::move(copy)));
  return MatrixView{out.storage, {}, m.batch, m.rows, m.columns, {kAxisN, 1}, {kAxisH, 1}, {kAxisC, 1}};
}

// The matrices b as tiles: [batch][block of C columns][segment][K rounded up to R][C]. Segments: b itself, tiles of `added`, b
// again `again` times. Rows beyond K are zero; columns beyond the last are never looked at.
absl::StatusOr<int> Lowering::MakeTiles(const ir::Node& node, const MatrixView& b, const std::vector<std::vector<int64_t>>& added, int again) {
  const int64_t lanes = params_.output_lanes, k = RoundUpTo(b.rows, params_.contraction_lanes);
  const int64_t blocks = (b.columns + lanes - 1) / lanes;
  const int64_t segments = 1 + static_cast<int64_t>(added.size()) + again;
  if (segments * k > kLargestLoop || blocks > kLargestLoop) return Unsupported("E-ACC-011", node, "a matrix has a dimension above 65535");
  const View tiles = NewStorage(node.name + ".tiles", {b.batch, blocks, segments * k, lanes}, {});
  network_.storages[tiles.storage].as_weights = true;
  const auto add = [&](Layer layer, int64_t segment) {
    layer.batch = b.batch, layer.out_h = layer.in_h = blocks, layer.out_w = k, layer.out_c = layer.in_c = lanes;
    PassThrough(layer);
    layer.out.storage = tiles.storage;
    layer.out.offset[kAxisW] = segment * k;
    layer.out.n = {kAxisN, 1}, layer.out.h = {kAxisH, 1}, layer.out.w = {kAxisW, 1};
    layer.name = fmt::format("{}.tiles{}", node.name, segment);
    return FinishLayer(node, ir::kNoValue, std::move(layer));
  };
  for (int64_t segment = 0; segment < segments; ++segment) {
    Layer layer;
    if (segment == 0 || segment > static_cast<int64_t>(added.size())) {
      layer.in = {b.storage, b.offset, b.n, blocks > 1 ? DimRef{kAxisC, lanes} : DimRef{}, b.row, {}, {}};
      layer.in_w = b.rows;
    } else {
      Storage constant;
      constant.name = fmt::format("{}.zero{}", node.name, segment);
      constant.extents = {1, blocks, k, lanes};
      constant.constant.assign(static_cast<size_t>(blocks * k * lanes), 0);
      const std::vector<int64_t>& values = added[static_cast<size_t>(segment) - 1];
      for (int64_t i = 0; i < blocks * k * lanes; ++i) {
        const int64_t column = i / (k * lanes) * lanes + i % lanes, row = i / lanes % k;
        if (row < b.rows && column < b.columns) {
          constant.constant[static_cast<size_t>(i)] = static_cast<int8_t>(values[values.size() == 1 ? 0 : static_cast<size_t>(column)]);
        }
      }
      network_.storages.push_back(std::move(constant));
      layer.bounded = false;
      layer.in.storage = static_cast<int>(network_.storages.size()) - 1;
      layer.in.h = {kAxisH, 1}, layer.in.w = {kAxisW, 1};
    }
    HEDDLE_RETURN_IF_ERROR(add(std::move(layer), segment));
  }
  return tiles.storage;
}

absl::Status Lowering::LowerActivationMatMul(const ir::Node& node) {
  const ir::Tensor* bias = node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue ? graph_.ConstantOrNull(node.inputs[2]) : nullptr;
  const ir::Shape a_shape = ShapeOf(node.inputs[0]), b_shape = ShapeOf(node.inputs[1]), shape = ShapeOf(node.outputs[0]);
  if (a_shape.size() < 2 || b_shape.size() < 2) return Unsupported("E-ACC-015", node, "an operand is a vector; expected matrices");
  const int64_t k = a_shape.back(), n = b_shape.back();
  const int64_t b_batch = ir::ElementCount(b_shape) / (k * n), all_rows = ir::ElementCount(shape) / n;
  if (ir::ElementCount(a_shape) / k != all_rows) return Unsupported("E-ACC-015", node, "its first operand is broadcast");
  const int64_t rows = b_batch > 1 ? shape[shape.size() - 2] : all_rows;
  if (b_batch > 1 && b_batch * rows != all_rows) return Unsupported("E-ACC-015", node, "its second operand is broadcast along some dimensions");
  if (rows > kLargestLoop) return Unsupported("E-ACC-011", node, fmt::format("{} rows; expected at most 65535", rows));
  if (params_.weight_tile_bytes() % params_.beat_bytes() != 0) {
    return Unsupported("E-ACC-015", node, fmt::format("its second operand is an activation, and a weight tile of {} bytes is no whole number of "
                                                      "beats of {}", params_.weight_tile_bytes(), params_.beat_bytes()));
  }
  View b_view;
  if (const ir::Tensor* constant = graph_.ConstantOrNull(node.inputs[1])) {
    Storage storage;
    storage.name = graph_.value(node.inputs[1]).name;
    storage.extents = {b_batch, k, 1, n};
    storage.constant.assign(constant->as<int8_t>().begin(), constant->as<int8_t>().end());
    network_.storages.push_back(std::move(storage));
    b_view = {static_cast<int>(network_.storages.size()) - 1, {}, AtomsInOrder({b_batch, k, 1, n}, {kAxisN, kAxisH, kAxisC})};
  } else {
    b_view = ViewOf(node.inputs[1]);
  }
  const auto a_matrix = MatrixOf(ViewOf(node.inputs[0]), b_batch, rows, k), b_matrix = MatrixOf(b_view, b_batch, k, n);
  if (!a_matrix || !b_matrix) return Unsupported("E-ACC-010", node, "the rows, columns or batches of an operand are not evenly spaced in memory");
  HEDDLE_ASSIGN_OR_RETURN(const MatrixView a, WithContiguousRows(node, *a_matrix, "rows"));
  HEDDLE_ASSIGN_OR_RETURN(const MatrixView b, WithContiguousRows(node, *b_matrix, "transpose"));
  const int64_t a_zero = node.Int("a_zero_point");
  const std::vector<int64_t> b_zeros = node.Ints("b_zero_point", {0});
  std::vector<std::vector<int64_t>> added;
  for (int half = 0; half < 2; ++half) {
    std::vector<int64_t> values;
    for (int64_t zero : b_zeros) {
      const std::vector<int64_t> parts = Parts(-zero);
      values.push_back(half < static_cast<int>(parts.size()) ? parts[static_cast<size_t>(half)] : 0);
    }
    if (std::any_of(values.begin(), values.end(), [](int64_t v) { return v != 0; })) added.push_back(values);
  }
  const std::vector<int64_t> a_parts = Parts(-a_zero);
  HEDDLE_ASSIGN_OR_RETURN(const int tiles, MakeTiles(node, b, added, static_cast<int>(a_parts.size())));
  Layer layer;
  layer.kind_name = "matmul";
  layer.bounded = false;
  layer.batch = b_batch, layer.out_h = layer.in_h = rows, layer.out_c = n, layer.in_c = k;
  layer.macs = all_rows * n * k;
  layer.parts = {{0, layer.out_h, 0, layer.out_w, 0}};
  layer.weights_storage = tiles;
  layer.inside_segments = 1 + static_cast<int64_t>(added.size());
  layer.segments = layer.inside_segments + static_cast<int64_t>(a_parts.size());
  // 128 is 64 twice: Parts gives equal halves.
  layer.pad_value = a_parts.empty() ? 0 : static_cast<int32_t>(a_parts[0]);
  layer.in = {a.storage, a.offset, a.n, a.row, {}, {}, {}};
  HEDDLE_RETURN_IF_ERROR(SetRequantiser(node, n, layer));
  for (int64_t o = 0; o < n; ++o) {
    const int64_t zero = b_zeros[b_zeros.size() == 1 ? 0 : static_cast<size_t>(o)];
    const int64_t start = (bias ? bias->at_int(o) : 0) + k * a_zero * zero;
    layer.parameters[0][static_cast<size_t>(o)].bias = static_cast<int32_t>(static_cast<uint32_t>(start));
  }
  const View out = NewStorage(graph_.value(node.outputs[0]).name, {b_batch, rows, 1, n}, {kAxisN, kAxisH, kAxisC});
  layer.out.storage = out.storage;
  layer.out.n = {kAxisN, 1}, layer.out.h = {kAxisH, 1}, layer.out.w = {kAxisW, 1};
  views_[node.outputs[0]] = out;
  return FinishLayer(node, node.outputs[0], std::move(layer));
}

}  // namespace heddle::hls
