// A compiled accelerator program: instructions, what lies where in DRAM, and how the host's tensors get in and out.
//
// DRAM is one area that starts at the accelerator's base register; all addresses are byte offsets from there:
//   [0, image.size())        both programs, weights, parameters, tables and constant operands: written once by the host
//   [image.size(), dram_bytes)  inputs, outputs and activations that do not stay on chip
// To run: write the image; run `setup` once after power-up (it loads what stays resident on chip; it may be just END); for
// each inference pack the inputs, run `run`, unpack the outputs.
#ifndef HEDDLE_HLS_PROGRAM_H_
#define HEDDLE_HLS_PROGRAM_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hls/isa.h"
#include "hls/memory_model.h"
#include "hls/params.h"
#include "hls/timing.h"
#include "ir/types.h"

namespace heddle::hls {

// A factor of a tensor's row-major element order: the element with row-major index i lies at dram_address + sum of digit *
// stride, where the digits are i in the mixed radix of the axes' extents, outermost first.
struct HostAxis {
  int64_t extent = 1;
  int64_t stride_bytes = 0;
  bool operator==(const HostAxis&) const = default;
};

// An input or output of the region in DRAM: int8, logical row-major shape on the host, any strides in DRAM.
struct HostTensor {
  std::string name;
  ir::Shape shape;
  int64_t dram_address = 0;
  int64_t bytes = 0;  // extent in DRAM, gaps included
  std::vector<HostAxis> axes;
};

// One layer: what one or several instructions with the same tag do. Fused nodes share a layer.
struct ProgramLayer {
  std::string name;                // of the first node, "conv1"; "conv1+add1" where nodes were fused
  std::vector<std::string> nodes;  // names in the region's graph, in order
  std::string kind;                // "conv", "depthwise", "max_pool", "average_pool", "add", "multiply", "lookup", "copy"
  int64_t macs = 0;                // of the network, not of the lanes
  int64_t weight_bytes = 0;        // in DRAM, as tiles
  bool weights_resident = false;   // stay on chip between inferences
  int tiles = 1;                   // pieces in which it runs
  int64_t cycles_estimated = 0;    // by the fast model, waiting included; the layers' add up to the program's
  CycleKinds kinds;                // the same by cause
};

// Where the memories went; for reports.
struct MemoryPlan {
  int64_t activation_bytes_used = 0;
  int64_t weight_words_used = 0;
  int64_t weight_words_resident = 0;
  int64_t parameter_blocks_used = 0;
  int64_t activations_spilled_bytes = 0;  // tensors between layers that live in DRAM
  int64_t spilled_tensors = 0;
  int64_t rolling_tensors = 0;            // within groups of fused layers: a few rows on chip at a time
};

struct CompiledProgram {
  std::string name;
  AcceleratorParams params;
  MemoryModel memory;
  std::vector<ProgramLayer> layers;  // index = the instructions' tag
  std::vector<Instruction> setup;    // END included
  std::vector<Instruction> run;      // END included
  int64_t setup_address = 0;
  int64_t run_address = 0;
  std::vector<uint8_t> image;
  int64_t dram_bytes = 0;
  std::vector<HostTensor> inputs;   // in the order of the region's inputs
  std::vector<HostTensor> outputs;  // in the order of the region's outputs
  MemoryPlan plan;
  int64_t cycles_estimated = 0;        // `run`, by the fast model (hls/timing.h)
  int64_t setup_cycles_estimated = 0;  // `setup`
  int64_t dram_bytes_read = 0;         // by `run`, instructions included
  int64_t dram_bytes_written = 0;
  int64_t macs() const;
};

// dram_bytes bytes: the image, then zeros.
std::vector<uint8_t> InitialDram(const CompiledProgram& program);
// Writes the inputs where the program expects them. `tensors`: one per input, i8, logical shapes. E-ACC-090 where they do
// not fit.
absl::Status PackInputs(const CompiledProgram& program, const std::vector<ir::Tensor>& tensors, std::vector<uint8_t>& dram);
std::vector<ir::Tensor> UnpackOutputs(const CompiledProgram& program, const std::vector<uint8_t>& dram);

// Both programs on the functional model, its errors and its `seed` (hls/functional_model.h); `dram`: with the inputs packed.
absl::Status RunFunctional(const CompiledProgram& program, std::vector<uint8_t>& dram, uint64_t seed = 0);

// Readable text of both programs: address, layer, instruction; and the places of the tensors.
std::string ProgramText(const CompiledProgram& program);

// What must hold of any program, checked without running it: each instruction by itself, addresses inside DRAM and the
// on-chip memories, every wait met by tokens given earlier in program order (so that bounded queues cannot deadlock), no
// token counter above its limit, and every two instructions of different units that touch the same bytes, one of them
// writing, ordered by tokens. Errors: E-PROGRAM-004 to -008, naming layer and instruction.
absl::Status VerifyProgram(const AcceleratorParams& params, const std::vector<Instruction>& program, int64_t dram_bytes);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PROGRAM_H_
