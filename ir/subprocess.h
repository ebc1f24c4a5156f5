// Runs an external program (verilator, g++, yosys) without a shell, with its output captured and a time limit.
#ifndef HEDDLE_IR_SUBPROCESS_H_
#define HEDDLE_IR_SUBPROCESS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "ir/status.h"

namespace heddle::ir {

struct ProcessResult {
  int exit_status = 0;  // 128 + signal where it died of one
  std::string output;   // stdout and stderr as they came, the last 1 MiB
};

struct ProcessOptions {
  std::filesystem::path directory;  // working directory; empty: the caller's
  double timeout_s = 600;
};

// argv[0] is looked up in PATH. An error (E-TOOL-001 not found, E-TOOL-002 out of time) where it could not run to its
// end; otherwise the result, whatever its exit status.
absl::StatusOr<ProcessResult> RunProcess(const std::vector<std::string>& argv, const ProcessOptions& options = {});

// As RunProcess, and an exit status other than 0 is E-TOOL-003 with the last lines of the output.
absl::StatusOr<std::string> RunTool(const std::vector<std::string>& argv, const ProcessOptions& options = {});

// Kills every program that is running, and lets no further one start: whoever waits for one or asks for one waits until
// this process ends. Called once, when the user interrupts.
void EndProcesses();

}  // namespace heddle::ir

#endif  // HEDDLE_IR_SUBPROCESS_H_
