// The compute unit in time: the hardware loop nest of hls/accelerator/sequencer.cc without data. Private to the fast model.
//
// Left alone it is regular, so any stretch of time is crossed in a few additions; where a load or a store is at the activation
// memory in the same cycle, it is asked for the banks of that very step.
#ifndef HEDDLE_HLS_TIMING_COMPUTE_H_
#define HEDDLE_HLS_TIMING_COMPUTE_H_

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "hls/drain_schedule.h"
#include "hls/isa.h"
#include "hls/memory/memory_timing.h"
#include "hls/params.h"

namespace heddle::hls {

// Cycles from the issue of a pixel's last step to the cycle in which its bytes are written, and to the instruction's end.
int64_t WriteDelayCycles(const AcceleratorParams& params, int64_t interval);
// The same for the end of an instruction that holds its accumulators.
inline constexpr int64_t kHoldDelayCycles = 4;
inline constexpr int64_t kIssueDelayCycles = 2;  // from the start to the first step: instruction register, set-up

// Bit i: bank i.
using BankMask = uint32_t;

// Where bytes of the activation memory lie.
class BankMap {
 public:
  explicit BankMap(const AcceleratorParams& params) : shift_(std::countr_zero(static_cast<unsigned>(params.bank_bytes()))) {}
  // Of a run of at most a line. Addresses count modulo the memory, so negative ones are fine.
  BankMask Run(int64_t address, int64_t bytes) const {
    const int64_t first = address >> shift_, last = (address + bytes - 1) >> shift_;
    const uint64_t run = ((uint64_t{2} << (last - first)) - 1) << (first & (kActivationBanks - 1));
    return static_cast<BankMask>(run | run >> kActivationBanks) & ((1u << kActivationBanks) - 1);
  }

 private:
  int shift_;
};

class ComputeTiming {
 public:
  // `params` outlives this.
  explicit ComputeTiming(const AcceleratorParams& params);

  // An instruction starts in `cycle` (its tokens are taken then).
  void Start(const ComputeFields& fields, int64_t cycle);
  // Everything before `cycle` happens without a rival for the banks. False where the first step is still to come.
  bool AdvanceTo(int64_t cycle);
  // In the cycle advanced to: whether a step asks for its reads, and for which banks.
  bool Wants() const { return running_ && !(IsLastStep() && CanComplete(now_) != now_); }
  BankMask Banks() const;
  // Banks that results are written to in that cycle.
  BankMask WrittenBanks();
  // That cycle passes without the step that Wants().
  void Block();
  // The cycle in which the instruction ends if nothing disturbs it from here on.
  int64_t EndCycle() const;

  // Of the instruction, at its end.
  int64_t steps() const { return steps_per_instruction_; }
  int64_t b_steps() const { return use_b_ ? groups_ * total_rows_ : 0; }
  int64_t bank_wait_cycles() const { return bank_waits_; }
  int64_t drain_wait_cycles() const;

 private:
  // Pixels are grouped by what completes them: a group is the steps from one completed pixel to the next, operand b's included.
  int64_t GroupSteps() const { return group_ == 0 ? first_steps_ : next_steps_; }
  bool IsLastStep() const { return step_ == GroupSteps() - 1; }
  // The first cycle from this one on in which the drain can take a pixel.
  int64_t CanComplete(int64_t cycle) const;
  void SetRhythm();
  void Remember(int64_t completed);
  void RememberSkipped(int64_t cycles);
  // Whether nothing disturbs the rhythm of pixels any more: it keeps its own conflicts away, and no pixel out of rhythm is in the drain.
  bool Settled() const { return regular_ && now_ - disturbed_ > longest(); }
  int64_t longest() const { return static_cast<int64_t>(conflicts_->size()) - 1; }
  void CompleteGroup(int64_t cycle);
  void SkipGroups(int64_t before);
  void BeginRow();

  const BankMap banks_;
  std::array<std::vector<bool>, std::size(kDrainModes)> modes_;  // PixelConflicts of each, once it was needed
  const AcceleratorParams& params_;
  const std::vector<bool>* conflicts_ = nullptr;  // of the instruction
  std::vector<int64_t> recent_;                   // cycles in which the pixels were completed that may still meet others, latest last
  int64_t write_delay_ = 0;                       // of the instruction: from a pixel's last step to its write
  bool regular_ = true;
  int64_t disturbed_ = 0;                         // when a pixel was last completed later than the rhythm has it
  ComputeFields c_;
  bool running_ = false, emits_ = true, use_b_ = false, by_vector_ = false;
  int64_t first_steps_ = 1, next_steps_ = 1;        // of a row's first group, of the others
  int64_t first_interval_ = 1, next_interval_ = 1;  // cycles from one completed pixel to the next
  int64_t groups_ = 1;                              // of a row
  int64_t total_rows_ = 1;                          // blocks x output rows
  int64_t steps_per_instruction_ = 0, bank_waits_ = 0;
  int64_t now_ = 0, started_ = 0, last_issue_ = 0;
  int64_t row_ = 0, group_ = 0, step_ = 0;
  // Of the row: addresses and the input row's index.
  int64_t in_row_ = 0, out_row_ = 0, b_row_ = 0, index_row_ = 0;
  bool last_block_ = false;
  struct Write {
    int64_t cycle = 0, address = 0, bytes = 0;
  };
  Ring<Write> writes_;
};

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_TIMING_COMPUTE_H_
