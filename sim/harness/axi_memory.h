// The memory behind the accelerator's AXI4 master, cycle by cycle: data on top of the timing that the fast model shares
// (hls/memory/memory_timing.h), protocol checks, and, for tests, random back-pressure, deterministic for a seed.
//
// Built together with the verilated accelerator, away from the rest of Heddle: only the standard library here.
#ifndef HEDDLE_SIM_HARNESS_AXI_MEMORY_H_
#define HEDDLE_SIM_HARNESS_AXI_MEMORY_H_

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "memory_timing.h"

namespace heddle::sim {

// The memory of a target file, and what only this model of it has.
struct MemoryConfig : hls::MemoryModel {
  int beat_bytes = 8;            // width of the data channels
  double stall_probability = 0;  // for each channel and cycle: ready or valid is withheld
  uint64_t seed = 1;
};

// What the master drives, sampled before the rising edge.
struct AxiFromMaster {
  bool arvalid = false, rready = false, awvalid = false, wvalid = false, wlast = false, bready = false;
  uint64_t araddr = 0, awaddr = 0;
  uint8_t arlen = 0, awlen = 0;     // beats - 1
  const uint8_t* wdata = nullptr;   // beat_bytes
  uint64_t wstrb = 0;               // bit i: byte i is written
};

// What the memory drives during the next cycle.
struct AxiToMaster {
  bool arready = false, rvalid = false, rlast = false, awready = false, wready = false, bvalid = false;
  uint8_t rresp = 0, bresp = 0;     // 0 okay, 2 slave error: an address outside the memory
  const uint8_t* rdata = nullptr;   // beat_bytes, valid with rvalid
};

class AxiMemory {
 public:
  AxiMemory(const MemoryConfig& config, uint64_t bytes);

  std::vector<uint8_t>& bytes() { return bytes_; }
  const AxiToMaster& outputs() const { return outputs_; }
  // One rising edge: what the master drove together with outputs() takes effect; outputs() are then those of the next cycle.
  void Clock(const AxiFromMaster& in);

  // A program starts in the next cycle: its cycles then do not depend on what was done before (MemoryTiming::Begin).
  void BeginProgram();

  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t row_misses() const { return timing_.row_misses(); }
  // The first protocol error or bad address seen; empty where all was well.
  const std::string& error() const { return error_; }

 private:
  // Checks a burst; whether it lies outside the memory.
  bool IsBad(uint64_t address, int beats);
  void TakeWriteBeat(const AxiFromMaster& in);
  void CopyOutputs();
  bool Stall();
  void Fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  const MemoryConfig config_;
  std::vector<uint8_t> bytes_;
  hls::MemoryTiming timing_;
  AxiToMaster outputs_;
  std::vector<uint8_t> read_data_;
  uint64_t random_;
  uint64_t bytes_read_ = 0, bytes_written_ = 0;
  std::string error_;
};

}  // namespace heddle::sim

#endif  // HEDDLE_SIM_HARNESS_AXI_MEMORY_H_
