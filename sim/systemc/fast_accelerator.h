// The accelerator without RTL: the functional model for the bits, the fast model's cycles for compute instructions, and fetch,
// load and store units that move every burst over the interconnect, so that contention, rows and refresh show.
#ifndef HEDDLE_SIM_SYSTEMC_FAST_ACCELERATOR_H_
#define HEDDLE_SIM_SYSTEMC_FAST_ACCELERATOR_H_

#include <deque>
#include <optional>

#include "hls/functional_model.h"
#include "hls/isa.h"
#include "hls/params.h"
#include "sim/systemc/accelerator.h"

namespace heddle::sim::systemc {

class FastAccelerator : public Accelerator {
 public:
  FastAccelerator(sc_core::sc_module_name name, const hls::AcceleratorParams& params, const Clock& clock);

  std::vector<Master*> masters() override { return {&fetch_port_, &load_port_, &store_port_}; }
  std::map<std::string, int64_t> Counters() const override { return counters_; }
  bool HasRegister(uint32_t offset) const override;
  tlm::tlm_sync_enum Response(int index, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay) override;
  std::string Waiting() const override;

 protected:
  void RegisterAccess(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override;

 private:
  static constexpr int kUnits = 3;
  enum Unit { kLoad = 0, kCompute = 1, kStore = 2 };

  // A queue in front of a unit, and the tokens given to it.
  struct Front {
    std::deque<hls::Instruction> queue;
    size_t depth = 1;
    uint32_t tokens[kUnits] = {};  // from load, compute, store
    sc_core::sc_event changed;     // an instruction or a token has come
    sc_core::sc_event popped;
    bool active = false;
  };
  // A load whose bursts are asked for; the data side takes it when it has finished the one before.
  struct LoadJob {
    hls::Instruction instruction;
    std::deque<Burst*> bursts;
    bool all_asked = false;
    bool taken = false;
    int64_t start_cycle = 0;
  };

  void FetchThread();
  void DispatchThread();
  void LoadAskThread();
  void LoadDataThread();
  void ComputeThread();
  void StoreThread();
  void DoneThread();

  std::optional<hls::Instruction> FetchInstruction(uint64_t address);
  Burst* Prepare(tlm::tlm_command command, uint64_t address, size_t bytes);
  Burst* Send(Master& port, Burst* burst);
  // Calls f(offset in DRAM, offset in the compact copy, bytes) for the bursts of a transfer's rows.
  template <typename F>
  void ForEachBurst(const hls::TransferFields& transfer, F f);
  // The transfer with its rows behind one another in DRAM from 0 on, and no tokens: what the functional model runs.
  hls::Instruction Compact(const hls::Instruction& instruction) const;
  hls::Instruction Next(Unit unit);
  void Finish(Unit unit, const hls::Instruction& instruction, int64_t start_cycle);
  void Execute(const hls::Instruction& instruction, std::vector<uint8_t>& dram);
  void WaitCycles(int64_t cycles) { wait(clock_.Cycles(cycles)); }
  void WaitUntil(int64_t cycle) {
    if (cycle > clock_.Now()) WaitCycles(cycle - clock_.Now());
  }
  bool Idle() const;
  void StartProgram();
  uint32_t ReadRegister(const std::string& name) const;

  const hls::AcceleratorParams params_;
  const Clock& clock_;
  hls::FunctionalModel model_;
  BurstPool pool_;
  Master fetch_port_, load_port_, store_port_;

  Front fronts_[kUnits];
  sc_core::sc_event start_event_, held_event_, dispatched_event_, slot_event_, load_job_event_, load_taken_event_, load_burst_event_, write_event_,
      idle_event_;
  std::optional<hls::Instruction> held_;  // fetched, not yet in its queue
  std::deque<LoadJob*> load_jobs_;
  int reads_in_flight_ = 0, writes_in_flight_ = 0;
  bool busy_ = false, done_ = false, failed_ = false, fetching_ = false, interrupt_enabled_ = false;
  uint64_t base_ = 0;
  uint32_t program_ = 0;
  int64_t start_cycle_ = 0, run_cycles_ = 0;
  std::map<std::string, int64_t> counters_;
};

}  // namespace heddle::sim::systemc

#endif  // HEDDLE_SIM_SYSTEMC_FAST_ACCELERATOR_H_
