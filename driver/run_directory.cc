// A thread of its own waits for the signals, stops the main thread and removes what that was writing.

#include "driver/run_directory.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <mutex>
#include <thread>

#include "driver/exit_codes.h"
#include "ir/subprocess.h"

namespace heddle::driver {
namespace {

namespace fs = std::filesystem;

std::mutex open_mutex;  // held while the folder appears, is renamed or goes
fs::path& OpenPartial() {
  static fs::path& path = *new fs::path;
  return path;
}

pthread_t main_thread;
sem_t main_thread_stopped;

// LLVM, which OpenCL drivers bring along too, has handlers of its own for SIGUSR1 and SIGUSR2.
int StopSignal() { return SIGRTMIN + 8; }

void StopHere(int) {
  sem_post(&main_thread_stopped);
  while (true) pause();
}

// From here on nothing makes files: workers only compute. The thread may have stopped with any lock in its hands, the
// allocator's included.
void StopMainThread() {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 2;
  pthread_kill(main_thread, StopSignal());
  while (sem_timedwait(&main_thread_stopped, &until) != 0 && errno == EINTR) {
  }
}

// Allocates nothing.
bool Remove(const char* path) {
  const char* arguments[] = {"rm", "-rf", "--", path, nullptr};
  pid_t pid;
  if (posix_spawnp(&pid, "rm", nullptr, nullptr, const_cast<char**>(arguments), environ) != 0) return false;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return access(path, F_OK) != 0;
}

[[noreturn]] void EndInterrupted() {
  ir::EndProcesses();
  std::lock_guard<std::mutex> lock(open_mutex);
  const std::string partial = OpenPartial().string();
  const std::string removed = "\ninterrupted: nothing was left behind\n";
  const std::string stays = "\ninterrupted: could not remove " + partial + "\n";
  StopMainThread();
  const std::string& message = partial.empty() || Remove(partial.c_str()) ? removed : stays;
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, message.data(), message.size());
  _exit(kExitInterrupted);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Create(const fs::path& final_path) {
  std::error_code error;
  fs::path target = fs::absolute(final_path, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  const bool exists = fs::exists(target, error);
  if (error) {
    return ir::UserError("E-USAGE-011", fmt::format("cannot look at '{}': {}", target.string(), error.message()),
                         "choose another folder with --out");
  }
  if (exists) {
    const bool ours = fs::is_directory(target, error) && (fs::exists(target / "manifest.json", error) || fs::is_empty(target, error));
    if (!ours) {
      return ir::UserError("E-USAGE-010", fmt::format("'{}' exists and is not a run directory of Heddle", target.string()),
                           "choose another folder with --out");
    }
  }
  const fs::path partial = target.parent_path() / fmt::format("{}.partial-{}", target.filename().string(), getpid());
  std::unique_lock<std::mutex> lock(open_mutex);
  const bool there_before = fs::exists(partial, error);
  fs::create_directories(partial, error);
  if (error || there_before) {
    if (!error) error = std::make_error_code(std::errc::file_exists);
    return ir::UserError("E-USAGE-011", fmt::format("cannot create '{}': {}", partial.string(), error.message()),
                         "choose a folder that can be written with --out");
  }
  OpenPartial() = partial;
  lock.unlock();
  return std::unique_ptr<RunDirectory>(new RunDirectory(target, partial));
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  std::lock_guard<std::mutex> lock(open_mutex);
  if (!committed_) fs::remove_all(partial_, ignored);
  OpenPartial().clear();
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
  std::lock_guard<std::mutex> lock(open_mutex);
  const bool replaces = fs::exists(final_, error);
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
  main_thread = pthread_self();
  sem_init(&main_thread_stopped, 0, 0);
  struct sigaction stop = {};
  stop.sa_handler = StopHere;
  sigfillset(&stop.sa_mask);
  sigaction(StopSignal(), &stop, nullptr);
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
