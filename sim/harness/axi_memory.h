// The memory behind the accelerator's AXI4 master: latency, bandwidth, bursts in flight, banks with open rows, refresh,
// and, for tests, random back-pressure. Cycle by cycle and deterministic for a seed.
//
// Built together with the verilated accelerator, away from the rest of Heddle: only the standard library here.
#ifndef HEDDLE_SIM_HARNESS_AXI_MEMORY_H_
#define HEDDLE_SIM_HARNESS_AXI_MEMORY_H_

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

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
  int refresh_interval_cycles = 0; // 0: no refresh
  int refresh_cycles = 0;          // no data moves for so long after each interval
  double stall_probability = 0;    // for each channel and cycle: ready or valid is withheld
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

  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t row_misses() const { return row_misses_; }
  // The first protocol error or bad address seen; empty where all was well.
  const std::string& error() const { return error_; }

 private:
  struct Burst {
    uint64_t address = 0;
    int beats = 0;           // left
    uint64_t ready_cycle = 0;
    bool bad = false;
  };

  Burst Accept(uint64_t address, uint8_t length);
  void AcceptAddresses(const AxiFromMaster& in);
  void TakeWriteBeat(const AxiFromMaster& in);
  void Drive();
  void DriveRead();
  bool Refreshing() const;
  bool Stall();
  void Fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  const MemoryConfig config_;
  std::vector<uint8_t> bytes_;
  AxiToMaster outputs_;
  std::deque<Burst> reads_, writes_;        // accepted, in order
  std::deque<std::pair<uint64_t, bool>> responses_;  // cycle from which a response may be given, bad
  std::vector<int64_t> open_row_;
  std::vector<uint8_t> read_data_;
  double credit_bytes_ = 0;
  uint64_t cycle_ = 0;
  uint64_t random_;
  uint64_t bytes_read_ = 0, bytes_written_ = 0, row_misses_ = 0;
  std::string error_;
};

}  // namespace heddle::sim

#endif  // HEDDLE_SIM_HARNESS_AXI_MEMORY_H_
