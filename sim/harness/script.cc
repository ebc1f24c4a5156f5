// Scripts in, JSON out. Both are simple enough to need no library, so that a verilated model compiles in seconds.

#include "script.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace heddle::sim {
namespace {

bool ReadMemoryLine(const std::string& word, std::istringstream& in, MemoryConfig& memory) {
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
  else return false;
  return true;
}

bool ReadLine(const std::string& word, std::istringstream& in, Script& script) {
  if (ReadMemoryLine(word, in, script.memory)) return true;
  if (word == "dram_bytes") in >> script.dram_bytes;
  else if (word == "image") in >> script.image;
  else if (word == "base") in >> script.base;
  else if (word == "max_cycles") in >> script.max_cycles;
  else if (word == "hang_cycles") in >> script.hang_cycles;
  else if (word == "clock_mhz") in >> script.clock_mhz;
  else if (word == "params") in >> script.params;
  else if (word == "waves") in >> script.wave_file >> script.wave_start >> script.wave_end;
  else if (word == "register") { std::string name; uint32_t offset = 0; in >> name >> offset; script.registers[name] = offset; }
  else if (word == "job") { script.jobs.emplace_back(); in >> script.jobs.back().program; }
  else if (word == "poke") { Poke poke; in >> poke.address >> poke.file; script.jobs.back().pokes.push_back(poke); }
  else if (word == "dump") { Dump dump; in >> dump.address >> dump.size >> dump.file; script.jobs.back().dumps.push_back(dump); }
  else return false;
  return true;
}

}  // namespace

bool ReadScript(const char* path, Script& script) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (!ReadLine(word, in, script) || in.fail()) return false;
  }
  return file.eof();
}

std::vector<uint8_t> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void PrintJob(FILE* out, const std::map<std::string, int64_t>& counters, const std::vector<Event>& events, bool first) {
  std::fprintf(out, "%s{\"counters\":{", first ? "" : ",\n");
  const char* separator = "";
  for (const auto& [name, value] : counters) {
    std::fprintf(out, "%s\"%s\":%lld", separator, name.c_str(), static_cast<long long>(value));
    separator = ",";
  }
  std::fprintf(out, "},\"events\":[");
  separator = "";
  for (const Event& event : events) {
    std::fprintf(out, "%s[%d,%d,%llu,%llu]", separator, event.unit, event.tag, static_cast<unsigned long long>(event.start), static_cast<unsigned long long>(event.end));
    separator = ",";
  }
  std::fprintf(out, "]}");
}

void PrintEnd(FILE* out, uint64_t cycles, double seconds, const std::string& error) {
  std::string quoted;
  for (char c : error) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c >= ' ' ? c : ' ';
  }
  std::fprintf(out, "],\"cycles\":%llu,\"seconds\":%.6f,\"error\":\"%s\"}\n", static_cast<unsigned long long>(cycles), seconds, quoted.c_str());
}

}  // namespace heddle::sim
