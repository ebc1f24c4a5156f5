// Shared by the files that implement Schedule.
#ifndef HEDDLE_IR_LOOPS_SCHEDULE_INTERNAL_H_
#define HEDDLE_IR_LOOPS_SCHEDULE_INTERNAL_H_

#include <absl/status/statusor.h>

#include <string>

#include "ir/loops/stmt.h"

namespace heddle::ir::loops {

// `root` with the statement `target` (found by identity) replaced.
Stmt ReplaceStmt(const Stmt& root, const StmtNode* target, const Stmt& replacement);
// The loop over `var`, or E-SCHED-001.
absl::StatusOr<Stmt> LoopOf(const Function& function, const Expr& var);
// A name that no variable or buffer of the function has.
std::string FreshName(const Function& function, const std::string& wanted);
// A copy with loop variables, lets and temporaries of its own.
Stmt FreshCopy(const Function& function, const Stmt& stmt);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_SCHEDULE_INTERNAL_H_
