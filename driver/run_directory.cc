// A thread of its own waits for the signals: removing a folder is not allowed inside a signal handler.

#include "driver/run_directory.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include "driver/exit_codes.h"
#include "ir/subprocess.h"

namespace heddle::driver {
namespace {

namespace fs = std::filesystem;

std::mutex open_mutex;
fs::path& OpenPartial() {
  static fs::path& path = *new fs::path;
  return path;
}

void SetOpenPartial(const fs::path& path) {
  std::lock_guard<std::mutex> lock(open_mutex);
  OpenPartial() = path;
}

[[noreturn]] void EndInterrupted() {
  ir::KillRunningProcesses();
  std::lock_guard<std::mutex> lock(open_mutex);
  // The interrupted thread may be writing still: the folder counts as gone when it has stayed away for a while.
  std::error_code ignored;
  for (int tries = 0, absent = 0; absent < 3 && tries < 200 && !OpenPartial().empty(); ++tries) {
    absent = fs::exists(OpenPartial(), ignored) ? 0 : absent + 1;
    fs::remove_all(OpenPartial(), ignored);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::fputs("\ninterrupted: nothing was left behind\n", stderr);
  _exit(kExitInterrupted);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Create(const fs::path& final_path) {
  std::error_code error;
  fs::path target = fs::absolute(final_path, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (fs::exists(target, error)) {
    const bool ours = fs::is_directory(target, error) && (fs::exists(target / "manifest.json", error) || fs::is_empty(target, error));
    if (!ours) {
      return ir::UserError("E-USAGE-010", fmt::format("'{}' exists and is not a run directory of Heddle", target.string()),
                           "choose another folder with --out");
    }
  }
  const fs::path partial = target.parent_path() / fmt::format("{}.partial-{}", target.filename().string(), getpid());
  fs::create_directories(partial, error);
  if (error || !fs::is_directory(partial)) {
    return ir::UserError("E-USAGE-011", fmt::format("cannot create '{}': {}", partial.string(), error.message()),
                         "choose a folder that can be written with --out");
  }
  SetOpenPartial(partial);
  return std::unique_ptr<RunDirectory>(new RunDirectory(target, partial));
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(partial_, ignored);
  SetOpenPartial({});
}

absl::Status RunDirectory::Write(const fs::path& relative, const std::string& content) {
  const fs::path path = partial_ / relative;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) {
    return ir::UserError("E-USAGE-012", fmt::format("writing '{}' failed", path.string()), "check the space left on the disk");
  }
  return absl::OkStatus();
}

absl::Status RunDirectory::Commit() {
  std::error_code error;
  const fs::path old = final_.parent_path() / fmt::format("{}.old-{}", final_.filename().string(), getpid());
  const bool replaces = fs::exists(final_);
  if (replaces) fs::rename(final_, old, error);
  if (!error) fs::rename(partial_, final_, error);
  if (error) {
    return ir::UserError("E-USAGE-012", fmt::format("renaming '{}' to '{}': {}", partial_.string(), final_.string(), error.message()));
  }
  committed_ = true;
  if (replaces) fs::remove_all(old, error);
  return absl::OkStatus();
}

void HandleInterrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    EndInterrupted();
  }).detach();
}

}  // namespace heddle::driver
