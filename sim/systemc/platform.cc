// The platform and its host: a TLM-2.0 system of host, interconnect, memory and accelerator that runs the jobs of a script.
//
// Usage as of harness/harness.cc: PROGRAM SCRIPT RESULT. The host lays the image into the memory before time begins, writes each
// job's inputs and the registers over the interconnect, waits for the interrupt and reads the counters. SystemC elaborates once
// in a process, so the platform is a program of its own.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "accelerator.h"
#include "interconnect.h"
#include "memory.h"
#include "script.h"

namespace heddle::sim::systemc {
namespace {

class Host : public sc_core::sc_module {
 public:
  Host(sc_core::sc_module_name name, const Script& script, const Clock& clock, Memory& memory, Accelerator& accelerator, FILE* out)
      : sc_module(name), socket("socket"), irq("irq"), script_(script), clock_(clock), memory_(memory), accelerator_(accelerator), out_(out) {
    SC_HAS_PROCESS(Host);
    SC_THREAD(Main);
  }

  tlm_utils::simple_initiator_socket<Host> socket;
  sc_core::sc_in<bool> irq;

  const std::string& error() const { return error_; }
  bool finished() const { return finished_; }

 private:
  void Main() {
    for (size_t i = 0; i < script_.jobs.size() && error_.empty(); ++i) RunJob(script_.jobs[i], i == 0);
    finished_ = error_.empty();
    sc_core::sc_stop();
  }

  void RunJob(const Job& job, bool first) {
    for (const Poke& poke : job.pokes) {
      std::vector<uint8_t> bytes = ReadBytes(poke.file);
      Access(tlm::TLM_WRITE_COMMAND, poke.address, bytes.data(), bytes.size());
    }
    const int64_t read_before = memory_.bytes_read(), written_before = memory_.bytes_written();
    WriteRegister("base_low", static_cast<uint32_t>(script_.base));
    WriteRegister("base_high", static_cast<uint32_t>(script_.base >> 32));
    WriteRegister("program", static_cast<uint32_t>(job.program));
    memory_.BeginProgram();
    WriteRegister("control", 3);  // start, interrupt enabled
    if (!error_.empty()) return;
    wait(irq.posedge_event());
    WriteRegister("status", 2);  // clears done, so that irq falls
    std::map<std::string, int64_t> counters = accelerator_.Counters();
    for (const auto& [name, offset] : script_.registers) {
      if (accelerator_.HasRegister(offset)) counters[name] = ReadRegister(offset);
    }
    counters["dram_bytes_read"] = memory_.bytes_read() - read_before;
    counters["dram_bytes_written"] = memory_.bytes_written() - written_before;
    for (const Dump& dump : job.dumps) {
      std::ofstream file(dump.file, std::ios::binary);
      file.write(reinterpret_cast<const char*>(&memory_.bytes()[dump.address]), static_cast<std::streamsize>(dump.size));
    }
    PrintJob(out_, counters, accelerator_.TakeEvents(), first);
    if (!memory_.error().empty()) return Fail("memory: " + memory_.error());
    if (counters["status"] & 4) Fail(Problem("the accelerator reports an error (status bit 2)"));
  }

 public:
  // What stopped the run where the host was not told.
  std::string Problem(const std::string& otherwise) const {
    if (!memory_.error().empty()) return "memory: " + memory_.error();
    if (!accelerator_.error().empty()) return accelerator_.error();
    return otherwise;
  }

 private:
  void Fail(const std::string& what) {
    if (error_.empty()) error_ = what + " (cycle " + std::to_string(clock_.Now()) + ")";
  }

  void Access(tlm::tlm_command command, uint64_t address, uint8_t* data, size_t size) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(data);
    payload.set_data_length(static_cast<unsigned>(size));
    payload.set_streaming_width(static_cast<unsigned>(size));
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(payload, delay);
    if (payload.is_response_error()) Fail("the host's access to " + std::to_string(address) + " was refused");
    wait(delay);
  }

  void WriteRegister(const std::string& name, uint32_t value) {
    uint8_t bytes[4];
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<uint8_t>(value >> 8 * i);
    Access(tlm::TLM_WRITE_COMMAND, kRegisterBase + script_.registers.at(name), bytes, 4);
  }

  uint32_t ReadRegister(uint32_t offset) {
    uint8_t bytes[4] = {};
    Access(tlm::TLM_READ_COMMAND, kRegisterBase + offset, bytes, 4);
    return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
  }

  const Script& script_;
  const Clock& clock_;
  Memory& memory_;
  Accelerator& accelerator_;
  FILE* out_;
  std::string error_;
  bool finished_ = false;
};

int Run(const char* script_path, const char* result_path) {
  Script script;
  if (!ReadScript(script_path, script)) {
    std::fprintf(stderr, "'%s' is not a script\n", script_path);
    return 3;
  }
  FILE* out = std::fopen(result_path, "w");
  if (!out) return 3;
  const auto start = std::chrono::steady_clock::now();
  const Clock clock(script.clock_mhz);
  Interconnect interconnect("interconnect", clock);
  Memory memory("memory", clock, script.memory, script.dram_bytes);
  const std::unique_ptr<Accelerator> accelerator = MakeAccelerator(script, clock);
  Host host("host", script, clock, memory, *accelerator, out);
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS> irq("irq");  // set by the hardware, cleared on the host's behalf
  for (Accelerator::Master* master : accelerator->masters()) master->bind(interconnect.initiators);
  host.socket.bind(interconnect.initiators);
  interconnect.memory_reads.bind(memory.reads);
  interconnect.memory_writes.bind(memory.writes);
  interconnect.registers.bind(accelerator->registers);
  accelerator->irq(irq);
  host.irq(irq);
  const std::vector<uint8_t> image = ReadBytes(script.image);
  std::copy_n(image.begin(), std::min(image.size(), memory.bytes().size()), memory.bytes().begin());
  std::fprintf(out, "{\"jobs\":[");
  const double limit_cycles = static_cast<double>(script.max_cycles) * static_cast<double>(std::max<size_t>(1, script.jobs.size()));
  sc_core::sc_start(clock.period() * std::min(limit_cycles, 1e14), sc_core::SC_EXIT_ON_STARVATION);
  std::string error = host.error();
  if (error.empty() && !host.finished()) {
    // Either nothing is left that could happen, or the accelerator stopped the run, or it was too long.
    const bool over = static_cast<double>(clock.Now()) >= limit_cycles;
    error = host.Problem(over ? "the program runs longer than max_cycles" : "no unit can go on: " + accelerator->Waiting()) + " (cycle " +
            std::to_string(clock.Now()) + ")";
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  PrintEnd(out, static_cast<uint64_t>(clock.Now()), seconds, error);
  std::fclose(out);
  return error.empty() ? 0 : 3;
}

}  // namespace
}  // namespace heddle::sim::systemc

int sc_main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: platform SCRIPT RESULT\n");
    return 3;
  }
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);  // "simulation stopped by user"
  return heddle::sim::systemc::Run(argv[1], argv[2]);
}
