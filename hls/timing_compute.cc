// Follows hls/accelerator/sequencer.cc (which step when, from which banks), compute.cc (start and end of an instruction) and
// drain.cc (when results are written). Names and conditions are the hardware's.

#include "hls/timing_compute.h"

#include <algorithm>

#include "ir/check.h"

namespace heddle::hls {

namespace {

// Register stages of a drain lane, as in hls/accelerator/drain.cc.
int64_t LaneStages(const AcceleratorParams& p) { return p.elementwise ? kProductLead + kAdditionLag + 5 : 7 + (p.lookup ? 1 : 0); }

}  // namespace

// Stages R, A, M, S; capture; the groups of lanes, `interval` cycles apart; the lane's stages; write.
int64_t WriteDelayCycles(const AcceleratorParams& params, int64_t interval) {
  return 7 + (params.drain_cycles() - 1) * interval + LaneStages(params);
}

ComputeTiming::ComputeTiming(const AcceleratorParams& params) : banks_(params), params_(params) {}

void ComputeTiming::Start(const ComputeFields& fields, int64_t cycle) {
  c_ = fields;
  running_ = true;
  emits_ = c_.hold_accumulation == 0;
  use_b_ = params_.elementwise && c_.use_b != 0 && emits_;
  by_vector_ = c_.reduce == Reduce::kDepthwise || c_.reduce == Reduce::kMax;
  const int64_t b = use_b_ ? 1 : 0;
  if (c_.window) {
    first_steps_ = int64_t{c_.first_emit} + 1 + b;
    next_steps_ = int64_t{c_.emit_stride} + b;
    groups_ = (int64_t{c_.x_steps} - 1 - c_.first_emit) / c_.emit_stride + 1;
    steps_per_instruction_ = c_.x_steps;
  } else {
    first_steps_ = next_steps_ = int64_t{c_.kernel_rows} * c_.kernel_columns * c_.passes + b;
    groups_ = c_.x_steps;
    steps_per_instruction_ = groups_ * (first_steps_ - b);
  }
  total_rows_ = int64_t{c_.blocks} * c_.out_rows;
  steps_per_instruction_ *= total_rows_;
  bank_waits_ = 0;
  now_ = started_ = cycle + kIssueDelayCycles;
  row_ = group_ = step_ = 0;
  writes_.clear();
  SetRhythm();
  BeginRow();
}

// The intervals at which pixels follow each other where nothing disturbs them, and whether they hold for ever: no sum of them
// is a distance that the drain does not allow.
void ComputeTiming::SetRhythm() {
  const DrainMode mode = DrainModeOf(c_);
  const auto index = std::find_if(std::begin(kDrainModes), std::end(kDrainModes), [&](const DrainMode& m) {
    return m.wide == mode.wide && m.multiply == mode.multiply && m.add == mode.add;
  }) - std::begin(kDrainModes);
  HEDDLE_CHECK(index < static_cast<int64_t>(modes_.size()), "a drain mode that programs may not have");
  std::vector<bool>& conflicts = modes_[static_cast<size_t>(index)];
  if (conflicts.empty()) conflicts = PixelConflicts(params_.drain_cycles(), mode);
  conflicts_ = &conflicts;
  write_delay_ = WriteDelayCycles(params_, GroupIntervalCycles(mode));
  recent_.clear();
  disturbed_ = started_ - longest() - 1;
  regular_ = true;
  if (!emits_) {
    first_interval_ = first_steps_, next_interval_ = next_steps_;
    return;
  }
  const auto meets = [&](int64_t distance) { return distance <= longest() && conflicts[static_cast<size_t>(distance)]; };
  const auto interval = [&](int64_t steps) {
    while (meets(steps)) ++steps;
    return steps;
  };
  first_interval_ = interval(first_steps_);
  next_interval_ = interval(next_steps_);
  for (int64_t rows = 0; rows * first_interval_ <= longest(); ++rows) {
    for (int64_t sum = rows * first_interval_; sum <= longest(); sum += next_interval_) regular_ &= sum == 0 || !meets(sum);
  }
}

int64_t ComputeTiming::CanComplete(int64_t cycle) const {
  if (!emits_) return cycle;
  for (size_t i = recent_.size(); i-- > 0;) {
    const int64_t distance = cycle - recent_[i];
    if (distance > longest()) break;
    if ((*conflicts_)[static_cast<size_t>(distance)]) i = recent_.size(), ++cycle;
  }
  return cycle;
}

void ComputeTiming::Remember(int64_t completed) {
  if (longest() == 0) return;
  while (!recent_.empty() && completed - recent_.front() >= longest()) recent_.erase(recent_.begin());
  recent_.push_back(completed);
}

void ComputeTiming::BeginRow() {
  const int64_t block = row_ / c_.out_rows, row = row_ % c_.out_rows;
  in_row_ = int64_t{c_.in_base} + block * c_.in_block_step + row * c_.in_row_step;
  out_row_ = int64_t{c_.out_base} + block * c_.out_block_step + row * c_.out_row_step;
  b_row_ = int64_t{c_.b_base} + block * c_.b_block_step + row * c_.b_row_step;
  index_row_ = int64_t{c_.first_row} + row * c_.row_stride;
  last_block_ = block + 1 == c_.blocks;
}

// The group's last step is issued in `cycle`.
void ComputeTiming::CompleteGroup(int64_t cycle) {
  if (emits_) {
    const int64_t bytes = last_block_ ? int64_t{c_.last_block_channels} : params_.output_lanes;
    while (!writes_.empty() && writes_.front().cycle < cycle) writes_.pop_front();
    writes_.push_back({cycle + write_delay_, out_row_ + group_ * c_.out_x_step, bytes});
    const bool in_rhythm = recent_.empty() || cycle - recent_.back() == (group_ == 0 ? first_interval_ : next_interval_);
    if (!in_rhythm) disturbed_ = cycle;
    Remember(cycle);
  }
  last_issue_ = cycle;
  now_ = cycle + 1;
  step_ = 0;
  if (++group_ < groups_) return;
  group_ = 0;
  if (++row_ < total_rows_) {
    BeginRow();
  } else {
    running_ = false;
  }
}

// Whole groups whose results are written before `before`, where pixels follow each other in their rhythm.
void ComputeTiming::SkipGroups(int64_t before) {
  const int64_t spare = before - write_delay_ - now_;
  if (spare <= 0 || !Settled()) return;
  int64_t cycles = 0;
  if (group_ == 0) {
    const int64_t row_cycles = first_interval_ + (groups_ - 1) * next_interval_;
    const int64_t rows = std::min(spare / row_cycles, total_rows_ - 1 - row_);
    if (rows <= 0) return;
    row_ += rows;
    cycles = rows * row_cycles;
    BeginRow();
  } else {
    const int64_t groups = std::min(spare / next_interval_, groups_ - 1 - group_);
    if (groups <= 0) return;
    group_ += groups;
    cycles = groups * next_interval_;
  }
  now_ += cycles;
  RememberSkipped(cycles);
}

// The pixels of the last `cycles` cycles that may still meet others.
void ComputeTiming::RememberSkipped(int64_t cycles) {
  std::vector<int64_t> skipped;  // latest first
  int64_t group = group_ == 0 ? groups_ : group_;
  for (int64_t completed = now_ - 1; now_ - 1 - completed < std::min(cycles, longest());) {
    skipped.push_back(completed);
    completed -= --group == 0 ? first_interval_ : next_interval_;
    if (group == 0) group = groups_;
  }
  for (size_t i = skipped.size(); i-- > 0;) Remember(skipped[i]);
}

bool ComputeTiming::AdvanceTo(int64_t cycle) {
  if (cycle < started_) return false;
  while (running_ && now_ < cycle) {
    const int64_t left = GroupSteps() - step_;
    const int64_t completes = CanComplete(now_ + left - 1);
    if (completes >= cycle) {
      const int64_t passed = cycle - now_;
      step_ += std::min(passed, left - 1);
      now_ = cycle;
      return true;
    }
    CompleteGroup(completes);
    if (running_) SkipGroups(cycle);
  }
  now_ = cycle;
  return true;
}

BankMask ComputeTiming::Banks() const {
  const bool is_b = use_b_ && IsLastStep();
  if (is_b) return banks_.Run(b_row_ + group_ * c_.b_x_step, params_.output_lanes);
  int64_t index = index_row_, address = in_row_, offset = 0;
  if (c_.window) {
    const int64_t column = group_ == 0 ? step_ : int64_t{c_.first_emit} + 1 + (group_ - 1) * c_.emit_stride + step_;
    offset = c_.first_x + column * c_.x_step;
  } else {
    const int64_t segment = step_ / c_.passes, pass = step_ % c_.passes;
    const int64_t kernel_row = segment / c_.kernel_columns, kernel_column = segment % c_.kernel_columns;
    offset = c_.first_x + group_ * c_.x_step + kernel_column * c_.kernel_column_step + pass * params_.contraction_lanes;
    index += kernel_row * c_.kernel_row_stride;
    address += kernel_row * c_.kernel_row_step;
  }
  address += offset;
  const auto inside = [&](int64_t row) { return row >= 0 && row < c_.in_rows; };
  if (!by_vector_) {
    if (!inside(index)) return 0;
    return banks_.Run(address, c_.reduce == Reduce::kLoad ? params_.output_lanes : params_.contraction_lanes);
  }
  if (offset < 0 || offset >= c_.in_row_bytes) return 0;
  BankMask banks = 0;
  for (int64_t j = 0; j < c_.vector_rows; ++j) {
    if (inside(index + j * c_.vector_row_stride)) banks |= banks_.Run(address + j * c_.vector_row_step, 1);
  }
  return banks;
}

BankMask ComputeTiming::WrittenBanks() {
  while (!writes_.empty() && writes_.front().cycle < now_) writes_.pop_front();
  if (writes_.empty() || writes_.front().cycle != now_) return 0;
  return banks_.Run(writes_.front().address, writes_.front().bytes);
}

void ComputeTiming::Block() {
  ++bank_waits_;
  ++now_;
}

int64_t ComputeTiming::EndCycle() const {
  int64_t last = last_issue_;
  if (running_) {
    // Group by group as long as the rhythm is disturbed.
    ComputeTiming rest = *this;
    do {
      rest.CompleteGroup(rest.CanComplete(rest.now_ + rest.GroupSteps() - rest.step_ - 1));
    } while (rest.running_ && !rest.Settled());
    last = rest.last_issue_;
    if (rest.running_) {
      last += (rest.group_ == 0 ? 0 : rest.groups_ - rest.group_) * next_interval_;
      const int64_t rows = total_rows_ - rest.row_ - (rest.group_ == 0 ? 0 : 1);
      last += rows * (first_interval_ + (groups_ - 1) * next_interval_);
    }
  }
  return last + (emits_ ? write_delay_ + 1 : kHoldDelayCycles);
}

int64_t ComputeTiming::drain_wait_cycles() const { return last_issue_ - started_ + 1 - steps_per_instruction_ - b_steps() - bank_waits_; }

}  // namespace heddle::hls
