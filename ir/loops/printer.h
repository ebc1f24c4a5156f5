// Readable text of expressions, statements and functions; equal trees give equal text.
#ifndef HEDDLE_IR_LOOPS_PRINTER_H_
#define HEDDLE_IR_LOOPS_PRINTER_H_

#include <string>

#include "ir/loops/expr.h"
#include "ir/loops/stmt.h"

namespace heddle::ir::loops {

std::string ToText(const Expr& expr);
std::string ToText(const Stmt& stmt, int indent = 0);
std::string ToText(const Function& function);
std::string ToText(const Module& module);

// The function's text with every name that is not part of its meaning (its own, parameters', temporaries', variables') replaced by
// a number: two functions with equal keys are the same code. Tables' contents are part of the key.
std::string CanonicalKey(const Function& function);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_PRINTER_H_
