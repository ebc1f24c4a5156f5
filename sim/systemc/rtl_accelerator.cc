// The verilated accelerator in the platform: its AXI4 master becomes bursts on the interconnect, register accesses become AXI4-Lite
// handshakes. The hardware is clocked only between a start and its interrupt and during register accesses, so that the platform
// sleeps where nothing happens.
//
// Compiled with a verilated model only (C++17).

#include <verilated.h>

#include <cstring>
#include <deque>

#include "Vheddle_accelerator.h"
#include "accelerator.h"

namespace heddle::sim::systemc {
namespace {

constexpr int kReads = 0, kWrites = 1;

class RtlAccelerator : public Accelerator {
 public:
  RtlAccelerator(sc_core::sc_module_name name, const Script& script, const Clock& clock)
      : Accelerator(name), clock_(clock), script_(script), beat_bytes_(script.memory.beat_bytes), top_(new Vheddle_accelerator), reads_("reads"), writes_("writes") {
    int index = 0;
    for (Master* master : masters()) master->register_nb_transport_bw(static_cast<Accelerator*>(this), &Accelerator::Response, index++);
    SC_HAS_PROCESS(RtlAccelerator);
    SC_THREAD(ClockThread);
  }
  ~RtlAccelerator() override { top_->final(); }

  std::vector<Master*> masters() override { return {&reads_, &writes_}; }
  bool HasRegister(uint32_t) const override { return true; }

  std::string Waiting() const override {
    std::string text;
    const char* names[] = {"load", "compute", "store"};
    const int tags[] = {top_->trace_load_tag, top_->trace_compute_tag, top_->trace_store_tag};
    for (int unit = 0; unit < 3; ++unit) {
      text += std::string(unit ? "; " : "") + names[unit] + ((top_->trace_active >> unit & 1) ? " executes layer " : " is idle after layer ") + std::to_string(tags[unit]);
    }
    return text;
  }

  tlm::tlm_sync_enum Response(int index, tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase, sc_core::sc_time&) override {
    Burst& burst = BurstPool::BurstOf(payload);
    burst.requested = true;
    if (phase == tlm::END_REQ) return tlm::TLM_ACCEPTED;
    burst.answered = true;
    if (index == kWrites) write_answers_.push_back(&burst);  // reads are in order: the front of reading_ is looked at
    return tlm::TLM_COMPLETED;
  }

 protected:
  // One access at a time: the host waits for it.
  void RegisterAccess(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override {
    wait(delay);
    delay = sc_core::SC_ZERO_TIME;
    const auto offset = static_cast<uint8_t>(payload.get_address());
    access_ = Access{payload.is_write(), offset, 0, false};
    if (payload.is_write()) std::memcpy(&access_.value, payload.get_data_ptr(), 4);
    accessing_ = true;
    wake_.notify(sc_core::SC_ZERO_TIME);
    while (accessing_) wait(access_done_);
    if (payload.is_read()) std::memcpy(payload.get_data_ptr(), &access_.value, 4);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }

 private:
  struct Access {
    bool write = false;
    uint8_t offset = 0;
    uint32_t value = 0;
    bool address_taken = false, data_taken = false;
  };
  struct WriteBurst {
    uint64_t address = 0;
    int beats = 0;
    int64_t begin_cycle = 0;
    std::vector<uint8_t> data;
    size_t valid_bytes = 0;
  };

  void ClockThread() {
    top_->rst = 1;
    for (int i = 0; i < 8; ++i) Tick();
    top_->rst = 0;
    Tick();
    for (;;) {
      if (!accessing_ && !running_) {
        wait(wake_);
        continue;
      }
      Tick();
      Watch();
    }
  }

  // One clock cycle: outputs are sampled before the rising edge; new inputs are driven after it.
  void Tick() {
    SampleRegisters();
    SampleReads();
    SampleWrites();
    top_->clk = 1;
    top_->eval();
    wait(clock_.period());  // what other modules do in this cycle is seen in the next
    ++ticks_;
    DriveReads();
    DriveWrites();
    DriveRegisters();
    top_->clk = 0;
    top_->eval();
    Track();
  }

  // --- AXI4 reads ---

  void SampleReads() {
    if (top_->m_axi_arvalid && top_->m_axi_arready) {
      const int beats = top_->m_axi_arlen + 1;
      Burst* burst = pool_.Take(tlm::TLM_READ_COMMAND, top_->m_axi_araddr, static_cast<size_t>(beats * beat_bytes_), beats);
      reading_.push_back({burst, 0});
      Send(reads_, burst);
      moved_ = true;
    }
    if (top_->m_axi_rvalid && top_->m_axi_rready) {
      moved_ = true;
      ReadBurst& front = reading_.front();
      if (++front.beat == front.burst->timing.beats) {
        front.burst->payload.release();
        reading_.pop_front();
      }
      read_taken_ = true;
    }
  }

  void DriveReads() {
    // A request that the interconnect has not taken holds the channel.
    top_->m_axi_arready = reading_.empty() || reading_.back().burst->requested;
    if (read_taken_) top_->m_axi_rvalid = 0;
    read_taken_ = false;
    if (top_->m_axi_rvalid || reading_.empty()) return;
    const ReadBurst& front = reading_.front();
    if (!front.burst->answered || front.burst->timing.BeatCycle(front.beat) > clock_.Now()) return;
    top_->m_axi_rvalid = 1;
    top_->m_axi_rlast = front.beat + 1 == front.burst->timing.beats;
    top_->m_axi_rresp = front.burst->payload.is_response_error() ? 2 : 0;
    std::memcpy(&top_->m_axi_rdata, &front.burst->data[static_cast<size_t>(front.beat * beat_bytes_)], static_cast<size_t>(beat_bytes_));
  }

  // --- AXI4 writes: a burst is gathered, then sent; the memory knows since when its data flowed ---

  void SampleWrites() {
    if (top_->m_axi_awvalid && top_->m_axi_awready) {
      moved_ = true;
      gathering_.push_back({top_->m_axi_awaddr, top_->m_axi_awlen + 1, 0, {}, 0});
    }
    if (top_->m_axi_wvalid && top_->m_axi_wready) TakeWriteBeat();
    if (top_->m_axi_bvalid && top_->m_axi_bready) {
      moved_ = true;
      write_answers_.front()->payload.release();
      write_answers_.pop_front();
      response_taken_ = true;
    }
  }

  void TakeWriteBeat() {
    moved_ = true;
    WriteBurst& burst = gathering_.front();
    if (burst.data.empty()) burst.begin_cycle = clock_.Now();
    const auto* bytes = reinterpret_cast<const uint8_t*>(&top_->m_axi_wdata);
    burst.data.insert(burst.data.end(), bytes, bytes + beat_bytes_);
    // The hardware's strobes leave out bytes only at the end of a row, which is a burst's end.
    const uint64_t strobes = top_->m_axi_wstrb;
    for (int i = 0; i < beat_bytes_; ++i) burst.valid_bytes += strobes >> i & 1;
    if (!top_->m_axi_wlast) return;
    Burst* sent = pool_.Take(tlm::TLM_WRITE_COMMAND, burst.address, burst.valid_bytes, burst.beats);
    std::copy_n(burst.data.begin(), burst.valid_bytes, sent->data.begin());
    sent->timing.data_begin_cycle = burst.begin_cycle;
    gathering_.pop_front();
    pending_write_ = sent;
    SendOnly(writes_, sent);
  }

  void DriveWrites() {
    if (pending_write_ && pending_write_->requested) pending_write_ = nullptr;
    top_->m_axi_awready = gathering_.size() < static_cast<size_t>(script_.memory.max_writes);
    top_->m_axi_wready = !gathering_.empty() && !pending_write_;
    if (response_taken_) top_->m_axi_bvalid = 0;
    response_taken_ = false;
    if (top_->m_axi_bvalid || write_answers_.empty()) return;
    top_->m_axi_bvalid = 1;
    top_->m_axi_bresp = write_answers_.front()->payload.is_response_error() ? 2 : 0;
  }

  void Send(Master& port, Burst* burst) {
    burst->timing.data_begin_cycle = clock_.Now();
    SendOnly(port, burst);
  }
  void SendOnly(Master& port, Burst* burst) {
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    port->nb_transport_fw(burst->payload, phase, delay);
  }

  // --- AXI4-Lite ---

  void DriveRegisters() {
    const bool open = accessing_ && !top_->rst;  // the host may come before the reset is over
    top_->s_axi_awaddr = top_->s_axi_araddr = access_.offset;
    top_->s_axi_wdata = access_.value;
    top_->s_axi_wstrb = 15;
    top_->s_axi_awvalid = open && access_.write && !access_.address_taken;
    top_->s_axi_wvalid = open && access_.write && !access_.data_taken;
    top_->s_axi_arvalid = open && !access_.write && !access_.address_taken;
    top_->s_axi_bready = top_->s_axi_rready = 1;
  }

  void SampleRegisters() {
    if (!accessing_ || top_->rst) return;
    top_->eval();
    if (access_.write) {
      if (top_->s_axi_awvalid && top_->s_axi_awready) access_.address_taken = true;
      if (top_->s_axi_wvalid && top_->s_axi_wready) access_.data_taken = true;
      if (top_->s_axi_bvalid && access_.address_taken && access_.data_taken) EndAccess();
      return;
    }
    if (top_->s_axi_arvalid && top_->s_axi_arready) access_.address_taken = true;
    if (top_->s_axi_rvalid) {
      access_.value = top_->s_axi_rdata;
      EndAccess();
    }
  }

  void EndAccess() {
    if (access_.write && access_.offset == script_.registers.at("control") && (access_.value & 1)) {
      running_ = true;
      moved_tick_ = ticks_;
      events_.clear();
    }
    accessing_ = false;
    access_done_.notify(clock_.period());  // after the edge that ends it
  }

  // --- What a run is doing ---

  void Track() {
    const uint32_t active = top_->trace_active;
    const uint32_t tags[3] = {top_->trace_load_tag, top_->trace_compute_tag, top_->trace_store_tag};
    for (int unit = 0; unit < 3; ++unit) {
      const uint32_t state = (active >> unit & 1u) << 16 | tags[unit];
      if (state == state_[unit]) continue;
      if (state_[unit] >> 16) events_.push_back({unit, static_cast<int>(state_[unit] & 0xffff), since_[unit], static_cast<uint64_t>(clock_.Now())});
      state_[unit] = state;
      since_[unit] = static_cast<uint64_t>(clock_.Now());
      moved_ = true;
    }
  }

  // Ends the run with the interrupt, or where nothing has moved for long.
  void Watch() {
    if (moved_) moved_tick_ = ticks_;
    moved_ = false;
    if (top_->irq != irq_) {
      irq_ = top_->irq;
      irq.write(irq_);
      if (irq_) running_ = false;
    }
    const bool computing = top_->trace_active & 2;
    const uint64_t patience = script_.hang_cycles * (computing ? 100 : 1);
    if (running_ && ticks_ - moved_tick_ > patience) Fail("no unit moved for " + std::to_string(patience) + " cycles; " + Waiting());
  }

  struct ReadBurst {
    Burst* burst;
    int beat;  // next
  };

  const Clock& clock_;
  const Script& script_;
  const int beat_bytes_;
  std::unique_ptr<Vheddle_accelerator> top_;
  BurstPool pool_;
  Master reads_, writes_;
  std::deque<ReadBurst> reading_;
  std::deque<WriteBurst> gathering_;
  Burst* pending_write_ = nullptr;
  bool read_taken_ = false, response_taken_ = false;  // in this cycle: the channel is free after the edge
  std::deque<Burst*> write_answers_;
  Access access_;
  bool accessing_ = false, running_ = false, moved_ = false, irq_ = false;
  sc_core::sc_event wake_, access_done_;
  uint64_t ticks_ = 0, moved_tick_ = 0;
  uint32_t state_[3] = {};
  uint64_t since_[3] = {};
};

}  // namespace

std::unique_ptr<Accelerator> MakeAccelerator(const Script& script, const Clock& clock) {
  return std::make_unique<RtlAccelerator>("accelerator", script, clock);
}

}  // namespace heddle::sim::systemc
