// Runs a function as written, one operation at a time: slow and exact, the oracle for schedules and code generators.
#ifndef HEDDLE_IR_LOOPS_INTERPRETER_H_
#define HEDDLE_IR_LOOPS_INTERPRETER_H_

#include <absl/status/status.h>

#include <vector>

#include "ir/loops/stmt.h"
#include "ir/types.h"

namespace heddle::ir::loops {

struct InterpretOptions {
  // Loops whose iterations are declared independent (parallel, vectorised, GPU indices) run backwards: a wrong
  // declaration then shows as a wrong result.
  bool reverse_independent_loops = false;
};

// `arguments[i]` is the tensor of params[i] (type and element count must agree); outputs are written in place.
//   E-LOOPS-010 where arguments do not fit; E-LOOPS-011 for an access out of a buffer's bounds; E-LOOPS-012 for a division by
//   zero. Barriers inside thread loops: each thread loop nest is run phase by phase, so they are exact where they stand directly
//   under thread loops.
absl::Status Interpret(const Function& function, const std::vector<Tensor*>& arguments, const InterpretOptions& options = {});

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_INTERPRETER_H_
