// Errors that a user can cause: an absl::Status whose message starts with a code, "E-IMPORT-012: …".
//
// The area decides the exit status of the command line (driver/exit_codes.h). docs/errors.md lists every code.
#ifndef HEDDLE_IR_STATUS_H_
#define HEDDLE_IR_STATUS_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace heddle::ir {

// `code` is "E-AREA-NNN"; `message` names the node, what was expected and found; `next_step` is one sentence.
absl::Status UserError(std::string_view code, std::string_view message, std::string_view next_step = "");

// The code of an error made by UserError ("E-IMPORT-012"), or "" for any other status.
std::string ErrorCode(const absl::Status& status);

}  // namespace heddle::ir

#define HEDDLE_CONCAT_INNER(a, b) a##b
#define HEDDLE_CONCAT(a, b) HEDDLE_CONCAT_INNER(a, b)
#define HEDDLE_RETURN_IF_ERROR(expression)                      \
  do {                                                          \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)
#define HEDDLE_ASSIGN_OR_RETURN(target, expression) \
  HEDDLE_ASSIGN_OR_RETURN_IMPL(HEDDLE_CONCAT(status_or_, __LINE__), target, expression)
#define HEDDLE_ASSIGN_OR_RETURN_IMPL(name, target, expression) \
  auto name = (expression);                                    \
  if (!name.ok()) return name.status();                        \
  target = std::move(name).value()

#endif  // HEDDLE_IR_STATUS_H_
