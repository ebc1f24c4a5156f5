// Seeded random programs for tests: compute definitions of many shapes and types, and random legal schedules of them.
#ifndef HEDDLE_IR_LOOPS_RANDOM_PROGRAMS_H_
#define HEDDLE_IR_LOOPS_RANDOM_PROGRAMS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/loops/schedule.h"
#include "ir/loops/stmt.h"
#include "ir/types.h"

namespace heddle::ir::loops {

struct RandomProgram {
  Function function;            // lowered, unscheduled
  std::vector<Tensor> arguments;  // filled inputs; outputs zero
};

// One to four stages over small tensors: element-wise (all operators, guarded reads, transposes, gathers through data),
// reductions with epilogues, in f32 or integers. `integers_only`: results must agree to the bit whatever the schedule.
RandomProgram MakeRandomProgram(std::mt19937_64& random, bool integers_only);

// Applies up to `steps` random primitives; those that are refused are counted and left out. Returns what was done, one a line.
std::string ApplyRandomSchedule(Schedule& schedule, std::mt19937_64& random, int steps, bool gpu = false);

// Runs the function in the interpreter on copies of the arguments and returns them.
absl::StatusOr<std::vector<Tensor>> RunInterpreter(const Function& function, const std::vector<Tensor>& arguments,
                                                   bool reverse = false);

// "" where the tensors agree (floats within `tolerance`, relative to the larger of 1 and the value), else where they differ.
std::string Difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double tolerance);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_RANDOM_PROGRAMS_H_
