// What schedules need to know of the processor.
#ifndef HEDDLE_CPU_FALLBACK_CPU_TARGET_H_
#define HEDDLE_CPU_FALLBACK_CPU_TARGET_H_

#include <cstdint>
#include <string>

namespace heddle::cpu {

struct CpuTarget {
  std::string name;           // LLVM's name: "znver4"
  int vector_bytes = 16;      // widest vector register
  int vector_registers = 16;
  int64_t l1_bytes = 32 << 10;   // data cache of one core
  int64_t l2_bytes = 512 << 10;
  int float_lanes() const { return vector_bytes / 4; }
};

// The processor that this process runs on.
const CpuTarget& HostCpu();

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_CPU_TARGET_H_
