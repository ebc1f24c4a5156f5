// The resource model. Multipliers and memories follow from the structure; look-up tables and registers are counts of bits times what
// a bit of that structure takes. Those of the array's sums and of the control modules are from Yosys 0.23's synth_xilinx, those
// of the drain are counted by hand from its operators.

#include "hls/resources.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace heddle::hls {
namespace {

constexpr int64_t kComputeBits = 800;   // of an instruction in its queue and in execution
constexpr int64_t kTransferBits = 312;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t Log2(int64_t value) {
  int64_t bits = 0;
  while ((int64_t{1} << bits) < value) ++bits;
  return bits;
}

struct MemoryCells {
  int64_t lut = 0, bram18 = 0;
};

// A memory of `words` words of `bits` bits that is written `granule` bits at a time. Block RAMs have write enables for 9 bits, so a
// granule takes whole ninths; up to 64 words lie in look-up tables (four of them hold 3 bits of 64 words or 6 of 32).
MemoryCells Memory(int64_t words, int64_t bits, int64_t granule) {
  if (words <= 64) {
    const int64_t share = words <= 32 ? 6 : 3;
    return {4 * (bits / granule * CeilDiv(granule, share) + CeilDiv(bits % granule, share)), 0};
  }
  const int64_t columns = bits / granule * CeilDiv(granule, 9) + CeilDiv(bits % granule, 9);
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int64_t share = 1; share <= 8; share *= 2) {
    best = std::min(best, 2 * CeilDiv(columns, share) * CeilDiv(words, 4096 / share));
    if (share <= 4) best = std::min(best, CeilDiv(columns, share) * CeilDiv(words, 2048 / share));
  }
  return {0, best};
}

class Estimate {
 public:
  explicit Estimate(const AcceleratorParams& params) : p_(params) {}

  Resources Total() {
    AddArray();
    AddMemories();
    AddDrain();
    AddOperands();
    AddControl();
    return total_;
  }

 private:
  void Add(const char* unit, int64_t lut, int64_t ff, int64_t dsp, int64_t bram18) {
    total_.units.push_back({unit, lut, ff, dsp, bram18});
    total_.lut += lut, total_.ff += ff, total_.dsp += dsp, total_.bram18 += bram18;
  }

  // A column adds one term of 16 bits for two products; its first register stage lies in the multipliers.
  void AddArray() {
    const int64_t r = p_.contraction_lanes, c = p_.output_lanes, taps = p_.window_taps();
    const int64_t sums = c * (4 + 29 * r / 2) + (p_.elementwise ? 16 : 0);
    const int64_t choice = p_.depthwise ? c * taps * 8 : 0;
    const int64_t maximum = p_.pooling ? c * (taps * 24 + 60) : c * 30;
    const int64_t soft = p_.soft_multipliers * 2 * 160;
    Add("array", sums + choice + maximum + soft, c * 48 + 6 + p_.soft_multipliers * 16, p_.array_multipliers() - p_.soft_multipliers, 0);
  }

  void AddMemories() {
    const int64_t beat = p_.axi_data_bits, line = 8 * p_.line_bytes();
    const MemoryCells weights = Memory(p_.weight_words, 8 * p_.weight_tile_bytes(), beat);
    Add("weight_memory", weights.lut, weights.lut > 0 ? 8 * p_.weight_tile_bytes() : 0, 0, weights.bram18);
    const MemoryCells bank = Memory(p_.bank_words(), 8 * p_.bank_bytes(), 8);
    Add("activation_memory", line * 15 / 4 + kActivationBanks * bank.lut, 8, 0, kActivationBanks * bank.bram18);
    const int64_t word = 8 * p_.parameter_word_bytes();
    const MemoryCells parameters = Memory(int64_t{p_.parameter_blocks} * p_.drain_cycles(), word, beat);
    Add("parameter_memory", parameters.lut, parameters.lut > 0 ? word : 0, 0, parameters.bram18);
  }

  // A lane: sums, inputs of the two multipliers, the product's two additions, shift window, clamp, lookup, and the same again for
  // additions.
  void AddDrain() {
    const int64_t lanes = p_.requantise_lanes, c = p_.output_lanes;
    int64_t lut = 330, ff = 330;
    if (p_.elementwise) lut += 330, ff += 180;
    if (p_.lookup) {
      const MemoryCells table = Memory(int64_t{p_.lookup_tables} * kLookupEntries / p_.beat_bytes(), p_.axi_data_bits, p_.axi_data_bits);
      lut += table.lut + 20;
      ff += 20;
      Add("lookup", 0, 0, 0, lanes * table.bram18);
    }
    Add("drain_lanes", lanes * lut, lanes * ff, lanes * 2, 0);
    Add("drain", 120 + c * (p_.drain_cycles() > 1 ? 24 : 4), c * 56 + lanes * 40 + 200, 0, 0);
  }

  // The rotator between banks and lanes, padding, and the window.
  void AddOperands() {
    const int64_t line = 8 * p_.line_bytes(), c = p_.output_lanes;
    const bool vectors = p_.depthwise || p_.pooling;
    const int64_t lut = line * (2 + Log2(p_.bank_bytes())) / 3 + p_.read_bytes() * 12 + 100 + (vectors ? c * 3 * 8 * 2 : 0);
    Add("operands", lut, 8 * p_.read_bytes() + 80 + (vectors ? 8 * c * p_.window_taps() : 0), 0, 0);
  }

  void AddControl() {
    const int64_t beat = p_.axi_data_bits;
    Add("sequencer", 1150, 340, 0, 0);
    Add("compute", 40, kComputeBits + 60, 0, 0);
    const auto queue = [](int64_t depth, int64_t bits) { return depth == 1 ? UnitResources{"", 4, bits + 1} : UnitResources{"", 10 + 4 * CeilDiv(bits, 6) * CeilDiv(depth, 32), 2 * Log2(depth) + 3}; };
    for (const auto& [name, depth, bits] : {std::tuple<const char*, int64_t, int64_t>{"load_queue", p_.load_queue, kTransferBits},
                                            {"compute_queue", p_.compute_queue, kComputeBits}, {"store_queue", p_.store_queue, kTransferBits}}) {
      const UnitResources q = queue(depth, bits);
      Add(name, q.lut, q.ff, 0, 0);
    }
    Add("load", 600 + beat, 480 + 2 * beat, 0, 0);
    Add("store", 600 + 2 * beat, 440 + 2 * beat, 0, 0);
    Add("fetch", 100 + 2 * beat, 1024 + 8 * beat + 100, 0, 0);
    Add("control", 615, 810, 0, 0);
    Add("tokens", 115, 48, 0, 0);
  }

  const AcceleratorParams& p_;
  Resources total_;
};

}  // namespace

Resources EstimateResources(const AcceleratorParams& params) { return Estimate(params).Total(); }

}  // namespace heddle::hls
