// The main memory as a TLM target: the parameters and the meaning of harness/axi_memory.h, burst by burst instead of beat by
// beat. Latency of bursts in flight overlaps; both directions share the bandwidth, reads first; a burst that opens another row
// waits longer; nothing moves during a refresh; with a stall probability beats are late at random.
#ifndef HEDDLE_SIM_SYSTEMC_MEMORY_H_
#define HEDDLE_SIM_SYSTEMC_MEMORY_H_

#include <tlm_utils/peq_with_get.h>
#include <tlm_utils/simple_target_socket.h>

#include <deque>

#include "axi_memory.h"
#include "burst.h"

namespace heddle::sim::systemc {

class Memory : public sc_core::sc_module {
 public:
  Memory(sc_core::sc_module_name name, const Clock& clock, const MemoryConfig& config, uint64_t bytes);

  // Reads and writes come on channels of their own, as in AXI. Both also answer blocking and debug transport.
  tlm_utils::simple_target_socket_tagged<Memory> reads;
  tlm_utils::simple_target_socket_tagged<Memory> writes;

  std::vector<uint8_t>& bytes() { return bytes_; }
  // A program starts: rows are closed, the first refresh is a whole interval away.
  void BeginProgram();
  int64_t bytes_read() const { return bytes_read_; }
  int64_t bytes_written() const { return bytes_written_; }
  // The first bad address; empty where all was well.
  const std::string& error() const { return error_; }

 private:
  struct Waiting {
    tlm::tlm_generic_payload* payload = nullptr;
    int64_t ready_cycle = 0;  // data not before
    bool accepted = false;    // reads: END_REQ was given
  };

  tlm::tlm_sync_enum Forward(int channel, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time& delay);
  void Blocking(int channel, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned Debug(int channel, tlm::tlm_generic_payload& payload);
  void Serve();
  void EndWriteData();
  void Answer();

  void ServeRead(int64_t now);
  void ServeWrite(int64_t now);
  // Puts `beats` beats on the bus from cycle `from` on; fills the timing.
  void MoveBeats(int64_t from, BurstTiming& timing);
  int64_t ReadyCycle(uint64_t address, int64_t now);
  bool Inside(const tlm::tlm_generic_payload& payload);
  bool Stall();
  // The first cycle from `cycle` on in which no refresh stops the data.
  int64_t AfterRefresh(int64_t cycle) const;
  int64_t BusFreeCycle() const { return static_cast<int64_t>(std::ceil(bus_free_ - 1e-6)); }
  void AcceptNextRead();

  const Clock& clock_;
  const MemoryConfig config_;
  std::vector<uint8_t> bytes_;
  struct Bank {
    int64_t row = -1;
    int64_t opens_cycle = 0;  // from then on it may open another row
    int64_t refreshes = 0;    // when it was opened: a refresh closes all rows
  };
  std::vector<Bank> banks_;
  int64_t begin_cycle_ = 0;  // of the program
  std::deque<Waiting> read_queue_;
  std::deque<Waiting> write_queue_;
  sc_core::sc_event work_;
  tlm_utils::peq_with_get<tlm::tlm_generic_payload> write_data_ends_;
  tlm_utils::peq_with_get<tlm::tlm_generic_payload> answers_;
  std::deque<int64_t> read_ends_;  // last beats of bursts that still count as in flight
  double bus_free_ = 0;  // cycle, in fractions where the bandwidth is none of whole beats
  int64_t read_free_cycle_ = 0, write_free_cycle_ = 0;
  uint64_t random_;
  int64_t bytes_read_ = 0, bytes_written_ = 0;
  std::string error_;
};

}  // namespace heddle::sim::systemc

#endif  // HEDDLE_SIM_SYSTEMC_MEMORY_H_
