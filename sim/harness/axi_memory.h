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

struct MemoryConfig {
  int beat_bytes = 8;              // width of the data channels
  int latency_cycles = 30;         // from an accepted address to the first beat of data, or from the last beat written to its response
  double bytes_per_cycle = 8;      // both directions together
  int max_reads = 16;              // bursts in flight before arready falls
  int max_writes = 16;
  int banks = 8;                   // banks with one open row each
  int row_bytes = 2048;            // consecutive bytes of a row; rows go round the banks
  int row_miss_cycles = 0;         // added to the latency of a burst that opens another row
  int row_cycle_cycles = 0;        // least time between two openings of a bank
  int refresh_interval_cycles = 0; // 0: no refresh
  int refresh_cycles = 0;          // no data moves for so long at the start of each interval but the first
  double stall_probability = 0;    // for each channel and cycle: ready or valid is withheld
  uint64_t seed = 1;

  hls::MemoryModel timing() const {
    return {latency_cycles,  bytes_per_cycle,  max_reads,        max_writes,              banks,
            row_bytes,       row_miss_cycles,  row_cycle_cycles, refresh_interval_cycles, refresh_cycles};
  }
};

inline MemoryConfig MemoryConfigOf(const hls::MemoryModel& model, int beat_bytes) {
  MemoryConfig config;
  config.beat_bytes = beat_bytes;
  config.latency_cycles = model.latency_cycles;
  config.bytes_per_cycle = model.bytes_per_cycle;
  config.max_reads = model.max_reads;
  config.max_writes = model.max_writes;
  config.banks = model.banks;
  config.row_bytes = model.row_bytes;
  config.row_miss_cycles = model.row_miss_cycles;
  config.row_cycle_cycles = model.row_cycle_cycles;
  config.refresh_interval_cycles = model.refresh_interval_cycles;
  config.refresh_cycles = model.refresh_cycles;
  return config;
}

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
