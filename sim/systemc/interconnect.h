// Routes and arbitrates: initiators on one side, the memory and the accelerator's registers on the other. Reads and writes are
// separate channels, as in AXI; a channel passes one address (a write with its data) at a time, and the initiator that was
// bound first wins. Blocking transport (the host) is routed without waiting for the channels.
#ifndef HEDDLE_SIM_SYSTEMC_INTERCONNECT_H_
#define HEDDLE_SIM_SYSTEMC_INTERCONNECT_H_

#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <deque>

#include "burst.h"

namespace heddle::sim::systemc {

// Where the accelerator's registers stand; the memory starts at 0.
constexpr uint64_t kRegisterBase = uint64_t{1} << 48;

class Interconnect : public sc_core::sc_module {
 public:
  Interconnect(sc_core::sc_module_name name, const Clock& clock);

  tlm_utils::multi_passthrough_target_socket<Interconnect> initiators;
  tlm_utils::simple_initiator_socket_tagged<Interconnect> memory_reads;
  tlm_utils::simple_initiator_socket_tagged<Interconnect> memory_writes;
  tlm_utils::simple_initiator_socket<Interconnect> registers;

  // Requests that had to wait for another initiator's.
  int64_t arbitrated() const { return arbitrated_; }

 private:
  struct Channel {
    std::vector<std::deque<tlm::tlm_generic_payload*>> waiting;  // by initiator
    bool busy = false;           // a request phase is in progress
    int64_t free_cycle = 0;
    sc_core::sc_event grant;
  };

  tlm::tlm_sync_enum Forward(int id, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay);
  tlm::tlm_sync_enum Backward(int channel, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay);
  void Blocking(int id, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned Debug(int id, tlm::tlm_generic_payload& payload);
  void GrantRead() { Grant(0); }
  void GrantWrite() { Grant(1); }
  void Grant(int channel);
  void EndRequest(int channel, tlm::tlm_generic_payload& payload);

  const Clock& clock_;
  Channel channels_[2];
  int64_t arbitrated_ = 0;
};

}  // namespace heddle::sim::systemc

#endif  // HEDDLE_SIM_SYSTEMC_INTERCONNECT_H_
