// The C driver on simulated hardware: its register functions are AXI4-Lite accesses of the verilated accelerator, its memory is a
// cache of the simulated one that only flush and invalidate keep equal to it. So a missing cache call or a wrong register shows.
//
// Usage as of the plain harness, but pokes and dumps are tensors: the "address" is the index of an input or output, the data are
// its elements in row-major order. Compiled with the driver's objects and the region's header region.h.

#define HEDDLE_HARNESS_WITHOUT_MAIN
#include "simulator.inc"

#include "region.h"

namespace {

struct Board {
  Simulator* simulator;
  uint64_t base;
  std::vector<uint8_t> cache;
  int64_t interrupts = 0;
};

Board& BoardOf(void* context) { return *static_cast<Board*>(context); }

uint32_t ReadBoard(void* context, uint32_t offset) { return BoardOf(context).simulator->ReadRegister(offset); }
void WriteBoard(void* context, uint32_t offset, uint32_t value) { BoardOf(context).simulator->WriteRegister(offset, value); }

void Flush(void* context, const void* address, size_t bytes) {
  Board& board = BoardOf(context);
  const auto offset = static_cast<size_t>(static_cast<const uint8_t*>(address) - board.cache.data());
  std::copy_n(board.cache.begin() + static_cast<int64_t>(offset), bytes, board.simulator->memory().bytes().begin() + static_cast<int64_t>(board.base + offset));
}

void Invalidate(void* context, void* address, size_t bytes) {
  Board& board = BoardOf(context);
  const auto offset = static_cast<size_t>(static_cast<uint8_t*>(address) - board.cache.data());
  std::copy_n(board.simulator->memory().bytes().begin() + static_cast<int64_t>(board.base + offset), bytes, board.cache.begin() + static_cast<int64_t>(offset));
}

// 100 MHz: a hundred cycles are a microsecond.
int WaitInterrupt(void* context, uint32_t timeout_us) {
  Board& board = BoardOf(context);
  for (uint64_t cycle = 0; cycle < uint64_t{timeout_us} * 100 && !board.simulator->interrupt(); ++cycle) board.simulator->Step();
  board.interrupts += board.simulator->interrupt();
  return 0;
}
uint64_t Now(void* context) { return BoardOf(context).simulator->cycles() / 100; }

constexpr uint32_t kTimeout = 10000000;

std::string Words(const char* what, heddle_status status) { return std::string(what) + ": " + heddle_status_text(status); }

// What the driver must refuse, as counters: 0 stands for what the test expects.
void CheckRefusals(const heddle_device& device, std::map<std::string, int64_t>& counters) {
  heddle_program other = heddle_region;
  other.lanes ^= 1;
  counters["open_wrong_lanes"] = heddle_open(&device, &other);
  heddle_device small = device;
  small.memory_bytes = heddle_region.dram_bytes - 1;
  counters["open_small_memory"] = heddle_open(&small, &heddle_region);
  heddle_device unaligned = device;
  unaligned.memory_bus_address += 64;
  counters["open_unaligned"] = heddle_open(&unaligned, &heddle_region);
  heddle_device absent = device;
  absent.read_register = [](void*, uint32_t) { return 0xffffffffu; };
  counters["open_absent"] = heddle_open(&absent, &heddle_region);
  counters["input_out_of_range"] = heddle_set_input(&device, &heddle_region, heddle_region.input_count, reinterpret_cast<const int8_t*>(""));
}

std::string RunOne(const heddle_device& device, const Job& job, std::map<std::string, int64_t>& counters, bool hurry) {
  for (const Poke& poke : job.pokes) {
    const std::vector<uint8_t> bytes = ReadBytes(poke.file);
    const auto index = static_cast<uint32_t>(poke.address);
    const heddle_status status = heddle_set_input(&device, &heddle_region, index, reinterpret_cast<const int8_t*>(bytes.data()));
    if (status != HEDDLE_OK) return Words("heddle_set_input", status);
  }
  if (hurry) {  // too short a time, and a second start meanwhile; then it is waited for
    counters["run_hurried"] = heddle_run(&device, &heddle_region, 1);
    counters["run_while_busy"] = heddle_run(&device, &heddle_region, kTimeout);
    while (!(device.read_register(device.context, HEDDLE_REGISTER_STATUS) & HEDDLE_STATUS_DONE)) {}
  } else if (const heddle_status status = heddle_run(&device, &heddle_region, kTimeout); status != HEDDLE_OK) {
    return Words("heddle_run", status);
  }
  for (const Dump& dump : job.dumps) {
    std::vector<int8_t> data(dump.size);
    const heddle_status status = heddle_get_output(&device, &heddle_region, static_cast<uint32_t>(dump.address), data.data());
    if (status != HEDDLE_OK) return Words("heddle_get_output", status);
    std::ofstream file(dump.file, std::ios::binary);
    file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  }
  heddle_counters read;
  if (const heddle_status status = heddle_read_counters(&device, &read); status != HEDDLE_OK) return Words("heddle_read_counters", status);
  static const char* const names[] = HEDDLE_COUNTER_NAMES;
  counters["cycles"] = static_cast<int64_t>(read.cycles);
  for (int i = 0; i < HEDDLE_COUNTER_COUNT; ++i) counters[names[i]] = read.values[i];
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  Script script;
  if (argc != 3 || !heddle::sim::ReadScript(argv[1], script)) return 3;
  FILE* out = std::fopen(argv[2], "w");
  if (!out) return 3;
  const auto start = std::chrono::steady_clock::now();
  Simulator simulator(script);
  Board board{&simulator, script.base, std::vector<uint8_t>(heddle_region.dram_bytes, 0xee)};
  heddle_device device = {};
  device.context = &board;
  device.read_register = ReadBoard;
  device.write_register = WriteBoard;
  device.memory = board.cache.data();
  device.memory_bus_address = script.base;
  device.memory_bytes = board.cache.size();
  device.flush = Flush;
  device.invalidate = Invalidate;
  std::map<std::string, int64_t> counters;
  CheckRefusals(device, counters);
  std::string error;
  if (const heddle_status status = heddle_load(&device, &heddle_region, nullptr, kTimeout); status != HEDDLE_OK) error = Words("heddle_load", status);
  std::fprintf(out, "{\"jobs\":[");
  for (size_t i = 0; i < script.jobs.size() && error.empty(); ++i) {
    // Polling, too short a timeout, then the interrupt with a clock.
    if (i == 2) {
      device.wait_interrupt = WaitInterrupt;
      device.now_us = Now;
    }
    error = RunOne(device, script.jobs[i], counters, i == 1);
    counters["interrupts"] = board.interrupts;
    heddle::sim::PrintJob(out, counters, {}, i == 0);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  heddle::sim::PrintEnd(out, simulator.cycles(), seconds, error.empty() ? simulator.memory().error() : error);
  std::fclose(out);
  return error.empty() ? 0 : 3;
}
