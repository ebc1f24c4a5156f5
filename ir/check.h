// HEDDLE_CHECK: stops the process on a defect of Heddle itself. What a user can cause is an absl::Status instead.
#ifndef HEDDLE_IR_CHECK_H_
#define HEDDLE_IR_CHECK_H_

#include <string>

namespace heddle::ir {
// Prints "internal error: …" with the place to stderr and ends the process with exit status 1.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace heddle::ir

#define HEDDLE_CHECK(condition, message) \
  (static_cast<bool>(condition) ? void() : ::heddle::ir::CheckFailed(__FILE__, __LINE__, #condition, message))

#endif  // HEDDLE_IR_CHECK_H_
