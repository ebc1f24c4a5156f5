// Everything is read off the compiled program; nothing is simulated.

#include "driver/memory_facts.h"

#include <algorithm>

namespace heddle::driver {
namespace {

int64_t MovedBytes(const hls::Instruction& instruction) {
  const hls::TransferFields& t = instruction.transfer;
  return int64_t{t.bytes} * t.rows * t.planes;
}

void Fill(report::OnChipMemory& memory, int64_t used, int64_t resident, int64_t available) {
  memory.used = std::max(memory.used, used);
  memory.resident = std::max(memory.resident, resident);
  memory.available = available;
}

}  // namespace

std::vector<int64_t> DramBytesByLayer(const hls::CompiledProgram& program) {
  std::vector<int64_t> bytes(program.layers.size());
  for (const hls::Instruction& instruction : program.run) {
    const hls::Opcode opcode = instruction.header.opcode;
    if (opcode != hls::Opcode::kLoad && opcode != hls::Opcode::kStore) continue;
    if (instruction.transfer.tag < bytes.size()) bytes[instruction.transfer.tag] += MovedBytes(instruction);
  }
  return bytes;
}

void AddMemoryFacts(const hls::CompiledProgram& program, report::Accelerator& out) {
  const hls::AcceleratorParams& params = program.params;
  const hls::MemoryPlan& plan = program.plan;
  if (out.on_chip.empty()) out.on_chip = {{"activations", "bytes"}, {"weights", "words"}, {"parameters", "blocks"}};
  Fill(out.on_chip[0], plan.activation_bytes_used, 0, params.activation_bytes);
  Fill(out.on_chip[1], plan.weight_words_used, plan.weight_words_resident, params.weight_words);
  Fill(out.on_chip[2], plan.parameter_blocks_used, 0, params.parameter_blocks);
  out.spilled_bytes += plan.activations_spilled_bytes;
  out.spilled_tensors += plan.spilled_tensors;
  // Reads and writes share the memory's rate, each at most the bus.
  out.memory_bytes_per_cycle = std::min<double>(program.memory.bytes_per_cycle, 2.0 * params.beat_bytes());
}

}  // namespace heddle::driver
