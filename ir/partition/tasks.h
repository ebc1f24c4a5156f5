// A plan as tasks on devices and links: when each begins and ends in one inference, and in many that follow each other.
#ifndef HEDDLE_IR_PARTITION_TASKS_H_
#define HEDDLE_IR_PARTITION_TASKS_H_

#include <vector>

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// One region or one transfer.
struct Task {
  bool is_transfer = false;
  int index = 0;           // of Evaluation::transfers or Evaluation::regions
  int resource = 0;        // a device, or ResourceOfLink
  double us = 0;           // as predicted; a caller that knows better may change it before Time or Simulate
  std::vector<int> after;  // tasks whose results it needs, all of smaller index
  double start_us = 0;     // set by Time
  double end_us = 0;
};

int ResourceCount(const Problem& problem);
int ResourceOfLink(const Problem& problem, int from, int to);

// The tasks of an evaluation's regions and transfers, each resource's in the order in which it takes them (problem.h).
std::vector<Task> PlanTasks(const Problem& problem, const Evaluation& evaluation);

// Sets start_us and end_us of one inference; returns the end of the last task.
double Time(std::vector<Task>& tasks);

// The largest sum of the tasks of one resource: no steady state is faster.
double LargestLoadUs(const std::vector<Task>& tasks);

struct Steady {
  double period_us = 0;         // between the ends of two inferences, mean of the second half
  double first_end_us = 0;      // of the first inference, in an empty system: its latency
  double last_latency_us = 0;   // of the last one, from its first task's start, in a full system
  int inferences = 0;
};
// So many inferences at once, event by event. Results are double-buffered: a task may run again when all readers of its
// result of two inferences ago are done. A free resource takes the oldest inference's next task that is ready.
Steady Simulate(const std::vector<Task>& tasks, int inferences);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_TASKS_H_
