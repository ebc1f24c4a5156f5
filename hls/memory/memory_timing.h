// The time of the main memory behind the accelerator's AXI4 master: latency, bandwidth, bursts in flight, banks with open
// rows, refresh. One definition for the memory of the RTL simulation (sim/harness/axi_memory.h, which adds data and random
// back-pressure) and for the fast timing model (hls/timing.h), so that the two cannot disagree.
//
// Reads and writes share one data bus through a credit of bytes that grows every cycle. Bursts of a direction are served in the
// order of their addresses, each not before its latency has passed, so that the latencies of bursts in flight overlap. A burst
// that meets another open row of its bank pays for closing and opening, and not sooner than a row cycle after the bank's last
// opening. A refresh stops the data bus and closes all rows.
//
// Built together with verilated accelerators, away from the rest of Heddle: only the standard library here, and C++17.
#ifndef HEDDLE_HLS_MEMORY_MEMORY_TIMING_H_
#define HEDDLE_HLS_MEMORY_MEMORY_TIMING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::hls {

// All times in cycles of the accelerator's clock.
struct MemoryModel {
  int latency_cycles = 30;          // from an accepted read address to its first beat; from the last beat written to its response
  double bytes_per_cycle = 8;       // both directions together; at most the bus width counts
  int max_reads = 16;               // bursts in flight before arready falls
  int max_writes = 16;
  int banks = 8;                    // banks with one open row each
  int row_bytes = 2048;             // consecutive bytes of a row; rows go round the banks
  int row_miss_cycles = 0;          // precharge and activate: added to the latency of a burst that opens another row
  int row_cycle_cycles = 0;         // least time between two openings of a bank
  int refresh_interval_cycles = 0;  // 0: no refresh
  int refresh_cycles = 0;           // no data moves for so long at the start of each interval but the first
};

// First-in first-out in a ring that grows; the hardware's queues are short.
template <typename T>
class Ring {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  T& front() { return items_[head_]; }
  const T& front() const { return items_[head_]; }
  void push_back(const T& item) {
    if (count_ == items_.size()) Grow();
    items_[(head_ + count_) & (items_.size() - 1)] = item;
    ++count_;
  }
  void pop_front() {
    head_ = (head_ + 1) & (items_.size() - 1);
    --count_;
  }
  void clear() { count_ = 0; }

 private:
  void Grow() {
    std::vector<T> larger(items_.empty() ? 8 : 2 * items_.size());
    for (size_t i = 0; i < count_; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
    items_ = std::move(larger);
    head_ = 0;
  }
  std::vector<T> items_;
  size_t head_ = 0, count_ = 0;
};

class MemoryTiming {
 public:
  struct Burst {
    uint64_t address = 0;   // of its next beat
    int beats = 0;          // left
    int64_t ready_cycle = 0;
    bool bad = false;       // outside the memory
  };
  // What the memory drives during a cycle.
  struct Outputs {
    bool arready = false, rvalid = false, rlast = false, awready = false, wready = false, bvalid = false, response_bad = false;
  };

  MemoryTiming(const MemoryModel& model, int beat_bytes)
      : model_(model),
        beat_(int64_t{beat_bytes} << kFractionBits),
        beat_bytes_(static_cast<uint64_t>(beat_bytes)),
        rate_(std::max<int64_t>(1, static_cast<int64_t>(model.bytes_per_cycle * (int64_t{1} << kFractionBits) + 0.5))),
        most_credit_(std::max(2 * beat_, rate_)),
        banks_(static_cast<size_t>(std::max(1, model.banks))) {
    Begin();
  }

  // A program starts: rows are closed, the first refresh is a whole interval away, unused bandwidth is there. So a program's
  // cycles do not depend on what the host did before. Nothing may be in flight.
  void Begin() {
    cycle_ = 0;
    credit_ = most_credit_;
    for (Bank& bank : banks_) bank = {};
    DriveQuietly();
  }

  const Outputs& outputs() const { return outputs_; }
  int64_t cycle() const { return cycle_; }
  uint64_t row_misses() const { return row_misses_; }
  bool has_writes() const { return !writes_.empty(); }
  const Burst& read() const { return reads_.front(); }
  const Burst& write() const { return writes_.front(); }

  // What happens at the end of a cycle, in this order; then Tick.
  // The read beat on offer is taken.
  void TakeRead() {
    Burst& burst = reads_.front();
    burst.address += beat_bytes_;
    credit_ -= beat_;
    if (--burst.beats == 0) reads_.pop_front();
    outputs_.rvalid = false;
  }
  void TakeResponse() {
    responses_.pop_front();
    outputs_.bvalid = false;
  }
  // A write beat is taken; true where it completes its burst.
  bool TakeWrite() {
    Burst& burst = writes_.front();
    burst.address += beat_bytes_;
    credit_ -= beat_;
    if (--burst.beats > 0) return false;
    responses_.push_back({std::max(burst.ready_cycle, cycle_ + model_.latency_cycles), burst.bad});
    writes_.pop_front();
    return true;
  }
  void AcceptRead(uint64_t address, int beats, bool bad = false) { reads_.push_back(Accept(address, beats, bad)); }
  void AcceptWrite(uint64_t address, int beats, bool bad = false) { writes_.push_back(Accept(address, beats, bad)); }

  // The next cycle's outputs. `stalls()` says for each ready and valid whether it is withheld by chance.
  template <typename Stalls>
  void Tick(Stalls&& stalls) {
    ++cycle_;
    credit_ = std::min(credit_ + rate_, most_credit_);
    Drive(stalls);
  }
  void Tick() {
    Tick([] { return false; });
  }

  // `count` cycles in which nothing was taken or accepted.
  void Skip(int64_t count) {
    cycle_ += count;
    credit_ = std::min(credit_ + rate_ * std::min(count, most_credit_ / rate_ + 1), most_credit_);
    DriveQuietly();
  }

  // Beats of the burst on offer, its last one excepted, that can be taken one a cycle from now on.
  int64_t SteadyReads() const {
    if (!outputs_.rvalid || Refreshing(cycle_)) return 0;
    int64_t beats = reads_.front().beats - 1;
    if (rate_ < beat_) beats = std::min(beats, std::max<int64_t>(0, credit_ - beat_) / (beat_ - rate_));
    if (model_.refresh_interval_cycles > 0) beats = std::min(beats, (RefreshesUntil(cycle_) + 1) * model_.refresh_interval_cycles - 1 - cycle_);
    return beats;
  }
  // So many cycles, at most SteadyReads(), in each of which a read beat is taken and nothing else happens.
  void TakeReads(int64_t beats) {
    Burst& burst = reads_.front();
    burst.address += beat_bytes_ * static_cast<uint64_t>(beats);
    burst.beats -= static_cast<int>(beats);
    cycle_ += beats;
    credit_ = std::min(credit_ + beats * (rate_ - beat_), most_credit_);
    outputs_.rvalid = false;
    DriveQuietly();
  }

  static constexpr int64_t kNever = INT64_MAX / 4;
  // The first cycle after this one at which an output can change by itself; never late, kNever where none will.
  int64_t NextChange() const {
    int64_t next = kNever;
    if (!outputs_.rvalid && !reads_.empty()) next = std::min(next, MovesAt(reads_.front().ready_cycle, beat_));
    if (!outputs_.wready && !writes_.empty()) next = std::min(next, MovesAt(0, (outputs_.rvalid ? 2 : 1) * beat_));
    if (!outputs_.bvalid && !responses_.empty()) next = std::min(next, std::max(cycle_ + 1, responses_.front().cycle));
    return next;
  }

 private:
  static constexpr int kFractionBits = 20;  // of the credit, so that any number of cycles adds up exactly
  struct Bank {
    int64_t row = -1;
    int64_t opens_cycle = 0;    // from then on it may open another row
    int64_t refreshes = 0;      // when it was opened
  };
  struct Response {
    int64_t cycle = 0;  // from then on
    bool bad = false;
  };

  int64_t RefreshesUntil(int64_t cycle) const {
    return model_.refresh_interval_cycles > 0 ? cycle / model_.refresh_interval_cycles : 0;
  }
  bool Refreshing(int64_t cycle) const {
    return model_.refresh_interval_cycles > 0 && cycle >= model_.refresh_interval_cycles &&
           cycle % model_.refresh_interval_cycles < model_.refresh_cycles;
  }

  Burst Accept(uint64_t address, int beats, bool bad) {
    Burst burst{address, beats, cycle_ + model_.latency_cycles, bad};
    const uint64_t row_number = address / static_cast<uint64_t>(std::max(1, model_.row_bytes));
    Bank& bank = banks_[row_number % banks_.size()];
    const auto row = static_cast<int64_t>(row_number / banks_.size());
    const int64_t refreshes = RefreshesUntil(cycle_);
    if (bank.row != row || bank.refreshes != refreshes) {
      const int64_t opens = std::max(cycle_, bank.opens_cycle);
      bank = {row, opens + model_.row_cycle_cycles, refreshes};
      ++row_misses_;
      burst.ready_cycle = opens + model_.row_miss_cycles + model_.latency_cycles;
    }
    return burst;
  }

  // When `credit` may move, not before `ready` nor in a refresh.
  int64_t MovesAt(int64_t ready, int64_t credit) const {
    int64_t cycle = std::max(cycle_ + 1, ready);
    if (credit_ < credit) cycle = std::max(cycle, cycle_ + (credit - credit_ + rate_ - 1) / rate_);
    if (Refreshing(cycle)) cycle += model_.refresh_cycles - cycle % model_.refresh_interval_cycles;
    return cycle;
  }

  void DriveQuietly() {
    Drive([] { return false; });
  }

  template <typename Stalls>
  void Drive(Stalls&& stalls) {
    const bool refreshing = Refreshing(cycle_);
    // A beat that was offered stays.
    if (!outputs_.rvalid && !reads_.empty() && reads_.front().ready_cycle <= cycle_ && credit_ >= beat_ && !refreshing && !stalls()) {
      outputs_.rvalid = true;
      outputs_.rlast = reads_.front().beats == 1;
    }
    const int64_t owed = (outputs_.rvalid ? 2 : 1) * beat_;  // a read beat on offer goes first
    outputs_.arready = reads_.size() < static_cast<size_t>(model_.max_reads) && !stalls();
    outputs_.awready = writes_.size() < static_cast<size_t>(model_.max_writes) && !stalls();
    outputs_.wready = !writes_.empty() && credit_ >= owed && !refreshing && !stalls();
    if (!outputs_.bvalid && !responses_.empty() && responses_.front().cycle <= cycle_ && !stalls()) {
      outputs_.bvalid = true;
      outputs_.response_bad = responses_.front().bad;
    }
  }

  MemoryModel model_;
  int64_t beat_;
  uint64_t beat_bytes_;
  int64_t rate_, most_credit_;
  std::vector<Bank> banks_;
  Outputs outputs_;
  Ring<Burst> reads_, writes_;  // accepted, in order
  Ring<Response> responses_;
  int64_t cycle_ = 0, credit_ = 0;
  uint64_t row_misses_ = 0;
};

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_MEMORY_MEMORY_TIMING_H_
