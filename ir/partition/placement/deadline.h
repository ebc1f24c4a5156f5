// A moment on the wall clock past which a solver returns what it has.
#ifndef HEDDLE_IR_PARTITION_PLACEMENT_DEADLINE_H_
#define HEDDLE_IR_PARTITION_PLACEMENT_DEADLINE_H_

#include <algorithm>
#include <chrono>

namespace heddle::ir::partition {

class Deadline {
 public:
  static Deadline In(double seconds) {
    seconds = std::clamp(seconds, 0.0, 1e7);
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  }
  bool Passed() const { return Clock::now() >= at_; }
  double SecondsLeft() const { return std::max(0.0, std::chrono::duration<double>(at_ - Clock::now()).count()); }
  // The earlier of this one and one in so many seconds.
  Deadline AtMost(double seconds) const { return Deadline(std::min(at_, In(seconds).at_)); }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_PLACEMENT_DEADLINE_H_
