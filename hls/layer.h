// The network as the accelerator sees it: layers over storages, made from the nodes of a region.
#ifndef HEDDLE_HLS_LAYER_H_
#define HEDDLE_HLS_LAYER_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "hls/isa.h"
#include "hls/layout.h"
#include "hls/params.h"
#include "ir/graph.h"

namespace heddle::hls {

enum class LayerKind {
  kConv,         // convolution and fully connected: a sum over taps and input channels
  kDepthwise,    // a sum over taps, each channel for itself
  kAveragePool,  // kDepthwise with weights of one and a scale that depends on the position
  kMaxPool,
  kElementwise,  // one element of input: add, multiply, lookup, copy, pad
};

struct Storage {
  std::string name;
  Box extents{1, 1, 1, 1};
  // Wishes of the layers that read it.
  bool align_pixels = false;  // pixels start at multiples of the output lanes
  bool odd_rows = false;      // rows an odd number of bank words apart
  // A part of another storage (concatenation): its origin there.
  int parent = -1;
  Box parent_offset{};
  bool is_input = false;
  bool as_weights = false;       // lies in DRAM as weight tiles, row-major [batch][block][words x R][C]
  std::vector<int8_t> constant;  // row-major [n][h][w][c]; empty where it is not a constant
};

// What an operand of a layer's loops reads or writes. Channels are contiguous.
struct Operand {
  int storage = -1;
  Box offset{};
  DimRef n, h, w;    // for one batch, one output row, one output column
  DimRef kh, kw;     // for one kernel row, one kernel column (input operand only)
};

struct ChannelParameters {
  int32_t bias = 0;
  int32_t multiplier = 0;
  int32_t shift = 0;
};

// A rectangle of output positions that shares one set of parameters: rows [row, row_end), columns [column, column_end).
struct Part {
  int64_t row = 0, row_end = 0, column = 0, column_end = 0;
  int parameter_set = 0;
};

struct Layer {
  LayerKind kind = LayerKind::kConv;
  std::string name;
  std::string kind_name;
  std::vector<std::string> nodes;
  int64_t macs = 0;

  // Loops. in_h, in_w bound the input where `bounded`; outside it reads as pad_value.
  int64_t batch = 1, in_h = 1, in_w = 1, in_c = 1, out_h = 1, out_w = 1, out_c = 1;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0, groups = 1;
  bool bounded = true;
  int32_t pad_value = 0;

  Operand in, b, out;
  // kConv whose weights are not constant: the storage (as_weights) that holds their tiles, one matrix for each batch; segments of the
  // contraction, of which those from inside_segments on read pad_value.
  int weights_storage = -1;
  int64_t segments = 1, inside_segments = 1;
  std::vector<int8_t> weights;  // [out_c][kernel_h][kernel_w][in_c / groups], kConv and kDepthwise
  // [parameter set][out_c], or one entry for all channels of a set where `uniform_parameters`. Empty for drain = pass.
  std::vector<std::vector<ChannelParameters>> parameters;
  bool uniform_parameters = false;
  std::vector<Part> parts;
  std::vector<int8_t> table;  // 256 entries where drain_fields.use_lookup
  // drain, rounding, use_b, add_b, use_lookup, zero points, clamps, multipliers and shift of the addition.
  ComputeFields drain_fields;
};

struct BoundaryTensor {
  ir::ValueId value = ir::kNoValue;
  std::string name;
  ir::Shape shape;
  View view;
};

struct Network {
  std::vector<Storage> storages;
  std::vector<Layer> layers;
  std::vector<BoundaryTensor> inputs;   // in the order of the graph's
  std::vector<BoundaryTensor> outputs;

  // The storage that holds `storage` and the origin of `storage` in it.
  int RootOf(int storage, Box& origin) const;
  int RootOf(int storage) const;
};

// Codes: see hls/README.md.
absl::StatusOr<Network> LowerRegion(const ir::Graph& region, const AcceleratorParams& params);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_LAYER_H_
