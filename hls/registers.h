// The accelerator's AXI4-Lite registers (32 bits each, byte offsets): one table from which the RTL's register file, the C
// driver, the simulator and docs/accelerator.md derive.
#ifndef HEDDLE_HLS_REGISTERS_H_
#define HEDDLE_HLS_REGISTERS_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace heddle::hls {

inline constexpr uint32_t kAcceleratorId = 0x4844'4C31;
inline constexpr int kRegisterAddressBits = 8;

enum class Access { kReadOnly, kReadWrite, kCounter };

struct RegisterSpec {
  std::string_view name;
  uint32_t offset = 0;
  Access access = Access::kReadOnly;
  std::string_view doc;
};

// In order of offset. Counters are cleared by a start and stand still when the program is done.
const std::vector<RegisterSpec>& RegisterMap();
// Offset of a register by name; a name that does not exist is a bug.
uint32_t RegisterOffset(std::string_view name);

// Bits of `control`.
inline constexpr uint32_t kControlStart = 1;            // write 1: start the program
inline constexpr uint32_t kControlInterruptEnable = 2;  // irq = done && enabled
// Bits of `status`.
inline constexpr uint32_t kStatusBusy = 1;
inline constexpr uint32_t kStatusDone = 2;   // set when the program is done; cleared by a start or by writing 1 to it
inline constexpr uint32_t kStatusError = 4;  // unknown opcode, or an AXI response other than OKAY; cleared by a start

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_REGISTERS_H_
