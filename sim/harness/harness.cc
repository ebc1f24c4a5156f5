// Runs programs on the verilated accelerator: a memory behind its AXI4 master, a host on its AXI4-Lite slave.
//
// Usage: harness SCRIPT RESULT. SCRIPT is lines of "word arguments…" (WriteScript in sim/verilated_model.cc writes it);
// RESULT is JSON. Exit status 0: every job ran to its end; 3: a hang, a bus error or a bad script, told in RESULT.

#include <verilated.h>
#if HEDDLE_WAVES
#include <verilated_fst_c.h>
#endif

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "Vheddle_accelerator.h"
#include "axi_memory.h"
#include "script.h"

namespace {

using heddle::sim::AxiFromMaster;
using heddle::sim::AxiMemory;
using heddle::sim::Dump;
using heddle::sim::Event;
using heddle::sim::Job;
using heddle::sim::Poke;
using heddle::sim::ReadBytes;
using heddle::sim::Script;

// Ports of any width are little-endian words in memory.
template <typename Port>
void SetPort(Port& port, const uint8_t* bytes, size_t size) { std::memcpy(&port, bytes, size); }

class Simulator {
 public:
  explicit Simulator(const Script& script)
      : script_(script), memory_(script.memory, script.dram_bytes), top_(new Vheddle_accelerator) {
    const std::vector<uint8_t> image = ReadBytes(script.image);
    std::copy_n(image.begin(), std::min<size_t>(image.size(), memory_.bytes().size()), memory_.bytes().begin());
#if HEDDLE_WAVES
    if (!script.wave_file.empty()) {
      Verilated::traceEverOn(true);
      waves_.reset(new VerilatedFstC);
      top_->trace(waves_.get(), 99);
      waves_->open(script.wave_file.c_str());
    }
#endif
    Reset();
  }

  ~Simulator() {
#if HEDDLE_WAVES
    if (waves_) waves_->close();
#endif
    top_->final();
  }

  bool RunJob(const Job& job) {
    events_.clear();
    for (const Poke& poke : job.pokes) {
      const std::vector<uint8_t> bytes = ReadBytes(poke.file);
      if (poke.address + bytes.size() > memory_.bytes().size()) return Fail("a poke lies outside the memory");
      std::copy(bytes.begin(), bytes.end(), memory_.bytes().begin() + static_cast<int64_t>(poke.address));
    }
    const uint64_t read_before = memory_.bytes_read(), written_before = memory_.bytes_written();
    Write("base_low", static_cast<uint32_t>(script_.base));
    Write("base_high", static_cast<uint32_t>(script_.base >> 32));
    Write("program", static_cast<uint32_t>(job.program));
    Write("control", 3);  // start, interrupt enabled
    const uint64_t start = cycle_;
    last_activity_ = cycle_;
    while (!top_->irq) {
      Clock();
      if (!memory_.error().empty()) return Fail("memory: " + memory_.error());
      if (cycle_ - last_activity_ > script_.hang_cycles) return Fail(Hang());
      if (cycle_ - start > script_.max_cycles) return Fail("the program runs longer than max_cycles");
    }
    CloseEvents();
    Write("status", 2);  // clears done, so that irq falls
    counters_.clear();
    for (const auto& [name, offset] : script_.registers) counters_[name] = Read(offset);
    counters_["dram_bytes_read"] = static_cast<int64_t>(memory_.bytes_read() - read_before);
    counters_["dram_bytes_written"] = static_cast<int64_t>(memory_.bytes_written() - written_before);
    for (const Dump& dump : job.dumps) {
      std::ofstream file(dump.file, std::ios::binary);
      file.write(reinterpret_cast<const char*>(&memory_.bytes()[dump.address]), static_cast<std::streamsize>(dump.size));
    }
    return (counters_["status"] & 4) ? Fail("the accelerator reports an error (status bit 2)") : true;
  }

  AxiMemory& memory() { return memory_; }
  // The host's side: registers, cycles, the interrupt.
  void WriteRegister(uint32_t offset, uint32_t value) { Write(offset, value); }
  uint32_t ReadRegister(uint32_t offset) { return Read(offset); }
  void Step() { Clock(); }
  bool interrupt() const { return top_->irq; }

  const std::vector<Event>& events() const { return events_; }
  const std::map<std::string, int64_t>& counters() const { return counters_; }
  const std::string& error() const { return error_; }
  uint64_t cycles() const { return cycle_; }

 private:
  bool Fail(const std::string& what) {
    error_ = what + " (cycle " + std::to_string(cycle_) + ")";
    return false;
  }

  std::string Hang() const {
    std::string text = "no unit moved for " + std::to_string(script_.hang_cycles) + " cycles;";
    const char* names[] = {"load", "compute", "store"};
    const int tags[] = {top_->trace_load_tag, top_->trace_compute_tag, top_->trace_store_tag};
    for (int unit = 0; unit < 3; ++unit) {
      text += std::string(" ") + names[unit] + ((top_->trace_active >> unit & 1) ? " executes layer " : " is idle after layer ") + std::to_string(tags[unit]) + ";";
    }
    return text;
  }

  void Reset() {
    top_->rst = 1;
    for (int i = 0; i < 8; ++i) Clock();
    top_->rst = 0;
    Clock();
  }

  // One clock cycle: outputs are sampled before the rising edge; new inputs are driven after it.
  void Clock() {
    AxiFromMaster in;
    in.arvalid = top_->m_axi_arvalid;
    in.araddr = top_->m_axi_araddr;
    in.arlen = top_->m_axi_arlen;
    in.rready = top_->m_axi_rready;
    in.awvalid = top_->m_axi_awvalid;
    in.awaddr = top_->m_axi_awaddr;
    in.awlen = top_->m_axi_awlen;
    in.wvalid = top_->m_axi_wvalid;
    in.wlast = top_->m_axi_wlast;
    in.wstrb = top_->m_axi_wstrb;
    if (in.wvalid) {
      std::memcpy(write_data_, &top_->m_axi_wdata, static_cast<size_t>(script_.memory.beat_bytes));
      in.wdata = write_data_;
    }
    in.bready = top_->m_axi_bready;
    const heddle::sim::AxiToMaster& offered = memory_.outputs();
    if ((offered.rvalid && in.rready) || (offered.wready && in.wvalid) || (offered.bvalid && in.bready)) last_activity_ = cycle_;
    top_->clk = 1;
    top_->eval();
    DumpWaves(0);
    if (!top_->rst) memory_.Clock(in);
    const heddle::sim::AxiToMaster& out = memory_.outputs();
    top_->m_axi_arready = out.arready;
    top_->m_axi_rvalid = out.rvalid;
    top_->m_axi_rlast = out.rlast;
    top_->m_axi_rresp = out.rresp;
    if (out.rvalid) SetPort(top_->m_axi_rdata, out.rdata, static_cast<size_t>(script_.memory.beat_bytes));
    top_->m_axi_awready = out.awready;
    top_->m_axi_wready = out.wready;
    top_->m_axi_bvalid = out.bvalid;
    top_->m_axi_bresp = out.bresp;
    top_->clk = 0;
    top_->eval();
    DumpWaves(1);
    ++cycle_;
    Track();
  }

  void DumpWaves(int phase) {
#if HEDDLE_WAVES
    if (waves_ && cycle_ >= script_.wave_start && cycle_ <= script_.wave_end) waves_->dump(cycle_ * 10 + static_cast<uint64_t>(phase) * 5);
#else
    (void)phase;
#endif
  }

  void Track() {
    const uint32_t state[3] = {(top_->trace_active & 1u) << 16 | top_->trace_load_tag, (top_->trace_active >> 1 & 1u) << 16 | top_->trace_compute_tag,
                               (top_->trace_active >> 2 & 1u) << 16 | top_->trace_store_tag};
    for (int unit = 0; unit < 3; ++unit) {
      if (state[unit] == state_[unit]) continue;
      if (state_[unit] >> 16) events_.push_back({unit, static_cast<int>(state_[unit] & 0xffff), since_[unit], cycle_});
      state_[unit] = state[unit];
      since_[unit] = cycle_;
      last_activity_ = cycle_;
    }
    // A long compute instruction moves nothing outside: it counts as activity up to a bound of its own.
    if ((top_->trace_active & 2) && cycle_ - since_[1] < 100 * script_.hang_cycles) last_activity_ = cycle_;
  }

  void CloseEvents() {
    for (int unit = 0; unit < 3; ++unit) {
      if (state_[unit] >> 16) events_.push_back({unit, static_cast<int>(state_[unit] & 0xffff), since_[unit], cycle_});
      state_[unit] &= 0xffff;
    }
  }

  void Write(const std::string& name, uint32_t value) { Write(script_.registers.at(name), value); }

  void Write(uint32_t offset, uint32_t value) {
    const auto control = script_.registers.find("control");
    if (control != script_.registers.end() && offset == control->second && (value & 1)) memory_.BeginProgram();
    top_->s_axi_awaddr = static_cast<uint8_t>(offset);
    top_->s_axi_wdata = value;
    top_->s_axi_wstrb = 15;
    top_->s_axi_bready = 1;
    bool address_open = true, data_open = true;
    for (int i = 0; i < 1000; ++i) {
      top_->s_axi_awvalid = address_open;
      top_->s_axi_wvalid = data_open;
      top_->eval();
      const bool address_taken = address_open && top_->s_axi_awready, data_taken = data_open && top_->s_axi_wready;
      const bool answered = top_->s_axi_bvalid;
      Clock();
      if (address_taken) address_open = false;
      if (data_taken) data_open = false;
      if (answered && !address_open && !data_open) break;
    }
    top_->s_axi_awvalid = top_->s_axi_wvalid = 0;
    Clock();
  }

  uint32_t Read(uint32_t offset) {
    top_->s_axi_araddr = static_cast<uint8_t>(offset);
    top_->s_axi_rready = 1;
    bool open = true;
    uint32_t value = 0;
    for (int i = 0; i < 1000; ++i) {
      top_->s_axi_arvalid = open;
      top_->eval();
      const bool taken = open && top_->s_axi_arready, answered = top_->s_axi_rvalid;
      if (answered) value = top_->s_axi_rdata;
      Clock();
      if (taken) open = false;
      if (answered) break;
    }
    top_->s_axi_arvalid = 0;
    return value;
  }

  const Script& script_;
  AxiMemory memory_;
  std::unique_ptr<Vheddle_accelerator> top_;
#if HEDDLE_WAVES
  std::unique_ptr<VerilatedFstC> waves_;
#endif
  uint8_t write_data_[64] = {};
  uint64_t cycle_ = 0, last_activity_ = 0;
  uint32_t state_[3] = {};
  uint64_t since_[3] = {};
  std::vector<Event> events_;
  std::map<std::string, int64_t> counters_;
  std::string error_;
};

}  // namespace

#ifndef HEDDLE_HARNESS_WITHOUT_MAIN  // another program that includes this file for the simulator
int main(int argc, char** argv) {
  Script script;
  if (argc != 3 || !heddle::sim::ReadScript(argv[1], script)) {
    std::fprintf(stderr, "usage: harness SCRIPT RESULT\n");
    return 3;
  }
  FILE* out = std::fopen(argv[2], "w");
  if (!out) return 3;
  std::fprintf(out, "{\"jobs\":[");
  const auto start = std::chrono::steady_clock::now();
  Simulator simulator(script);
  bool ok = true;
  for (size_t i = 0; ok && i < script.jobs.size(); ++i) {
    ok = simulator.RunJob(script.jobs[i]);
    heddle::sim::PrintJob(out, simulator.counters(), simulator.events(), i == 0);
    std::printf("job %zu of %zu\n", i + 1, script.jobs.size());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  heddle::sim::PrintEnd(out, simulator.cycles(), seconds, simulator.error());
  std::fclose(out);
  return ok ? 0 : 3;
}
#endif
