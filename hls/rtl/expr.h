// Expressions of the RTL builder: immutable, each with a width in bits. Every operator states its widths and checks them
// when it is built, so what is printed never relies on Verilog's implicit extension or truncation.
#ifndef HEDDLE_HLS_RTL_EXPR_H_
#define HEDDLE_HLS_RTL_EXPR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace heddle::hls::rtl {

enum class SignalKind { kInput, kOutput, kWire, kRegister };

// A named signal of one module.
struct Signal {
  std::string name;
  int width = 0;
  SignalKind kind = SignalKind::kWire;
  bool has_reset = false;
  uint64_t reset_value = 0;
  std::string comment;
};

class Expr {
 public:
  Expr() = default;
  // A reference to a signal.
  explicit Expr(std::shared_ptr<const Signal> signal);
  // An operator's result: Verilog text that stands for a value of `width` bits; `atomic` if it needs no parentheses.
  Expr(int width, std::string text, bool atomic);

  int width() const { return width_; }
  const std::string& text() const { return text_; }
  // As an operand: in parentheses unless atomic.
  std::string operand() const { return atomic_ ? text_ : "(" + text_ + ")"; }
  const std::shared_ptr<const Signal>& signal() const { return signal_; }
  bool is_signal() const { return signal_ != nullptr; }
  bool valid() const { return width_ > 0; }

 private:
  std::shared_ptr<const Signal> signal_;
  int width_ = 0;
  std::string text_;
  bool atomic_ = true;
};

// `value` must fit; widths above 64 bits are zero-extended.
Expr Const(int width, uint64_t value);
Expr Zeros(int width);
Expr Ones(int width);

// Both operands and the result have one width; +, - and * are modulo 2^width.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator&(const Expr& a, const Expr& b);
Expr operator|(const Expr& a, const Expr& b);
Expr operator^(const Expr& a, const Expr& b);
Expr operator~(const Expr& a);
// Full product of two's complement numbers: width a + width b.
Expr MultiplySigned(const Expr& a, const Expr& b);
// Sum and product of two's complement numbers of one width, modulo 2^width: the bits of + and *, but synthesis sees how many
// of the operands' upper bits are copies of their sign, and takes an adder or a multiplier of the rest. Give the result a
// name (Module::Name): within a larger expression Verilog would drop the sign.
Expr AddSigned(const Expr& a, const Expr& b);
Expr MultiplySignedLow(const Expr& a, const Expr& b);

// Comparisons: one bit. Unsigned unless named otherwise.
Expr Equal(const Expr& a, const Expr& b);
Expr NotEqual(const Expr& a, const Expr& b);
Expr Less(const Expr& a, const Expr& b);
Expr LessEqual(const Expr& a, const Expr& b);
Expr SignedLess(const Expr& a, const Expr& b);

// Bits low .. low + width - 1 of a signal.
Expr Slice(const Expr& signal, int low, int width);
inline Expr Bit(const Expr& signal, int index) { return Slice(signal, index, 1); }
// Most significant bit of a signal: its sign.
inline Expr Sign(const Expr& signal) { return Bit(signal, signal.width() - 1); }
// Element `index` of a signal that is a vector of 2^(index width) elements of `width` bits, a power of two.
Expr Element(const Expr& signal, const Expr& index, int width);
// First operand in the highest bits.
Expr Concat(const std::vector<Expr>& parts);
Expr Repeat(const Expr& part, int count);
Expr ZeroExtend(const Expr& a, int width);
// `signal` must be a signal or a slice that is named; the top bit is repeated.
Expr SignExtend(const Expr& signal, int width);

Expr Mux(const Expr& condition, const Expr& when_true, const Expr& when_false);
// Shifts keep the width of `a`.
Expr ShiftLeft(const Expr& a, const Expr& amount);
Expr ShiftRight(const Expr& a, const Expr& amount);
Expr ShiftRightSigned(const Expr& a, const Expr& amount);
// One bit.
Expr AnyBit(const Expr& a);
Expr AllBits(const Expr& a);
// Or / and of one-bit values, of at least one.
Expr AnyOf(const std::vector<Expr>& bits);
Expr AllOf(const std::vector<Expr>& bits);
// Sum of values of one width, at least one.
Expr Sum(const std::vector<Expr>& terms);

}  // namespace heddle::hls::rtl

#endif  // HEDDLE_HLS_RTL_EXPR_H_
