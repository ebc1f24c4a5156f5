// Weight tiles and parameter blocks as they lie in DRAM, in the order in which the engine's loops read them.

#include <algorithm>

#include "hls/mapping.h"
#include "ir/check.h"

namespace heddle::hls {
namespace {

// Writes weight (kernel row, kernel column, input channel within the block's span) of every output of a block.
class TileWriter {
 public:
  TileWriter(const Layer& layer, const Mapping& mapping, const LayerSteps& steps, const AcceleratorParams& params)
      : layer_(layer), mapping_(mapping), steps_(steps), params_(params) {
    bytes_.resize(static_cast<size_t>(mapping.weight_words() * params.weight_word_pitch_bytes()));
  }

  std::vector<uint8_t> Write() {
    int64_t block = 0;
    for (const Chunk& chunk : mapping_.chunks) {
      for (int64_t b = 0; b < chunk.blocks; ++b, ++block) {
        if (mapping_.shared_weights && block > 0) break;
        const int64_t first = chunk.out_channel + b * chunk.block_channels;
        const int64_t channels = b + 1 == chunk.blocks ? chunk.last_channels : chunk.block_channels;
        const int64_t in_first = chunk.in_channel + b * chunk.in_block_channels;
        for (int64_t c = 0; c < channels; ++c) WriteOutput(block, c, first + c, in_first);
      }
    }
    return std::move(bytes_);
  }

 private:
  void WriteOutput(int64_t block, int64_t column, int64_t output, int64_t in_first) {
    const int64_t inputs = layer_.in_c / layer_.groups;
    const int64_t group = output / (layer_.out_c / layer_.groups);
    const int8_t* weight = &layer_.weights[static_cast<size_t>(output * layer_.kernel_h * layer_.kernel_w * inputs)];
    for (int64_t ky = 0; ky < layer_.kernel_h; ++ky) {
      for (int64_t kx = 0; kx < layer_.kernel_w; ++kx) {
        for (int64_t i = 0; i < inputs; ++i) {
          Place(block, ky, kx, group * inputs + i - in_first, column, *weight++);
        }
      }
    }
  }

  void Place(int64_t block, int64_t ky, int64_t kx, int64_t channel, int64_t column, int8_t weight) {
    const int64_t row = ky / mapping_.rows_per_segment, row_rest = ky % mapping_.rows_per_segment;
    if (mapping_.reduce == Reduce::kDepthwise) {
      const int64_t step = mapping_.window ? 0 : row * mapping_.kernel_columns + kx;
      const int64_t age = mapping_.window ? layer_.kernel_w - 1 - kx : 0;
      const int64_t vector = mapping_.window ? ky : row_rest;
      At(block * mapping_.steps() + step, params_.depthwise_lane(static_cast<int>(age * kWindowRows + vector), static_cast<int>(column)), column) = static_cast<uint8_t>(weight);
      return;
    }
    int64_t offset = row_rest * steps_.in.kh + channel;
    int64_t kernel_column = kx;
    if (mapping_.columns_in_segment) {
      offset += kx * steps_.in.kw;
      kernel_column = 0;
    }
    const int64_t lanes = params_.contraction_lanes;
    const int64_t step = (row * mapping_.kernel_columns + kernel_column) * mapping_.passes + offset / lanes;
    HEDDLE_CHECK(offset / lanes < mapping_.passes, "a weight lies outside its segment");
    At(block * mapping_.steps() + step, offset % lanes, column) = static_cast<uint8_t>(weight);
  }

  uint8_t& At(int64_t word, int64_t lane, int64_t column) {
    return bytes_[static_cast<size_t>(word * params_.weight_word_pitch_bytes() + lane * params_.output_lanes + column)];
  }

  const Layer& layer_;
  const Mapping& mapping_;
  const LayerSteps& steps_;
  const AcceleratorParams& params_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<uint8_t> PackWeights(const Layer& layer, const Mapping& mapping, const LayerSteps& steps, const AcceleratorParams& params) {
  if (!mapping.has_weights() || layer.weights_storage >= 0) return {};
  return TileWriter(layer, mapping, steps, params).Write();
}

std::vector<uint8_t> PackParameters(const Layer& layer, const Mapping& mapping, const AcceleratorParams& params) {
  const int64_t lanes = params.requantise_lanes, pitch = params.parameter_word_pitch_bytes();
  std::vector<uint8_t> bytes(static_cast<size_t>(ParameterBlocks(layer, mapping) * params.parameter_block_pitch_bytes()));
  const auto put = [&](int64_t block, int64_t column, const ChannelParameters& p) {
    uint8_t* word = &bytes[static_cast<size_t>(block * params.parameter_block_pitch_bytes() + column / lanes * pitch)];
    const int64_t lane = column % lanes;
    for (int byte = 0; byte < 4; ++byte) {
      word[4 * lane + byte] = static_cast<uint8_t>(static_cast<uint32_t>(p.bias) >> (8 * byte));
      word[4 * lanes + 4 * lane + byte] = static_cast<uint8_t>(static_cast<uint32_t>(p.multiplier) >> (8 * byte));
    }
    word[8 * lanes + lane] = static_cast<uint8_t>(p.shift);
  };
  int64_t block = 0;
  for (const std::vector<ChannelParameters>& set : layer.parameters) {
    // Columns without a channel get the last channel's values: a legal shift, and nobody sees the result.
    if (layer.uniform_parameters) {
      for (int64_t column = 0; column < params.output_lanes; ++column) put(block, column, set[0]);
      ++block;
      continue;
    }
    for (const Chunk& chunk : mapping.chunks) {
      for (int64_t b = 0; b < chunk.blocks; ++b, ++block) {
        for (int64_t column = 0; column < params.output_lanes; ++column) {
          const int64_t channel = std::min<int64_t>(chunk.out_channel + b * chunk.block_channels + column, layer.out_c - 1);
          put(block, column, set[static_cast<size_t>(channel)]);
        }
      }
    }
  }
  return bytes;
}

}  // namespace heddle::hls
