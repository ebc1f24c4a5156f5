// User-facing errors and the end of the process on our own.

#include "ir/status.h"

#include <cstdio>
#include <cstdlib>

#include "ir/check.h"

namespace heddle::ir {

absl::Status UserError(std::string_view code, std::string_view message, std::string_view next_step) {
  std::string text = fmt::format("{}: {}", code, message);
  if (!next_step.empty()) text += fmt::format("\n  next step: {}", next_step);
  return absl::InvalidArgumentError(text);
}

std::string ErrorCode(const absl::Status& status) {
  const std::string text(status.message());
  const size_t colon = text.find(':');
  return text.starts_with("E-") && colon != std::string::npos ? text.substr(0, colon) : "";
}

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "internal error: %s (%s) at %s:%d\n", message.c_str(), condition, file, line);
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace heddle::ir
