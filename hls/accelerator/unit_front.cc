// The common front of the units, the token counters, and the walk over a transfer's rows.

#include "hls/accelerator/unit_front.h"

#include <bit>

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {
constexpr const char* kUnitNames[kUnits] = {"load", "compute", "store"};
}  // namespace

UnitFront AddUnitFront(Module& m, int instruction_bits, const Expr& start) {
  m.Comment("Head of the queue and its tokens.");
  const Expr valid = m.Input("queue_valid", 1);
  const Expr head = m.Input("queue_data", instruction_bits);
  const Expr tokens = m.Input("tokens", kUnits * kTokenBits, "given to this unit by load, compute, store");
  m.Assign(m.Output("queue_pop", 1), start);
  const int first = PlaceOf(Opcode::kEnd, "wait_load").offset;
  m.Assign(m.Output("start_waits", kUnits * 4, "tokens taken at a start"), Slice(head, first, kUnits * 4));
  std::vector<Expr> enough;
  for (int unit = 0; unit < kUnits; ++unit) {
    const Expr wanted = FieldTo(head, Opcode::kEnd, std::string("wait_") + kUnitNames[unit], kTokenBits);
    enough.push_back(m.Name(std::string("enough_from_") + kUnitNames[unit],
                            LessEqual(wanted, Slice(tokens, unit * kTokenBits, kTokenBits))));
  }
  const Expr has_tokens = m.Name("has_tokens", AllOf(enough));
  m.Assign(m.Output("event_wait_token", 1), valid & ~has_tokens);
  return {head, m.Name("head_ready", valid & has_tokens)};
}

Expr SignalsOf(const Expr& instruction) {
  return Slice(instruction, PlaceOf(Opcode::kEnd, "signal_load").offset, kUnits * 4);
}

Module& AddTokens(Design& design) {
  Module& m = design.Add("heddle_tokens", "Token counters between the units.");
  const Expr clear = m.Input("clear", 1);
  Expr start[kUnits], waits[kUnits], finish[kUnits], signals[kUnits], tokens[kUnits];
  for (int unit = 0; unit < kUnits; ++unit) {
    const std::string name = kUnitNames[unit];
    start[unit] = m.Input(name + "_start", 1);
    waits[unit] = m.Input(name + "_waits", kUnits * 4);
    finish[unit] = m.Input(name + "_finish", 1);
    signals[unit] = m.Input(name + "_signals", kUnits * 4);
    tokens[unit] = m.Output(name + "_tokens", kUnits * kTokenBits, "given to this unit by load, compute, store");
  }
  for (int to = 0; to < kUnits; ++to) {
    std::vector<Expr> counts;
    for (int from = kUnits - 1; from >= 0; --from) {
      if (from == to) {
        counts.push_back(Zeros(kTokenBits));
        continue;
      }
      const Expr count = m.ResetRegister(std::string(kUnitNames[from]) + "_to_" + kUnitNames[to], kTokenBits);
      counts.push_back(count);
      const Expr given = Mux(finish[from], Slice(signals[from], to * 4, 4), Zeros(4));
      const Expr taken = Mux(start[to], Slice(waits[to], from * 4, 4), Zeros(4));
      m.Clocked([&](Block& b) {
        b.If(clear, [&] { b.Set(count, Zeros(kTokenBits)); });
        b.Else([&] { b.Set(count, count + ZeroExtend(given, kTokenBits) - ZeroExtend(taken, kTokenBits)); });
      });
    }
    m.Assign(tokens[to], Concat(counts));
  }
  for (int unit = 0; unit < kUnits; ++unit) m.Ignore({waits[unit], signals[unit]});
  m.Finish();
  return m;
}

TransferWalk::TransferWalk(Module& m, const AcceleratorParams& params, const std::string& name, const std::string& side,
                           const Expr& instruction, int address_bits)
    : p_(params), side_(side), instruction_(instruction) {
  active = m.ResetRegister(name + "_active", 1);
  address = m.Register(name + "_address", address_bits);
  beats_left = m.Register(name + "_beats_left", kBeatCountBits, "in this row");
  row_beats_ = m.Register(name + "_row_beats", kBeatCountBits, "beats of a row");
  rows_left_ = m.Register(name + "_rows_left", 16, "this one included");
  planes_left_ = m.Register(name + "_planes_left", 16, "this one included");
  row_address_ = m.Register(name + "_row", address_bits);
  plane_address_ = m.Register(name + "_plane", address_bits);
  next_row_ = m.Name(name + "_next_row", row_address_ + Step("row_step"));
  next_plane_ = m.Name(name + "_next_plane", plane_address_ + Step("plane_step"));
}

Expr TransferWalk::Step(const std::string& field) {
  return FieldTo(instruction_, Opcode::kLoad, side_ + "_" + field, address.width());
}

Expr TransferWalk::RowBeats(const Expr& instruction) {
  const int shift = std::countr_zero(static_cast<unsigned>(p_.beat_bytes()));
  const Expr bytes = FieldTo(instruction, Opcode::kLoad, "bytes", kBeatCountBits);
  return ShiftRight(bytes + Const(kBeatCountBits, p_.beat_bytes() - 1), Const(4, shift));
}

void TransferWalk::Begin(Block& b, const Expr& head) {
  const Expr start = FieldTo(head, Opcode::kLoad, side_ + "_address", address.width());
  b.Set(active, AllOf({AnyBit(Field(head, Opcode::kLoad, "bytes")), AnyBit(Field(head, Opcode::kLoad, "rows")),
                       AnyBit(Field(head, Opcode::kLoad, "planes"))}));
  b.Set(address, start);
  b.Set(row_address_, start);
  b.Set(plane_address_, start);
  b.Set(row_beats_, RowBeats(head));
  b.Set(beats_left, RowBeats(head));
  b.Set(rows_left_, Field(head, Opcode::kLoad, "rows"));
  b.Set(planes_left_, Field(head, Opcode::kLoad, "planes"));
}

Expr TransferWalk::CompletesRow(const Expr& beats) { return Equal(beats_left, beats); }
Expr TransferWalk::CompletesAll(const Expr& beats) {
  return AllOf({CompletesRow(beats), Equal(rows_left_, Const(16, 1)), Equal(planes_left_, Const(16, 1))});
}

void TransferWalk::Advance(Block& b, const Expr& beats) {
  b.If(~CompletesRow(beats), [&] {
    const int shift = std::countr_zero(static_cast<unsigned>(p_.beat_bytes()));
    const int bits = address.width();
    // A burst has at most 256 beats.
    const Expr count = bits <= beats.width() && beats.is_signal() ? Slice(beats, 0, bits)
                       : bits <= beats.width()                    ? Const(bits, 1)
                                                                  : ZeroExtend(beats, bits);
    b.Set(address, address + ShiftLeft(count, Const(4, shift)));
    b.Set(beats_left, beats_left - beats);
  });
  b.Else([&] {
    b.Set(beats_left, row_beats_);
    b.If(NotEqual(rows_left_, Const(16, 1)), [&] {
      b.Set(rows_left_, rows_left_ - Const(16, 1));
      b.Set(row_address_, next_row_);
      b.Set(address, next_row_);
    });
    b.Else([&] {
      b.Set(rows_left_, Field(instruction_, Opcode::kLoad, "rows"));
      b.Set(planes_left_, planes_left_ - Const(16, 1));
      b.Set(plane_address_, next_plane_);
      b.Set(row_address_, next_plane_);
      b.Set(address, next_plane_);
      b.If(Equal(planes_left_, Const(16, 1)), [&] { b.Set(active, Const(1, 0)); });
    });
  });
}

}  // namespace heddle::hls
