// Executes a program instruction by instruction, exactly as isa.h says, without time. The judge of the RTL and the ground
// that the compiler builds on.
#ifndef HEDDLE_HLS_FUNCTIONAL_MODEL_H_
#define HEDDLE_HLS_FUNCTIONAL_MODEL_H_

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "hls/isa.h"
#include "hls/params.h"

namespace heddle::hls {

class FunctionalModel {
 public:
  explicit FunctionalModel(const AcceleratorParams& params);

  // Runs `program` up to END (or its last instruction) over `dram`, whose byte 0 is the base register's address. The
  // on-chip memories keep their content from run to run (resident weights). The three units interleave in an order drawn
  // from `seed`; seed 0 runs in the program's order, which must be a possible one (isa.h). Equal results under several seeds are evidence that the
  // tokens order everything that needs order.
  // Errors: E-PROGRAM-004 a broken rule, -005 an address outside DRAM or on-chip memory, -006 deadlock (names each unit's
  // instruction and what it waits for), -007 a token counter above 255.
  absl::Status Run(const std::vector<Instruction>& program, std::vector<uint8_t>& dram, uint64_t seed = 0);

  // On-chip memories, for tests: activation bytes; weight tiles [weight_words][R][C]; parameters by channel.
  const std::vector<int8_t>& activations() const { return activations_; }
  std::vector<int8_t>& activations() { return activations_; }

 private:
  struct ChannelParameters {
    int32_t bias = 0;
    int32_t multiplier = 0;
    int32_t shift = 0;
  };
  // Place of a step in the loop nest.
  struct Step {
    int64_t block = 0, out_row = 0, x_step = 0, kernel_row = 0, kernel_column = 0, pass = 0;
  };

  absl::Status Execute(const Instruction& instruction, std::vector<uint8_t>& dram);
  absl::Status Transfer(const Instruction& instruction, std::vector<uint8_t>& dram);
  absl::Status FillWords(const TransferFields& fields, const std::vector<uint8_t>& stream);
  absl::Status Compute(const ComputeFields& fields);
  absl::Status ComputeRow(const ComputeFields& fields, int64_t block, int64_t out_row);
  absl::Status RunStep(const ComputeFields& fields, const Step& step, int64_t weight_word);
  absl::Status DotStep(const ComputeFields& fields, int64_t address, int64_t row, int64_t x, int64_t weight_word);
  absl::Status VectorStep(const ComputeFields& fields, int64_t address, int64_t row, int64_t x, int64_t weight_word);
  absl::Status LoadStep(const ComputeFields& fields, int64_t address, int64_t row, int64_t x);
  void ReduceWindow(const ComputeFields& fields, int64_t weight_word);
  absl::Status DrainPixel(const ComputeFields& fields, int64_t block, int64_t out_row, int64_t out_x);
  static int32_t DrainSum(const ComputeFields& fields, int32_t accumulator, int8_t operand_b, const ChannelParameters& parameters);
  int8_t DrainChannel(const ComputeFields& fields, int32_t accumulator, int8_t operand_b, const ChannelParameters& parameters);
  bool Inside(int64_t address) const { return address >= 0 && address < static_cast<int64_t>(activations_.size()); }

  AcceleratorParams params_;
  std::vector<int8_t> activations_;
  std::vector<int8_t> weights_;
  std::vector<ChannelParameters> parameters_;  // [parameter_blocks * C]
  std::vector<int8_t> lookup_;                 // [lookup_tables * 256]
  std::vector<int32_t> accumulators_;          // [C]
  std::vector<int8_t> window_;                 // [age][row][C]
  bool fresh_ = true;                          // max: the next step starts from nothing
};

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_FUNCTIONAL_MODEL_H_
