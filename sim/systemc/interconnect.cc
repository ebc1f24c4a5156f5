// Requests are gathered for a delta cycle before one is granted, so that those of the same cycle compete whatever the order in
// which the simulator ran their processes.

#include "interconnect.h"

#include <algorithm>

namespace heddle::sim::systemc {

using tlm::tlm_generic_payload;
using tlm::tlm_phase;

Interconnect::Interconnect(sc_core::sc_module_name name, const Clock& clock)
    : sc_module(name), initiators("initiators"), memory_reads("memory_reads"), memory_writes("memory_writes"), registers("registers"), clock_(clock) {
  initiators.register_nb_transport_fw(this, &Interconnect::Forward);
  initiators.register_b_transport(this, &Interconnect::Blocking);
  initiators.register_transport_dbg(this, &Interconnect::Debug);
  memory_reads.register_nb_transport_bw(this, &Interconnect::Backward, 0);
  memory_writes.register_nb_transport_bw(this, &Interconnect::Backward, 1);
  SC_HAS_PROCESS(Interconnect);
  SC_METHOD(GrantRead);
  sensitive << channels_[0].grant;
  dont_initialize();
  SC_METHOD(GrantWrite);
  sensitive << channels_[1].grant;
  dont_initialize();
}

tlm::tlm_sync_enum Interconnect::Forward(int id, tlm_generic_payload& payload, tlm_phase& phase, sc_core::sc_time&) {
  if (phase != tlm::BEGIN_REQ) return tlm::TLM_COMPLETED;  // END_RESP: answers are taken at once
  Channel& channel = channels_[payload.is_write() ? 1 : 0];
  const auto index = static_cast<size_t>(id);
  if (channel.waiting.size() <= index) channel.waiting.resize(index + 1);
  BurstPool::TimingOf(payload).initiator = id;
  channel.waiting[index].push_back(&payload);
  channel.grant.notify(sc_core::SC_ZERO_TIME);
  return tlm::TLM_ACCEPTED;
}

void Interconnect::Grant(int which) {
  Channel& channel = channels_[which];
  const int64_t now = clock_.Now();
  if (channel.busy) return;  // its end grants the next
  if (now < channel.free_cycle) {
    channel.grant.notify(clock_.Cycles(channel.free_cycle - now));
    return;
  }
  tlm_generic_payload* chosen = nullptr;
  for (auto& waiting : channel.waiting) {
    if (waiting.empty()) continue;
    if (chosen) {
      ++arbitrated_;
      continue;
    }
    chosen = waiting.front();
    waiting.pop_front();
  }
  if (!chosen) return;
  channel.busy = true;
  tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  auto& memory = which == 0 ? memory_reads : memory_writes;
  if (memory->nb_transport_fw(*chosen, phase, delay) == tlm::TLM_UPDATED && phase == tlm::END_REQ) EndRequest(which, *chosen);
}

void Interconnect::EndRequest(int which, tlm_generic_payload& payload) {
  Channel& channel = channels_[which];
  channel.busy = false;
  channel.free_cycle = clock_.Now() + 1;
  channel.grant.notify(clock_.Cycles(1));
  tlm_phase phase = tlm::END_REQ;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  initiators[BurstPool::TimingOf(payload).initiator]->nb_transport_bw(payload, phase, delay);
}

tlm::tlm_sync_enum Interconnect::Backward(int which, tlm_generic_payload& payload, tlm_phase& phase, sc_core::sc_time& delay) {
  if (phase == tlm::END_REQ) {
    EndRequest(which, payload);
    return tlm::TLM_ACCEPTED;
  }
  // The initiator's answer is TLM_COMPLETED: the response phase is over at once.
  return initiators[BurstPool::TimingOf(payload).initiator]->nb_transport_bw(payload, phase, delay);
}

void Interconnect::Blocking(int, tlm_generic_payload& payload, sc_core::sc_time& delay) {
  delay += clock_.period();  // the way through
  if (payload.get_address() >= kRegisterBase) {
    payload.set_address(payload.get_address() - kRegisterBase);
    registers->b_transport(payload, delay);
    return;
  }
  if (payload.is_write()) memory_writes->b_transport(payload, delay);
  else memory_reads->b_transport(payload, delay);
}

unsigned Interconnect::Debug(int, tlm_generic_payload& payload) {
  if (payload.get_address() >= kRegisterBase) return 0;
  return memory_reads->transport_dbg(payload);
}

}  // namespace heddle::sim::systemc
