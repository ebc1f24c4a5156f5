// Fields of compute instructions from a layer, its mapping and a piece of it.

#include <algorithm>

#include "hls/mapping.h"
#include "ir/check.h"

namespace heddle::hls {
namespace {

constexpr int64_t kAddressMask = (int64_t{1} << 24) - 1;
constexpr uint32_t kUnboundedBytes = (1u << 24) - 1;

// Blocks [first, last) of a chunk.
struct ChunkRange {
  const Chunk* chunk;
  int64_t first, last;
  int64_t block;  // number of block `first` in the layer
};

uint32_t U(int64_t value) { return static_cast<uint32_t>(value); }
int32_t I(int64_t value) { return static_cast<int32_t>(value); }

void SetReduction(const Layer& l, const Mapping& m, const LayerSteps& s, ComputeFields& f) {
  f.reduce = m.reduce;
  f.window = m.window;
  f.vector_rows = U(m.reduce == Reduce::kDot || m.reduce == Reduce::kLoad ? 0 : m.vector_rows);
  f.window_columns = U(m.window ? m.window_columns : 1);
  f.kernel_rows = U(m.kernel_rows);
  f.kernel_columns = U(m.kernel_columns);
  f.passes = U(m.passes);
  f.kernel_row_step = m.kernel_rows > 1 ? I(m.rows_per_segment * s.in.kh) : 0;
  f.kernel_row_stride = m.bounded && m.kernel_rows > 1 ? U(m.rows_per_segment * l.dilation_h) : 0;
  if (m.inside_segments > 0 && m.kernel_rows > 1) f.kernel_row_stride = 1;
  f.kernel_column_step = m.kernel_columns > 1 ? I(s.in.kw) : 0;
  if (f.vector_rows > 1) {
    f.vector_row_step = I(s.in.kh);
    f.vector_row_stride = U(l.dilation_h);
  }
  f.pad_value = l.pad_value;
}

// Rows and columns of the input, and from where to read them.
void SetInput(const Layer& l, const Mapping& m, const LayerSteps& s, const Piece& piece, const Part& part, int64_t row,
              int64_t row_end, const ChunkRange& range, int64_t channel_base, ComputeFields& f) {
  const int64_t columns = part.column_end - part.column;
  f.out_rows = U(row_end - row);
  f.x_steps = U(columns);
  f.in_row_step = f.out_rows > 1 ? I(s.in.h) : 0;
  f.x_step = columns > 1 ? I(s.in.w) : 0;
  f.in_block_step = range.last - range.first > 1 ? I(range.chunk->in_block_channels) : 0;
  int64_t base = piece.in_base + piece.n * s.in.n + channel_base;
  if (!m.bounded) {
    // Padding is never read, or there is none: rows and columns are plain addresses.
    base += (l.bounded ? row * l.stride_h * s.in_row : row * s.in.h) + part.column * s.in.w;
    f.in_rows = U(std::max<int64_t>(1, m.inside_segments));
    f.in_row_bytes = kUnboundedBytes;
  } else {
    int64_t first = 0, last = 0;
    InputRows(l, row, row_end, first, last);
    const int64_t first_row = row * l.stride_h - l.pad_top;
    base += first_row * s.in_row;
    f.in_rows = U(last);  // rows below are not there when the input is a piece
    f.first_row = I(first_row);
    f.row_stride = f.out_rows > 1 ? U(l.stride_h) : 0;
    f.in_row_bytes = U(l.in_w * s.in_pixel);
    f.first_x = I((part.column * l.stride_w - l.pad_left) * s.in_pixel);
    if (columns > 1) f.x_step = I(l.stride_w * s.in_pixel);
    if (m.kernel_columns > 1) f.kernel_column_step = I(l.dilation_w * s.in_pixel);
  }
  if (m.window) {
    f.x_steps = U((columns - 1) * l.stride_w + l.kernel_w);
    f.first_emit = U(l.kernel_w - 1);
    f.emit_stride = U(l.stride_w);
    f.x_step = I(s.in_pixel);
  }
  f.in_base = U(base & kAddressMask);
}

ComputeFields FieldsFor(const Layer& l, const Mapping& m, const LayerSteps& s, const Piece& piece, const Part& part,
                        int64_t row, int64_t row_end, const ChunkRange& range) {
  ComputeFields f = l.drain_fields;
  const Chunk& chunk = *range.chunk;
  const int64_t out_channel = chunk.out_channel + range.first * chunk.block_channels;
  SetReduction(l, m, s, f);
  SetInput(l, m, s, piece, part, row, row_end, range, chunk.in_channel + range.first * chunk.in_block_channels, f);
  f.blocks = U(range.last - range.first);
  f.last_block_channels = U(range.last == chunk.blocks ? chunk.last_channels : chunk.block_channels);
  f.out_block_step = f.blocks > 1 ? I(chunk.block_channels) : 0;
  f.out_row_step = f.out_rows > 1 ? I(s.out.h) : 0;
  f.out_x_step = part.column_end - part.column > 1 ? I(s.out.w) : 0;
  f.out_base = U(piece.out_base + piece.n * s.out.n + row * s.out.h + part.column * s.out.w + out_channel);
  if (f.use_b) {
    f.b_block_step = f.out_block_step;
    f.b_row_step = f.out_rows > 1 ? I(s.b.h) : 0;
    f.b_x_step = part.column_end - part.column > 1 ? I(s.b.w) : 0;
    f.b_base = U(piece.b_base + piece.n * s.b.n + row * s.b.h + part.column * s.b.w + out_channel);
  }
  if (m.has_weights()) f.weight_base = U(piece.weight_base + (m.shared_weights ? 0 : range.block * m.steps()));
  f.shared_weights = m.has_weights() && m.shared_weights && f.blocks > 1;
  if (f.drain != Drain::kPass) {
    f.param_block_step = l.uniform_parameters ? 0 : 1;
    f.param_base = U(piece.parameter_base + (l.uniform_parameters ? part.parameter_set : part.parameter_set * m.blocks() + range.block));
  }
  if (f.use_lookup) f.lookup_table = U(piece.lookup_table);
  return f;
}

// Contiguous bytes: every block is C bytes of one long pixel.
ComputeFields FlatFields(const Layer& l, const LayerSteps& s, const AcceleratorParams& params, const Piece& piece) {
  const int64_t lanes = params.output_lanes, bytes = (piece.row_end - piece.row) * l.out_w * l.out_c;
  Mapping one;
  one.reduce = Reduce::kLoad;
  one.bounded = false;
  const int64_t blocks = (bytes + lanes - 1) / lanes;
  one.chunks = {{0, blocks, lanes, bytes - (blocks - 1) * lanes, 0, lanes}};
  const ChunkRange range{&one.chunks[0], 0, blocks, 0};
  return FieldsFor(l, one, s, piece, {0, 0, 0, 1, 0}, piece.row, piece.row + 1, range);
}

}  // namespace

std::vector<Instruction> BuildCompute(const Layer& layer, const Mapping& mapping, const LayerSteps& steps,
                                      const AcceleratorParams& params, const Piece& piece) {
  std::vector<Instruction> instructions;
  const auto add = [&](const ComputeFields& fields) {
    Instruction instruction;
    instruction.header.opcode = Opcode::kCompute;
    instruction.compute = fields;
    instructions.push_back(instruction);
  };
  if (mapping.flat) {
    if (piece.block == 0) add(FlatFields(layer, steps, params, piece));
    return instructions;
  }
  for (const Part& part : layer.parts) {
    const int64_t row = std::max(part.row, piece.row), row_end = std::min(part.row_end, piece.row_end);
    if (row >= row_end) continue;
    int64_t block = 0;
    for (const Chunk& chunk : mapping.chunks) {
      const int64_t first = std::clamp<int64_t>(piece.block - block, 0, chunk.blocks);
      const int64_t last = std::clamp<int64_t>(piece.block_end - block, 0, chunk.blocks);
      if (first < last) add(FieldsFor(layer, mapping, steps, piece, part, row, row_end, {&chunk, first, last, block + first}));
      block += chunk.blocks;
    }
  }
  return instructions;
}

}  // namespace heddle::hls
