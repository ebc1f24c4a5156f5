// The hardware loop nest: walks blocks, output rows, output pixels, kernel rows, kernel columns and passes, and issues one
// step a cycle: the reads of the activation memory, the weight tile, and what the datapath must know about the step.
//
// Every address is kept by additions of the instruction's steps, so no multiplier is needed. Nothing behind the issue can
// stall: a step is issued only when its reads are granted and, if it completes a pixel, when the drain will be free.

#include "hls/accelerator/parts.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

class SequencerBuilder {
 public:
  SequencerBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), m_(design.Add("heddle_sequencer", "Hardware loop nest of the compute unit: one step a cycle.")) {}

  Module& Build() {
    AddPorts();
    AddCounters();
    AddStepKind();
    AddBankAddresses();
    AddIssue();
    AddUpdates();
    m_.Finish();
    return m_;
  }

 private:
  Expr F(std::string_view name) { return Field(instruction_, Opcode::kCompute, name); }
  Expr F(std::string_view name, int width) { return FieldTo(instruction_, Opcode::kCompute, name, width); }
  Expr Address(std::string_view name) { return F(name, w_.address); }
  Expr Offset(std::string_view name) { return F(name, kRowOffsetBits); }

  void AddPorts() {
    instruction_ = m_.Input("instruction", w_.compute_bits);
    setup_ = m_.Input("setup", 1, "start the instruction");
    go_ = m_.Input("go", 1, "the reads of this step are granted");
    running_out_ = m_.Output("running", 1, "steps are left");
    want_out_ = m_.Output("want", 1);
    wait_drain_out_ = m_.Output("wait_drain", 1, "a step waits for the drain");
    banks_out_ = m_.Output("banks", kActivationBanks);
    bank_address_out_ = m_.Output("bank_address", kActivationBanks * w_.bank_address);
    step_b_out_ = m_.Output("step_b", 1, "this step reads operand b");
    step_first_out_ = m_.Output("step_first", 1, "first step of a pixel");
    step_last_out_ = m_.Output("step_last", 1, "the pixel is complete, drain it");
    step_row_start_out_ = m_.Output("step_row_start", 1, "first step of a row");
    position_out_ = m_.Output("position", w_.line_offset, "of the first byte in the line");
    row_valid_out_ = m_.Output("row_valid", 1, "the row is inside");
    offset_out_ = m_.Output("offset", kRowOffsetBits, "signed offset in the row");
    vector_valid_out_ = m_.Output("vector_valid", kWindowRows);
    vector_index_out_ = m_.Output("vector_index", kWindowRows * w_.vector_index, "place of each vector in the line");
    weight_out_ = m_.Output("weight_address", w_.weight_address);
    out_address_out_ = m_.Output("out_address", w_.address);
    parameter_out_ = m_.Output("parameter_block", w_.parameter_block);
    last_block_out_ = m_.Output("last_block", 1);
  }

  // One down-counter of the nest: its value, and a bit that says that this is the last iteration.
  struct Counter {
    Expr left;
    Expr last;
    std::string field;
  };
  Counter AddCounter(const std::string& name, const std::string& field) {
    const int bits = F(field).width();
    const Expr left = m_.Register(name + "_left", bits, "iterations left, this one included");
    return {left, m_.Name(name + "_last", Equal(left, Const(bits, 1))), field};
  }

  void AddCounters() {
    m_.Comment("Position in the loop nest.");
    running_ = m_.ResetRegister("is_running", 1);
    block_ = AddCounter("block", "blocks");
    row_ = AddCounter("row", "out_rows");
    x_ = AddCounter("x", "x_steps");
    kernel_row_ = AddCounter("kernel_row", "kernel_rows");
    kernel_column_ = AddCounter("kernel_column", "kernel_columns");
    pass_ = AddCounter("pass", "passes");
    b_phase_ = m_.Register("b_phase", 1, "the pixel's operand b is read next");
    first_ = m_.Register("first", 1);
    row_start_ = m_.Register("row_start", 1);
    emit_wait_ = m_.Register("emit_wait", 8, "window: steps before the next complete pixel");
    AddDrainConflicts();

    m_.Comment("Addresses: of the block, of the output row, of the kernel row; row offset of the pixel, of the kernel column, of the step.");
    in_block_ = m_.Register("in_block", w_.address);
    in_row_ = m_.Register("in_row", w_.address);
    in_kernel_row_ = m_.Register("in_kernel_row", w_.address);
    offset_pixel_ = m_.Register("offset_pixel", kRowOffsetBits);
    offset_column_ = m_.Register("offset_column", kRowOffsetBits);
    offset_ = m_.Register("offset_step", kRowOffsetBits);
    index_row_ = m_.Register("index_row", kRowBits, "signed index of the input row of kernel row 0");
    index_ = m_.Register("index_step", kRowBits, "signed index of the input row");
    weight_block_ = m_.Register("weight_block", w_.weight_address, "first tile of the block");
    weight_ = m_.Register("weight", w_.weight_address);
    out_block_ = m_.Register("out_block", w_.address);
    out_row_ = m_.Register("out_row", w_.address);
    out_ = m_.Register("out", w_.address);
    if (p_.elementwise) {
      b_block_ = m_.Register("b_block", w_.address);
      b_row_ = m_.Register("b_row", w_.address);
      b_ = m_.Register("b", w_.address);
    }
    parameter_ = m_.Register("parameter_at", w_.parameter_block);
  }

  void AddStepKind() {
    m_.Comment("What this step is.");
    const Expr segment_last = m_.Name("segments_last", AllOf({kernel_row_.last, kernel_column_.last, pass_.last}));
    const Expr emits = m_.Name("emits", ~F("hold_accumulation") & (~F("window") | Equal(emit_wait_, Zeros(8))));
    emits_ = emits;
    const Expr needs_b = m_.Name("needs_b", p_.elementwise ? F("use_b") & emits : Const(1, 0));
    pixel_done_ = m_.Name("pixel_done", b_phase_ | (segment_last & ~needs_b));
    to_b_ = m_.Name("turns_to_b", ~b_phase_ & segment_last & needs_b);
    drains_ = m_.Name("drains", pixel_done_ & emits);
    drain_busy_ = m_.Name("drain_busy", drains_ & drain_conflict_);
    m_.Assign(want_out_, running_ & ~drain_busy_);
    m_.Assign(wait_drain_out_, running_ & drain_busy_);
    m_.Assign(running_out_, running_);
    m_.Assign(step_b_out_, b_phase_);
    m_.Assign(step_first_out_, first_);
    m_.Assign(step_last_out_, drains_);
    m_.Assign(step_row_start_out_, row_start_);
    m_.Assign(weight_out_, weight_);
    m_.Assign(out_address_out_, out_);
    m_.Assign(parameter_out_, parameter_);
    m_.Assign(last_block_out_, block_.last);
    m_.Assign(offset_out_, offset_);
  }

  // Inside the rows of the input: 0 <= index < in_rows.
  Expr RowInside(const std::string& name, const Expr& index) {
    return m_.Name(name, ~Sign(index) & SignedLess(index, F("in_rows", kRowBits)));
  }

  void AddBankAddresses() {
    m_.Comment("A run of bytes from any address: bank by bank.");
    const Expr straight = in_kernel_row_ + Slice(offset_, 0, w_.address);
    address_ = m_.Name("address", p_.elementwise ? Mux(b_phase_, b_, straight) : straight);
    m_.Assign(position_out_, Slice(address_, 0, w_.line_offset));
    const Expr bank = m_.Name("first_bank", Slice(address_, w_.bank_offset, 2));
    const Expr word = m_.Name("first_word", Slice(address_, w_.line_offset, w_.bank_address));
    const Expr next = m_.Name("next_word", word + Const(w_.bank_address, 1));
    // Last byte of the run, counted from the start of the first bank word, decides how many banks it touches.
    const int bits = BitsFor(p_.bank_bytes() + p_.read_bytes()) + 1;
    const int narrow = p_.output_lanes - 1, wide = p_.contraction_lanes - 1;
    const Expr offset = ZeroExtend(Slice(address_, 0, w_.bank_offset), bits);
    const Expr reads_lanes = b_phase_ | Equal(F("reduce"), Const(2, static_cast<int>(Reduce::kLoad)));
    const Expr end = m_.Name("run_end", offset + Mux(reads_lanes, Const(bits, narrow), Const(bits, wide)));
    std::vector<Expr> touched = {Const(1, 1)};
    for (int i = 1; i < kActivationBanks; ++i) {
      const int64_t from = int64_t{i} * p_.bank_bytes();
      touched.push_back(from >> bits ? Const(1, 0) : m_.Name("touches_" + std::to_string(i), ~Less(end, Const(bits, from))));
    }
    row_inside_ = RowInside("row_inside", index_);
    m_.Assign(row_valid_out_, row_inside_);
    AddVectors();
    std::vector<Expr> enables, addresses;
    for (int i = kActivationBanks - 1; i >= 0; --i) {
      // Bank i is the (i - first_bank)-th of the run.
      std::vector<Expr> cases;
      for (int first = 0; first < kActivationBanks; ++first) {
        cases.push_back(Equal(bank, Const(2, first)) & touched[(i - first + kActivationBanks) % kActivationBanks]);
      }
      const std::string suffix = std::to_string(i);
      const Expr in_run = m_.Name("run_bank_" + suffix, AnyOf(cases) & (b_phase_ | row_inside_));
      const Expr run_word = i == kActivationBanks - 1 ? word : Mux(Less(Const(2, i), bank), next, word);
      if (vectors_.empty()) {
        enables.push_back(in_run);
        addresses.push_back(run_word);
        continue;
      }
      const Expr hit = m_.Name("vector_bank_" + suffix, AnyOf({Hits(0, i), Hits(1, i), Hits(2, i)}));
      enables.push_back(Mux(by_vector_, hit, in_run));
      addresses.push_back(Mux(by_vector_, Mux(Hits(0, i), vectors_[0].word, Mux(Hits(1, i), vectors_[1].word, vectors_[2].word)),
                              run_word));
    }
    m_.Assign(banks_out_, Concat(enables));
    m_.Assign(bank_address_out_, Concat(addresses));
  }

  struct Vector {
    Expr bank, word, valid;
  };
  Expr Hits(int vector, int bank) { return vectors_[vector].valid & Equal(vectors_[vector].bank, Const(2, bank)); }

  // The three vectors of a depthwise or max step.
  void AddVectors() {
    if (!p_.depthwise && !p_.pooling) {
      m_.Assign(vector_valid_out_, Zeros(kWindowRows));
      m_.Assign(vector_index_out_, Zeros(kWindowRows * w_.vector_index));
      return;
    }
    m_.Comment("Vectors of C bytes, one an input row.");
    const Expr reduce = F("reduce");
    by_vector_ = m_.Name("by_vector", ~b_phase_ & (Equal(reduce, Const(2, static_cast<int>(Reduce::kDepthwise))) |
                                                   Equal(reduce, Const(2, static_cast<int>(Reduce::kMax)))));
    const Expr offset_inside = m_.Name("offset_inside", ~Sign(offset_) & SignedLess(offset_, Offset("in_row_bytes")));
    Expr address = address_, index = index_;
    std::vector<Expr> valid, places;
    for (int j = 0; j < kWindowRows; ++j) {
      const std::string suffix = "_" + std::to_string(j);
      if (j > 0) {
        address = m_.Name("vector_address" + suffix, address + Address("vector_row_step"));
        index = m_.Name("vector_row" + suffix, index + F("vector_row_stride", kRowBits));
      }
      const Expr inside = j == 0 ? row_inside_ : RowInside("vector_row_inside" + suffix, index);
      const Expr there = Less(Const(2, j), F("vector_rows"));
      const Expr is_valid = m_.Name("vector_valid" + suffix, AllOf({inside, offset_inside, there}));
      vectors_.push_back({Slice(address, w_.bank_offset, 2), Slice(address, w_.line_offset, w_.bank_address), is_valid});
      valid.insert(valid.begin(), is_valid);
      places.insert(places.begin(), Slice(address, w_.line_offset - w_.vector_index, w_.vector_index));
      if (j > 0) m_.Ignore({address});
    }
    m_.Assign(vector_valid_out_, Concat(valid));
    m_.Assign(vector_index_out_, Concat(places));
  }

  // Bit d - 1 of `completed`: a pixel was completed d cycles ago. Which of them keep the drain's multipliers busy in the cycle in which
  // one that is completed now would need them depends on what the drain does (hls/drain_schedule.h).
  void AddDrainConflicts() {
    m_.Comment("Pixels on their way through the drain.");
    size_t longest = 1;
    std::vector<std::pair<DrainMode, std::vector<bool>>> modes;
    for (const DrainMode& mode : kDrainModes) {
      if ((mode.multiply || mode.add) && !p_.elementwise) continue;
      modes.emplace_back(mode, PixelConflicts(p_.drain_cycles(), mode));
      longest = std::max(longest, modes.back().second.size() - 1);
    }
    completed_ = m_.ResetRegister("completed", static_cast<int>(longest), 0, "bit d: a pixel was completed d + 1 cycles ago");
    const Expr multiplies = m_.Name("drain_multiplies", DrainMultiplies(instruction_));
    const Expr adds = m_.Name("drain_adds", DrainAdds(instruction_));
    std::vector<Expr> conflicts;
    for (const auto& [mode, distances] : modes) {
      std::vector<Expr> met;
      for (size_t d = 1; d < distances.size(); ++d) {
        size_t end = d;
        while (end < distances.size() && distances[end]) ++end;
        if (end > d) met.push_back(AnyBit(Slice(completed_, static_cast<int>(d) - 1, static_cast<int>(end - d))));
        d = end;
      }
      if (met.empty()) continue;
      const auto is = [](const Expr& bit, bool set) { return set ? bit : ~bit; };
      conflicts.push_back(AllOf({is(F("wide"), mode.wide), is(multiplies, mode.multiply), is(adds, mode.add), AnyOf(met)}));
    }
    drain_conflict_ = m_.Name("drain_conflict", AnyOf(conflicts));
  }

  void AddIssue() {
    m_.Comment("The step is issued.");
    const int bits = completed_.width();
    const Expr completes = go_ & drains_;
    m_.Clocked([&](Block& b) {
      b.If(setup_, [&] { b.Set(completed_, Zeros(bits)); });
      b.Else([&] { b.Set(completed_, bits == 1 ? completes : Concat({Slice(completed_, 0, bits - 1), completes})); });
    });
  }

  void Reload(Block& b, const Counter& counter) { b.Set(counter.left, F(counter.field)); }
  void Count(Block& b, const Counter& counter) { b.Set(counter.left, counter.left - Const(counter.left.width(), 1)); }
  void SetOffsets(Block& b, const Expr& value) {
    b.Set(offset_pixel_, value);
    b.Set(offset_column_, value);
    b.Set(offset_, value);
  }

  void AddUpdates() {
    const Expr next_column = m_.Name("next_column", offset_column_ + Offset("kernel_column_step"));
    const Expr next_pixel = m_.Name("next_pixel", offset_pixel_ + Offset("x_step"));
    const Expr next_in_row = m_.Name("next_in_row", in_row_ + Address("in_row_step"));
    const Expr next_index_row = m_.Name("next_index_row", index_row_ + F("row_stride", kRowBits));
    const Expr next_in_block = m_.Name("next_in_block", in_block_ + Address("in_block_step"));
    // In the b phase the weight address has already moved on.
    const Expr next_weight = m_.Name("next_weight", weight_ + ZeroExtend(~b_phase_, w_.weight_address));
    // Shared tiles: the next block starts over with the first one's.
    const Expr block_weight = m_.Name("block_weight", Mux(F("shared_weights", 1), weight_block_, next_weight));
    const Expr first_index = m_.Name("first_index", F("first_row", kRowBits));
    const Expr first_offset = m_.Name("first_offset", Offset("first_x"));
    m_.Clocked([&](Block& b) {
      b.If(setup_, [&] { Setup(b, first_index, first_offset); });
      b.ElseIf(go_, [&] {
        b.Set(weight_, next_weight);
        b.Set(first_, pixel_done_);
        b.Set(b_phase_, to_b_);
        b.Set(row_start_, pixel_done_ & x_.last);
        b.If(pixel_done_, [&] {
          Reload(b, pass_);
          Reload(b, kernel_column_);
          Reload(b, kernel_row_);
          b.Set(emit_wait_, Mux(Equal(emit_wait_, Zeros(8)), F("emit_stride") - Const(8, 1), emit_wait_ - Const(8, 1)));
          b.If(~x_.last, [&] {
            Count(b, x_);
            SetOffsets(b, next_pixel);
            b.Set(index_, index_row_);
            b.Set(in_kernel_row_, in_row_);
            b.Set(weight_, weight_block_);
          });
          b.Else([&] { NextRow(b, next_in_row, next_index_row, next_in_block, block_weight, first_index, first_offset); });
        });
        b.ElseIf(~to_b_, [&] {
          b.If(~pass_.last, [&] {
            Count(b, pass_);
            b.Set(offset_, offset_ + Const(kRowOffsetBits, p_.contraction_lanes));
          });
          b.Else([&] {
            Reload(b, pass_);
            b.If(~kernel_column_.last, [&] {
              Count(b, kernel_column_);
              b.Set(offset_column_, next_column);
              b.Set(offset_, next_column);
            });
            b.Else([&] {
              Reload(b, kernel_column_);
              Count(b, kernel_row_);
              b.Set(offset_column_, offset_pixel_);
              b.Set(offset_, offset_pixel_);
              b.Set(index_, index_ + F("kernel_row_stride", kRowBits));
              b.Set(in_kernel_row_, in_kernel_row_ + Address("kernel_row_step"));
            });
          });
        });
      });
    });
    AddOutputUpdates();
    m_.Ignore({instruction_, b_phase_});
  }

  void NextRow(Block& b, const Expr& next_in_row, const Expr& next_index_row, const Expr& next_in_block,
               const Expr& block_weight, const Expr& first_index, const Expr& first_offset) {
    Reload(b, x_);
    SetOffsets(b, first_offset);
    b.Set(emit_wait_, F("first_emit"));
    b.If(~row_.last, [&] {
      Count(b, row_);
      b.Set(index_row_, next_index_row);
      b.Set(index_, next_index_row);
      b.Set(in_row_, next_in_row);
      b.Set(in_kernel_row_, next_in_row);
      b.Set(weight_, weight_block_);
    });
    b.Else([&] {
      Reload(b, row_);
      b.Set(index_row_, first_index);
      b.Set(index_, first_index);
      b.Set(in_block_, next_in_block);
      b.Set(in_row_, next_in_block);
      b.Set(in_kernel_row_, next_in_block);
      b.Set(weight_block_, block_weight);
      b.Set(weight_, block_weight);
      Count(b, block_);
      b.If(block_.last, [&] { b.Set(running_, Const(1, 0)); });
    });
  }

  void Setup(Block& b, const Expr& first_index, const Expr& first_offset) {
    b.Set(running_, Const(1, 1));
    for (const Counter* counter : {&block_, &row_, &x_, &kernel_row_, &kernel_column_, &pass_}) Reload(b, *counter);
    b.Set(b_phase_, Const(1, 0));
    b.Set(first_, Const(1, 1));
    b.Set(row_start_, Const(1, 1));
    b.Set(emit_wait_, F("first_emit"));
    for (const Expr& address : {in_block_, in_row_, in_kernel_row_}) b.Set(address, Address("in_base"));
    SetOffsets(b, first_offset);
    b.Set(index_row_, first_index);
    b.Set(index_, first_index);
    b.Set(weight_block_, F("weight_base", w_.weight_address));
    b.Set(weight_, F("weight_base", w_.weight_address));
  }

  // Output, operand b and parameters move with the pixels that are completed.
  void AddOutputUpdates() {
    struct Stream {
      Expr block, row, pixel;
      std::string prefix, next;
    };
    std::vector<Stream> streams = {{out_block_, out_row_, out_, "out_", "next_out"}};
    if (p_.elementwise) streams.push_back({b_block_, b_row_, b_, "b_", "next_b"});
    for (const Stream& s : streams) {
      const Expr next_row = m_.Name(s.next + "_row", s.row + Address(s.prefix + "row_step"));
      const Expr next_block = m_.Name(s.next + "_block", s.block + Address(s.prefix + "block_step"));
      m_.Clocked([&](Block& b) {
        b.If(setup_, [&] {
          for (const Expr& address : {s.block, s.row, s.pixel}) b.Set(address, Address(s.prefix + "base"));
        });
        b.ElseIf(go_ & drains_, [&] {
          b.If(~x_.last, [&] { b.Set(s.pixel, s.pixel + Address(s.prefix + "x_step")); });
          b.ElseIf(~row_.last, [&] {
            b.Set(s.row, next_row);
            b.Set(s.pixel, next_row);
          });
          b.Else([&] {
            b.Set(s.block, next_block);
            b.Set(s.row, next_block);
            b.Set(s.pixel, next_block);
          });
        });
      });
    }
    m_.Clocked([&](Block& b) {
      b.If(setup_, [&] { b.Set(parameter_, F("param_base", w_.parameter_block)); });
      b.ElseIf(AllOf({go_, drains_, x_.last, row_.last}), [&] {
        b.Set(parameter_, parameter_ + F("param_block_step", w_.parameter_block));
      });
    });
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& m_;
  Expr instruction_, setup_, go_;
  Expr running_out_, want_out_, wait_drain_out_, banks_out_, bank_address_out_, step_b_out_, step_first_out_, step_last_out_;
  Expr step_row_start_out_, position_out_, row_valid_out_, offset_out_, vector_valid_out_, vector_index_out_, weight_out_;
  Expr out_address_out_, parameter_out_, last_block_out_;
  Expr running_, b_phase_, first_, row_start_, emit_wait_, completed_, drain_conflict_;
  Counter block_, row_, x_, kernel_row_, kernel_column_, pass_;
  Expr in_block_, in_row_, in_kernel_row_, offset_pixel_, offset_column_, offset_, index_row_, index_, weight_block_, weight_;
  Expr out_block_, out_row_, out_, b_block_, b_row_, b_, parameter_;
  Expr emits_, pixel_done_, to_b_, drains_, drain_busy_, address_, row_inside_, by_vector_;
  std::vector<Vector> vectors_;
};

}  // namespace

Module& AddSequencer(Design& design, const AcceleratorParams& params) { return SequencerBuilder(design, params).Build(); }

}  // namespace heddle::hls
