// A fixed set of threads that share the iterations of one loop at a time.
#ifndef HEDDLE_CPU_FALLBACK_THREAD_POOL_H_
#define HEDDLE_CPU_FALLBACK_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace heddle::cpu {

class ThreadPool {
 public:
  using Body = void (*)(void* context, int64_t begin, int64_t end);

  // `threads` >= 1, the caller's included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  // Calls body on disjoint ranges that cover [0, extent) and returns when all are done. From one thread at a time; not nested.
  void ParallelFor(Body body, void* context, int64_t extent);

 private:
  struct Job {
    Body body = nullptr;
    void* context = nullptr;
    int64_t extent = 0;
    int64_t chunk = 1;
  };
  void Work();
  void RunChunks(const Job& job);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  Job job_;
  uint64_t generation_ = 0;  // of the job; a worker runs each once
  int active_ = 0;           // workers that have not finished the current job
  bool stop_ = false;
  std::atomic<int64_t> next_{0};
};

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_THREAD_POOL_H_
