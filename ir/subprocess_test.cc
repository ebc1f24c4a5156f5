// External programs: output, exit status, absence and time limit.

#include "ir/subprocess.h"

#include <gtest/gtest.h>

namespace heddle::ir {
namespace {

TEST(Subprocess, CapturesBothStreamsAndExitStatus) {
  auto result = RunProcess({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_NE(result->output.find("out"), std::string::npos);
  EXPECT_NE(result->output.find("err"), std::string::npos);
}

TEST(Subprocess, ArgumentsAreNotInterpretedByAShell) {
  auto output = RunTool({"echo", "$HOME; *"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "$HOME; *\n");
}

TEST(Subprocess, MissingProgramIsACodedError) {
  auto result = RunProcess({"heddle-no-such-program"});
  EXPECT_EQ(ErrorCode(result.status()), "E-TOOL-001");
}

TEST(Subprocess, FailureShowsTheOutput) {
  auto output = RunTool({"sh", "-c", "echo why; false"});
  EXPECT_EQ(ErrorCode(output.status()), "E-TOOL-003");
  EXPECT_NE(std::string(output.status().message()).find("why"), std::string::npos);
}

TEST(Subprocess, TimeLimitKillsChildrenToo) {
  auto result = RunProcess({"sh", "-c", "sleep 100 & sleep 100"}, {.directory = "/", .timeout_s = 0.2});
  EXPECT_EQ(ErrorCode(result.status()), "E-TOOL-002");
}

}  // namespace
}  // namespace heddle::ir
