// The drain: takes C accumulators when a pixel is complete and turns them, requantise_lanes at a time, into C bytes that
// are written to the activation memory. One pipeline of fixed length; nothing in it ever waits.
//
// A lane's arithmetic is that of ir/requantise.h, bit for bit, from two 25 x 18 bit multipliers (DSP48E1, with their input and
// output registers): a sum of 25 bits times the low 17 and the high 14 bits of the multiplier. They do everything else too, in
// cycles in which no sum enters them:
//   - a sum of 32 bits (`wide`) takes a second cycle for its upper eight bits;
//   - the product of two operands (drain = multiply) is formed kProductLead cycles before the sum that it becomes;
//   - the two products of an addition follow kAdditionLag cycles after.
// What keeps them apart is the distance between the groups of a pixel, and the sequencer, which completes no pixel whose groups
// would meet others (hls/drain_schedule.h).
//
// The product is shifted, rounded and clamped without ever being moved as a whole: the result of the shift is a window of ten
// bits, with all bits above folded into "too large" and all below into "sticky".

#include "hls/accelerator/parts.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

constexpr int kNarrowBits = 25;   // sums that take one cycle in the multipliers
constexpr int kFactorBits = 18;   // the multipliers' other side
constexpr int kLowBits = 17;      // unsigned part of the requantisation's multiplier that one of them takes
constexpr int kDspBits = kNarrowBits + kFactorBits;
constexpr int kProductBits = 63;  // |int32 * uint31| + 2^30 < 2^62
constexpr int kWindowBits = 10;   // a result beyond them is clamped whatever is added to it

// Stage of the lookup's result, from the sum's on.
constexpr int kLookupStage = 7;

// Stage whose registers hold the sum that is scaled.
int SumStage(const AcceleratorParams& p) { return p.elementwise ? kProductLead : 1; }

// Number of register stages of a lane, from its inputs to its result: after the sum multiplier inputs, products, their sum,
// the wide sum, window, clamp, lookup; then, for an addition, some to wait, multiplier inputs, products, sum, window, clamp.
int LaneStages(const AcceleratorParams& p) { return SumStage(p) + (p.elementwise ? kAdditionLag + 5 : 6 + (p.lookup ? 1 : 0)); }

// One lane of the drain.
class LaneBuilder {
 public:
  LaneBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), m_(design.Add("heddle_drain_lane", "Requantises one result a cycle.")) {}

  Module& Build() {
    instruction_ = m_.Input("instruction", w_.compute_bits);
    enable_ = m_.Input("enable", 1, "something is in the pipeline");
    scales_ = m_.Input("scales", 1, "a sum enters the multipliers");
    scales_high_ = m_.Input("scales_high", 1, "the upper bits of a wide sum enter the multipliers");
    accumulator_ = m_.Input("accumulator", 32);
    if (p_.elementwise) operand_b_ = m_.Input("operand_b", 8);
    bias_ = m_.Input("bias", 32);
    multiplier_ = m_.Input("multiplier", 31);
    shift_ = m_.Input("shift", 6);
    low_product_ = m_.Register("low_product", kDspBits);
    high_product_ = m_.Register("high_product", kDspBits);
    AddSum();
    AddMultipliers();
    AddProduct();
    AddRounding();
    AddLookup();
    if (p_.elementwise) AddAddition();
    EndStages();
    m_.Assign(m_.Output("result", 8), value_);
    m_.Ignore({instruction_, low_product_, high_product_});
    m_.Finish();
    return m_;
  }

 private:
  Expr F(std::string_view name) { return Field(instruction_, Opcode::kCompute, name); }
  Expr Constant(std::string_view name, int width) { return FieldTo(instruction_, Opcode::kCompute, name, width); }

  // Registers `value`, one stage later.
  Expr Stage(const std::string& name, const Expr& value) {
    const Expr reg = m_.Register(name, value.width());
    updates_.push_back({reg, value});
    return reg;
  }
  void EndStages() {
    m_.Clocked([&](Block& b) {
      b.If(enable_, [&] {
        for (const auto& [reg, value] : updates_) b.Set(reg, value);
      });
    });
    updates_.clear();
  }
  Expr Delayed(const std::string& name, Expr value, int from, int to) {
    for (int stage = from + 1; stage <= to; ++stage) value = Stage(name + "_" + std::to_string(stage), value);
    return value;
  }
  Expr Centred(const std::string& name, const Expr& byte, std::string_view zero) {
    return m_.Name(name, SignExtend(byte, 9) - Constant(zero, 9));
  }

  // A value that is passed on is scaled by 1 * 2^0.
  void AddSum() {
    m_.Comment("The sum: accumulator plus bias, or product of two operands plus bias.");
    is_pass_ = m_.Name("is_pass", Equal(F("drain"), Const(2, static_cast<int>(Drain::kPass))));
    is_multiply_ = m_.Name("is_multiply", DrainMultiplies(instruction_));
    const Expr bias = m_.Name("used_bias", Mux(is_pass_, Zeros(32), bias_));
    const int stage = SumStage(p_);
    if (p_.elementwise) {
      const Expr first = Stage("sum_1", Mux(is_multiply_, Zeros(32), accumulator_) + bias);
      const Expr second = Stage("sum_2", first);
      const Expr product = m_.Name("operand_product", Mux(is_multiply_, SignExtend(Slice(low_product_, 0, 18), 32), Zeros(32)));
      sum_ = Stage("sum_3", second + product);
    } else {
      sum_ = Stage("sum_1", accumulator_ + bias);
      m_.Ignore({is_multiply_});
    }
    const Expr one = Stage("multiplier_1", Mux(is_pass_, Const(31, 1), multiplier_));
    factor_ = Delayed("multiplier", one, 1, stage);
    const Expr shift = Stage("shift_1", Mux(is_pass_, Zeros(6), shift_));
    shift_ = Delayed("shift", shift, 1, stage + 4);
  }

  void AddMultipliers() {
    m_.Comment("The two multipliers.");
    const Expr wide = F("wide");
    const Expr upper = Stage("sum_upper", Slice(sum_, 24, 8));
    const Expr factor_again = Stage("multiplier_again", factor_);
    const Expr low = Concat({Mux(wide, Const(1, 0), Bit(sum_, 24)), Slice(sum_, 0, 24)});
    const Expr scaled = m_.Name("scaled_part", Mux(scales_high_, SignExtend(upper, kNarrowBits), low));
    const Expr factor = m_.Name("factor", Mux(scales_high_, factor_again, factor_));
    Expr low_a = scaled, high_a = scaled;
    Expr low_b = ZeroExtend(Slice(factor, 0, kLowBits), kFactorBits), high_b = ZeroExtend(Slice(factor, kLowBits, 31 - kLowBits), kFactorBits);
    if (p_.elementwise) {
      const Expr uses = m_.Name("uses_scaling", scales_ | scales_high_);
      addend_a_ = m_.Wire("addend_a", 9);
      addend_b_ = m_.Wire("addend_b", 9);
      const Expr first = Centred("factor_a", Slice(accumulator_, 0, 8), "a_zero");
      const Expr second = Centred("factor_b", operand_b_, "b_zero");
      low_a = Mux(uses, low_a, Mux(is_multiply_, SignExtend(first, kNarrowBits), ZeroExtend(F("a_multiplier"), kNarrowBits)));
      low_b = Mux(uses, low_b, SignExtend(m_.Name("small_factor", Mux(is_multiply_, second, addend_a_)), kFactorBits));
      high_a = Mux(uses, high_a, ZeroExtend(F("b_multiplier"), kNarrowBits));
      high_b = Mux(uses, high_b, SignExtend(addend_b_, kFactorBits));
    }
    const Expr a_low = Stage("low_a", low_a), b_low = Stage("low_b", low_b);
    const Expr a_high = Stage("high_a", high_a), b_high = Stage("high_b", high_b);
    // Doubling high multiply adds 2^30 to the product: bit 13 of its high part, once.
    const Expr nudge = Stage("nudge", AllOf({scales_, F("rounding"), ~is_pass_}));
    const Expr low_full = m_.Name("low_full", MultiplySigned(a_low, b_low));
    const Expr high_full = m_.Name("high_full", MultiplySigned(a_high, b_high));
    const int bit = 30 - kLowBits;
    updates_.push_back({low_product_, low_full});
    updates_.push_back({high_product_, high_full + Concat({Zeros(kDspBits - bit - 1), nudge, Zeros(bit)})});
  }

  void AddProduct() {
    m_.Comment("The product: its two parts, and those of a wide sum's upper bits one cycle later.");
    constexpr int kHigh = 40;
    const Expr high = m_.Name("high_sum", Slice(high_product_, 0, kHigh) + SignExtend(Slice(low_product_, kLowBits, kDspBits - kLowBits), kHigh));
    const Expr whole = m_.Name("partial_product", Concat({high, Slice(low_product_, 0, kLowBits)}));
    const Expr first = Stage("first_product", whole);
    const Expr upper = m_.Name("upper_product", Mux(F("wide"), Slice(whole, 0, kProductBits - 24), Zeros(kProductBits - 24)));
    const Expr wide = m_.Name("whole_product", SignExtend(first, kProductBits) + Concat({upper, Zeros(24)}));
    doubling_ = m_.Name("is_doubling", F("rounding") & ~is_pass_);
    // After the rounding of doubling high multiply nothing is left below bit 31.
    product_ = Stage("product", Concat({Slice(wide, 31, kProductBits - 31), Mux(doubling_, Zeros(31), Slice(wide, 0, 31))}));
    m_.Ignore({whole});
  }

  struct Window {
    Expr floor, up;  // kWindowBits bits, saturated; 1 where it is to be rounded up
  };

  // value >> shift (0 .. 62), one stage later.
  Window Shift(const std::string& name, const Expr& value, const Expr& shift, const Expr& away_from_zero) {
    constexpr int kBytes = 8, kCoarse = kWindowBits + 1 + 7;
    const int bits = 8 * (kBytes - 1) + kCoarse;
    // One bit more below, the first that is shifted out.
    const Expr wide = m_.Name(name + "_extended", Concat({Repeat(Sign(value), bits - value.width() - 1), value, Const(1, 0)}));
    const Expr sign = m_.Name(name + "_sign", Sign(value));
    const Expr coarse = m_.Name(name + "_coarse", Slice(shift, 3, 3));
    std::vector<Expr> windows, above, below;
    for (int byte = 0; byte < kBytes; ++byte) {
      windows.push_back(Slice(wide, 8 * byte, kCoarse));
      // Bits above the window of this byte, below it: each needs the next, or the one before, and eight bits more.
      const int top = 8 * byte + kCoarse;
      const int count = std::min(8, bits - top);
      above.push_back(count > 0 ? m_.Name(name + "_differs_" + std::to_string(byte), AnyBit(Slice(wide, top, count) ^ Repeat(sign, count))) : Const(1, 0));
      below.push_back(byte == 0 ? Const(1, 0) : m_.Name(name + "_below_" + std::to_string(byte), AnyBit(Slice(wide, 8 * (byte - 1), 8))));
    }
    for (int byte = kBytes - 3; byte >= 0; --byte) above[byte] = m_.Name(name + "_above_" + std::to_string(byte), above[byte] | above[byte + 1]);
    for (int byte = 2; byte < kBytes; ++byte) below[byte] = m_.Name(name + "_sticky_" + std::to_string(byte), below[byte] | below[byte - 1]);
    const Expr taken = m_.Name(name + "_taken", Select(coarse, windows));
    const Expr fine = m_.Name(name + "_fine", Slice(shift, 0, 3));
    const Expr shifted = m_.Name(name + "_shifted", ShiftRight(taken, fine));
    const Expr lost = m_.Name(name + "_lost", Slice(taken, 0, 7) & ~ShiftLeft(Ones(7), fine));
    // Bits of the taken window that the shift leaves above the sign of the result.
    const Expr left = m_.Name(name + "_left", (Slice(taken, kWindowBits, 8) ^ Repeat(sign, 8)) & ShiftLeft(Ones(8), fine));
    const Expr large = Stage(name + "_large", AnyBit(left) | Select(coarse, above));
    const Expr sticky = Stage(name + "_inexact", AnyBit(lost) | Select(coarse, below));
    const Expr negative = Stage(name + "_negative", sign);
    const Expr kept = Stage(name + "_kept", Slice(shifted, 0, kWindowBits + 1));
    m_.Ignore({shifted});
    const Expr limit = Concat({negative, Repeat(~negative, kWindowBits - 1)});
    const Expr floor = m_.Name(name + "_floor", Mux(large, limit, Slice(kept, 1, kWindowBits)));
    const Expr tie_up = Mux(away_from_zero, ~negative, Bit(kept, 1));
    return {floor, m_.Name(name + "_up", AllOf({~large, Bit(kept, 0), sticky | tie_up}))};
  }
  // cases[index], index of three bits.
  static Expr Select(const Expr& index, const std::vector<Expr>& cases) {
    const auto half = [&](int from) {
      const auto pair = [&](int at) { return Mux(Bit(index, 0), cases[at + 1], cases[at]); };
      return Mux(Bit(index, 1), pair(from + 2), pair(from));
    };
    return Mux(Bit(index, 2), half(4), half(0));
  }

  // floor + up + zero, clamped; both names are 8-bit fields.
  Expr Clamped(const std::string& name, const Window& window, const Expr& zero, std::string_view low, std::string_view high) {
    const int bits = kWindowBits + 2;
    const Expr sum = m_.Name(name + "_value", SignExtend(window.floor, bits) + zero + ZeroExtend(window.up, bits));
    const Expr below = m_.Name(name + "_below_range", SignedLess(sum, Constant(low, bits)));
    const Expr above = m_.Name(name + "_above_range", SignedLess(Constant(high, bits), sum));
    return Mux(below, F(low), Mux(above, F(high), Slice(sum, 0, 8)));
  }

  void AddRounding() {
    m_.Comment("Shift, rounding, zero point, clamp.");
    const Window window = Shift("scaling", product_, shift_, doubling_);
    const int bits = kWindowBits + 2;
    const Expr zero = m_.Name("zero_point", Mux(is_pass_, Zeros(bits), Constant("out_zero", bits)));
    value_ = Stage("clamped", Clamped("first", window, zero, "clamp_low", "clamp_high"));
  }

  void AddLookup() {
    if (!p_.lookup) {
      if (p_.elementwise) value_ = Stage("no_lookup", value_);
      return;
    }
    m_.Comment("Lookup table.");
    const int beats = kLookupEntries / p_.beat_bytes();
    const int beat_bits = BitsFor(beats);
    const int table_bits = p_.lookup_tables > 1 ? BitsFor(p_.lookup_tables) : 0;
    const Expr write = m_.Input("lookup_write", 1);
    const Expr write_address = m_.Input("lookup_address", beat_bits + table_bits);
    const Expr write_data = m_.Input("lookup_data", w_.beat);
    const Memory table = m_.AddMemory("table_words", w_.beat, beats * p_.lookup_tables);
    // Entry i belongs to input i - 128: the sign bit is inverted.
    const Expr index = m_.Name("entry", Concat({~Sign(value_), Slice(value_, 0, 7)}));
    const int byte_bits = 8 - beat_bits;
    std::vector<Expr> address = {Slice(index, byte_bits, beat_bits)};
    if (table_bits > 0) address.insert(address.begin(), Slice(instruction_, PlaceOf(Opcode::kCompute, "lookup_table").offset, table_bits));
    const Expr word = m_.Register("table_word", w_.beat);
    const Expr byte = m_.Register("table_byte", byte_bits);
    const Expr before = m_.Register("before_lookup", 8);
    const Expr at = m_.Name("table_address", Concat(address));
    m_.Clocked([&](Block& b) {
      b.If(write, [&] { b.Write(table, write_address, write_data); });
      b.If(enable_, [&] {
        b.Set(word, ReadMemory(table, at));
        b.Set(byte, Slice(index, 0, byte_bits));
        b.Set(before, value_);
      });
    });
    value_ = m_.Name("after_lookup", Mux(F("use_lookup"), Element(word, byte, 8), before));
  }

  void AddAddition() {
    m_.Comment("Addition of operand b with its own scale.");
    stage_ = SumStage(p_) + kAdditionLag;
    value_ = Delayed("awaiting", value_, SumStage(p_) + kLookupStage, stage_);
    const Expr b = Delayed("operand_b", operand_b_, 0, stage_);
    m_.Assign(addend_a_, SignExtend(value_, 9) - Constant("a_zero", 9));
    m_.Assign(addend_b_, SignExtend(b, 9) - Constant("b_zero", 9));
    const Expr sum = Stage("addition", Slice(low_product_, 0, 31) + Slice(high_product_, 0, 31));
    const Window window = Shift("addition", sum, m_.Name("addition_shift", F("add_shift")), Const(1, 0));
    const Expr plain = Delayed("plain", value_, stage_, stage_ + 4);
    value_ = Stage("added", Mux(DrainAdds(instruction_), Clamped("second", window, Constant("add_zero", kWindowBits + 2), "add_low", "add_high"), plain));
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& m_;
  Expr instruction_, enable_, scales_, scales_high_, accumulator_, operand_b_, bias_, multiplier_, shift_, is_pass_, is_multiply_;
  Expr sum_, factor_, low_product_, high_product_, addend_a_, addend_b_, doubling_, product_, value_;
  int stage_ = 0;
  std::vector<std::pair<Expr, Expr>> updates_;
};

class DrainBuilder {
 public:
  DrainBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), lane_(LaneBuilder(design, params).Build()),
        m_(design.Add("heddle_drain", "Requantises finished pixels and writes them.")) {}

  Module& Build() {
    AddPorts();
    AddCapture();
    AddParameters();
    AddLanes();
    AddWrite();
    m_.Ignore({instruction_});
    m_.Finish();
    return m_;
  }

 private:
  void AddPorts() {
    instruction_ = m_.Input("instruction", w_.compute_bits);
    complete_ = m_.Input("complete", 1, "the accumulators hold a finished pixel");
    accumulators_ = m_.Input("accumulators", p_.output_lanes * 32);
    if (p_.elementwise) operand_b_ = m_.Input("operand_b", p_.output_lanes * 8);
    address_ = m_.Input("out_address", w_.address);
    block_ = m_.Input("parameter_block", w_.parameter_block);
    last_block_ = m_.Input("last_block", 1);
    parameter_write_ = m_.Input("parameter_write", 1);
    parameter_beat_ = m_.Input("parameter_beat", BitsFor(p_.parameter_beats_per_word()), "beat of the word");
    parameter_word_ = m_.Input("parameter_word", BitsFor(int64_t{p_.parameter_blocks} * p_.drain_cycles()));
    load_data_ = m_.Input("load_data", w_.beat);
  }

  void AddCapture() {
    m_.Comment("The pixel in the drain: its results move down by requantise_lanes a cycle.");
    const int lanes = p_.requantise_lanes, all = p_.output_lanes;
    left_ = m_.ResetRegister("groups_left", BitsFor(p_.drain_cycles() + 1));
    pause_ = m_.ResetRegister("pause", 2, 0, "cycles before the next group");
    results_ = m_.Register("pixel", all * 32);
    if (p_.elementwise) second_ = m_.Register("pixel_b", all * 8);
    destination_ = m_.Register("destination", w_.address);
    is_last_block_ = m_.Register("is_last_block", 1);
    const int word_bits = BitsFor(int64_t{p_.parameter_blocks} * p_.drain_cycles());
    word_ = m_.Register("parameter_address", word_bits);
    const int group_bits = BitsFor(p_.drain_cycles());
    // Word of the block's first group: the block's number times the groups of a block, a power of two.
    Expr first_word = p_.drain_cycles() == 1 ? block_ : Concat({block_, Zeros(group_bits)});
    if (first_word.width() > word_bits) {
      first_word = Slice(m_.Name("first_parameter", first_word), 0, word_bits);
    } else {
      first_word = ZeroExtend(first_word, word_bits);
    }
    const int left_bits = left_.width();
    const Expr wide = Field(instruction_, Opcode::kCompute, "wide");
    const Expr twice = DrainMultiplies(instruction_) | DrainAdds(instruction_);
    const Expr pause = m_.Name("group_pause", p_.elementwise ? Concat({wide & twice, wide | twice}) : Concat({Const(1, 0), wide}));
    m_.Clocked([&](Block& b) {
      b.If(complete_, [&] {
        b.Set(left_, Const(left_bits, p_.drain_cycles()));
        b.Set(pause_, Zeros(2));
        b.Set(results_, accumulators_);
        if (p_.elementwise) b.Set(second_, operand_b_);
        b.Set(destination_, address_);
        b.Set(is_last_block_, last_block_);
        b.Set(word_, first_word);
      });
      b.ElseIf(NotEqual(pause_, Zeros(2)), [&] { b.Set(pause_, pause_ - Const(2, 1)); });
      b.ElseIf(NotEqual(left_, Zeros(left_bits)), [&] {
        b.Set(left_, left_ - Const(left_bits, 1));
        b.Set(pause_, pause);
        if (lanes == all) return;
        b.Set(results_, Concat({Zeros(lanes * 32), Slice(results_, lanes * 32, (all - lanes) * 32)}));
        if (p_.elementwise) b.Set(second_, Concat({Zeros(lanes * 8), Slice(second_, lanes * 8, (all - lanes) * 8)}));
        b.Set(word_, word_ + Const(word_bits, 1));
      });
    });
    feeds_ = m_.Name("feeds", NotEqual(left_, Zeros(left_bits)) & Equal(pause_, Zeros(2)));
    feeds_last_ = m_.Name("feeds_last", Equal(left_, Const(left_bits, 1)));
  }

  void AddParameters() {
    m_.Comment("Parameter memory: [lanes] biases, [lanes] multipliers, [lanes] shifts a word.");
    const int lanes = p_.requantise_lanes;
    const int bits = p_.parameter_word_bytes() * 8;
    const Memory memory = m_.AddMemory("parameters", bits, p_.parameter_blocks * p_.drain_cycles());
    const Expr word = m_.Register("parameter_data", bits);
    lane_results_ = m_.Register("lane_accumulators", lanes * 32);
    if (p_.elementwise) lane_second_ = m_.Register("lane_b", lanes * 8);
    m_.Clocked([&](Block& b) {
      b.If(parameter_write_, [&] {
        const int beats = p_.parameter_beats_per_word();
        for (int beat = 0; beat < beats; ++beat) {
          const int from = beat * w_.beat, width = std::min(w_.beat, bits - from);
          const auto write = [&] { b.Write(memory, parameter_word_, Slice(load_data_, 0, width), from); };
          if (beats == 1) {
            write();
          } else {
            b.If(Equal(parameter_beat_, Const(parameter_beat_.width(), beat)), write);
          }
        }
      });
      b.If(feeds_, [&] {
        b.Set(word, ReadMemory(memory, word_));
        b.Set(lane_results_, Slice(results_, 0, lanes * 32));
        if (p_.elementwise) b.Set(lane_second_, Slice(second_, 0, lanes * 8));
      });
    });
    parameters_ = word;
    m_.Ignore({word, load_data_, parameter_beat_});
  }

  void AddLanes() {
    m_.Comment("The lanes, and beside them where each group belongs.");
    const int lanes = p_.requantise_lanes;
    const int stages = LaneStages(p_) + 1;  // the registers in front of the lanes count
    valid_ = m_.ResetRegister("valid_stages", stages);
    const int entry = w_.address + 2;
    line_ = m_.Register("destination_stages", stages * entry);
    m_.Clocked([&](Block& b) {
      b.Set(valid_, Concat({Slice(valid_, 0, stages - 1), feeds_}));
      b.If(busy_stages(), [&] {
        b.Set(line_, Concat({Slice(line_, 0, (stages - 1) * entry), feeds_last_, is_last_block_, destination_}));
      });
    });
    const Expr enable = m_.Name("lanes_enable", AnyBit(valid_));
    const Expr scales_high = m_.Name("scales_high", Bit(valid_, SumStage(p_) + 1) & Field(instruction_, Opcode::kCompute, "wide"));
    std::vector<Expr> results;
    std::map<std::string, Expr> lookup;
    if (p_.lookup) {
      const int bits = BitsFor(kLookupEntries / p_.beat_bytes()) + (p_.lookup_tables > 1 ? BitsFor(p_.lookup_tables) : 0);
      lookup = {{"lookup_write", m_.Input("lookup_write", 1)}, {"lookup_address", m_.Input("lookup_address", bits)},
                {"lookup_data", load_data_}};
    }
    for (int lane = 0; lane < lanes; ++lane) {
      const std::string suffix = "_" + std::to_string(lane);
      const Expr result = m_.Wire("result" + suffix, 8);
      std::map<std::string, Expr> ports = lookup;
      ports["instruction"] = instruction_;
      ports["enable"] = enable;
      ports["scales"] = Bit(valid_, SumStage(p_));
      ports["scales_high"] = scales_high;
      ports["accumulator"] = Slice(lane_results_, lane * 32, 32);
      if (p_.elementwise) ports["operand_b"] = Slice(lane_second_, lane * 8, 8);
      ports["bias"] = Slice(parameters_, lane * 32, 32);
      ports["multiplier"] = Slice(parameters_, lanes * 32 + lane * 32, 31);
      ports["shift"] = Slice(parameters_, lanes * 64 + lane * 8, 6);
      ports["result"] = result;
      m_.Instantiate(lane_, "lane" + suffix, ports);
      results.insert(results.begin(), result);
    }
    group_ = m_.Name("group_results", Concat(results));
  }
  Expr busy_stages() { return feeds_ | AnyBit(valid_); }

  void AddWrite() {
    m_.Comment("Groups come together to C bytes; the last one writes.");
    const int lanes = p_.requantise_lanes, all = p_.output_lanes;
    const int stages = valid_.width();
    const int entry = w_.address + 2;
    const int top = (stages - 1) * entry;
    const Expr out = m_.Name("out_valid", Bit(valid_, stages - 1));
    const Expr out_last = m_.Name("out_last", Bit(line_, top + entry - 1));
    Expr together = group_;
    if (lanes < all) {
      const Expr collected = m_.Register("collected", (all - lanes) * 8);
      together = m_.Name("together", Concat({group_, collected}));
      m_.Clocked([&](Block& b) { b.If(out, [&] { b.Set(collected, Slice(together, lanes * 8, (all - lanes) * 8)); }); });
    }
    const Expr write = m_.ResetRegister("write", 1);
    const Expr data = m_.Register("write_bytes", all * 8);
    const Expr address = m_.Register("write_at", w_.address);
    const Expr mask = m_.Register("write_lanes", all);
    const Expr channels = FieldTo(instruction_, Opcode::kCompute, "last_block_channels", 7);
    m_.Clocked([&](Block& b) {
      b.Set(write, out & out_last);
      b.If(out & out_last, [&] {
        b.Set(data, together);
        b.Set(address, Slice(line_, top, w_.address));
        b.Set(mask, Mux(Bit(line_, top + entry - 2), ~ShiftLeft(Ones(all), channels), Ones(all)));
      });
    });
    m_.Assign(m_.Output("write_valid", 1), write);
    m_.Assign(m_.Output("write_address", w_.address), address);
    m_.Assign(m_.Output("write_data", all * 8), data);
    m_.Assign(m_.Output("write_mask", all), mask);
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& lane_;
  Module& m_;
  Expr instruction_, complete_, accumulators_, operand_b_, address_, block_, last_block_, parameter_write_, parameter_beat_;
  Expr parameter_word_, load_data_, left_, pause_, results_, second_, destination_, is_last_block_, word_, feeds_, feeds_last_;
  Expr lane_results_, lane_second_, parameters_, valid_, line_, group_;
};

}  // namespace

Module& AddDrain(Design& design, const AcceleratorParams& params) { return DrainBuilder(design, params).Build(); }

}  // namespace heddle::hls
