// Talk goes to stderr, so that stdout holds data alone and can be piped.

#include "driver/talk.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace heddle::driver {
namespace {

bool UseColor(ColorMode mode) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) && !(no_color && *no_color);
}

}  // namespace

Talk::Talk(Verbosity verbosity, ColorMode color, int total_steps)
    : verbosity_(verbosity), terminal_(isatty(STDERR_FILENO)), color_(UseColor(color)), total_steps_(total_steps) {}

Talk::~Talk() {
  std::lock_guard<std::mutex> lock(mutex_);
  ClearProgress();
  if (step_open_ && verbosity_ != Verbosity::kQuiet && terminal_) std::fputc('\n', stderr);
}

void Talk::ClearProgress() {
  if (progress_shown_) std::fputs("\r\033[K", stderr);
  progress_shown_ = false;
}

void Talk::EndStep() {
  ClearProgress();
  if (!step_open_) return;
  step_open_ = false;
  if (verbosity_ == Verbosity::kQuiet) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - step_start_).count();
  fmt::print(stderr, "{}{}[{}/{}]{} {} … {:.1f} s\n", terminal_ ? "\r\033[K" : "", color_ ? "\033[36m" : "", step_,
             total_steps_, color_ ? "\033[0m" : "", step_name_, seconds);
}

void Talk::Step(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  EndStep();
  ++step_;
  step_open_ = true;
  step_name_ = name;
  step_start_ = std::chrono::steady_clock::now();
  log_ += fmt::format("[{}/{}] {}\n", step_, total_steps_, name);
  if (verbosity_ != Verbosity::kQuiet && terminal_) {
    fmt::print(stderr, "[{}/{}] {} …", step_, total_steps_, name);
    std::fflush(stderr);
    progress_shown_ = true;
  }
}

void Talk::Progress(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (verbosity_ == Verbosity::kQuiet) return;
  if (terminal_) {
    fmt::print(stderr, "\r\033[K[{}/{}] {} … {}", step_, total_steps_, step_name_, text.substr(0, 90));
    std::fflush(stderr);
    progress_shown_ = true;
  } else if (verbosity_ == Verbosity::kVerbose) {
    fmt::print(stderr, "      {}\n", text);
  }
}

void Talk::Detail(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  log_ += "      " + text + "\n";
  if (verbosity_ != Verbosity::kVerbose) return;
  ClearProgress();
  fmt::print(stderr, "      {}\n", text);
}

void Talk::Done() {
  std::lock_guard<std::mutex> lock(mutex_);
  EndStep();
}

void PrintError(const std::string& message, ColorMode color) {
  const bool colored = UseColor(color);
  fmt::print(stderr, "{}error{}: {}\n", colored ? "\033[1;31m" : "", colored ? "\033[0m" : "", message);
}

}  // namespace heddle::driver
