// What the accelerator's programs do with its memories, for the report: bytes of each layer over the memory port, and how
// full the memories on the chip are.
#ifndef HEDDLE_DRIVER_MEMORY_FACTS_H_
#define HEDDLE_DRIVER_MEMORY_FACTS_H_

#include <cstdint>
#include <vector>

#include "hls/program.h"
#include "report/report.h"

namespace heddle::driver {

// Bytes that the loads and stores of `program.run` move, by layer (the instructions' tag); instructions themselves are left out.
std::vector<int64_t> DramBytesByLayer(const hls::CompiledProgram& program);

// Adds one region's program to `out.on_chip` (the fullest region counts) and `out.spilled_…`, and sets the memory port's rate.
void AddMemoryFacts(const hls::CompiledProgram& program, report::Accelerator& out);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_MEMORY_FACTS_H_
