// A run directory appears whole or not at all, and replaces only what Heddle wrote.

#include "driver/run_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "driver/exit_codes.h"

namespace heddle::driver {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "heddle-run-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  int Entries() const { return static_cast<int>(std::distance(fs::directory_iterator(root_), fs::directory_iterator())); }

  fs::path root_;
};

TEST_F(RunDirectoryTest, AppearsOnlyWhenCommitted) {
  auto directory = RunDirectory::Create(root_ / "out").value();
  ASSERT_TRUE(directory->Write("a/b.txt", "text").ok());
  EXPECT_FALSE(fs::exists(root_ / "out"));
  ASSERT_TRUE(directory->Commit().ok());
  EXPECT_TRUE(fs::exists(root_ / "out" / "a" / "b.txt"));
  directory.reset();
  EXPECT_TRUE(fs::exists(root_ / "out"));
  EXPECT_EQ(Entries(), 1);
}

TEST_F(RunDirectoryTest, AnAbandonedRunLeavesNothing) {
  RunDirectory::Create(root_ / "out").value().reset();
  EXPECT_EQ(Entries(), 0);
}

TEST_F(RunDirectoryTest, AFinishedRunReplacesAnEarlierOne) {
  for (const char* text : {"first", "second"}) {
    auto directory = RunDirectory::Create(root_ / "out").value();
    ASSERT_TRUE(directory->Write("manifest.json", text).ok());
    ASSERT_TRUE(directory->Commit().ok());
  }
  std::string text;
  std::ifstream(root_ / "out" / "manifest.json") >> text;
  EXPECT_EQ(text, "second");
  EXPECT_EQ(Entries(), 1);
}

TEST_F(RunDirectoryTest, ALinkThatLeadsToItselfIsRefused) {
  fs::create_symlink("out", root_ / "out");
  const auto directory = RunDirectory::Create(root_ / "out");
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(ir::ErrorCode(directory.status()), "E-USAGE-011");
}

TEST_F(RunDirectoryTest, AForeignFolderIsRefused) {
  fs::create_directories(root_ / "out");
  std::ofstream(root_ / "out" / "precious") << "keep";
  auto directory = RunDirectory::Create(root_ / "out");
  EXPECT_EQ(ir::ErrorCode(directory.status()), "E-USAGE-010");
  EXPECT_EQ(ExitCodeOf(directory.status()), kExitUsage);
  EXPECT_TRUE(fs::exists(root_ / "out" / "precious"));
}

// A process that makes folders all the time, by the class and behind its back; interrupted twice at a random moment.
TEST_F(RunDirectoryTest, AnInterruptedRunLeavesNothing) {
  for (int round = 0; round < 30; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      HandleInterrupts();
      [[maybe_unused]] const ssize_t said = write(ready[1], "r", 1);
      while (true) {
        auto directory = RunDirectory::Create(root_ / "out");
        if (!directory.ok()) _exit(99);
        for (int sub = 0; sub < 20; ++sub) {
          std::error_code ignored;
          fs::create_directories((*directory)->path() / std::to_string(sub), ignored);
          (void)(*directory)->Write("a/" + std::to_string(sub), std::string(10'000, 'x'));
        }
      }
    }
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    usleep(500 * round);
    kill(pid, SIGINT);
    kill(pid, round % 2 ? SIGINT : SIGTERM);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    close(ready[0]);
    close(ready[1]);
    ASSERT_TRUE(WIFEXITED(status)) << "round " << round;
    EXPECT_EQ(WEXITSTATUS(status), kExitInterrupted);
    EXPECT_EQ(Entries(), 0) << "round " << round;
  }
}

TEST(ExitCodes, FollowTheAreaOfTheCode) {
  auto code = [](const char* text) { return ExitCodeOf(ir::UserError(text, "message")); };
  EXPECT_EQ(code("E-IMPORT-001"), kExitBadModel);
  EXPECT_EQ(code("E-USAGE-001"), kExitUsage);
  EXPECT_EQ(code("E-TARGET-001"), kExitUsage);
  EXPECT_EQ(code("E-BUDGET-001"), kExitBudgetMissed);
  EXPECT_EQ(code("E-VERIFY-001"), kExitMismatch);
  EXPECT_EQ(code("E-TOOL-001"), kExitToolFailed);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("ours")), kExitInternal);
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), kExitOk);
}

}  // namespace
}  // namespace heddle::driver
