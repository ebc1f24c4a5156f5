// What the platform knows of an accelerator: masters to bind, registers, an interrupt. Two modules implement it, and a
// platform program holds one of them: fast_accelerator.cc (functional model with the fast model's timing) or rtl_accelerator.cc (the
// verilated Verilog behind an AXI-to-TLM bridge).
#ifndef HEDDLE_SIM_SYSTEMC_ACCELERATOR_H_
#define HEDDLE_SIM_SYSTEMC_ACCELERATOR_H_

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <map>
#include <string>

#include "burst.h"
#include "script.h"

namespace heddle::sim::systemc {

class Accelerator : public sc_core::sc_module {
 public:
  using Master = tlm_utils::simple_initiator_socket_tagged<Accelerator>;

  explicit Accelerator(sc_core::sc_module_name name) : sc_module(name), registers("registers"), irq("irq") {
    registers.register_b_transport(this, &Accelerator::RegisterAccess);
  }

  tlm_utils::simple_target_socket<Accelerator> registers;  // AXI4-Lite: 32 bits, offsets of docs/accelerator.md
  sc_core::sc_out<bool> irq;                                // level: done and enabled

  // Answers on a master's backward path; `index` as in masters().
  virtual tlm::tlm_sync_enum Response(int index, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay) = 0;

  // In the order of their priority on the interconnect.
  virtual std::vector<Master*> masters() = 0;
  // Of the job that has just ended: counters beside the registers, and what ran when.
  virtual std::map<std::string, int64_t> Counters() const { return {}; }
  virtual bool HasRegister(uint32_t offset) const = 0;
  // Empty while all is well.
  const std::string& error() const { return error_; }
  // Which unit waits for what; for a program that hangs.
  virtual std::string Waiting() const = 0;

  std::vector<Event> TakeEvents() { return std::move(events_); }

 protected:
  // Answers a register access; may wait.
  virtual void RegisterAccess(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) = 0;
  // Ends the simulation.
  void Fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    sc_core::sc_stop();
  }

  std::vector<Event> events_;

 private:
  std::string error_;
};

// The one that this program was built with.
std::unique_ptr<Accelerator> MakeAccelerator(const Script& script, const Clock& clock);

}  // namespace heddle::sim::systemc

#endif  // HEDDLE_SIM_SYSTEMC_ACCELERATOR_H_
