// Dependencies between the units of a program: which bytes each instruction touches, the tokens that order what conflicts,
// and the check that they do.
#ifndef HEDDLE_HLS_TOKENS_H_
#define HEDDLE_HLS_TOKENS_H_

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "hls/isa.h"
#include "hls/params.h"

namespace heddle::hls {

enum class Space : uint8_t { kActivations, kWeights, kParameters, kLookup, kDram };

// Bytes (or words, block words, tables) [begin, end) of a memory.
struct Access {
  Space space = Space::kActivations;
  bool write = false;
  int64_t begin = 0, end = 0;
};

// A superset of what the instruction touches: one interval for each operand.
std::vector<Access> AccessesOf(const AcceleratorParams& params, const Instruction& instruction);

// Sets wait_… and signal_… of every instruction so that each runs after all instructions of other units that stand before it
// in the program and conflict with it. No token is given that nobody takes.
void AssignTokens(const AcceleratorParams& params, std::vector<Instruction>& program);

// The checks on tokens of VerifyProgram (hls/program.h).
absl::Status CheckTokens(const AcceleratorParams& params, const std::vector<Instruction>& program);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_TOKENS_H_
