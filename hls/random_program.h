// Random legal programs for tests: every kind of instruction, with padding, strides, dilation, windows, operand b, lookup and
// all drain modes, beside loads and stores that run at the same time.
#ifndef HEDDLE_HLS_RANDOM_PROGRAM_H_
#define HEDDLE_HLS_RANDOM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "hls/isa.h"
#include "hls/params.h"

namespace heddle::hls {

struct RandomProgram {
  std::vector<Instruction> program;   // END included; begins by filling the memories, ends by storing all activations
  std::vector<uint8_t> dram;          // initial content, the encoded program included
  uint64_t program_address = 0;
  uint64_t result_address = 0;        // what the program writes
  uint64_t result_bytes = 0;
};

// The same params, seed and count of compute instructions always give the same program.
RandomProgram MakeRandomProgram(const AcceleratorParams& params, uint64_t seed, int compute_instructions);

// Random legal parameters over every row of the table, with memories and lanes small enough to simulate quickly.
AcceleratorParams MakeSmallParams(uint64_t seed);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_RANDOM_PROGRAM_H_
