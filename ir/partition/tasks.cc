// Tasks of a plan. Within one inference every resource takes its tasks in the plan's order, so times follow from one
// pass; between inferences the oldest goes first, which is decided event by event.
#include "ir/partition/tasks.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "ir/check.h"
#include "ir/partition/evaluate.h"

namespace heddle::ir::partition {
namespace {

class TaskList {
 public:
  TaskList(const Problem& problem, const Evaluation& evaluation)
      : problem_(problem), evaluation_(evaluation), region_task_(problem.nodes.size(), -1), reads_(ReadsOfNodes(problem)), outputs_(problem.nodes.size()) {
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
      const Tensor& info = problem.tensors[tensor];
      if (info.to_host && info.producer >= 0) outputs_[info.producer].push_back(static_cast<int>(tensor));
    }
    for (size_t i = 0; i < evaluation.transfers.size(); ++i) {
      const Transfer& transfer = evaluation.transfers[i];
      transfer_of_[{transfer.tensor, transfer.to}] = static_cast<int>(i);
    }
  }

  std::vector<Task> Build() {
    for (size_t i = 0; i < evaluation_.regions.size(); ++i) AddRegion(static_cast<int>(i));
    return std::move(tasks_);
  }

 private:
  void AddRegion(int index) {
    const Region& region = evaluation_.regions[index];
    Task task{false, index, region.device, region.node_us + region.launch_us, {}, 0, 0};
    for (int node : region.nodes) region_task_[node] = -2;  // of this very region
    for (int node : region.nodes) {
      for (int tensor : reads_[node]) {
        const int before = Arrival(tensor, region.device);
        if (before >= 0) task.after.push_back(before);
      }
    }
    std::sort(task.after.begin(), task.after.end());
    task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
    const int own = static_cast<int>(tasks_.size());
    tasks_.push_back(std::move(task));
    for (int node : region.nodes) region_task_[node] = own;
    AddOutputs(region);
  }

  // The task after which `tensor` is on `device`, -1 where it is there from the start or made in the region itself.
  int Arrival(int tensor, int device) {
    const int producer = problem_.tensors[tensor].producer;
    const int made = producer < 0 ? -1 : region_task_[producer];
    if (made == -2) return -1;
    HEDDLE_CHECK(producer < 0 || made >= 0, "a region reads what a later region makes");
    const auto transfer = transfer_of_.find({tensor, device});
    if (transfer == transfer_of_.end()) return made;
    const auto [entry, inserted] = transfer_task_.try_emplace(transfer->second, static_cast<int>(tasks_.size()));
    if (inserted) {
      const Transfer& info = evaluation_.transfers[transfer->second];
      tasks_.push_back({true, transfer->second, ResourceOfLink(problem_, info.from, info.to), info.us,
                        made < 0 ? std::vector<int>() : std::vector<int>{made}, 0, 0});
    }
    return entry->second;
  }

  void AddOutputs(const Region& region) {
    std::vector<int> outputs;
    for (int node : region.nodes) outputs.insert(outputs.end(), outputs_[node].begin(), outputs_[node].end());
    std::sort(outputs.begin(), outputs.end());
    for (int tensor : outputs) Arrival(tensor, problem_.host);
  }

  const Problem& problem_;
  const Evaluation& evaluation_;
  std::vector<Task> tasks_;
  std::vector<int> region_task_;                   // by node
  std::map<std::pair<int, int>, int> transfer_of_;  // tensor, destination → index
  std::map<int, int> transfer_task_;
  const std::vector<std::vector<int>> reads_;
  std::vector<std::vector<int>> outputs_;  // of the graph, by node
};

// Many inferences; job = inference x tasks + task.
class Simulation {
 public:
  Simulation(const std::vector<Task>& tasks, int inferences)
      : tasks_(tasks), count_(static_cast<int>(tasks.size())), inferences_(inferences), readers_(count_), next_on_(count_, -1) {
    std::map<int, int> last_on;
    for (int task = 0; task < count_; ++task) {
      for (int before : tasks[task].after) readers_[before].push_back(task);
      const auto [entry, inserted] = last_on.try_emplace(tasks[task].resource, task);
      if (!inserted) next_on_[std::exchange(entry->second, task)] = task;
    }
    const size_t jobs = static_cast<size_t>(count_) * inferences;
    waiting_for_.assign(jobs, 0);
    start_us_.assign(jobs, 0);
    end_us_.assign(jobs, 0);
  }

  Steady Run() {
    CountWaits();
    while (!ends_.empty() || Dispatch()) {
      if (ends_.empty()) continue;
      now_us_ = ends_.top().first;
      // All that ends now, before anything new begins: the oldest of what becomes ready goes first.
      while (!ends_.empty() && ends_.top().first <= now_us_) {
        const int job = ends_.top().second;
        ends_.pop();
        Finish(job);
      }
      Dispatch();
    }
    return Summary();
  }

 private:
  void CountWaits() {
    for (int inference = 0; inference < inferences_; ++inference) {
      for (int task = 0; task < count_; ++task) {
        int& waits = waiting_for_[inference * count_ + task];
        waits += static_cast<int>(tasks_[task].after.size());
        if (inference >= 2) waits += static_cast<int>(readers_[task].size());
        if (next_on_[task] >= 0) ++waiting_for_[inference * count_ + next_on_[task]];
      }
    }
    for (int job = 0; job < static_cast<int>(waiting_for_.size()); ++job) {
      if (waiting_for_[job] == 0) ready_[tasks_[job % count_].resource].push(job);
    }
  }

  void Done(int job) {
    if (job < static_cast<int>(waiting_for_.size()) && --waiting_for_[job] == 0) ready_[tasks_[job % count_].resource].push(job);
  }

  void Finish(int job) {
    const int task = job % count_, base = job - task;
    busy_[tasks_[task].resource] = false;
    for (int reader : readers_[task]) Done(base + reader);
    if (next_on_[task] >= 0) Done(base + next_on_[task]);
    for (int before : tasks_[task].after) Done(base + 2 * count_ + before);  // its buffer is free again
  }

  // Starts what can start; jobs are numbered by age.
  bool Dispatch() {
    bool any = false;
    for (auto& [resource, queue] : ready_) {
      if (queue.empty() || busy_[resource]) continue;
      const int job = queue.top();
      queue.pop();
      busy_[resource] = any = true;
      start_us_[job] = now_us_;
      end_us_[job] = now_us_ + tasks_[job % count_].us;
      ends_.emplace(end_us_[job], job);
    }
    return any;
  }

  double EndOf(int inference) const {
    return *std::max_element(end_us_.begin() + inference * count_, end_us_.begin() + (inference + 1) * count_);
  }

  Steady Summary() const {
    Steady result;
    result.inferences = inferences_;
    if (count_ == 0) return result;
    const int last = inferences_ - 1, middle = last / 2;
    result.first_end_us = EndOf(0);
    if (last > middle) result.period_us = (EndOf(last) - EndOf(middle)) / (last - middle);
    result.last_latency_us =
        EndOf(last) - *std::min_element(start_us_.begin() + last * count_, start_us_.begin() + (last + 1) * count_);
    return result;
  }

  using Oldest = std::priority_queue<int, std::vector<int>, std::greater<int>>;
  using End = std::pair<double, int>;
  const std::vector<Task>& tasks_;
  const int count_;
  const int inferences_;
  std::vector<std::vector<int>> readers_;  // of each task's result
  std::vector<int> next_on_;               // the next task of the same inference on the same resource
  std::vector<int> waiting_for_;           // by job
  std::vector<double> start_us_, end_us_;
  std::map<int, Oldest> ready_;  // by resource
  std::map<int, bool> busy_;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
  double now_us_ = 0;
};

}  // namespace

int ResourceCount(const Problem& problem) {
  const int devices = static_cast<int>(problem.devices.size());
  return devices + devices * devices;
}

int ResourceOfLink(const Problem& problem, int from, int to) {
  const int devices = static_cast<int>(problem.devices.size());
  return devices + from * devices + to;
}

std::vector<Task> PlanTasks(const Problem& problem, const Evaluation& evaluation) {
  return TaskList(problem, evaluation).Build();
}

double Time(std::vector<Task>& tasks) {
  std::map<int, double> free_us;
  double end_us = 0;
  for (Task& task : tasks) {
    double& free = free_us[task.resource];
    task.start_us = free;
    for (int before : task.after) task.start_us = std::max(task.start_us, tasks[before].end_us);
    free = task.end_us = task.start_us + task.us;
    end_us = std::max(end_us, task.end_us);
  }
  return end_us;
}

double LargestLoadUs(const std::vector<Task>& tasks) {
  std::map<int, double> load_us;
  double largest_us = 0;
  for (const Task& task : tasks) largest_us = std::max(largest_us, load_us[task.resource] += task.us);
  return largest_us;
}

Steady Simulate(const std::vector<Task>& tasks, int inferences) { return Simulation(tasks, inferences).Run(); }

}  // namespace heddle::ir::partition
