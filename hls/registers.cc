// The register table.

#include "hls/registers.h"

#include <string>

#include "ir/check.h"

namespace heddle::hls {

const std::vector<RegisterSpec>& RegisterMap() {
  using enum Access;
  static const std::vector<RegisterSpec>* const map = new std::vector<RegisterSpec>{
      {"id", 0x00, kReadOnly, "0x48444C31"},
      {"control", 0x04, kReadWrite, "bit 0: write 1 to start; bit 1: interrupt enable"},
      {"status", 0x08, kReadWrite, "bit 0 busy, bit 1 done (write 1 to clear), bit 2 error"},
      {"base_low", 0x0C, kReadWrite, "DRAM base address, bits 31..0; a multiple of 4096"},
      {"base_high", 0x10, kReadWrite, "DRAM base address, bits 63..32"},
      {"program", 0x14, kReadWrite, "program, bytes from the base; a multiple of 128"},
      {"lanes", 0x18, kReadOnly, "bits 7..0 R, 15..8 C, 23..16 requantise lanes, 31..24 bytes of an AXI beat"},
      {"waiting", 0x1C, kReadOnly,
       "for a hang: bits 2..0 load, compute, store unit holds an instruction that waits for tokens; bits 10..8 unit busy"},
      {"cycles_low", 0x20, kCounter, "cycles from start to the last write response, bits 31..0"},
      {"cycles_high", 0x24, kCounter, "the same, bits 63..32"},
      {"fetch_wait_queue", 0x30, kCounter, "an instruction is there but its unit's queue is full"},
      {"load_busy", 0x40, kCounter, "the load unit moves data"},
      {"load_wait_token", 0x44, kCounter, "a load waits for tokens"},
      {"load_wait_address", 0x48, kCounter, "a read address is offered and not taken"},
      {"load_wait_data", 0x4C, kCounter, "the load unit waits for read data"},
      {"load_wait_bank", 0x50, kCounter, "read data wait for a bank that the drain writes"},
      {"load_beats", 0x54, kCounter, "beats loaded"},
      {"compute_busy", 0x60, kCounter, "a compute instruction is in execution, its drain included"},
      {"compute_steps", 0x64, kCounter, "steps issued"},
      {"compute_wait_token", 0x68, kCounter, "a compute instruction waits for tokens"},
      {"compute_wait_drain", 0x6C, kCounter, "a step waits because the drain is busy"},
      {"compute_wait_bank", 0x70, kCounter, "a step waits because load or store got the bank"},
      {"compute_empty", 0x74, kCounter, "no compute instruction is there"},
      {"store_busy", 0x80, kCounter, "the store unit moves data or waits for its responses"},
      {"store_wait_token", 0x84, kCounter, "a store waits for tokens"},
      {"store_wait_bank", 0x88, kCounter, "a read for a store waits for its bank"},
      {"store_wait_data", 0x8C, kCounter, "write data are offered and not taken"},
      {"store_wait_response", 0x90, kCounter, "everything is sent, responses are missing"},
      {"store_beats", 0x94, kCounter, "beats stored"},
  };
  return *map;
}

uint32_t RegisterOffset(std::string_view name) {
  for (const RegisterSpec& spec : RegisterMap()) {
    if (spec.name == name) return spec.offset;
  }
  HEDDLE_CHECK(false, "no register " + std::string(name));
  return 0;
}

}  // namespace heddle::hls
