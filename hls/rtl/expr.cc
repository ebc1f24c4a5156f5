// Builds expressions as Verilog-2005 text with checked widths. Text is final at construction: an expression is a value,
// and the module prints it where it is used; what is used twice and costs something is given a name by Module::Name.

#include "hls/rtl/expr.h"

#include <fmt/format.h>

#include "ir/check.h"

namespace heddle::hls::rtl {
namespace {

Expr Binary(const char* op, const Expr& a, const Expr& b, int width) {
  HEDDLE_CHECK(a.width() == b.width() && a.width() > 0,
               fmt::format("operands of {} have widths {} and {}: {} and {}", op, a.width(), b.width(), a.text(), b.text()));
  return Expr(width, a.operand() + " " + op + " " + b.operand(), false);
}

// Both operands as two's complement numbers.
Expr SignedBinary(const char* op, const Expr& a, const Expr& b, int width) {
  HEDDLE_CHECK(a.width() == b.width(), fmt::format("operands of signed {} have different widths: {}, {}", op, a.text(), b.text()));
  return Expr(width, fmt::format("$signed({}) {} $signed({})", a.text(), op, b.text()), false);
}

Expr Fold(const char* op, const std::vector<Expr>& terms) {
  HEDDLE_CHECK(!terms.empty(), "an operator without operands");
  std::string text = terms.front().operand();
  for (size_t i = 1; i < terms.size(); ++i) {
    HEDDLE_CHECK(terms[i].width() == terms.front().width(), std::string("widths differ under ") + op);
    text += std::string(" ") + op + " " + terms[i].operand();
  }
  return Expr(terms.front().width(), text, terms.size() == 1);
}

}  // namespace

Expr::Expr(std::shared_ptr<const Signal> signal) : signal_(std::move(signal)), width_(signal_->width), text_(signal_->name) {}
Expr::Expr(int width, std::string text, bool atomic) : width_(width), text_(std::move(text)), atomic_(atomic) {
  HEDDLE_CHECK(width > 0, "an expression without bits: " + text_);
}

Expr Const(int width, uint64_t value) {
  HEDDLE_CHECK(width >= 64 || value >> width == 0, fmt::format("{} does not fit {} bits", value, width));
  return Expr(width, width <= 4 ? fmt::format("{}'d{}", width, value) : fmt::format("{}'h{:x}", width, value), true);
}
Expr Zeros(int width) { return Const(width, 0); }
Expr Ones(int width) { return Expr(width, fmt::format("{{{}{{1'b1}}}}", width), true); }

Expr operator+(const Expr& a, const Expr& b) { return Binary("+", a, b, a.width()); }
Expr operator-(const Expr& a, const Expr& b) { return Binary("-", a, b, a.width()); }
Expr operator*(const Expr& a, const Expr& b) { return Binary("*", a, b, a.width()); }
Expr operator&(const Expr& a, const Expr& b) { return Binary("&", a, b, a.width()); }
Expr operator|(const Expr& a, const Expr& b) { return Binary("|", a, b, a.width()); }
Expr operator^(const Expr& a, const Expr& b) { return Binary("^", a, b, a.width()); }
Expr operator~(const Expr& a) { return Expr(a.width(), "~" + a.operand(), true); }
Expr MultiplySigned(const Expr& a, const Expr& b) {
  return Expr(a.width() + b.width(), fmt::format("$signed({}) * $signed({})", a.text(), b.text()), false);
}
Expr AddSigned(const Expr& a, const Expr& b) { return SignedBinary("+", a, b, a.width()); }
Expr MultiplySignedLow(const Expr& a, const Expr& b) { return SignedBinary("*", a, b, a.width()); }

Expr Equal(const Expr& a, const Expr& b) { return Binary("==", a, b, 1); }
Expr NotEqual(const Expr& a, const Expr& b) { return Binary("!=", a, b, 1); }
Expr Less(const Expr& a, const Expr& b) { return Binary("<", a, b, 1); }
Expr LessEqual(const Expr& a, const Expr& b) { return Binary("<=", a, b, 1); }
Expr SignedLess(const Expr& a, const Expr& b) { return SignedBinary("<", a, b, 1); }

Expr Slice(const Expr& signal, int low, int width) {
  HEDDLE_CHECK(low >= 0 && width > 0 && low + width <= signal.width(),
               fmt::format("bits {}+{} of {}, which has {}", low, width, signal.text(), signal.width()));
  if (low == 0 && width == signal.width()) return signal;
  HEDDLE_CHECK(signal.is_signal(), "bits of an expression without a name: " + signal.text());
  if (width == 1) return Expr(1, fmt::format("{}[{}]", signal.text(), low), true);
  return Expr(width, fmt::format("{}[{}:{}]", signal.text(), low + width - 1, low), true);
}
Expr Element(const Expr& signal, const Expr& index, int width) {
  if (signal.width() == width) return signal;
  HEDDLE_CHECK(signal.is_signal(), "an element of an expression without a name: " + signal.text());
  if (width == 1) return Expr(1, fmt::format("{}[{}]", signal.text(), index.text()), true);
  // The position of the element's lowest bit, in exactly as many bits as the signal needs.
  int shift = 0;
  while ((1 << shift) < width) ++shift;
  HEDDLE_CHECK((1 << shift) == width && signal.width() == width << index.width(),
               "elements and their number are powers of two: " + signal.text());
  const Expr position = Concat({index, Zeros(shift)});
  return Expr(width, fmt::format("{}[{} +: {}]", signal.text(), position.text(), width), true);
}
Expr Concat(const std::vector<Expr>& parts) {
  HEDDLE_CHECK(!parts.empty(), "an empty concatenation");
  if (parts.size() == 1) return parts.front();
  int width = 0;
  std::string text;
  for (const Expr& part : parts) {
    HEDDLE_CHECK(part.valid(), "an empty part of a concatenation");
    width += part.width();
    text += (text.empty() ? "" : ", ") + part.text();
  }
  return Expr(width, "{" + text + "}", true);
}
Expr Repeat(const Expr& part, int count) {
  HEDDLE_CHECK(count > 0, "a repetition of nothing");
  if (count == 1) return part;
  return Expr(part.width() * count, fmt::format("{{{}{{{}}}}}", count, part.text()), true);
}
Expr ZeroExtend(const Expr& a, int width) {
  HEDDLE_CHECK(width >= a.width(), "zero extension to fewer bits: " + a.text());
  return width == a.width() ? a : Concat({Zeros(width - a.width()), a});
}
Expr SignExtend(const Expr& signal, int width) {
  HEDDLE_CHECK(width >= signal.width(), "sign extension to fewer bits: " + signal.text());
  if (width == signal.width()) return signal;
  if (signal.is_signal()) return Concat({Repeat(Sign(signal), width - signal.width()), signal});
  // A slice "name[high:low]": its sign is bit `high` of the signal.
  const std::string& text = signal.text();
  const size_t bracket = text.find('[');
  const size_t colon = text.find(':');
  HEDDLE_CHECK(bracket != std::string::npos && colon != std::string::npos && text.back() == ']' && text[colon - 1] != '+' &&
                   text.find_first_of(" {(") == std::string::npos,
               "sign extension of an expression without a name: " + text);
  const Expr sign(1, text.substr(0, colon) + "]", true);
  return Concat({Repeat(sign, width - signal.width()), signal});
}

Expr Mux(const Expr& condition, const Expr& when_true, const Expr& when_false) {
  HEDDLE_CHECK(condition.width() == 1, "the condition is wider than a bit: " + condition.text());
  HEDDLE_CHECK(when_true.width() == when_false.width(),
               fmt::format("a choice between {} and {} bits: {} and {}", when_true.width(), when_false.width(),
                           when_true.text(), when_false.text()));
  return Expr(when_true.width(), condition.operand() + " ? " + when_true.operand() + " : " + when_false.operand(), false);
}
Expr ShiftLeft(const Expr& a, const Expr& amount) {
  return Expr(a.width(), a.operand() + " << " + amount.operand(), false);
}
Expr ShiftRight(const Expr& a, const Expr& amount) {
  return Expr(a.width(), a.operand() + " >> " + amount.operand(), false);
}
Expr ShiftRightSigned(const Expr& a, const Expr& amount) {
  // The outer $signed keeps the shift arithmetic whatever stands around it.
  return Expr(a.width(), fmt::format("$signed($signed({}) >>> {})", a.text(), amount.operand()), true);
}
Expr AnyBit(const Expr& a) { return a.width() == 1 ? a : Expr(1, "|" + a.operand(), false); }
Expr AllBits(const Expr& a) { return a.width() == 1 ? a : Expr(1, "&" + a.operand(), false); }
Expr AnyOf(const std::vector<Expr>& bits) { return Fold("|", bits); }
Expr AllOf(const std::vector<Expr>& bits) { return Fold("&", bits); }
Expr Sum(const std::vector<Expr>& terms) { return Fold("+", terms); }

}  // namespace heddle::hls::rtl
