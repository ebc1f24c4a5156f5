// Choice of the mapping: a handful of candidates a layer, compared by the cycles of their steps.

#include "hls/mapping.h"

#include <algorithm>
#include <limits>

#include "ir/check.h"

namespace heddle::hls {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// No tap of any output lies outside the input.
bool NeedsNoPadding(const Layer& l) {
  return l.pad_top == 0 && l.pad_left == 0 && (l.out_h - 1) * l.stride_h + (l.kernel_h - 1) * l.dilation_h < l.in_h &&
         (l.out_w - 1) * l.stride_w + (l.kernel_w - 1) * l.dilation_w < l.in_w;
}

// ---- Blocks of output channels.

std::vector<Chunk> PlainChunks(int64_t channels, int64_t lanes, int64_t in_block_channels) {
  const int64_t blocks = CeilDiv(channels, lanes);
  return {{0, blocks, lanes, channels - (blocks - 1) * lanes, 0, in_block_channels}};
}

// Small groups share a block (zero weights where an output does not see an input), large ones have blocks of their own.
std::vector<Chunk> GroupedChunks(const Layer& l, int64_t lanes, int64_t& span) {
  const int64_t outputs = l.out_c / l.groups, inputs = l.in_c / l.groups;
  std::vector<Chunk> chunks;
  if (outputs > lanes / 2) {
    span = inputs;
    for (int64_t g = 0; g < l.groups; ++g) {
      const int64_t blocks = CeilDiv(outputs, lanes);
      chunks.push_back({g * outputs, blocks, lanes, outputs - (blocks - 1) * lanes, g * inputs, 0});
    }
    return chunks;
  }
  const int64_t together = std::min(lanes / outputs, l.groups);
  span = together * inputs;
  const int64_t step = together * outputs, blocks = CeilDiv(l.groups, together);
  const int64_t last = l.out_c - (blocks - 1) * step;
  // A block writes all lanes except the last of an instruction; what it writes too much must lie within the next block.
  if (blocks > 1 && step + last < lanes) {
    chunks.push_back({0, blocks - 1, step, step, 0, together * inputs});
    chunks.push_back({(blocks - 1) * step, 1, step, last, (blocks - 1) * together * inputs, 0});
  } else {
    chunks.push_back({0, blocks, step, last, 0, together * inputs});
  }
  return chunks;
}

// ---- Dot products.

Mapping MapDot(const Layer& l, const LayerSteps& s, const AcceleratorParams& p) {
  const int64_t lanes = p.contraction_lanes;
  Mapping base;
  base.reduce = Reduce::kDot;
  base.bounded = l.bounded && !NeedsNoPadding(l);
  int64_t span = l.in_c;
  base.chunks = l.groups == 1 ? PlainChunks(l.out_c, p.output_lanes, 0) : GroupedChunks(l, p.output_lanes, span);
  base.kernel_rows = l.kernel_h;
  base.kernel_columns = l.kernel_w;
  base.passes = CeilDiv(span, lanes);
  Mapping best = base;
  const auto consider = [&](const Mapping& m) {
    if (m.steps() < best.steps()) best = m;
  };
  const bool columns_apart = l.kernel_w == 1 || s.in.kw >= span;
  if (!columns_apart) return best;
  Mapping merged = base;
  merged.columns_in_segment = true;
  merged.kernel_columns = 1;
  const int64_t row_bytes = (l.kernel_w - 1) * s.in.kw + span;
  merged.passes = CeilDiv(row_bytes, lanes);
  consider(merged);
  if (base.bounded || l.kernel_h == 1 || s.in.kh < row_bytes) return best;
  for (int64_t rows = 2; rows <= l.kernel_h; ++rows) {
    merged.rows_per_segment = rows;
    merged.kernel_rows = CeilDiv(l.kernel_h, rows);
    merged.passes = CeilDiv((rows - 1) * s.in.kh + row_bytes, lanes);
    consider(merged);
  }
  return best;
}

Mapping MapActivationProduct(const Layer& l, const AcceleratorParams& p) {
  Mapping m;
  m.bounded = false;
  m.chunks = PlainChunks(l.out_c, p.output_lanes, 0);
  m.kernel_rows = l.segments;
  m.inside_segments = l.inside_segments;
  m.passes = CeilDiv(l.in_c, p.contraction_lanes);
  return m;
}

// ---- Windows: each column its own channel.

bool RowsReadable(const AcceleratorParams& p, int64_t rows, int64_t row_step) {
  if (rows == 1) return true;
  if (row_step % p.bank_bytes() != 0) return false;
  const int64_t banks = row_step / p.bank_bytes() % kActivationBanks;
  return rows == 2 ? banks != 0 : banks % 2 == 1;
}

// Rows of the kernel for the maximum, which may look at a row twice: (count - 1) * step + vector_rows = kernel rows.
void CoverKernelRows(const Layer& l, Mapping& m) {
  const int64_t rest = l.kernel_h - m.vector_rows;
  m.kernel_rows = CeilDiv(l.kernel_h, m.vector_rows);
  m.rows_per_segment = m.vector_rows;
  if (l.kind != LayerKind::kMaxPool || rest == 0) return;
  while (rest % (m.kernel_rows - 1) != 0) ++m.kernel_rows;
  m.rows_per_segment = rest / (m.kernel_rows - 1);
}

Mapping MapWindow(const Layer& l, const LayerSteps& s, const AcceleratorParams& p) {
  Mapping best;
  best.reduce = l.kind == LayerKind::kMaxPool ? Reduce::kMax : Reduce::kDepthwise;
  best.chunks = PlainChunks(l.out_c, p.output_lanes, p.output_lanes);
  best.shared_weights = l.kind == LayerKind::kAveragePool;
  int64_t best_cycles = std::numeric_limits<int64_t>::max();
  const int64_t drain = p.drain_cycles(), b = l.drain_fields.use_b;
  for (int64_t rows = 1; rows <= std::min<int64_t>(kWindowRows, l.kernel_h); ++rows) {
    if (!RowsReadable(p, rows, s.in.kh)) continue;
    Mapping m = best;
    m.window = false;
    m.vector_rows = rows;
    m.kernel_columns = l.kernel_w;
    CoverKernelRows(l, m);
    const int64_t plain = l.out_w * std::max(m.steps() + b, drain);
    if (plain < best_cycles && m.rows_per_segment * l.dilation_h <= 255) {
      best_cycles = plain;
      best = m;
    }
    if (rows != l.kernel_h || l.kernel_w > kWindowColumns || (l.dilation_w > 1 && l.kernel_w > 1) || !p.has_window()) continue;
    const int64_t columns = (l.out_w - 1) * l.stride_w + l.kernel_w;
    const int64_t sliding = std::max(columns + b * l.out_w, l.out_w * drain);
    if (sliding < best_cycles) {
      best_cycles = sliding;
      m.window = true;
      m.window_columns = l.kernel_w;
      m.kernel_rows = m.kernel_columns = 1;
      best = m;
    }
  }
  return best;
}

// ---- One element.

bool Contiguous(const Layer& l, const Steps& s) {
  return (l.out_w == 1 || s.w == l.out_c) && (l.out_h == 1 || s.h == l.out_w * l.out_c);
}

Mapping MapElementwise(const Layer& l, const LayerSteps& s, const AcceleratorParams& p) {
  Mapping m;
  m.reduce = Reduce::kLoad;
  m.bounded = l.bounded;
  m.chunks = PlainChunks(l.out_c, p.output_lanes, p.output_lanes);
  m.flat = !l.bounded && Contiguous(l, s.in) && Contiguous(l, s.out) && (!l.drain_fields.use_b || Contiguous(l, s.b)) &&
           l.out_h * l.out_w * l.out_c <= int64_t{65535} * p.output_lanes;
  return m;
}

}  // namespace

int64_t Mapping::blocks() const {
  int64_t total = 0;
  for (const Chunk& chunk : chunks) total += chunk.blocks;
  return total;
}

Mapping MapLayer(const Layer& layer, const LayerSteps& steps, const AcceleratorParams& params) {
  switch (layer.kind) {
    case LayerKind::kConv: return layer.weights_storage >= 0 ? MapActivationProduct(layer, params) : MapDot(layer, steps, params);
    case LayerKind::kDepthwise:
    case LayerKind::kAveragePool:
    case LayerKind::kMaxPool: return MapWindow(layer, steps, params);
    case LayerKind::kElementwise: return MapElementwise(layer, steps, params);
  }
  HEDDLE_CHECK(false, "unknown layer kind");
  return {};
}

int64_t ParameterBlocks(const Layer& layer, const Mapping& mapping) {
  return static_cast<int64_t>(layer.parameters.size()) * (layer.uniform_parameters ? 1 : mapping.blocks());
}

void InputRows(const Layer& layer, int64_t row, int64_t row_end, int64_t& first, int64_t& last) {
  first = std::clamp<int64_t>(row * layer.stride_h - layer.pad_top, 0, layer.in_h);
  last = std::clamp<int64_t>((row_end - 1) * layer.stride_h - layer.pad_top + (layer.kernel_h - 1) * layer.dilation_h + 1, 0, layer.in_h);
  last = std::max(first, last);
}

}  // namespace heddle::hls
