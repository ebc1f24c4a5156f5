// What Heddle says while it works: numbered steps with times on stderr, a line that updates itself on a terminal only.
#ifndef HEDDLE_DRIVER_TALK_H_
#define HEDDLE_DRIVER_TALK_H_

#include <chrono>
#include <mutex>
#include <string>

namespace heddle::driver {

enum class Verbosity { kQuiet, kNormal, kVerbose };
enum class ColorMode { kAuto, kAlways, kNever };

class Talk {
 public:
  // Colour under kAuto: a terminal, and NO_COLOR not set.
  Talk(Verbosity verbosity, ColorMode color, int total_steps);
  ~Talk();

  // Ends the step before, with its time, and starts the next: "[3/7] partition … 0.4 s".
  void Step(const std::string& name);
  // More on the running step; replaces the last such line on a terminal, elsewhere only with --verbose.
  void Progress(const std::string& text);
  // A line of its own, with --verbose only.
  void Detail(const std::string& text);
  // Ends the last step.
  void Done();
  // Everything said so far, without colours and times: the run directory's log.txt.
  std::string log() const { return log_; }

 private:
  void EndStep();
  void ClearProgress();

  const Verbosity verbosity_;
  const bool terminal_;
  const bool color_;
  const int total_steps_;
  int step_ = 0;
  bool step_open_ = false;
  bool progress_shown_ = false;
  std::string step_name_;
  std::string log_;
  std::chrono::steady_clock::time_point step_start_;
  std::mutex mutex_;
};

// Prints a coded error: the code in red on a terminal.
void PrintError(const std::string& message, ColorMode color);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_TALK_H_
