// The multiplier array: R x C products a cycle, C accumulators. In a module of its own so that its arithmetic can be
// exchanged without touching anything around it.
//
// Stage M holds sums of four products a column, stage S the accumulators. In a depthwise step the first nine lanes of each
// column take the column's own window instead of the lanes that all columns share.

#include "hls/accelerator/parts.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

constexpr int kGroup = 4;       // products summed before the register of stage M
constexpr int kGroupBits = 18;  // four products of 16 bits

class ArrayBuilder {
 public:
  ArrayBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), m_(design.Add("heddle_array", "R x C multipliers and C accumulators.")) {}

  Module& Build() {
    AddPorts();
    AddProducts();
    AddBypass();
    AddControl();
    AddAccumulators();
    m_.Ignore({instruction_, lanes_, by_vector_});
    if (has_vectors()) m_.Ignore({window_});
    m_.Finish();
    return m_;
  }

 private:
  bool has_vectors() const { return p_.depthwise || p_.pooling; }
  int columns_in_window() const { return p_.has_window() ? kWindowColumns : 1; }
  int window_taps() const { return columns_in_window() * kWindowRows; }
  Expr F(std::string_view name) { return Field(instruction_, Opcode::kCompute, name); }
  Expr ReduceIs(Reduce reduce) { return Equal(F("reduce"), Const(2, static_cast<int>(reduce))); }
  static std::string Suffix(int column, int i) { return "_" + std::to_string(column) + "_" + std::to_string(i); }

  void AddPorts() {
    instruction_ = m_.Input("instruction", w_.compute_bits);
    valid_ = m_.Input("valid", 1, "a step is in stage A");
    is_b_ = m_.Input("step_b", 1);
    first_ = m_.Input("step_first", 1);
    last_ = m_.Input("step_last", 1);
    by_vector_ = m_.Input("by_vector", 1);
    lanes_ = m_.Input("lanes", p_.read_bytes() * 8);
    if (has_vectors()) window_ = m_.Input("window", window_taps() * p_.output_lanes * 8);
    weights_ = m_.Input("weights", p_.weight_tile_bytes() * 8, "[R][C] bytes");
    multiply_ = m_.Name("multiplies", valid_ & ~is_b_ & (ReduceIs(Reduce::kDot) | ReduceIs(Reduce::kDepthwise)));
  }

  // The byte that lane r of column c multiplies, sign-extended.
  Expr Operand(int r, int c) {
    if (!p_.depthwise || r >= window_taps()) return shared_[r];
    const Expr tap = Slice(window_, (r * p_.output_lanes + c) * 8, 8);
    const Expr byte = m_.Name("tap" + Suffix(c, r), Mux(by_vector_, tap, Slice(lanes_, r * 8, 8)));
    return SignExtend(byte, kGroupBits);
  }

  void AddProducts() {
    m_.Comment("Stage M: sums of four products.");
    for (int r = 0; r < p_.contraction_lanes; ++r) {
      if (p_.depthwise && r < window_taps()) {
        shared_.push_back(Expr());
      } else {
        shared_.push_back(m_.Name("lane_" + std::to_string(r), SignExtend(Slice(lanes_, r * 8, 8), kGroupBits)));
      }
    }
    std::vector<std::pair<Expr, Expr>> updates;
    for (int c = 0; c < p_.output_lanes; ++c) {
      sums_.emplace_back();
      for (int g = 0; g < p_.contraction_lanes / kGroup; ++g) {
        std::vector<Expr> products;
        for (int r = g * kGroup; r < (g + 1) * kGroup; ++r) {
          const Expr weight = SignExtend(Slice(weights_, (r * p_.output_lanes + c) * 8, 8), kGroupBits);
          products.push_back(Operand(r, c) * weight);
        }
        const Expr sum = m_.Register("sum" + Suffix(c, g), kGroupBits);
        sums_.back().push_back(sum);
        updates.push_back({sum, Sum(products)});
      }
    }
    m_.Clocked([&](Block& b) {
      b.If(multiply_, [&] {
        for (const auto& [sum, value] : updates) b.Set(sum, value);
      });
    });
  }

  Expr SignedMax(const std::string& name, const Expr& a, const Expr& b) { return m_.Name(name, Mux(SignedLess(a, b), b, a)); }

  Expr WindowMax(int column) {
    Expr greatest;
    for (int tap = 0; tap < window_taps(); ++tap) {
      const Expr value = m_.Name("pool" + Suffix(column, tap), Mux(Bit(pooled_, tap), Slice(window_, (tap * p_.output_lanes + column) * 8, 8),
                                                                Const(8, 0x80)));
      greatest = tap == 0 ? value : SignedMax("greatest" + Suffix(column, tap), greatest, value);
    }
    return greatest;
  }

  void AddBypass() {
    m_.Comment("Stage M: values that are not multiplied: maximum of the window, loaded operands.");
    std::vector<Expr> loaded, greatest;
    if (p_.pooling) {
      std::vector<Expr> enabled;
      for (int tap = window_taps() - 1; tap >= 0; --tap) {
        enabled.push_back(Less(Const(2, tap / kWindowRows), F("window_columns")) & Less(Const(2, tap % kWindowRows), F("vector_rows")));
      }
      pooled_ = m_.Name("pooled_taps", Concat(enabled));
    }
    for (int c = p_.output_lanes - 1; c >= 0; --c) {
      loaded.push_back(Slice(lanes_, c * 8, 8));
      if (p_.pooling) greatest.push_back(WindowMax(c));
    }
    bypass_ = m_.Register("bypass", p_.output_lanes * 8);
    m_.Clocked([&](Block& b) {
      b.If(valid_ & ~multiply_, [&] {
        if (!p_.pooling) {
          b.Set(bypass_, Concat(loaded));
          return;
        }
        b.If(by_vector_, [&] { b.Set(bypass_, Concat(greatest)); });
        b.Else([&] { b.Set(bypass_, Concat(loaded)); });
      });
    });
  }

  void AddControl() {
    valid_m_ = m_.ResetRegister("valid_m", 1);
    is_b_m_ = m_.Register("step_b_m", 1);
    clear_m_ = m_.Register("clear_m", 1, "the accumulators start anew");
    last_m_ = m_.Register("last_m", 1);
    complete_ = m_.ResetRegister("complete_s", 1);
    m_.Clocked([&](Block& b) {
      b.Set(valid_m_, valid_);
      b.Set(is_b_m_, is_b_);
      b.Set(clear_m_, first_ & ~F("continue_accumulation"));
      b.Set(last_m_, last_);
      b.Set(complete_, valid_m_ & last_m_);
    });
    m_.Assign(m_.Output("complete", 1, "the accumulators hold a finished pixel"), complete_);
    m_.Assign(m_.Output("busy", 1), valid_m_ | complete_);
  }

  void AddAccumulators() {
    m_.Comment("Stage S: the accumulators.");
    const int total_bits = 16 + BitsFor(p_.contraction_lanes);
    std::vector<Expr> accumulators, totals, loads;
    for (int c = 0; c < p_.output_lanes; ++c) {
      const std::string suffix = "_" + std::to_string(c);
      std::vector<Expr> groups;
      for (const Expr& sum : sums_[c]) groups.push_back(total_bits < kGroupBits ? Slice(sum, 0, total_bits) : SignExtend(sum, total_bits));
      totals.push_back(m_.Name("total" + suffix, Sum(groups)));
      accumulators.push_back(m_.Register("accumulator" + suffix, 32));
      const Expr value = m_.Name("bypass" + suffix, SignExtend(Slice(bypass_, c * 8, 8), 32));
      if (p_.pooling) {
        const Expr keeps = m_.Name("keeps" + suffix, ~clear_m_ & ReduceIs(Reduce::kMax) & SignedLess(value, accumulators[c]));
        loads.push_back(Mux(keeps, accumulators[c], value));
      } else {
        loads.push_back(value);
      }
    }
    const Expr multiplied = m_.Name("is_multiplied", ReduceIs(Reduce::kDot) | ReduceIs(Reduce::kDepthwise));
    const Expr operand_b = m_.Register("operand_b_s", p_.output_lanes * 8);
    m_.Clocked([&](Block& b) {
      b.If(valid_m_, [&] {
        b.If(is_b_m_, [&] { b.Set(operand_b, bypass_); });
        b.ElseIf(~multiplied, [&] {
          for (int c = 0; c < p_.output_lanes; ++c) b.Set(accumulators[c], loads[c]);
        });
        b.ElseIf(clear_m_, [&] {
          for (int c = 0; c < p_.output_lanes; ++c) b.Set(accumulators[c], SignExtend(totals[c], 32));
        });
        b.Else([&] {
          for (int c = 0; c < p_.output_lanes; ++c) b.Set(accumulators[c], accumulators[c] + SignExtend(totals[c], 32));
        });
      });
    });
    const std::vector<Expr> reversed(accumulators.rbegin(), accumulators.rend());
    m_.Assign(m_.Output("accumulators", p_.output_lanes * 32), Concat(reversed));
    m_.Assign(m_.Output("operand_b", p_.output_lanes * 8), operand_b);
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& m_;
  Expr instruction_, valid_, is_b_, first_, last_, by_vector_, lanes_, window_, weights_, multiply_, pooled_, bypass_;
  Expr valid_m_, is_b_m_, clear_m_, last_m_, complete_;
  std::vector<Expr> shared_;
  std::vector<std::vector<Expr>> sums_;
};

}  // namespace

Module& AddArray(Design& design, const AcceleratorParams& params) { return ArrayBuilder(design, params).Build(); }

}  // namespace heddle::hls
