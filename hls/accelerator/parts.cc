// What the accelerator's modules share: widths, field extraction, the queue.

#include "hls/accelerator/parts.h"

#include <algorithm>

#include "ir/check.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT: the builder's vocabulary is used on every line here

namespace {
int UsedBits(Opcode opcode) {
  int bits = 32;
  for (const FieldPlace& place : FieldsOf(opcode)) bits = std::max(bits, place.offset + place.bits);
  return bits;
}
}  // namespace

Widths::Widths(const AcceleratorParams& p)
    : address(BitsFor(p.activation_bytes)),
      bank_address(BitsFor(p.bank_words())),
      bank_offset(BitsFor(p.bank_bytes())),
      line_offset(BitsFor(p.line_bytes())),
      vector_index(BitsFor(p.line_bytes() / p.output_lanes)),
      weight_address(BitsFor(p.weight_words)),
      parameter_block(BitsFor(p.parameter_blocks)),
      beat(p.axi_data_bits),
      compute_bits(UsedBits(Opcode::kCompute)),
      transfer_bits(UsedBits(Opcode::kLoad)) {}

Expr Field(const Expr& instruction, Opcode opcode, std::string_view name) {
  const FieldPlace& place = PlaceOf(opcode, name);
  return Slice(instruction, place.offset, place.bits);
}

Expr FieldTo(const Expr& instruction, Opcode opcode, std::string_view name, int width) {
  const FieldPlace& place = PlaceOf(opcode, name);
  if (place.bits >= width) return Slice(instruction, place.offset, width);
  const Expr field = Slice(instruction, place.offset, place.bits);
  if (!place.is_signed) return ZeroExtend(field, width);
  return Concat({Repeat(Slice(instruction, place.offset + place.bits - 1, 1), width - place.bits), field});
}

Expr DrainMultiplies(const Expr& instruction) {
  return Equal(Field(instruction, Opcode::kCompute, "drain"), Const(2, static_cast<int>(Drain::kMultiply)));
}

Expr DrainAdds(const Expr& instruction) { return Field(instruction, Opcode::kCompute, "add_b"); }

Module& Find(Design& design, const std::string& name) {
  for (const auto& module : design.modules()) {
    if (module->name() == name) return *module;
  }
  HEDDLE_CHECK(false, "no module " + name);
  return *design.modules().front();
}

Module& AddQueue(Design& design, const std::string& name, int width, int depth, const std::string& comment) {
  Module& m = design.Add(name, comment);
  const Expr push = m.Input("push", 1);
  const Expr push_data = m.Input("push_data", width);
  const Expr pop = m.Input("pop", 1);
  const Expr can_push = m.Output("can_push", 1);
  const Expr valid = m.Output("valid", 1);
  const Expr data = m.Output("data", width);
  if (depth == 1) {
    const Expr full = m.ResetRegister("full", 1);
    const Expr held = m.Register("held", width);
    m.Assign(can_push, ~full);
    m.Assign(valid, full);
    m.Assign(data, held);
    m.Clocked([&](Block& b) {
      b.If(push, [&] {
        b.Set(held, push_data);
        b.Set(full, Const(1, 1));
      });
      b.ElseIf(pop, [&] { b.Set(full, Const(1, 0)); });
    });
    m.Finish();
    return m;
  }
  const int bits = BitsFor(depth);
  const Expr count = m.ResetRegister("count", bits + 1);
  const Expr head = m.ResetRegister("head", bits, 0, "next to read");
  const Expr tail = m.ResetRegister("tail", bits, 0, "next to write");
  const Memory entries = m.AddMemory("entries", width, depth);
  m.Assign(can_push, NotEqual(count, Const(bits + 1, depth)));
  m.Assign(valid, NotEqual(count, Zeros(bits + 1)));
  m.Assign(data, ReadMemory(entries, head));
  m.Clocked([&](Block& b) {
    b.If(push, [&] {
      b.Write(entries, tail, push_data);
      b.Set(tail, tail + Const(bits, 1));
    });
    b.If(pop, [&] { b.Set(head, head + Const(bits, 1)); });
    b.If(push & ~pop, [&] { b.Set(count, count + Const(bits + 1, 1)); });
    b.ElseIf(pop & ~push, [&] { b.Set(count, count - Const(bits + 1, 1)); });
  });
  m.Finish();
  return m;
}

}  // namespace heddle::hls
