// Set-up and run of a compiled program as a simulation that returns all of DRAM; for tests and benchmarks.
#ifndef HEDDLE_TESTBENCH_SIMULATION_REQUEST_H_
#define HEDDLE_TESTBENCH_SIMULATION_REQUEST_H_

#include <cstdint>
#include <vector>

#include "hls/program.h"
#include "sim/verilated_model.h"

namespace heddle::testbench {

// `dram`: with the inputs packed; it must outlive the request. Job 1 is the run, its dump 0 the whole DRAM.
inline sim::SimulationRequest RequestFor(const hls::CompiledProgram& program, const std::vector<uint8_t>& dram, const sim::MemoryConfig& memory) {
  sim::SimulationRequest request;
  request.image = &dram;
  request.memory = memory;
  request.jobs.push_back({static_cast<uint64_t>(program.setup_address), {}, {}});
  request.jobs.push_back({static_cast<uint64_t>(program.run_address), {}, {{0, dram.size()}}});
  request.max_cycles = 200'000'000;
  return request;
}

struct ProgramRun {
  std::vector<ir::Tensor> outputs;
  int64_t cycles = 0;  // of the run, set-up excluded
  sim::SimulationResult simulation;
};

inline absl::StatusOr<ProgramRun> RunProgram(const sim::VerilatedModel& model, const hls::CompiledProgram& program,
                                             const std::vector<ir::Tensor>& inputs, const sim::MemoryConfig& memory) {
  std::vector<uint8_t> dram = hls::InitialDram(program);
  HEDDLE_RETURN_IF_ERROR(hls::PackInputs(program, inputs, dram));
  ProgramRun run;
  HEDDLE_ASSIGN_OR_RETURN(run.simulation, model.Run(RequestFor(program, dram, memory)));
  const sim::JobResult& job = run.simulation.jobs.at(1);
  run.outputs = hls::UnpackOutputs(program, job.dumps.at(0));
  run.cycles = job.counters.at("cycles_low");
  return run;
}

}  // namespace heddle::testbench

#endif  // HEDDLE_TESTBENCH_SIMULATION_REQUEST_H_
