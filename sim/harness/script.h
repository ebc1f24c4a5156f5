// What a simulation is asked to do and what it answers: the one format of every simulation program (the verilated harness,
// the SystemC platform). sim/verilated_model.cc writes scripts and reads results.
//
// Built together with simulated hardware, away from the rest of Heddle: only the standard library here.
#ifndef HEDDLE_SIM_HARNESS_SCRIPT_H_
#define HEDDLE_SIM_HARNESS_SCRIPT_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "axi_memory.h"

namespace heddle::sim {

struct Poke { uint64_t address; std::string file; };
struct Dump { uint64_t address; uint64_t size; std::string file; };
struct Job { uint64_t program = 0; std::vector<Poke> pokes; std::vector<Dump> dumps; };
// A stretch in which one unit (0 load, 1 compute, 2 store) executed instructions of one tag.
struct Event { int unit; int tag; uint64_t start, end; };

struct Script {
  MemoryConfig memory;
  uint64_t dram_bytes = 0, base = 0, max_cycles = 2000000000ull, hang_cycles = 200000;
  double clock_mhz = 100;
  std::string image, wave_file;
  std::string params;  // the accelerator's parameters as JSON without spaces; only the platform's fast accelerator needs them
  uint64_t wave_start = 0, wave_end = 0;
  std::map<std::string, uint32_t> registers;
  std::vector<Job> jobs;
};

// A script is lines of "word arguments…". False where a line is not understood.
bool ReadScript(const char* path, Script& script);
std::vector<uint8_t> ReadBytes(const std::string& path);

// The result: {"jobs":[ PrintJob … PrintEnd.
void PrintJob(FILE* out, const std::map<std::string, int64_t>& counters, const std::vector<Event>& events, bool first);
void PrintEnd(FILE* out, uint64_t cycles, double seconds, const std::string& error);

}  // namespace heddle::sim

#endif  // HEDDLE_SIM_HARNESS_SCRIPT_H_
