// One operation on values, exactly as expr.h defines it: shared by the interpreter and constant folding.
#ifndef HEDDLE_IR_LOOPS_EVAL_H_
#define HEDDLE_IR_LOOPS_EVAL_H_

#include <cstdint>
#include <optional>

#include "ir/loops/expr.h"

namespace heddle::ir::loops {

// `integer` is used where the type is an integer or bool (sign- or zero-extended), `real` otherwise (already rounded to f32).
struct Value {
  int64_t integer = 0;
  double real = 0;
};

// nullopt where the operation is undefined (division by zero, min / -1, a float out of the target's range, a shift too far).
// `type` is the type of the operands.
std::optional<Value> EvaluateBinary(BinaryOp op, ElementType type, Value a, Value b);
std::optional<Value> EvaluateCast(ElementType to, ElementType from, Value value);
Value EvaluateCall(Intrinsic intrinsic, ElementType type, Value a, Value b);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_EVAL_H_
