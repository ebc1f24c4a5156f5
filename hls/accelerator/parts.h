// The accelerator's modules, one function each; private to hls/accelerator.
#ifndef HEDDLE_HLS_ACCELERATOR_PARTS_H_
#define HEDDLE_HLS_ACCELERATOR_PARTS_H_

#include <string>
#include <string_view>

#include "hls/drain_schedule.h"
#include "hls/isa.h"
#include "hls/params.h"
#include "hls/rtl/module.h"

namespace heddle::hls {

// Widths that several modules share.
struct Widths {
  explicit Widths(const AcceleratorParams& p);
  int address;         // byte address in the activation memory
  int bank_address;    // word address in a bank
  int bank_offset;     // byte in a bank word
  int line_offset;     // byte in a line of four banks
  int vector_index;    // C-byte vector in a line
  int weight_address;  // tile
  int parameter_block; // block of C channels
  int beat;            // bits of an AXI beat
  int compute_bits;    // bits of a compute instruction that carry something
  int transfer_bits;   // the same of load and store
};

inline constexpr int kRowOffsetBits = 26;  // x: signed row offset in bytes
inline constexpr int kRowBits = 19;        // signed row index

// A field of an instruction held in `instruction` (bit 0 is bit 0 of word 0).
rtl::Expr Field(const rtl::Expr& instruction, Opcode opcode, std::string_view name);
// A signed or unsigned field brought to `width` bits: extended, or cut where arithmetic is modulo 2^width.
rtl::Expr FieldTo(const rtl::Expr& instruction, Opcode opcode, std::string_view name, int width);

// Whether the instruction's drain multiplies two operands; whether it adds operand b.
rtl::Expr DrainMultiplies(const rtl::Expr& instruction);
rtl::Expr DrainAdds(const rtl::Expr& instruction);

// A first-in first-out queue: ports push, push_data, can_push, valid, data, pop. `depth` is a power of two.
rtl::Module& AddQueue(rtl::Design& design, const std::string& name, int width, int depth, const std::string& comment);

rtl::Module& AddActivationMemory(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddSequencer(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddOperands(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddArray(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddDrain(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddCompute(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddLoad(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddStore(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddFetch(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddReadPort(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddTokens(rtl::Design& design);
rtl::Module& AddControl(rtl::Design& design, const AcceleratorParams& params);
rtl::Module& AddTop(rtl::Design& design, const AcceleratorParams& params);

// A module of the design by name.
rtl::Module& Find(rtl::Design& design, const std::string& name);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_ACCELERATOR_PARTS_H_
