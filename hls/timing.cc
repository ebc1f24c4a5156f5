// The fast model's face: checks what it is given, runs the engine, words its failure.

#include "hls/timing.h"

#include "hls/timing_compute.h"
#include "hls/timing_engine.h"
#include "ir/status.h"

namespace heddle::hls {

CycleKinds& CycleKinds::operator+=(const CycleKinds& other) {
  for (int64_t CycleKinds::*member :
       {&CycleKinds::multiply_steps, &CycleKinds::other_steps, &CycleKinds::operand_b_cycles, &CycleKinds::wait_drain_cycles,
        &CycleKinds::wait_bank_cycles, &CycleKinds::fill_drain_cycles, &CycleKinds::wait_load_cycles, &CycleKinds::wait_store_cycles,
        &CycleKinds::wait_fetch_cycles, &CycleKinds::finish_cycles, &CycleKinds::column_steps}) {
    this->*member += other.*member;
  }
  return *this;
}

int64_t ComputeCycles(const AcceleratorParams& params, const ComputeFields& fields) {
  ComputeTiming compute(params);
  compute.Start(fields, 0);
  return compute.EndCycle() + 1;
}

absl::StatusOr<ProgramTiming> EstimateProgram(const AcceleratorParams& params, const MemoryModel& memory,
                                              const std::vector<Instruction>& program, const EstimateOptions& options) {
  TimingEngine engine(params, memory, program, options);
  if (!engine.Run()) {
    return ir::UserError("E-PROGRAM-006", engine.DescribeStop(), "give the missing tokens, or order the program so that it could run one by one");
  }
  return engine.TakeTiming();
}

}  // namespace heddle::hls
