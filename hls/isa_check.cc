// The rules of isa.h that can be seen in one instruction. The functional model calls this before it executes, the compiler
// before it emits; what depends on run-time addresses is checked by the functional model itself.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "hls/isa.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

class Checker {
 public:
  // Records the first rule that does not hold.
  template <typename T>
  void Expect(bool holds, std::string_view field, T found, const std::string& expected) {
    if (holds || !status_.ok()) return;
    status_ = ir::UserError("E-PROGRAM-004", fmt::format("instruction field {} is {}; expected {}", std::string(field),
                                                         static_cast<int64_t>(found), expected));
  }
  void ExpectMultiple(int64_t value, std::string_view field, int64_t unit) {
    Expect(value % unit == 0, field, value, fmt::format("a multiple of {}", unit));
  }
  void ExpectRange(int64_t value, std::string_view field, int64_t low, int64_t high) {
    Expect(value >= low && value <= high, field, value, fmt::format("{} to {}", low, high));
  }
  absl::Status status() const { return status_; }

 private:
  absl::Status status_;
};

// The extreme addresses of a strided box: base + sum of (count - 1) * step.
void ExpectBox(Checker& check, const char* field, int64_t base, std::initializer_list<std::pair<int64_t, int64_t>> dims,
               int64_t bytes, int64_t size) {
  int64_t low = base, high = base + bytes;
  for (const auto& [count, step] : dims) (step < 0 ? low : high) += (count - 1) * step;
  check.Expect(low >= 0 && high <= size, field, base,
               fmt::format("the bytes {} to {} that it reaches to lie within {}", low, high, size));
}

void CheckTransfer(const AcceleratorParams& params, const Instruction& instruction, Checker& check) {
  const TransferFields& t = instruction.transfer;
  const int beat = params.beat_bytes();
  if (t.planes == 0 || t.rows == 0 || t.bytes == 0) return;
  check.Expect(instruction.header.opcode == Opcode::kLoad || t.target == Target::kActivations, "target", t.target,
               "0 in a store");
  check.ExpectMultiple(t.dram_address, "dram_address", beat);
  if (t.rows > 1) check.ExpectMultiple(t.dram_row_step, "dram_row_step", beat);
  if (t.planes > 1) check.ExpectMultiple(t.dram_plane_step, "dram_plane_step", beat);
  if (t.target == Target::kActivations) {
    check.ExpectMultiple(t.sram_address, "sram_address", beat);
    if (t.rows > 1) check.ExpectMultiple(t.sram_row_step, "sram_row_step", beat);
    if (t.planes > 1) check.ExpectMultiple(t.sram_plane_step, "sram_plane_step", beat);
    ExpectBox(check, "sram_address", t.sram_address, {{t.rows, t.sram_row_step}, {t.planes, t.sram_plane_step}}, t.bytes,
              params.activation_bytes);
    return;
  }
  const bool lookup = t.target == Target::kLookup;
  const int pitch = lookup                         ? kLookupEntries
                    : t.target == Target::kWeights ? params.weight_word_pitch_bytes()
                                                   : params.parameter_word_pitch_bytes();
  const int64_t words = lookup                         ? params.lookup_tables
                        : t.target == Target::kWeights ? params.weight_words
                                                       : int64_t{params.parameter_blocks} * params.drain_cycles();
  check.Expect(!lookup || params.lookup, "target", t.target, "a unit that this accelerator has (lookup)");
  check.ExpectMultiple(t.bytes, "bytes", beat);
  const int64_t total = int64_t{t.bytes} * t.rows * t.planes;
  check.ExpectMultiple(total, "bytes", pitch);
  check.Expect(t.sram_address + total / pitch <= words, "sram_address", t.sram_address,
               fmt::format("{} words from there to lie within {}", total / pitch, words));
}

void CheckWindow(const AcceleratorParams& params, const ComputeFields& c, Checker& check) {
  const bool vectors = c.reduce == Reduce::kDepthwise || c.reduce == Reduce::kMax;
  if (c.window == 1) {
    check.Expect(params.has_window(), "window", c.window, "0: fewer than nine contraction lanes");
    check.Expect(vectors, "window", c.window, "0 for this reduction");
    check.ExpectRange(c.kernel_rows, "kernel_rows", 1, 1);
    check.ExpectRange(c.kernel_columns, "kernel_columns", 1, 1);
    check.ExpectRange(c.emit_stride, "emit_stride", 1, 255);
    check.Expect(c.first_emit < c.x_steps, "first_emit", c.first_emit, "less than x_steps");
    if (check.status().ok()) {
      check.Expect((c.x_steps - 1 - c.first_emit) % c.emit_stride == 0, "x_steps", c.x_steps,
                   "the last step of a row to complete a pixel");
    }
  }
  if (!vectors) return;
  check.ExpectRange(c.passes, "passes", 1, 1);
  check.ExpectRange(c.vector_rows, "vector_rows", 1, kWindowRows);
  if (c.reduce == Reduce::kMax) check.ExpectRange(c.window_columns, "window_columns", 1, c.window ? kWindowColumns : 1);
  const int lanes = params.output_lanes;
  check.ExpectMultiple(c.in_base, "in_base", lanes);
  check.ExpectMultiple(c.in_block_step, "in_block_step", lanes);
  check.ExpectMultiple(c.in_row_step, "in_row_step", lanes);
  check.ExpectMultiple(c.kernel_row_step, "kernel_row_step", lanes);
  check.ExpectMultiple(c.first_x, "first_x", lanes);
  check.ExpectMultiple(c.x_step, "x_step", lanes);
  check.ExpectMultiple(c.kernel_column_step, "kernel_column_step", lanes);
  if (c.vector_rows > 1) {
    check.ExpectMultiple(c.vector_row_step, "vector_row_step", params.bank_bytes());
    const int banks = (c.vector_row_step / params.bank_bytes()) & (kActivationBanks - 1);
    check.Expect(c.vector_rows == 2 ? banks != 0 : banks % 2 == 1, "vector_row_step", c.vector_row_step,
                 "vectors in different banks");
  }
}

void CheckUnits(const AcceleratorParams& params, const ComputeFields& c, Checker& check) {
  const std::string has = "a unit that this accelerator has";
  check.Expect(params.depthwise || c.reduce != Reduce::kDepthwise, "reduce", c.reduce, has + " (depthwise)");
  check.Expect(params.pooling || c.reduce != Reduce::kMax, "reduce", c.reduce, has + " (pooling)");
  check.Expect(params.elementwise || c.use_b == 0, "use_b", c.use_b, has + " (elementwise)");
  check.Expect(params.lookup || c.use_lookup == 0, "use_lookup", c.use_lookup, has + " (lookup)");
  check.Expect(c.use_lookup == 0 || static_cast<int>(c.lookup_table) < params.lookup_tables, "lookup_table", c.lookup_table,
               fmt::format("less than {}", params.lookup_tables));
  check.Expect(c.use_b == 1 || c.add_b == 0, "add_b", c.add_b, "0 without use_b");
  check.Expect(c.drain <= Drain::kMultiply, "drain", c.drain, "0 to 2");
  check.Expect(c.drain != Drain::kMultiply || (c.use_b == 1 && c.reduce == Reduce::kLoad), "drain", c.drain,
               "multiply only with use_b and reduce = load");
  check.Expect(c.drain != Drain::kMultiply || c.add_b == 0, "add_b", c.add_b, "0 with drain = multiply");
  check.Expect(c.drain != Drain::kMultiply || c.wide == 0, "wide", c.wide, "0 with drain = multiply");
  check.ExpectRange(c.add_shift, "add_shift", 0, 40);
}

void CheckCompute(const AcceleratorParams& params, const ComputeFields& c, Checker& check) {
  CheckUnits(params, c, check);
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, uint32_t>>{
           {"blocks", c.blocks}, {"out_rows", c.out_rows}, {"x_steps", c.x_steps}, {"passes", c.passes},
           {"kernel_rows", c.kernel_rows}, {"kernel_columns", c.kernel_columns}}) {
    check.Expect(value >= 1, name, value, "at least 1");
  }
  check.ExpectRange(c.last_block_channels, "last_block_channels", 1, params.output_lanes);
  if (!check.status().ok()) return;
  CheckWindow(params, c, check);
  if (!check.status().ok()) return;
  if (c.reduce == Reduce::kDot || c.reduce == Reduce::kDepthwise) {
    const int64_t words = int64_t{c.shared_weights ? 1 : c.blocks} * c.kernel_rows * c.kernel_columns * c.passes;
    check.Expect(c.weight_base + words <= params.weight_words, "weight_base", c.weight_base,
                 fmt::format("{} tiles from there to lie within {}", words, params.weight_words));
  }
  if (c.hold_accumulation || c.continue_accumulation) {
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, uint32_t>>{
             {"blocks", c.blocks}, {"out_rows", c.out_rows}, {"x_steps", c.x_steps}}) {
      check.Expect(value == 1, name, value, "1 with hold_accumulation or continue_accumulation");
    }
    check.Expect(c.window == 0, "window", c.window, "0 with hold_accumulation or continue_accumulation");
    check.Expect(c.hold_accumulation == 0 || c.use_b == 0, "use_b", c.use_b, "0 with hold_accumulation");
  }
  if (c.hold_accumulation) return;
  if (c.drain != Drain::kPass) {
    const int64_t last = c.param_base + int64_t{c.blocks - 1} * c.param_block_step;
    check.Expect(last < params.parameter_blocks, "param_base", c.param_base,
                 fmt::format("the last block {} to lie within {}", last, params.parameter_blocks));
  }
  const int64_t pixels = c.window ? (c.x_steps - 1 - c.first_emit) / c.emit_stride + 1 : c.x_steps;
  const auto box = [&](const char* field, int64_t base, int64_t x, int64_t row, int64_t block, bool whole) {
    const int64_t last = whole ? params.output_lanes : c.last_block_channels;
    // Whole blocks before the last, then the last with its fewer channels.
    ExpectBox(check, field, base + (c.blocks - 1) * block, {{pixels, x}, {c.out_rows, row}}, last, params.activation_bytes);
    if (c.blocks > 1) {
      ExpectBox(check, field, base, {{pixels, x}, {c.out_rows, row}, {c.blocks - 1, block}}, params.output_lanes,
                params.activation_bytes);
    }
  };
  box("out_base", c.out_base, c.out_x_step, c.out_row_step, c.out_block_step, false);
  if (c.use_b) box("b_base", c.b_base, c.b_x_step, c.b_row_step, c.b_block_step, false);
}

}  // namespace

absl::Status CheckInstruction(const AcceleratorParams& params, const Instruction& instruction) {
  Checker check;
  const HeaderFields& h = instruction.header;
  switch (h.opcode) {
    case Opcode::kLoad:
    case Opcode::kStore: CheckTransfer(params, instruction, check); break;
    case Opcode::kCompute: CheckCompute(params, instruction.compute, check); break;
    case Opcode::kEnd: break;
  }
  const bool own = (h.opcode == Opcode::kLoad && (h.wait_load || h.signal_load)) ||
                   (h.opcode == Opcode::kCompute && (h.wait_compute || h.signal_compute)) ||
                   (h.opcode == Opcode::kStore && (h.wait_store || h.signal_store));
  check.Expect(!own, "opcode", h.opcode, "no tokens between a unit and itself");
  return check.status();
}

}  // namespace heddle::hls
