// How a layer's loops run on the engine: which reduction, how the kernel is cut into segments and passes, how output channels
// are cut into blocks; and the weight tiles and instruction fields that follow.
#ifndef HEDDLE_HLS_MAPPING_H_
#define HEDDLE_HLS_MAPPING_H_

#include <cstdint>
#include <vector>

#include "hls/isa.h"
#include "hls/layer.h"
#include "hls/params.h"

namespace heddle::hls {

// Bytes from one iteration of a loop to the next.
struct Steps {
  int64_t n = 0, h = 0, w = 0, kh = 0, kw = 0;
};

struct LayerSteps {
  Steps in, b, out;
  int64_t in_pixel = 0;  // bytes from input column to input column (stride and dilation not counted); bounded layers
  int64_t in_row = 0;    // the same for rows
};

// Consecutive blocks of output channels whose input channels are evenly apart.
struct Chunk {
  int64_t out_channel = 0;       // of the first block
  int64_t blocks = 0;
  int64_t block_channels = 0;    // from block to block, at most C
  int64_t last_channels = 0;     // written in the last block
  int64_t in_channel = 0;        // first input channel of the first block
  int64_t in_block_channels = 0; // from block to block
};

struct Mapping {
  Reduce reduce = Reduce::kDot;
  bool window = false;
  int64_t vector_rows = 1, window_columns = 1;
  int64_t kernel_rows = 1, kernel_columns = 1, passes = 1;
  int64_t rows_per_segment = 1;    // kernel rows from one segment to the next
  bool columns_in_segment = false; // the kernel's columns lie within a segment, one after the other
  bool bounded = true;             // the engine checks rows and columns against the input's extent
  bool shared_weights = false;     // every block has the same weight tiles
  int64_t inside_segments = 0;     // above 0: the kernel's rows all read the same, from this one on padding
  bool flat = false;               // element-wise over contiguous bytes: one pixel, as many blocks as it takes
  std::vector<Chunk> chunks;

  int64_t steps() const { return kernel_rows * kernel_columns * passes; }
  int64_t blocks() const;
  bool has_weights() const { return reduce == Reduce::kDot || reduce == Reduce::kDepthwise; }
  int64_t weight_words() const { return has_weights() ? (shared_weights ? 1 : blocks()) * steps() : 0; }
};

// The fastest mapping that the steps allow.
Mapping MapLayer(const Layer& layer, const LayerSteps& steps, const AcceleratorParams& params);

// Parameter blocks that a layer needs: sets x blocks, or one a set.
int64_t ParameterBlocks(const Layer& layer, const Mapping& mapping);

// weight_words() words at weight_word_pitch_bytes(); ParameterBlocks() blocks at parameter_block_pitch_bytes().
std::vector<uint8_t> PackWeights(const Layer& layer, const Mapping& mapping, const LayerSteps& steps, const AcceleratorParams& params);
std::vector<uint8_t> PackParameters(const Layer& layer, const Mapping& mapping, const AcceleratorParams& params);

// A piece of a layer: output rows [row, row_end) of batch n, blocks [block, block_end), and where it finds everything.
struct Piece {
  int64_t n = 0, row = 0, row_end = 0, block = 0, block_end = 0;
  // On-chip addresses of the operands' element at batch 0, row 0, column 0, channel 0 (may lie outside the memory).
  int64_t in_base = 0, b_base = 0, out_base = 0;
  int64_t weight_base = 0;     // tile of block 0
  int64_t parameter_base = 0;  // of block 0 of set 0
  int64_t lookup_table = 0;
};
// One compute instruction for each part and chunk that the piece touches. Tokens and tag are left empty.
std::vector<Instruction> BuildCompute(const Layer& layer, const Mapping& mapping, const LayerSteps& steps,
                                      const AcceleratorParams& params, const Piece& piece);

// Input rows [first, last) that output rows [row, row_end) read, clipped to the input. Bounded layers.
void InputRows(const Layer& layer, int64_t row, int64_t row_end, int64_t& first, int64_t& last);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_MAPPING_H_
