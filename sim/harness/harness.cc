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
#include <sstream>
#include <string>
#include <vector>

#include "Vheddle_accelerator.h"
#include "axi_memory.h"

namespace {

using heddle::sim::AxiFromMaster;
using heddle::sim::AxiMemory;
using heddle::sim::MemoryConfig;

struct Poke { uint64_t address; std::string file; };
struct Dump { uint64_t address; uint64_t size; std::string file; };
struct Job { uint64_t program = 0; std::vector<Poke> pokes; std::vector<Dump> dumps; };
struct Event { int unit; int tag; uint64_t start, end; };

struct Script {
  MemoryConfig memory;
  uint64_t dram_bytes = 0, base = 0, max_cycles = 2000000000ull, hang_cycles = 200000;
  std::string image, wave_file;
  uint64_t wave_start = 0, wave_end = 0;
  std::map<std::string, uint32_t> registers;
  std::vector<Job> jobs;
};

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool ReadScript(const char* path, Script& script) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    MemoryConfig& memory = script.memory;
    if (word == "beat_bytes") in >> memory.beat_bytes;
    else if (word == "latency_cycles") in >> memory.latency_cycles;
    else if (word == "bytes_per_cycle") in >> memory.bytes_per_cycle;
    else if (word == "max_reads") in >> memory.max_reads;
    else if (word == "max_writes") in >> memory.max_writes;
    else if (word == "banks") in >> memory.banks;
    else if (word == "row_bytes") in >> memory.row_bytes;
    else if (word == "row_miss_cycles") in >> memory.row_miss_cycles;
    else if (word == "row_cycle_cycles") in >> memory.row_cycle_cycles;
    else if (word == "refresh_interval_cycles") in >> memory.refresh_interval_cycles;
    else if (word == "refresh_cycles") in >> memory.refresh_cycles;
    else if (word == "stall_probability") in >> memory.stall_probability;
    else if (word == "seed") in >> memory.seed;
    else if (word == "dram_bytes") in >> script.dram_bytes;
    else if (word == "image") in >> script.image;
    else if (word == "base") in >> script.base;
    else if (word == "max_cycles") in >> script.max_cycles;
    else if (word == "hang_cycles") in >> script.hang_cycles;
    else if (word == "waves") in >> script.wave_file >> script.wave_start >> script.wave_end;
    else if (word == "register") { std::string name; uint32_t offset = 0; in >> name >> offset; script.registers[name] = offset; }
    else if (word == "job") { script.jobs.emplace_back(); in >> script.jobs.back().program; }
    else if (word == "poke") { Poke poke; in >> poke.address >> poke.file; script.jobs.back().pokes.push_back(poke); }
    else if (word == "dump") { Dump dump; in >> dump.address >> dump.size >> dump.file; script.jobs.back().dumps.push_back(dump); }
    else return false;
    if (in.fail()) return false;
  }
  return true;
}

// Ports of any width are little-endian words in memory.
template <typename Port>
void SetPort(Port& port, const uint8_t* bytes, size_t size) { std::memcpy(&port, bytes, size); }

class Simulator {
 public:
  explicit Simulator(const Script& script)
      : script_(script), memory_(script.memory, script.dram_bytes), top_(new Vheddle_accelerator) {
    const std::vector<uint8_t> image = ReadFile(script.image);
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
      const std::vector<uint8_t> bytes = ReadFile(poke.file);
      if (poke.address + bytes.size() > memory_.bytes().size()) return Fail("a poke lies outside the memory");
      std::copy(bytes.begin(), bytes.end(), memory_.bytes().begin() + static_cast<int64_t>(poke.address));
    }
    const uint64_t read_before = memory_.bytes_read(), written_before = memory_.bytes_written();
    Write("base_low", static_cast<uint32_t>(script_.base));
    Write("base_high", static_cast<uint32_t>(script_.base >> 32));
    Write("program", static_cast<uint32_t>(job.program));
    memory_.BeginProgram();
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

  void Write(const std::string& name, uint32_t value) {
    top_->s_axi_awaddr = static_cast<uint8_t>(script_.registers.at(name));
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

void PrintJob(FILE* out, const Simulator& simulator, bool first) {
  std::fprintf(out, "%s{\"counters\":{", first ? "" : ",\n");
  const char* separator = "";
  for (const auto& [name, value] : simulator.counters()) {
    std::fprintf(out, "%s\"%s\":%lld", separator, name.c_str(), static_cast<long long>(value));
    separator = ",";
  }
  std::fprintf(out, "},\"events\":[");
  separator = "";
  for (const Event& event : simulator.events()) {
    std::fprintf(out, "%s[%d,%d,%llu,%llu]", separator, event.unit, event.tag, static_cast<unsigned long long>(event.start), static_cast<unsigned long long>(event.end));
    separator = ",";
  }
  std::fprintf(out, "]}");
}

}  // namespace

int main(int argc, char** argv) {
  Script script;
  if (argc != 3 || !ReadScript(argv[1], script)) {
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
    PrintJob(out, simulator, i == 0);
    std::printf("job %zu of %zu\n", i + 1, script.jobs.size());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(out, "],\"cycles\":%llu,\"seconds\":%.6f,\"error\":\"%s\"}\n", static_cast<unsigned long long>(simulator.cycles()), seconds, simulator.error().c_str());
  std::fclose(out);
  return ok ? 0 : 3;
}
