// The accelerator in time: one object runs one program. Private to the fast model.
#ifndef HEDDLE_HLS_TIMING_ENGINE_H_
#define HEDDLE_HLS_TIMING_ENGINE_H_

#include <string>
#include <vector>

#include "hls/timing.h"
#include "hls/timing_compute.h"
#include "hls/timing_transfer.h"

namespace heddle::hls {

inline constexpr int kTimedUnits = 3;  // load, compute, store
inline constexpr const char* kTimedUnitNames[kTimedUnits] = {"load", "compute", "store"};

class TimingEngine {
 public:
  TimingEngine(const AcceleratorParams& params, const MemoryModel& memory, const std::vector<Instruction>& program,
               const EstimateOptions& options);

  // False where the program stops before its end.
  bool Run();
  ProgramTiming TakeTiming() { return std::move(timing_); }
  // Who waits for what, after Run has returned false.
  std::string DescribeStop() const;

 private:
  struct Queue {
    Ring<int> items;
    size_t depth = 1;
    bool can_push() const { return items.size() < depth; }
  };
  // What happens in a cycle, decided from the registers before any of them changes.
  struct Signals {
    bool dispatched, moves, fetch_takes, load_takes, fetch_data, load_beat_there, beat, load_done, load_hands_over, push, store_want, store_go,
        sent, store_finish, compute_finish;
    bool starts[kTimedUnits];
  };

  const Instruction& At(int index) const { return program_[static_cast<size_t>(index)]; }
  static int UnitOf(const Instruction& instruction) { return static_cast<int>(instruction.header.opcode) - 1; }
  bool IsEnd(int index) const { return index >= static_cast<int>(program_.size()) || At(index).header.opcode == Opcode::kEnd; }
  // The unit that the head of this unit's queue lacks tokens of, or -1.
  int LacksTokensOf(int unit) const;
  bool HeadReady(int unit) const { return !queues_[unit].items.empty() && LacksTokensOf(unit) < 0; }
  bool AllIdle() const;

  // One cycle; false where nothing happened, so that only time can bring a change.
  bool Cycle();
  // Cycles from now on in which a load takes a beat and nothing else happens.
  int64_t SteadyBeats() const;
  void StreamBeats(int64_t beats);
  Signals Decide();
  void Arbitrate(Signals& s);
  void Account(const Signals& s, int64_t cycles);
  void FinishCompute();
  CycleKinds& KindsOf(int instruction);
  void UpdateFetch(const Signals& s);
  void UpdateReadPort(const Signals& s);
  void UpdateLoad(const Signals& s);
  void UpdateStore(const Signals& s);
  void UpdateMemory(const Signals& s);
  void UpdateTokens(const Signals& s);
  void Finish(int unit, int instruction);
  std::string Name(int instruction) const;
  std::string DescribeUnit(int unit) const;
  int GiverOf(int from, int to, int64_t token) const;

  const AcceleratorParams params_;
  const std::vector<Instruction>& program_;
  const EstimateOptions& options_;
  const BankMap bank_map_;
  const int64_t beat_bytes_;
  MemoryTiming memory_;
  FetchTiming fetch_;
  ReadPortTiming port_;
  LoadTiming load_;
  StoreTiming store_;
  PatienceTiming patience_;
  ComputeTiming compute_;
  bool compute_active_ = false;
  int compute_instruction_ = -1;
  int64_t compute_end_ = 0;   // not before this cycle
  int next_compute_ = 0;      // first compute instruction that has not started; program size where none is left
  int last_compute_ = -1;
  Queue queues_[kTimedUnits];
  int64_t given_[kTimedUnits][kTimedUnits] = {}, taken_[kTimedUnits][kTimedUnits] = {};  // [from][to]
  int64_t cycle_ = 0;
  ProgramTiming timing_;
};

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_TIMING_ENGINE_H_
