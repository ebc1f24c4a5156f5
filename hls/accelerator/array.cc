// The multiplier array: R x C products a cycle, C accumulators. In a module of its own so that its arithmetic can be
// exchanged without touching anything around it.
//
// Two int8 products of one byte take one multiplier: (w1 * 2^16 + w0) * a, with w1 and w0 the weights of columns 2q + 1 and 2q.
// Two such products are added in front of the register of stage M (a DSP48E1's own adder and register), together with a
// constant that makes both 16-bit fields of the sum non-negative, so that neither borrows from the other:
//   w * a + w' * a' lies in -32512 .. 32768, plus 32512 in 0 .. 65280.
// Stage S takes the constants off again where it sums the fields. In a depthwise step each tap of the window needs a multiplier
// of its own in every column; so a tap takes two lanes, one for the even columns and one for the odd, and the weights of the
// others are zero (params.h: depthwise_lane, split_lanes).

#include "hls/accelerator/parts.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

constexpr int kFieldBits = 16;       // one column's part of a packed sum
constexpr int kFieldOffset = 32512;  // makes the sum of two products non-negative
constexpr int kSplitBits = 17;       // two products of a column with multipliers of its own

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
  int window_taps() const { return p_.window_taps(); }
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

  // The byte that lane r multiplies in `column` and, beyond the split lanes, in both columns of its pair; sign-extended.
  Expr Operand(int r, int column, int bits, const std::string& name = "") {
    const int split = p_.split_lanes();
    const int tap = r < split ? r : split + (r - split) / 2;
    if (!p_.depthwise || tap >= window_taps()) return SignExtend(Slice(lanes_, r * 8, 8), bits);
    const int source = r < split ? column : column - column % 2 + (r - split) % 2;
    const Expr byte = Slice(window_, (tap * p_.output_lanes + source) * 8, 8);
    return SignExtend(m_.Name(name.empty() ? "tap" + Suffix(column, r) : name, Mux(by_vector_, byte, Slice(lanes_, r * 8, 8))), bits);
  }
  Expr Weight(int r, int column) { return Slice(weights_, (r * p_.output_lanes + column) * 8, 8); }

  // Sum of the products of lanes r and r + 1 with one column's weights.
  Expr SplitSum(int r, int column) {
    std::vector<Expr> products;
    for (int lane = r; lane < r + 2; ++lane) {
      products.push_back(m_.Name("product" + Suffix(column, lane),
                                 MultiplySignedLow(Operand(lane, column, kSplitBits), SignExtend(Weight(lane, column), kSplitBits))));
    }
    return Sum(products);
  }

  // The same with the weights of columns `even` and even + 1: two fields.
  Expr PackedSum(int r, int even) {
    constexpr int kBits = 2 * kFieldBits;
    std::vector<Expr> products;
    for (int lane = r; lane < r + 2; ++lane) {
      const Expr high = Weight(lane, even + 1);
      const Expr pair = m_.Name("weight_pair" + Suffix(even, lane),
                                AddSigned(Concat({SignExtend(high, kFieldBits), Zeros(kFieldBits)}), SignExtend(Weight(lane, even), kBits)));
      products.push_back(m_.Name("product" + Suffix(even, lane), MultiplySignedLow(pair, Operand(lane, even, kBits))));
    }
    const uint64_t offsets = (uint64_t{kFieldOffset} << kFieldBits) + kFieldOffset;
    return Const(kBits, offsets) + products[0] + products[1];
  }

  // Whether the sum of lanes r, r + 1 for columns `even`, even + 1 is made of look-up tables: the last ones are.
  bool IsSoft(int r, int even) const {
    const int after = (p_.contraction_lanes - r) / 2 * p_.output_lanes / 2 - even / 2;
    return after <= p_.soft_multipliers / 2;
  }

  // PackedSum from partial products: synthesis makes multipliers of what is written as a product.
  Expr SoftSum(int r, int even) {
    std::vector<Expr> fields;
    for (int column = even; column < even + 2; ++column) {
      Expr sum = Const(kFieldBits, kFieldOffset);
      for (int lane = r; lane < r + 2; ++lane) {
        const Expr factor = m_.Name("factor" + Suffix(column, lane), Operand(lane, even, 8, "soft_tap" + Suffix(column, lane)));
        const Expr weight = m_.Name("weight" + Suffix(column, lane), SignExtend(Weight(lane, column), kFieldBits));
        for (int bit = 0; bit < 8; ++bit) {
          const Expr shifted = bit == 0 ? weight : Concat({Slice(weight, 0, kFieldBits - bit), Zeros(bit)});
          const Expr part = Repeat(Bit(factor, bit), kFieldBits) & shifted;
          sum = bit == 7 ? sum - part : sum + part;
        }
      }
      fields.insert(fields.begin(), sum);
    }
    return Concat(fields);
  }

  void AddProducts() {
    m_.Comment("Stage M: sums of two products, of one column each in the split lanes, of two columns elsewhere.");
    const int total_bits = TotalBits();
    terms_.resize(p_.output_lanes);
    std::vector<std::pair<Expr, Expr>> updates;
    for (int r = 0; r < p_.contraction_lanes; r += 2) {
      for (int even = 0; even < p_.output_lanes; even += 2) {
        if (r < p_.split_lanes()) {
          for (int c = even; c < even + 2; ++c) {
            const Expr sum = m_.Register("sum" + Suffix(c, r), kSplitBits);
            updates.push_back({sum, SplitSum(r, c)});
            terms_[c].push_back(SignExtend(sum, total_bits));
          }
        } else {
          const Expr sum = m_.Register("sums" + Suffix(even, r), 2 * kFieldBits);
          updates.push_back({sum, IsSoft(r, even) ? SoftSum(r, even) : PackedSum(r, even)});
          for (int side = 0; side < 2; ++side) {
            terms_[even + side].push_back(ZeroExtend(Slice(sum, side * kFieldBits, kFieldBits), total_bits));
          }
        }
      }
    }
    m_.Clocked([&](Block& b) {
      b.If(multiply_, [&] {
        for (const auto& [sum, value] : updates) b.Set(sum, value);
      });
    });
  }
  // Holds a step's sum with its offsets, and the sum itself as a signed number.
  int TotalBits() const { return kFieldBits + BitsFor(p_.contraction_lanes); }

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
    const int total_bits = TotalBits();
    const int64_t offsets = int64_t{p_.contraction_lanes - p_.split_lanes()} / 2 * kFieldOffset;
    const Expr correction = Const(total_bits, static_cast<uint64_t>((int64_t{1} << total_bits) - offsets));
    std::vector<Expr> accumulators, totals, loads;
    for (int c = 0; c < p_.output_lanes; ++c) {
      const std::string suffix = "_" + std::to_string(c);
      totals.push_back(m_.Name("total" + suffix, correction + Sum(terms_[c])));
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
  std::vector<std::vector<Expr>> terms_;  // of each column, what stage M adds to its accumulator
};

}  // namespace

Module& AddArray(Design& design, const AcceleratorParams& params) { return ArrayBuilder(design, params).Build(); }

}  // namespace heddle::hls
