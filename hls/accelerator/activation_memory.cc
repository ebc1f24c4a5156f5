// The activation memory: four banks, each with one read and one write port, and the arbitration in front of them.
//
// Consecutive bank words lie in consecutive banks, so any aligned or unaligned run of bytes that the datapath needs is
// read in one cycle, as are the three rows of a depthwise window if their pitch puts them in different banks. Compute and
// store share the read ports, drain and load the write ports, bank by bank: they disturb each other only where they meet.

#include "hls/accelerator/parts.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

constexpr int kStorePatience = 7;   // cycles that a store's read waits before it goes first
constexpr int kLoadPatience = 15;   // cycles that a load's write waits before compute pauses

// Byte mask of an aligned beat within a line, and its banks.
struct BeatPlace {
  Expr line_mask;
  Expr banks;
};

BeatPlace PlaceBeat(Module& m, const AcceleratorParams& p, const std::string& name, const Expr& address, const Expr& mask) {
  const Widths w(p);
  const Expr position = m.Name(name + "_position", Slice(address, 0, w.line_offset));
  const Expr line_mask = m.Name(name + "_line_mask", ShiftLeft(ZeroExtend(mask, p.line_bytes()), position));
  std::vector<Expr> banks;
  for (int bank = kActivationBanks - 1; bank >= 0; --bank) {
    banks.push_back(AnyBit(Slice(line_mask, bank * p.bank_bytes(), p.bank_bytes())));
  }
  return {line_mask, m.Name(name + "_banks", Concat(banks))};
}

void AddBanks(Module& m, const AcceleratorParams& p, const Expr& read_enable, const Expr& read_address,
              const Expr& write_enable, const Expr& write_address, const Expr& write_mask, const Expr& write_data,
              const Expr& line) {
  const Widths w(p);
  const int word = p.bank_bytes() * 8;
  std::vector<Expr> words;
  for (int bank = 0; bank < kActivationBanks; ++bank) {
    const std::string suffix = std::to_string(bank);
    const Memory memory = m.AddMemory("bank_" + suffix, word, p.bank_words());
    const Expr out = m.Register("word_" + suffix, word);
    words.insert(words.begin(), out);
    m.Clocked([&](Block& b) {
      b.If(Bit(read_enable, bank), [&] {
        b.Set(out, ReadMemory(memory, Slice(read_address, bank * w.bank_address, w.bank_address)));
      });
      b.If(Bit(write_enable, bank), [&] {
        for (int byte = 0; byte < p.bank_bytes(); ++byte) {
          const int at = bank * p.bank_bytes() + byte;
          b.If(Bit(write_mask, at), [&] {
            b.Write(memory, Slice(write_address, bank * w.bank_address, w.bank_address), Slice(write_data, at * 8, 8), byte * 8);
          });
        }
      });
    });
  }
  m.Assign(line, Concat(words));
}

// Waiting counter: counts cycles of want & ~go up to `patience`; one bit that says it got there.
Expr AddPatience(Module& m, const std::string& name, const Expr& want, const Expr& go, const Expr& count, int patience) {
  const int bits = count.width();
  m.Clocked([&](Block& b) {
    b.If(~want | go, [&] { b.Set(count, Zeros(bits)); });
    b.ElseIf(NotEqual(count, Const(bits, patience)), [&] { b.Set(count, count + Const(bits, 1)); });
  });
  return m.Name(name, Equal(count, Const(bits, patience)));
}

}  // namespace

Module& AddActivationMemory(Design& design, const AcceleratorParams& p) {
  const Widths w(p);
  const int line = p.line_bytes();
  const int bank = p.bank_bytes();
  const int addresses = kActivationBanks * w.bank_address;
  Module& m = design.Add("heddle_activation_memory", "Activation memory: four banks and the arbitration of their ports.");
  const Expr compute_want = m.Input("compute_want", 1);
  const Expr compute_banks = m.Input("compute_banks", kActivationBanks);
  const Expr compute_address = m.Input("compute_address", addresses, "word address of each bank");
  const Expr compute_go = m.Output("compute_go", 1);
  const Expr compute_line = m.Output("compute_line", line * 8, "one cycle after compute_go");
  const Expr store_want = m.Input("store_want", 1);
  const Expr store_address = m.Input("store_address", w.address, "of an aligned beat");
  const Expr store_go = m.Output("store_go", 1);
  const Expr store_data = m.Output("store_data", w.beat, "one cycle after store_go");
  const Expr drain_valid = m.Input("drain_valid", 1, "always accepted");
  const Expr drain_address = m.Input("drain_address", w.address, "any byte");
  const Expr drain_data = m.Input("drain_data", p.output_lanes * 8);
  const Expr drain_mask = m.Input("drain_mask", p.output_lanes);
  const Expr load_valid = m.Input("load_valid", 1);
  const Expr load_address = m.Input("load_address", w.address, "of an aligned beat");
  const Expr load_data = m.Input("load_data", w.beat);
  const Expr load_mask = m.Input("load_mask", p.beat_bytes());
  const Expr load_go = m.Output("load_go", 1);

  m.Comment("Read ports: compute goes first unless a store has waited for long.");
  const Expr store_wait = m.ResetRegister("store_wait", 3);
  const Expr store_ones = m.Name("store_ones", Ones(p.beat_bytes()));
  const BeatPlace store = PlaceBeat(m, p, "store", store_address, store_ones);
  const Expr overlap = m.Name("read_overlap", AnyBit(compute_banks & store.banks) & store_want);
  const Expr store_first = AddPatience(m, "store_first", store_want, store_go, store_wait, kStorePatience);
  const Expr load_wait = m.ResetRegister("load_wait", 4);
  const Expr load_starved = AddPatience(m, "load_starved", load_valid, load_go, load_wait, kLoadPatience);
  m.Assign(compute_go, compute_want & ~(overlap & store_first) & ~load_starved);
  m.Assign(store_go, store_want & ~(overlap & compute_go));

  std::vector<Expr> enables, read_addresses;
  for (int i = kActivationBanks - 1; i >= 0; --i) {
    const Expr of_compute = m.Name("compute_reads_" + std::to_string(i), compute_go & Bit(compute_banks, i));
    enables.push_back(of_compute | (store_go & Bit(store.banks, i)));
    read_addresses.push_back(Mux(of_compute, Slice(compute_address, i * w.bank_address, w.bank_address),
                                 Slice(store_address, w.line_offset, w.bank_address)));
  }
  const Expr read_enable = m.Name("read_enable", Concat(enables));
  const Expr read_address = m.Name("read_address", Concat(read_addresses));

  m.Comment("Write ports: the drain cannot wait, a load writes where its banks are free.");
  const Expr drain_bank = m.Name("drain_bank", Slice(drain_address, w.bank_offset, 2));
  const Expr drain_offset = m.Name("drain_offset", Slice(drain_address, 0, w.bank_offset));
  const Expr drain_pair_mask = m.Name("drain_pair_mask", ShiftLeft(ZeroExtend(drain_mask, 2 * bank), drain_offset));
  const Expr drain_pair = m.Name("drain_pair", ShiftLeft(ZeroExtend(drain_data, 2 * bank * 8), Concat({drain_offset, Const(3, 0)})));
  const Expr drain_word = m.Name("drain_word", Slice(drain_address, w.line_offset, w.bank_address));
  const Expr drain_next_word = m.Name("drain_next_word", drain_word + Const(w.bank_address, 1));
  const BeatPlace load = PlaceBeat(m, p, "load", load_address, load_mask);
  const Expr load_line = m.Name("load_line", Repeat(load_data, line / p.beat_bytes()));

  std::vector<Expr> drain_enables;
  for (int i = kActivationBanks - 1; i >= 0; --i) {
    const std::string suffix = std::to_string(i);
    const Expr low = m.Name("drain_low_" + suffix, Equal(drain_bank, Const(2, i)));
    const Expr high = m.Name("drain_high_" + suffix, Equal(drain_bank, Const(2, (i + 3) % 4)));
    drain_enables.push_back(drain_valid & ((low & AnyBit(Slice(drain_pair_mask, 0, bank))) |
                                           (high & AnyBit(Slice(drain_pair_mask, bank, bank)))));
  }
  const Expr drain_enable = m.Name("drain_enable", Concat(drain_enables));
  m.Assign(load_go, load_valid & ~AnyBit(drain_enable & load.banks));

  std::vector<Expr> write_enables, write_addresses, masks, data;
  for (int i = kActivationBanks - 1; i >= 0; --i) {
    const std::string suffix = std::to_string(i);
    const Expr by_drain = Bit(drain_enable, i);
    const Expr low = Equal(drain_bank, Const(2, i));
    write_enables.push_back(by_drain | (load_go & Bit(load.banks, i)));
    // A run that wraps from the last bank to the first continues in the next line.
    const Expr word = i == 0 ? Mux(low, drain_word, drain_next_word) : drain_word;
    write_addresses.push_back(Mux(by_drain, word, Slice(load_address, w.line_offset, w.bank_address)));
    masks.push_back(Mux(by_drain, Mux(low, Slice(drain_pair_mask, 0, bank), Slice(drain_pair_mask, bank, bank)),
                        Slice(load.line_mask, i * bank, bank)));
    data.push_back(Mux(by_drain, Mux(low, Slice(drain_pair, 0, bank * 8), Slice(drain_pair, bank * 8, bank * 8)),
                       Slice(load_line, i * bank * 8, bank * 8)));
  }
  const Expr write_enable = m.Name("write_enable", Concat(write_enables));
  const Expr write_address = m.Name("write_address", Concat(write_addresses));
  const Expr write_mask = m.Name("write_mask", Concat(masks));
  const Expr write_data = m.Name("write_data", Concat(data));

  m.Comment("The banks.");
  const Expr out = m.Wire("line_out", line * 8);
  AddBanks(m, p, read_enable, read_address, write_enable, write_address, write_mask, write_data, out);
  m.Assign(compute_line, out);
  const int beats = line / p.beat_bytes();
  if (beats == 1) {
    m.Assign(store_data, out);
  } else {
    const int bits = BitsFor(beats);
    const Expr beat = m.Register("store_beat", bits, "which beat of the line was read");
    m.Clocked([&](Block& b) { b.Set(beat, Slice(store_address, w.line_offset - bits, bits)); });
    m.Assign(store_data, Element(out, beat, w.beat));
  }
  m.Ignore({store_address});
  m.Finish();
  return m;
}

}  // namespace heddle::hls
