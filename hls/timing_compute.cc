// Follows hls/accelerator/sequencer.cc (which step when, from which banks), compute.cc (start and end of an instruction) and
// drain.cc (when results are written). Names and conditions are the hardware's.

#include "hls/timing_compute.h"

#include <algorithm>

namespace heddle::hls {

namespace {

// Register stages of a drain lane, as in hls/accelerator/drain.cc.
int64_t LaneStages(const AcceleratorParams& p) { return p.elementwise ? 15 : 7 + (p.lookup ? 1 : 0); }

}  // namespace

// Stages R, A, M, S; capture; the groups of lanes, `interval` cycles apart; the lane's stages; write.
int64_t WriteDelayCycles(const AcceleratorParams& params, int64_t interval) {
  return 7 + (params.drain_cycles() - 1) * interval + LaneStages(params);
}

ComputeTiming::ComputeTiming(const AcceleratorParams& params)
    : banks_(params),
      contraction_lanes_(params.contraction_lanes),
      output_lanes_(params.output_lanes),
      drain_cycles_(params.drain_cycles()),
      delays_{WriteDelayCycles(params, 1), WriteDelayCycles(params, 2), WriteDelayCycles(params, 4)},
      has_elementwise_(params.elementwise) {}

void ComputeTiming::Start(const ComputeFields& fields, int64_t cycle) {
  c_ = fields;
  running_ = true;
  emits_ = c_.hold_accumulation == 0;
  use_b_ = has_elementwise_ && c_.use_b != 0 && emits_;
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
  unit_ = emits_ ? DrainInterval(c_) : 1;
  write_delay_ = delays_[unit_ / 2];
  const auto interval = [&](int64_t steps) { return std::max((steps + unit_ - 1) / unit_ * unit_, drain_cycles_ * unit_); };
  first_interval_ = interval(first_steps_);
  next_interval_ = interval(next_steps_);
  bank_waits_ = 0;
  now_ = started_ = cycle + kIssueDelayCycles;
  row_ = group_ = step_ = gap_ = 0;
  writes_.clear();
  BeginRow();
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
    const int64_t bytes = last_block_ ? int64_t{c_.last_block_channels} : output_lanes_;
    while (!writes_.empty() && writes_.front().cycle < cycle) writes_.pop_front();
    writes_.push_back({cycle + write_delay_, out_row_ + group_ * c_.out_x_step, bytes});
    gap_ = drain_cycles_ * unit_ - 1;
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

// Whole groups whose results are written before `before`; the drain is busy just as a steady run leaves it.
void ComputeTiming::SkipGroups(int64_t before) {
  const int64_t spare = before - write_delay_ - now_;
  if (spare <= 0) return;
  if (group_ == 0) {
    const int64_t row_cycles = first_interval_ + (groups_ - 1) * next_interval_;
    const int64_t rows = std::min(spare / row_cycles, total_rows_ - 1 - row_);
    if (rows <= 0) return;
    row_ += rows;
    now_ += rows * row_cycles;
    BeginRow();
  } else {
    const int64_t groups = std::min(spare / next_interval_, groups_ - 1 - group_);
    if (groups <= 0) return;
    group_ += groups;
    now_ += groups * next_interval_;
  }
}

bool ComputeTiming::AdvanceTo(int64_t cycle) {
  if (cycle < started_) return false;
  while (running_ && now_ < cycle) {
    const int64_t left = GroupSteps() - step_;
    const int64_t completes = Aligned(now_ + std::max(left - 1, emits_ ? gap_ : 0));
    if (completes >= cycle) {
      const int64_t passed = cycle - now_;
      step_ += std::min(passed, left - 1);
      gap_ = std::max<int64_t>(0, gap_ - passed);
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
  if (is_b) return banks_.Run(b_row_ + group_ * c_.b_x_step, output_lanes_);
  int64_t index = index_row_, address = in_row_, offset = 0;
  if (c_.window) {
    const int64_t column = group_ == 0 ? step_ : int64_t{c_.first_emit} + 1 + (group_ - 1) * c_.emit_stride + step_;
    offset = c_.first_x + column * c_.x_step;
  } else {
    const int64_t segment = step_ / c_.passes, pass = step_ % c_.passes;
    const int64_t kernel_row = segment / c_.kernel_columns, kernel_column = segment % c_.kernel_columns;
    offset = c_.first_x + group_ * c_.x_step + kernel_column * c_.kernel_column_step + pass * contraction_lanes_;
    index += kernel_row * c_.kernel_row_stride;
    address += kernel_row * c_.kernel_row_step;
  }
  address += offset;
  const auto inside = [&](int64_t row) { return row >= 0 && row < c_.in_rows; };
  if (!by_vector_) {
    if (!inside(index)) return 0;
    return banks_.Run(address, c_.reduce == Reduce::kLoad ? output_lanes_ : contraction_lanes_);
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
  gap_ = std::max<int64_t>(0, gap_ - 1);
  ++now_;
}

int64_t ComputeTiming::EndCycle() const {
  int64_t last = last_issue_;
  if (running_) {
    last = Aligned(now_ + std::max(GroupSteps() - step_ - 1, emits_ ? gap_ : 0)) + (groups_ - 1 - group_) * next_interval_ +
           (total_rows_ - 1 - row_) * (first_interval_ + (groups_ - 1) * next_interval_);
  }
  return last + (emits_ ? write_delay_ + 1 : kHoldDelayCycles);
}

int64_t ComputeTiming::drain_wait_cycles() const { return last_issue_ - started_ + 1 - steps_per_instruction_ - b_steps() - bank_waits_; }

}  // namespace heddle::hls
