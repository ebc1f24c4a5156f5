// Chunks are handed out by a counter, so that a thread that is interrupted by the system does not hold up the others. Which
// thread runs a chunk never changes a result: iterations are independent.

#include "cpu_fallback/thread_pool.h"

#include <algorithm>

namespace heddle::cpu {

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunChunks(const Job& job) {
  for (;;) {
    const int64_t begin = next_.fetch_add(job.chunk);
    if (begin >= job.extent) return;
    job.body(job.context, begin, std::min(begin + job.chunk, job.extent));
  }
}

void ThreadPool::Work() {
  uint64_t seen = 0;
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      job = job_;
    }
    RunChunks(job);
    std::lock_guard lock(mutex_);
    if (--active_ == 0) done_.notify_one();
  }
}

void ThreadPool::ParallelFor(Body body, void* context, int64_t extent) {
  if (workers_.empty() || extent <= 1) {
    body(context, 0, extent);
    return;
  }
  // About four chunks a thread: balance without much hand-out.
  const Job job{body, context, extent, std::max<int64_t>(1, extent / (threads() * 4))};
  {
    std::lock_guard lock(mutex_);
    job_ = job;
    next_ = 0;
    active_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  start_.notify_all();
  RunChunks(job);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return active_ == 0; });
}

}  // namespace heddle::cpu
