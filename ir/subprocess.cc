// fork and exec with one pipe. Each program leads a process group of its own, so that its children end with it.

#include "ir/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

namespace heddle::ir {
namespace {

constexpr size_t kMaxOutputBytes = 1 << 20;

std::mutex running_mutex;
std::set<pid_t>& Running() {
  static std::set<pid_t>& running = *new std::set<pid_t>;
  return running;
}

[[noreturn]] void ExecChild(const std::vector<std::string>& argv, const ProcessOptions& options, int output_fd) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(output_fd, STDOUT_FILENO);
  dup2(output_fd, STDERR_FILENO);
  const int null_fd = open("/dev/null", O_RDONLY);
  if (null_fd >= 0) dup2(null_fd, STDIN_FILENO);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(126);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

void Append(std::string& output, const char* data, size_t size) {
  output.append(data, size);
  if (output.size() > 2 * kMaxOutputBytes) output.erase(0, output.size() - kMaxOutputBytes);
}

// Reads until the program closes its output or time is up; false where it is up.
bool ReadOutput(int fd, double timeout_s, std::string& output) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  char buffer[65536];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{fd, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t size = read(fd, buffer, sizeof buffer);
    if (size == 0) return true;
    if (size > 0) Append(output, buffer, static_cast<size_t>(size));
  }
}

}  // namespace

absl::StatusOr<ProcessResult> RunProcess(const std::vector<std::string>& argv, const ProcessOptions& options) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return absl::InternalError("pipe: " + std::string(std::strerror(errno)));
  pid_t pid;
  {
    std::lock_guard<std::mutex> lock(running_mutex);
    pid = fork();
    if (pid == 0) ExecChild(argv, options, fds[1]);
    if (pid > 0) {
      setpgid(pid, pid);
      Running().insert(pid);
    }
  }
  close(fds[1]);
  if (pid < 0) {
    close(fds[0]);
    return absl::InternalError("fork: " + std::string(std::strerror(errno)));
  }
  ProcessResult result;
  const bool in_time = ReadOutput(fds[0], options.timeout_s, result.output);
  close(fds[0]);
  if (!in_time) kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  {
    std::lock_guard<std::mutex> lock(running_mutex);
    Running().erase(pid);
  }
  if (!in_time) {
    return UserError("E-TOOL-002", fmt::format("'{}' did not end within {} s", argv[0], options.timeout_s));
  }
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (result.exit_status == 127 && result.output.empty()) {
    return UserError("E-TOOL-001", fmt::format("the program '{}' was not found", argv[0]),
                     "install it (tools/install_packages lists the packages) or put it on PATH");
  }
  return result;
}

absl::StatusOr<std::string> RunTool(const std::vector<std::string>& argv, const ProcessOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(ProcessResult result, RunProcess(argv, options));
  if (result.exit_status == 0) return std::move(result.output);
  std::string tail = result.output.substr(result.output.size() > 2000 ? result.output.size() - 2000 : 0);
  return UserError("E-TOOL-003", fmt::format("'{}' failed with exit status {}:\n{}", argv[0], result.exit_status, tail));
}

void EndProcesses() {
  running_mutex.lock();  // for ever
  for (pid_t pid : Running()) kill(-pid, SIGKILL);
}

}  // namespace heddle::ir
