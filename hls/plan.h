// Where everything lies and in which steps a network runs.
//
// A step is a piece of a layer: some output rows of some output blocks. Steps run one after the other on the compute unit;
// loads for later steps run under this one, stores of this one under the next. So every on-chip buffer has an interval of
// steps, and one first-fit allocator over intervals places resident weights, streamed weights, activations that stay and
// pieces of activations that do not: double buffering is what comes out where intervals overlap.
//
// Layers may be fused into groups: a group runs some rows of its last layer at a time, and of each layer before just the
// rows that this needs. A tensor between layers of one group then needs a rolling buffer of a few rows (plan_fused.h).
#ifndef HEDDLE_HLS_PLAN_H_
#define HEDDLE_HLS_PLAN_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "hls/isa.h"
#include "hls/layer.h"
#include "hls/mapping.h"
#include "hls/params.h"

namespace heddle::hls {

// Bytes of activations, tiles of weights, blocks of parameters, tables of lookup.
struct Buffer {
  Target memory = Target::kActivations;
  int64_t size = 0;
  int first_step = 0, last_step = 0;  // both included; -1: before the first
  int64_t address = -1;
  int storage = -1;  // root storage or -1
  int layer = -1;    // layer whose weights, parameters, table or piece it is, or -1
};

// A contiguous run between DRAM and a buffer. `offset` counts in bytes (activations) or in the buffer's units.
struct Transfer {
  int buffer = -1;
  int64_t offset = 0;
  int64_t dram_address = 0;
  int64_t bytes = 0;
  int layer = 0;
  int step = 0;  // loads: just before this step's compute instructions; stores: just after them
  int earliest = 0;  // loads: the first step at which what they read is in DRAM
};

// Within a rolling buffer: the rows that are still needed go to its start, to make room behind them.
struct Move {
  int64_t from = 0, bytes = 0;
};

struct PlannedStep {
  int layer = 0;
  Piece piece;                 // bases relative to the buffers below, completed when these have addresses
  int64_t batches = 1;         // piece.n, piece.n + 1, …
  int in_buffer = -1, b_buffer = -1, out_buffer = -1, weight_buffer = -1, parameter_buffer = -1, lookup_buffer = -1;
  // Rolling buffers: the row of the root storage (n * height + h) that lies at the buffer's start.
  int64_t in_origin = 0, b_origin = 0, out_origin = 0;
  Move move;  // in the output's buffer, before the piece is computed
};

struct StoragePlan {
  Box strides{};            // bytes
  int64_t bytes = 0;
  int64_t dram_address = -1;
  bool spilled = false;     // lives in DRAM; layers see pieces of it
  int64_t rolling_rows = 0; // above 0: only so many rows are on chip at a time, within a group
  bool apart = false;       // its writer and readers are not to be fused
  int buffer = -1;          // where not spilled
};

struct LayerPlan {
  Mapping mapping;
  LayerSteps steps;
  int64_t rows_per_tile = 0;
  int64_t blocks_per_tile = 0;
  bool fused_with_next = false;   // one group with the next layer; rows_per_tile is that of the group's last layer
  int64_t resident_blocks = 0;    // where the weights are streamed: so many of the last blocks stay on chip all the same
  bool weights_resident = true, parameters_resident = true, lookup_resident = true;
  bool prefetch = true;  // loads run under the step before and stores under the next: two steps' buffers at a time
  int64_t weight_address = -1, parameter_address = -1, lookup_address = -1;  // in DRAM
  int first_step = 0, last_step = 0;
};

struct Plan {
  std::vector<StoragePlan> storages;  // parallel to Network::storages; children share their root's strides
  std::vector<LayerPlan> layers;
  std::vector<Buffer> buffers;
  std::vector<PlannedStep> steps;
  std::vector<Transfer> setup_loads, loads, stores;
  double weight_fill = 1.0, parameter_fill = 1.0;  // part of the memory that early loads may occupy
  int64_t constants_begin = 0, constants_end = 0;  // DRAM: weights, parameters, tables, constant storages
  int64_t dram_end = 0;
};

struct PlanOptions {
  int64_t first_dram_address = 0;  // constants start here
  int input_pieces = 1;            // the first layer runs in so many pieces, each as soon as its input is there
  int output_pieces = 1;           // the last one, each stored as soon as it is done
  double bytes_per_cycle = 0;      // of the main memory; 0: those of the bus
  double resident_part = 0;        // of the weight memory, for weights that stay although not all can
};

// E-ACC-012 where one block's weights do not fit, E-ACC-013 where one row's activations do not. `start`: decisions to begin
// with (as in a plan that was found before), nullptr for none.
absl::StatusOr<Plan> PlanNetwork(const Network& network, const AcceleratorParams& params, const PlanOptions& options,
                                 const Plan* start = nullptr);

inline int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PLAN_H_
