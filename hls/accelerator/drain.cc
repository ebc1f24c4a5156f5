// The drain: takes C accumulators when a pixel is complete and turns them, requantise_lanes at a time, into C bytes that
// are written to the activation memory. One pipeline of fixed length; nothing in it ever waits.
//
// A lane's arithmetic is that of ir/requantise.h, bit for bit: one 32 x 31 bit product, a shift with guard and sticky bit,
// rounding half to even or, for doubling high multiply, half away from zero.

#include "hls/accelerator/parts.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

constexpr int kProductBits = 63;  // |int32 * uint31| < 2^62

// Number of register stages of a lane, from its inputs to its result.
int LaneStages(const AcceleratorParams& p) { return 6 + (p.lookup ? 1 : 0) + (p.elementwise ? 4 : 0); }

// One lane of the drain.
class LaneBuilder {
 public:
  LaneBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), m_(design.Add("heddle_drain_lane", "Requantises one result a cycle.")) {}

  Module& Build() {
    instruction_ = m_.Input("instruction", w_.compute_bits);
    enable_ = m_.Input("enable", 1, "something is in the pipeline");
    accumulator_ = m_.Input("accumulator", 32);
    if (p_.elementwise) operand_b_ = m_.Input("operand_b", 8);
    bias_ = m_.Input("bias", 32);
    multiplier_ = m_.Input("multiplier", 31);
    shift_ = m_.Input("shift", 6);
    AddScaling();
    AddRounding();
    AddClamp();
    if (p_.lookup) AddLookup();
    if (p_.elementwise) AddAddition();
    m_.Assign(m_.Output("result", 8), value_);
    m_.Ignore({instruction_});
    m_.Finish();
    return m_;
  }

 private:
  Expr F(std::string_view name) { return Field(instruction_, Opcode::kCompute, name); }
  Expr DrainIs(Drain drain) { return Equal(F("drain"), Const(2, static_cast<int>(drain))); }
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

  void AddScaling() {
    m_.Comment("Stages 1 to 3: operand plus bias, product, high part for doubling high multiply.");
    Expr operand = accumulator_;
    if (p_.elementwise) {
      const Expr a = m_.Name("product_a", Slice(accumulator_, 0, 8));
      const Expr product = m_.Name("product", MultiplySigned(Centred("centred_a", a, "a_zero"), Centred("centred_b", operand_b_, "b_zero")));
      operand = Mux(DrainIs(Drain::kMultiply), SignExtend(product, 32), accumulator_);
    }
    const Expr sum = Stage("sum_1", operand + bias_);
    const Expr multiplier = Delayed("multiplier", multiplier_, 0, 1);
    const Expr shift = Delayed("shift", shift_, 0, 2);
    const Expr pass = Delayed("pass", accumulator_, 0, 2);
    const Expr full = m_.Name("full_product", MultiplySigned(sum, Concat({Const(1, 0), multiplier})));
    const Expr product = Stage("product_2", Slice(full, 0, kProductBits));
    m_.Ignore({full});
    const Expr nudged = m_.Name("nudged", product + Const(kProductBits, uint64_t{1} << 30));
    const Expr high = m_.Name("high_part", Slice(nudged, 31, kProductBits - 31));
    m_.Ignore({nudged});
    const Expr doubling = F("rounding");
    const Expr is_pass = DrainIs(Drain::kPass);
    scaled_ = Stage("scaled_3", Mux(is_pass, SignExtend(pass, kProductBits), Mux(doubling, SignExtend(high, kProductBits), product)));
    shift_3_ = Stage("shift_3", Mux(is_pass, Zeros(6), Mux(doubling, shift - Const(6, 31), shift)));
  }

  // Shift with rounding: `value` >> `shift`; returns {floor, carry to add}, one stage later.
  std::pair<Expr, Expr> Round(const std::string& name, const Expr& value, const Expr& shift, const Expr& away_from_zero) {
    const int bits = value.width() + 1;
    const Expr wide = m_.Name(name + "_wide", Concat({value, Const(1, 0)}));
    const Expr below = m_.Name(name + "_below", wide & ~ShiftLeft(Ones(bits), shift));
    const Expr shifted = Stage(name + "_shifted", ShiftRightSigned(wide, shift));
    const Expr sticky = Stage(name + "_sticky", AnyBit(below));
    const Expr negative = m_.Name(name + "_negative", Sign(shifted));
    const Expr tie_up = Mux(away_from_zero, ~negative, Bit(shifted, 1));
    const Expr up = m_.Name(name + "_up", Bit(shifted, 0) & (sticky | tie_up));
    return {Slice(shifted, 1, value.width()), up};
  }

  void AddRounding() {
    m_.Comment("Stages 4 and 5: shift, rounding, zero point.");
    const auto [floor, up] = Round("scaling", scaled_, shift_3_, F("rounding"));
    const int bits = kProductBits + 1;
    const Expr zero = m_.Name("zero_point", Mux(DrainIs(Drain::kPass), Zeros(bits), Constant("out_zero", bits)));
    sum_5_ = Stage("sum_5", SignExtend(floor, bits) + ZeroExtend(up, bits) + zero);
  }

  Expr Clamped(const std::string& name, const Expr& value, std::string_view low, std::string_view high) {
    const Expr below = m_.Name(name + "_below_range", SignedLess(value, Constant(low, value.width())));
    const Expr above = m_.Name(name + "_above_range", SignedLess(Constant(high, value.width()), value));
    return Mux(below, F(low), Mux(above, F(high), Slice(value, 0, 8)));
  }

  void AddClamp() {
    m_.Comment("Stage 6: clamp.");
    value_ = Stage("clamped_6", Clamped("first", sum_5_, "clamp_low", "clamp_high"));
    stage_ = 6;
    EndStages();
  }

  void AddLookup() {
    m_.Comment("Stage 7: lookup table.");
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
    stage_ = 7;
  }

  void AddAddition() {
    m_.Comment("The last four stages: addition of operand b with its own scale.");
    const Expr b = Delayed("operand_b", operand_b_, 0, stage_);
    const Expr a_product = MultiplySigned(Centred("addend_a", value_, "a_zero"), Concat({Const(1, 0), F("a_multiplier")}));
    const Expr b_product = MultiplySigned(Centred("addend_b", b, "b_zero"), Concat({Const(1, 0), F("b_multiplier")}));
    const Expr a_scaled = Stage("a_scaled", a_product);
    const Expr b_scaled = Stage("b_scaled", b_product);
    const Expr sum = Stage("addition", SignExtend(a_scaled, 31) + SignExtend(b_scaled, 31));
    const auto [floor, up] = Round("addition", sum, F("add_shift"), Const(1, 0));
    const Expr rounded = m_.Name("rounded", SignExtend(floor, 32) + ZeroExtend(up, 32) + Constant("add_zero", 32));
    const Expr plain = Delayed("plain", value_, 0, 3);
    value_ = Stage("added", Mux(F("add_b"), Clamped("second", rounded, "add_low", "add_high"), plain));
    EndStages();
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& m_;
  Expr instruction_, enable_, accumulator_, operand_b_, bias_, multiplier_, shift_, scaled_, shift_3_, sum_5_, value_;
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
    m_.Clocked([&](Block& b) {
      b.If(complete_, [&] {
        b.Set(left_, Const(left_bits, p_.drain_cycles()));
        b.Set(results_, accumulators_);
        if (p_.elementwise) b.Set(second_, operand_b_);
        b.Set(destination_, address_);
        b.Set(is_last_block_, last_block_);
        b.Set(word_, first_word);
      });
      b.ElseIf(NotEqual(left_, Zeros(left_bits)), [&] {
        b.Set(left_, left_ - Const(left_bits, 1));
        if (lanes == all) return;
        b.Set(results_, Concat({Zeros(lanes * 32), Slice(results_, lanes * 32, (all - lanes) * 32)}));
        if (p_.elementwise) b.Set(second_, Concat({Zeros(lanes * 8), Slice(second_, lanes * 8, (all - lanes) * 8)}));
        b.Set(word_, word_ + Const(word_bits, 1));
      });
    });
    feeds_ = m_.Name("feeds", NotEqual(left_, Zeros(left_bits)));
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
  Expr parameter_word_, load_data_, left_, results_, second_, destination_, is_last_block_, word_, feeds_, feeds_last_;
  Expr lane_results_, lane_second_, parameters_, valid_, line_, group_;
};

}  // namespace

Module& AddDrain(Design& design, const AcceleratorParams& params) { return DrainBuilder(design, params).Build(); }

}  // namespace heddle::hls
