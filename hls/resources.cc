// The first resource model: counts that follow from the structure (multipliers, memory words) and constants per bit of width
// elsewhere, not fitted to a synthesis. Each int8 product of the array takes a DSP48E1: the RTL does not pair products.

#include "hls/resources.h"

#include <algorithm>

namespace heddle::hls {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// RAMB36 for a memory of `words` words of `bits` bits: 36 bits wide at 1024 words, down to 1 bit at 32768; 72 at 512.
int64_t BlockRams(int64_t words, int64_t bits) {
  int64_t best = CeilDiv(bits, 72) * CeilDiv(words, 512);
  for (const auto& [depth, width] : {std::pair<int64_t, int64_t>{1024, 36}, {2048, 18}, {4096, 9}, {8192, 4}, {16384, 2}, {32768, 1}}) {
    best = std::min(best, CeilDiv(bits, width) * CeilDiv(words, depth));
  }
  return best;
}

}  // namespace

Resources EstimateResources(const AcceleratorParams& p) {
  const int64_t r = p.contraction_lanes, c = p.output_lanes, lanes = p.requantise_lanes;
  Resources total;
  const auto add = [&](const char* unit, int64_t lut, int64_t ff, int64_t dsp, int64_t bram36) {
    total.units.push_back({unit, lut, ff, dsp, bram36});
    total.lut += lut, total.ff += ff, total.dsp += dsp, total.bram36 += bram36;
  };
  // An adder tree of about 18 bits; an accumulator of 32 bits a column.
  add("array", r * c * 16 + c * 40, r * c * 20 + c * 64, r * c, 0);
  add("weight_memory", 40, 40, 0, BlockRams(p.weight_words, 8 * r * c));
  // Four banks with read ports for the array, operand b and the store unit, and the byte rotator between banks and lanes.
  const int64_t bank_bits = 8 * p.bank_bytes();
  add("activation_memory", p.line_bytes() * 8 * 5, p.line_bytes() * 16, 0, kActivationBanks * BlockRams(p.bank_words(), bank_bits));
  add("parameter_memory", 20, 8 * p.parameter_word_bytes(), 0, BlockRams(int64_t{p.parameter_blocks} * p.drain_cycles(), 8 * p.parameter_word_bytes()));
  // A 32 x 31 bit product takes four multipliers; shifts and rounding of 64 bits.
  add("drain", lanes * 420, lanes * 380, lanes * 4, 0);
  if (p.elementwise) add("elementwise", lanes * 160, lanes * 150, lanes * 2, 0);
  if (p.depthwise || p.pooling) add("window", c * 90 + (p.pooling ? c * 60 : 0), c * 100, 0, 0);
  if (p.lookup) add("lookup", lanes * 8, lanes * 8, 0, lanes * BlockRams(int64_t{p.lookup_tables} * kLookupEntries, 8));
  add("sequencer", 1400, 1600, 0, 0);
  const int64_t queue_bits = int64_t{kInstructionBytes} * 8 * (p.load_queue + p.compute_queue + p.store_queue);
  add("fetch_and_queues", 400 + queue_bits / 32, 1200, 0, 0);
  add("dma", 1500 + p.axi_data_bits * 8, 1400 + p.axi_data_bits * 10, 0, 0);
  add("registers", 500, 900, 0, 0);
  return total;
}

}  // namespace heddle::hls
