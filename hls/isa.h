// The accelerator's instruction set: one description from which struct members, encoder, decoder, disassembler, the RTL's
// field extraction and docs/accelerator.md derive.
//
// An instruction is 128 bytes: 32 little-endian words of 32 bits. Word 0 is common to all; the rest depends on the opcode.
// FieldsOf() gives every field's place; fields are laid out in the order of the lists below, and a field never crosses a
// 32-bit word.
//
// UNITS AND TOKENS. LOAD instructions go to the load unit, COMPUTE to the compute unit, STORE to the store unit; each unit
// executes its own in order and the three run concurrently. Between each ordered pair of units (from, to) there is a token
// counter (0 to 255, must not exceed 255), zero at start. Before it starts, an instruction of unit U waits until for each
// other unit V the counter (V, U) >= wait_V and then takes wait_V tokens away. When it has finished (loads: last word written; compute: last result written;
// stores: last write response received), it adds signal_V tokens to (U, V). wait_U = signal_U = 0 for the own unit.
// The fetch hands instructions out in the program's order and waits where a queue is full; so the program's order must
// itself be a possible order of execution: every instruction's tokens come from instructions before it.
// END stops the fetch; the program is done when all three units have finished everything before it.
//
// MEMORIES. Activations: bytes, `activation_bytes` of them; tensors are channels-last (NHWC), placed anywhere with any
// pitch. Weights: `weight_words` tiles of int8 [R][C] (row r meets lane r, column c makes output channel c of the block).
// Parameters: `parameter_blocks` blocks of C channels, each channel (int32 bias, int32 multiplier >= 0, shift 0..62); DRAM
// layout in params.h (parameter_word_bytes). Lookup: `lookup_tables` tables of 256 bytes, entry i is the result for input i - 128.
//
// LOAD / STORE: move planes x rows x bytes between DRAM (byte address = base register + dram_address + plane *
// dram_plane_step + row * dram_row_step) and on-chip memory. Every DRAM row start is a multiple of beat_bytes().
//   target = activations: on-chip row start = sram_address + plane * sram_plane_step + row * sram_row_step, bytes, each a
//     multiple of beat_bytes(); `bytes` arbitrary, exactly so many bytes are written.
//   target = weights / parameters / lookup (LOAD only): the rows' beats, one after the other, fill consecutive words from word
//     sram_address on (weight word index, parameter word index = block * drain_cycles(), table index; pitch
//     weight_word_pitch_bytes(), parameter_word_pitch_bytes(), 256). `bytes` is a multiple of beat_bytes() (of 256 for lookup),
//     the total a whole number of words; sram_row_step and sram_plane_step are ignored.
//   planes, rows, bytes may be zero: nothing is moved, tokens are still exchanged.
//
// COMPUTE: one hardware loop nest over a tile,
//
//   for block in 0..blocks                     C output channels each
//     for oy in 0..out_rows
//       for ox in 0..x_steps                   output pixels, or input columns when window = 1
//         for ky in 0..kernel_rows             segments
//           for kx in 0..kernel_columns
//             for p in 0..passes               one step = one cycle
//               step
//         [if use_b: read operand b]           one more cycle
//         [drain: C results written]           when the pixel is complete
//
// In each step the unit reads from the activation memory at
//   row  = first_row + oy * row_stride + ky * kernel_row_stride                                        (signed, in rows)
//   x    = first_x + ox * x_step + kx * kernel_column_step + p * R                                       (signed, in bytes)
//   addr = in_base + block * in_block_step + oy * in_row_step + ky * kernel_row_step + x
// (in_base is the address of the byte for which oy = ky = 0 and x = 0: it includes first_row * row pitch, modulo 2^24.)
// A byte at row offset x + i is inside if 0 <= row < in_rows and 0 <= x + i < in_row_bytes; outside it reads as pad_value.
//
//   reduce = dot:       lane r in 0..R reads the byte at addr + r (any alignment). accumulator[c] += sum over r of
//                       byte[r] * weight[w][r][c]. A row's last pass may run over the segment's end: weights are zero there.
//   reduce = depthwise: vector_rows (1..3) vectors of C bytes; vector j at addr + j * vector_row_step, row + j *
//                       vector_row_stride, byte c for column c. Inside or outside is decided for a vector as a whole, by its
//                       row and x. They enter column 0 (the newest) of a window of 3 columns; older columns move on by one
//                       (vectors j >= vector_rows enter as pad_value).
//                       With tap t = age * 3 + j (only age 0 where has_window() is false), split = split_lanes():
//                       accumulator[c] += sum over r < split of window[tap r][c] * weight[w][r][c]
//                         + sum over taps t >= split, side s = 0, 1 of
//                           window[tap t][c - c % 2 + s] * weight[w][split + 2 * (t - split) + s][c].
//                       So the weight of tap t for column c stands in lane depthwise_lane(t, c), and the other lane of that tap
//                       holds zero in column c.
//                       in_base and all steps in bytes are multiples of C. vector_row_step is a multiple of bank_bytes() with
//                       (vector_row_step / bank_bytes()) % 4 odd for three vectors, not 0 for two: the vectors lie in
//                       different banks. Kernel row ky * vector_rows + j, kernel column kernel width - 1 - age.
//   reduce = max:       the same reads; accumulator[c] = max over age < window_columns, j < vector_rows of window[age][j][c]
//                       and, except in a pixel's first step, the old accumulator. No weights.
//   reduce = load:      column c reads the byte at addr + c (any alignment, padding rule as for dot): accumulator[c] = byte.
// The accumulator (int32, wraps) is cleared before a pixel's first step unless continue_accumulation = 1.
// w = weight_base + block * n + step of the pixel (0..n), n = kernel_rows * kernel_columns * passes; without block * n where
// shared_weights = 1.
//
// window = 0: a pixel is complete after its last step; output x index = ox. Before every step the window is set to pad_value,
//   so only the newest column matters: depthwise weights are zero for age > 0, max has window_columns = 1.
// window = 1 (depthwise, max; needs has_window(), kernel_rows = kernel_columns = passes = 1): each step brings one input
//   column; before a row's first step (ox = 0) the whole window is set to pad_value. The pixel is complete, and the
//   accumulator is drained, after the steps ox = first_emit + i * emit_stride, i = 0, 1, …: output x index = i. Every step
//   starts from a cleared accumulator. The last step of a row must be one that completes a pixel.
//
// Drain of column c of block b (masked off where b is the last block and c >= last_block_channels):
//   parameters: channel c of block param_base + b * param_block_step
//   s  = accumulator[c] + bias                                        drain = requantise   (int32, wraps)
//      = (accumulator[c] - a_zero) * (operand_b[c] - b_zero) + bias   drain = multiply     (accumulator an int8)
//   Without `wide`, s (the accumulator with drain = pass) must lie in -2^24 .. 2^24 - 1. drain = multiply allows neither wide
//   nor add_b.
//   y1 = clamp(ScaleValue(s, {multiplier, shift}, rounding) + out_zero, clamp_low, clamp_high)
//      = clamp(accumulator[c], clamp_low, clamp_high)                 drain = pass
//        ScaleValue as in ir/requantise.h; rounding = doubling_high_mul allows shifts 31..62 only.
//   y2 = use_lookup ? lookup[lookup_table][y1 + 128] : y1
//   y3 = add_b ? clamp(add_zero + ShiftRightHalfEven((y2 - a_zero) * a_multiplier + (operand_b[c] - b_zero) * b_multiplier,
//                                                    add_shift), add_low, add_high) : y2
//   the byte y3 is written to out_base + block * out_block_step + oy * out_row_step + (output x index) * out_x_step + c.
// operand_b[c] (use_b = 1): byte at b_base + block * b_block_step + oy * b_row_step + (output x index) * b_x_step + c.
// hold_accumulation = 1: no drain; the accumulators stay for the next instruction, which has continue_accumulation = 1.
//   Either flag needs blocks = out_rows = x_steps = 1 and window = 0.
// A compute instruction starts when the one before has written its last result. Within one instruction the order of reads
// against writes is that of the pixels, except that a pixel's writes come some cycles late: an instruction must not read
// what it has written itself (elementwise in place is fine: each byte is read before it is written).
//
// TIMING (docs/accelerator.md has the exact formula): one step a cycle, one more for operand b. Groups of requantise_lanes results
// enter the drain some cycles apart; a pixel is completed where its groups meet no others in the drain (hls/drain_schedule.h).
#ifndef HEDDLE_HLS_ISA_H_
#define HEDDLE_HLS_ISA_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hls/params.h"

namespace heddle::hls {

enum class Opcode : uint8_t { kEnd = 0, kLoad = 1, kCompute = 2, kStore = 3 };
enum class Target : uint8_t { kActivations = 0, kWeights = 1, kParameters = 2, kLookup = 3 };
enum class Reduce : uint8_t { kDot = 0, kDepthwise = 1, kMax = 2, kLoad = 3 };
enum class Drain : uint8_t { kRequantise = 0, kPass = 1, kMultiply = 2 };
enum class RoundingField : uint8_t { kHalfEven = 0, kDoublingHighMul = 1 };  // as ir::Rounding

// X(type, name, bits, doc): type uint32_t or int32_t (signed, two's complement) or an enum.
#define HEDDLE_HEADER_FIELDS(X)                                                     \
  X(Opcode, opcode, 4, "0 end, 1 load, 2 compute, 3 store")                         \
  X(uint32_t, wait_load, 4, "tokens to take from the load unit before starting")    \
  X(uint32_t, wait_compute, 4, "tokens to take from the compute unit")              \
  X(uint32_t, wait_store, 4, "tokens to take from the store unit")                  \
  X(uint32_t, signal_load, 4, "tokens to give to the load unit when finished")      \
  X(uint32_t, signal_compute, 4, "tokens to give to the compute unit")              \
  X(uint32_t, signal_store, 4, "tokens to give to the store unit")

#define HEDDLE_TRANSFER_FIELDS(X)                                                    \
  X(uint32_t, tag, 16, "free for the compiler (layer number); shown on the trace port") \
  X(Target, target, 2, "0 activations, 1 weights, 2 parameters, 3 lookup")           \
  X(uint32_t, dram_address, 32, "bytes from the base register")                      \
  X(uint32_t, sram_address, 24, "bytes (activations) or word index")                 \
  X(uint32_t, bytes, 24, "bytes of a row")                                           \
  X(uint32_t, rows, 16, "rows of a plane")                                           \
  X(uint32_t, planes, 16, "planes")                                                  \
  X(int32_t, dram_row_step, 32, "bytes from row to row in DRAM")                     \
  X(int32_t, dram_plane_step, 32, "bytes from plane to plane in DRAM")               \
  X(int32_t, sram_row_step, 24, "bytes from row to row on chip")                     \
  X(int32_t, sram_plane_step, 24, "bytes from plane to plane on chip")

#define HEDDLE_COMPUTE_FIELDS(X)                                                     \
  X(uint32_t, tag, 16, "free for the compiler (layer number); shown on the trace port") \
  X(uint32_t, blocks, 16, "blocks of C output channels")                             \
  X(uint32_t, out_rows, 16, "output rows")                                           \
  X(uint32_t, x_steps, 16, "output pixels of a row; input columns when window = 1")  \
  X(uint32_t, passes, 16, "steps of R bytes in a segment")                           \
  X(uint32_t, in_rows, 16, "rows of the input; others are padding")                  \
  X(int32_t, first_row, 16, "input row of output row 0, kernel row 0")               \
  X(uint32_t, param_base, 16, "block index in the parameter memory")                 \
  X(uint32_t, weight_base, 20, "tile index in the weight memory")                    \
  X(uint32_t, param_block_step, 4, "parameter blocks from block to block")           \
  X(Reduce, reduce, 2, "0 dot, 1 depthwise, 2 max, 3 load")                          \
  X(Drain, drain, 2, "0 requantise, 1 pass, 2 multiply")                             \
  X(RoundingField, rounding, 1, "0 half to even, 1 doubling high multiply")          \
  X(uint32_t, use_b, 1, "read operand b for every pixel")                            \
  X(uint32_t, add_b, 1, "add operand b in the drain")                                \
  X(uint32_t, use_lookup, 1, "pass y1 through a lookup table")                       \
  X(uint32_t, a_multiplier, 20, "multiplier of y2 in the addition")                  \
  X(uint32_t, lookup_table, 4, "index of the lookup table")                          \
  X(uint32_t, window, 1, "sliding window over a row")                                \
  X(uint32_t, vector_rows, 2, "vectors read in a step, 1 to 3")                      \
  X(uint32_t, window_columns, 2, "columns that max looks at, 1 to 3")                \
  X(uint32_t, wide, 1, "what is scaled may need more than 25 bits; the drain takes twice as long") \
  X(uint32_t, b_multiplier, 20, "multiplier of operand b in the addition")           \
  X(uint32_t, continue_accumulation, 1, "do not clear the accumulators")             \
  X(uint32_t, hold_accumulation, 1, "do not drain")                                  \
  X(uint32_t, add_shift, 6, "right shift of the addition, 0 to 40")                  \
  X(uint32_t, in_base, 24, "address of row 0, x 0 of the first output row, kernel row 0") \
  X(uint32_t, kernel_rows, 8, "kernel rows (segments)")                              \
  X(int32_t, in_block_step, 24, "bytes from block to block in the input")            \
  X(uint32_t, kernel_columns, 8, "kernel columns handled as segments of their own")  \
  X(uint32_t, in_row_bytes, 24, "bytes of an input row; others are padding")         \
  X(int32_t, pad_value, 8, "what padding reads as")                                  \
  X(int32_t, in_row_step, 24, "bytes from output row to output row in the input")    \
  X(uint32_t, row_stride, 8, "input rows from output row to output row")             \
  X(int32_t, kernel_row_step, 24, "bytes from kernel row to kernel row")             \
  X(uint32_t, kernel_row_stride, 8, "input rows from kernel row to kernel row")      \
  X(int32_t, vector_row_step, 24, "bytes from vector to vector")                     \
  X(uint32_t, vector_row_stride, 8, "input rows from vector to vector")              \
  X(int32_t, first_x, 24, "row offset in bytes of x step 0, kernel column 0")        \
  X(uint32_t, first_emit, 8, "window: step that completes the first pixel of a row") \
  X(int32_t, x_step, 24, "bytes from x step to x step in the input")                 \
  X(uint32_t, emit_stride, 8, "window: steps from pixel to pixel, at least 1")       \
  X(int32_t, kernel_column_step, 24, "bytes from kernel column to kernel column")    \
  X(uint32_t, last_block_channels, 8, "channels written in the last block, 1 to C")  \
  X(uint32_t, out_base, 24, "address of the first result")                           \
  X(int32_t, out_zero, 8, "zero point added after scaling")                          \
  X(int32_t, out_row_step, 24, "bytes from output row to output row")                \
  X(int32_t, clamp_low, 8, "least y1")                                               \
  X(int32_t, out_x_step, 24, "bytes from pixel to pixel in the output")              \
  X(int32_t, clamp_high, 8, "greatest y1")                                           \
  X(int32_t, out_block_step, 24, "bytes from block to block in the output")          \
  X(int32_t, a_zero, 8, "zero point of the first operand of add and multiply")       \
  X(uint32_t, b_base, 24, "address of operand b")                                    \
  X(int32_t, b_zero, 8, "zero point of operand b")                                   \
  X(int32_t, b_row_step, 24, "bytes from output row to output row in operand b")     \
  X(int32_t, add_zero, 8, "zero point added after the addition")                     \
  X(int32_t, b_x_step, 24, "bytes from pixel to pixel in operand b")                 \
  X(int32_t, add_low, 8, "least y3")                                                 \
  X(int32_t, b_block_step, 24, "bytes from block to block in operand b")             \
  X(int32_t, add_high, 8, "greatest y3")                                             \
  X(uint32_t, shared_weights, 1, "all blocks use the first block's weight tiles")

#define HEDDLE_DECLARE_FIELD(type, name, bits, doc) type name{};
struct HeaderFields {
  HEDDLE_HEADER_FIELDS(HEDDLE_DECLARE_FIELD)
  bool operator==(const HeaderFields&) const = default;
};
struct TransferFields {
  HEDDLE_TRANSFER_FIELDS(HEDDLE_DECLARE_FIELD)
  bool operator==(const TransferFields&) const = default;
};
struct ComputeFields {
  HEDDLE_COMPUTE_FIELDS(HEDDLE_DECLARE_FIELD)
  bool operator==(const ComputeFields&) const = default;
};
#undef HEDDLE_DECLARE_FIELD

// `transfer` counts for kLoad and kStore, `compute` for kCompute.
struct Instruction {
  HeaderFields header;
  TransferFields transfer;
  ComputeFields compute;
  bool operator==(const Instruction&) const = default;
};

// Sums of a drain without `wide`: -kGreatestNarrowSum - 1 .. kGreatestNarrowSum.
inline constexpr int64_t kGreatestNarrowSum = (int64_t{1} << 24) - 1;

// Where a field lies in the 1024 bits of an instruction (bit 0 is the lowest bit of word 0).
struct FieldPlace {
  std::string_view name;
  int offset = 0;
  int bits = 0;
  bool is_signed = false;
  std::string_view doc;
};
// The fields of an opcode's instructions without the header, and the header's.
const std::vector<FieldPlace>& HeaderPlaces();
const std::vector<FieldPlace>& FieldsOf(Opcode opcode);
// The place of one field (header or body); a name that does not exist is a bug.
const FieldPlace& PlaceOf(Opcode opcode, std::string_view field);

using EncodedInstruction = std::array<uint32_t, kInstructionBytes / 4>;
// A value that does not fit its field is E-PROGRAM-001.
absl::StatusOr<EncodedInstruction> Encode(const Instruction& instruction);
// An unknown opcode or enum value is E-PROGRAM-002.
absl::StatusOr<Instruction> Decode(const EncodedInstruction& words);
// The program as the bytes that lie in DRAM (little-endian), END included if the program has it.
absl::StatusOr<std::vector<uint8_t>> EncodeProgram(const std::vector<Instruction>& program);
// Decodes up to and including END. E-PROGRAM-003 where bytes end before END.
absl::StatusOr<std::vector<Instruction>> DecodeProgram(const std::vector<uint8_t>& bytes);

// One line, only fields that are not zero: "compute wait_load=1 blocks=2 …".
std::string Disassemble(const Instruction& instruction);

// The rules above, as far as they can be seen in one instruction: E-PROGRAM-004 with the field, what was expected and found.
absl::Status CheckInstruction(const AcceleratorParams& params, const Instruction& instruction);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_ISA_H_
