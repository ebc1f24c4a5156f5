// Between the activation memory and the multipliers: brings an unaligned run of bytes to lane 0, puts the pad value where
// the run leaves the input row, and keeps the window of the depthwise and max reductions.
//
// Stages: a step is issued in stage I; the line arrives in stage R (here); lanes and window are registers of stage A.

#include "hls/accelerator/parts.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

class OperandsBuilder {
 public:
  OperandsBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), m_(design.Add("heddle_operands", "Aligns and pads what was read; holds the sliding window.")) {}

  Module& Build() {
    instruction_ = m_.Input("instruction", w_.compute_bits);
    const Expr go = m_.Input("go", 1, "a step is issued");
    line_ = m_.Input("line", p_.line_bytes() * 8, "what the step of one cycle ago reads");
    m_.Comment("Stage R.");
    valid_ = m_.ResetRegister("valid_r", 1);
    is_b_ = Delay(go, "step_b", 1);
    first_ = Delay(go, "step_first", 1);
    last_ = Delay(go, "step_last", 1);
    row_start_ = Delay(go, "step_row_start", 1);
    position_ = Delay(go, "position", w_.line_offset);
    row_valid_ = Delay(go, "row_valid", 1);
    offset_ = Delay(go, "offset", kRowOffsetBits);
    m_.Clocked([&](Block& b) { b.Set(valid_, go); });
    AddRun();
    AddInside();
    AddLanes();
    AddWindow(go);
    AddControl();
    m_.Ignore({instruction_});
    m_.Finish();
    return m_;
  }

 private:
  Expr F(std::string_view name) { return Field(instruction_, Opcode::kCompute, name); }

  // An input of stage I and its register of stage R.
  Expr Delay(const Expr& go, const std::string& name, int width) {
    const Expr input = m_.Input(name, width);
    const Expr reg = m_.Register(name + "_r", width);
    m_.Clocked([&](Block& b) { b.If(go, [&] { b.Set(reg, input); }); });
    return reg;
  }

  void AddRun() {
    m_.Comment("The run: turn the line by whole banks, then by bytes.");
    const int word = p_.bank_bytes() * 8;
    const Expr halves = m_.Name("turned_by_two", Mux(Bit(position_, w_.bank_offset + 1),
                                                     Concat({Slice(line_, 0, 2 * word), Slice(line_, 2 * word, 2 * word)}), line_));
    const Expr turned = m_.Name("turned", Mux(Bit(position_, w_.bank_offset),
                                              Concat({Slice(halves, 0, word), Slice(halves, word, 3 * word)}), halves));
    const int bytes = std::min(p_.line_bytes(), p_.bank_bytes() - 1 + p_.read_bytes());
    const Expr shifted = m_.Name("shifted", ShiftRight(Slice(turned, 0, bytes * 8),
                                                       Concat({Slice(position_, 0, w_.bank_offset), Const(3, 0)})));
    run_ = m_.Name("run", Slice(shifted, 0, p_.read_bytes() * 8));
    if (bytes > p_.read_bytes()) m_.Ignore({Slice(shifted, p_.read_bytes() * 8, (bytes - p_.read_bytes()) * 8)});
    if (p_.line_bytes() > bytes) m_.Ignore({Slice(turned, bytes * 8, (p_.line_bytes() - bytes) * 8)});
  }

  // Low bits of a non-negative number, all ones where it is larger than they hold.
  Expr Saturate(const std::string& name, const Expr& value, int bits) {
    return m_.Name(name, Mux(AnyBit(Slice(value, bits, value.width() - bits)), Ones(bits), Slice(value, 0, bits)));
  }

  void AddInside() {
    m_.Comment("Lanes whose byte lies inside the input row.");
    const int lanes = p_.read_bytes();
    const int bits = BitsFor(lanes + 1);
    const Expr before = m_.Name("before_row", Zeros(kRowOffsetBits) - offset_);
    const Expr rest = m_.Name("rest_of_row", FieldTo(instruction_, Opcode::kCompute, "in_row_bytes", kRowOffsetBits) - offset_);
    const Expr skipped = Saturate("skipped_lanes", before, bits);
    const Expr filled = Saturate("filled_lanes", rest, bits);
    const Expr from = m_.Name("lanes_from", Mux(Sign(offset_), ShiftLeft(Ones(lanes), skipped), Ones(lanes)));
    const Expr to = m_.Name("lanes_to", Mux(Sign(rest), Zeros(lanes), ~ShiftLeft(Ones(lanes), filled)));
    inside_ = m_.Name("lane_inside", (from & to & Repeat(row_valid_, lanes)) | Repeat(is_b_, lanes));
  }

  bool has_vectors() const { return p_.depthwise || p_.pooling; }

  void AddLanes() {
    m_.Comment("Stage A.");
    const int lanes = p_.read_bytes();
    lanes_ = m_.Register("lanes_a", lanes * 8);
    m_.Assign(m_.Output("lanes", lanes * 8, "one byte a lane"), lanes_);
    const Expr pad = m_.Name("pad_value", F("pad_value"));
    std::vector<Expr> bytes;
    for (int lane = lanes - 1; lane >= 0; --lane) {
      bytes.push_back(Mux(Bit(inside_, lane), Slice(run_, lane * 8, 8), pad));
    }
    const Expr reduce = F("reduce");
    by_vector_ = m_.Name("by_vector", has_vectors()
                                          ? ~is_b_ & (Equal(reduce, Const(2, static_cast<int>(Reduce::kDepthwise))) |
                                                      Equal(reduce, Const(2, static_cast<int>(Reduce::kMax))))
                                          : Const(1, 0));
    m_.Clocked([&](Block& b) {
      b.If(valid_, [&] {
        // A vector step leaves the lanes at zero: taps beyond the window add nothing.
        b.If(by_vector_, [&] { b.Set(lanes_, Zeros(lanes * 8)); });
        b.ElseIf(AllBits(inside_), [&] { b.Set(lanes_, run_); });
        b.Else([&] { b.Set(lanes_, Concat(bytes)); });
      });
    });
  }

  void AddWindow(const Expr& go) {
    if (!has_vectors()) return;
    m_.Comment("The window: column 0 is the newest.");
    const int column = kWindowRows * p_.output_lanes * 8;
    const Expr valid = Delay(go, "vector_valid", kWindowRows);
    const Expr index = Delay(go, "vector_index", kWindowRows * w_.vector_index);
    const Expr pad = m_.Name("pad_vector", Repeat(F("pad_value"), p_.output_lanes));
    std::vector<Expr> vectors;
    for (int j = kWindowRows - 1; j >= 0; --j) {
      const Expr place = m_.Name("vector_place_" + std::to_string(j), Slice(index, j * w_.vector_index, w_.vector_index));
      vectors.push_back(Mux(Bit(valid, j), Element(line_, place, p_.output_lanes * 8), pad));
    }
    const Expr newest = m_.Name("newest_column", Concat(vectors));
    std::vector<Expr> columns;
    for (int age = 0; age < (p_.has_window() ? kWindowColumns : 1); ++age) {
      columns.push_back(m_.Register("column_" + std::to_string(age), column));
    }
    m_.Clocked([&](Block& b) {
      b.If(valid_ & by_vector_, [&] {
        b.Set(columns[0], newest);
        if (columns.size() == 1) return;
        b.If(row_start_ | ~F("window"), [&] {
          for (size_t age = 1; age < columns.size(); ++age) b.Set(columns[age], Repeat(pad, kWindowRows));
        });
        b.Else([&] {
          for (size_t age = 1; age < columns.size(); ++age) b.Set(columns[age], columns[age - 1]);
        });
      });
    });
    const std::vector<Expr> reversed(columns.rbegin(), columns.rend());
    m_.Assign(m_.Output("window", column * static_cast<int>(columns.size()), "[age][row][column] bytes"), Concat(reversed));
  }

  void AddControl() {
    m_.Comment("What the step is, in stage A.");
    const Expr valid = m_.ResetRegister("valid_a", 1);
    const Expr is_b = m_.Register("step_b_a", 1);
    const Expr first = m_.Register("step_first_a", 1);
    const Expr last = m_.Register("step_last_a", 1);
    const Expr by_vector = m_.Register("by_vector_a", 1);
    m_.Clocked([&](Block& b) {
      b.Set(valid, valid_);
      b.Set(is_b, is_b_);
      b.Set(first, first_);
      b.Set(last, last_);
      b.Set(by_vector, by_vector_);
    });
    m_.Assign(m_.Output("out_valid", 1), valid);
    m_.Assign(m_.Output("out_b", 1), is_b);
    m_.Assign(m_.Output("out_first", 1), first);
    m_.Assign(m_.Output("out_last", 1), last);
    m_.Assign(m_.Output("out_by_vector", 1), by_vector);
    m_.Assign(m_.Output("busy", 1), valid_ | valid);
    if (!has_vectors() || !p_.has_window()) m_.Ignore({row_start_});
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& m_;
  Expr instruction_, line_, valid_, is_b_, first_, last_, row_start_, position_, row_valid_, offset_;
  Expr run_, inside_, lanes_, by_vector_;
};

}  // namespace

Module& AddOperands(Design& design, const AcceleratorParams& params) { return OperandsBuilder(design, params).Build(); }

}  // namespace heddle::hls
