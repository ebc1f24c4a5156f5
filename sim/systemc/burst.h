// What the platform's modules exchange: bursts as TLM-2.0 generic payloads in the approximately-timed base protocol, and
// the clock in which all of them count.
//
// A burst's phases stand for AXI's channels: BEGIN_REQ to END_REQ is the address, and for a write its data; BEGIN_RESP is the
// first beat of read data, or the write response. Beats have no phases of their own; BurstTiming says when they are on the bus.
//
// Compiled by Bazel (C++20) and with a verilated model (C++17).
#ifndef HEDDLE_SIM_SYSTEMC_BURST_H_
#define HEDDLE_SIM_SYSTEMC_BURST_H_

#include <cmath>
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

namespace heddle::sim::systemc {

// Cycles of the one clock of the platform.
class Clock {
 public:
  explicit Clock(double mhz) : period_(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(1e6 / mhz + 0.5))) {}
  sc_core::sc_time Cycles(int64_t cycles) const { return period_ * static_cast<double>(cycles); }
  int64_t Now() const { return static_cast<int64_t>(sc_core::sc_time_stamp().value() / period_.value()); }
  const sc_core::sc_time& period() const { return period_; }

 private:
  sc_core::sc_time period_;  // whole picoseconds, the default resolution
};

struct Burst;

// Beats in time, in cycles of the clock, and where the answer goes.
struct BurstTiming : tlm::tlm_extension<BurstTiming> {
  Burst* burst = nullptr;       // whose payload this extends
  int initiator = 0;            // port of the interconnect through which it came
  int beats = 1;
  int64_t data_begin_cycle = 0; // writes: cycle from which beats may flow (given by the initiator); reads: of the first beat
  int64_t data_end_cycle = 0;   // cycle of the last beat, given by the memory
  std::vector<int64_t> beat_cycles;  // of every beat, where they are not evenly spaced (`spacing`)
  double spacing_cycles = 1;         // else beat i is in the first cycle not before start + i * spacing
  double start_cycle = 0;

  // Cycle of beat `index`.
  int64_t BeatCycle(int index) const {
    if (!beat_cycles.empty()) return beat_cycles[static_cast<size_t>(index)];
    return static_cast<int64_t>(std::ceil(start_cycle + index * spacing_cycles - 1e-6));
  }
  tlm::tlm_extension_base* clone() const override { return new BurstTiming(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    Burst* const own = burst;
    *this = static_cast<const BurstTiming&>(other);
    burst = own;
  }
};

// A payload with its data, owned by a pool.
struct Burst {
  tlm::tlm_generic_payload payload;
  BurstTiming timing;
  std::vector<uint8_t> data;
  sc_core::sc_event changed;  // one of the following
  bool requested = false;     // END_REQ: the address, and a write's data, are taken
  bool answered = false;      // BEGIN_RESP
};

// Memory manager of an initiator's bursts, as the base protocol asks for.
class BurstPool : public tlm::tlm_mm_interface {
 public:
  // A burst of `bytes` at `address`, acquired once; Release() it when its answer has been used.
  Burst* Take(tlm::tlm_command command, uint64_t address, size_t bytes, int beats) {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Burst>());
      all_.back()->timing.burst = all_.back().get();
      all_.back()->payload.set_extension(&all_.back()->timing);
      free_.push_back(all_.back().get());
    }
    Burst* burst = free_.back();
    free_.pop_back();
    burst->data.assign(bytes, 0);
    burst->requested = burst->answered = false;
    burst->timing.beats = beats;
    burst->timing.beat_cycles.clear();
    tlm::tlm_generic_payload& payload = burst->payload;
    payload.set_mm(this);
    payload.acquire();
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(burst->data.data());
    payload.set_data_length(static_cast<unsigned>(bytes));
    payload.set_streaming_width(static_cast<unsigned>(bytes));
    payload.set_byte_enable_ptr(nullptr);
    payload.set_dmi_allowed(false);
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    return burst;
  }
  void free(tlm::tlm_generic_payload* payload) override {
    for (const auto& burst : all_) {
      if (&burst->payload == payload) free_.push_back(burst.get());
    }
  }
  static BurstTiming& TimingOf(tlm::tlm_generic_payload& payload) {
    BurstTiming* timing = nullptr;
    payload.get_extension(timing);
    return *timing;
  }
  static Burst& BurstOf(tlm::tlm_generic_payload& payload) { return *TimingOf(payload).burst; }
  ~BurstPool() override {
    for (const auto& burst : all_) burst->payload.clear_extension(&burst->timing);
  }

 private:
  std::vector<std::unique_ptr<Burst>> all_;
  std::vector<Burst*> free_;
};

}  // namespace heddle::sim::systemc

#endif  // HEDDLE_SIM_SYSTEMC_BURST_H_
