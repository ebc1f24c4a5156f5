// Operations on values. Unsigned 64-bit numbers live in an int64_t by their bits.

#include "ir/loops/eval.h"

#include <algorithm>
#include <cmath>

#include "ir/check.h"

namespace heddle::ir::loops {
namespace {

double RoundTo(ElementType type, double value) { return type == ElementType::kFloat32 ? static_cast<float>(value) : value; }

Value Int(ElementType type, uint64_t bits) { return {WrapInteger(type, static_cast<int64_t>(bits)), 0}; }
Value Bool(bool b) { return {b ? 1 : 0, 0}; }

template <typename T>
Value Compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kEqual: return Bool(a == b);
    case BinaryOp::kNotEqual: return Bool(a != b);
    case BinaryOp::kLess: return Bool(a < b);
    case BinaryOp::kLessEqual: return Bool(a <= b);
    case BinaryOp::kGreater: return Bool(a > b);
    default: return Bool(a >= b);
  }
}

// float + float, … computed in float: double arithmetic rounded once more could round twice.
template <typename T>
std::optional<double> Real(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a - b;
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kDiv: return a / b;
    case BinaryOp::kMin: return b < a ? b : a;
    case BinaryOp::kMax: return a < b ? b : a;
    default: return std::nullopt;
  }
}

std::optional<Value> Divide(BinaryOp op, ElementType type, int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (!IsSigned(type)) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return Int(type, op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv ? x / y : x % y);
  }
  if (b == -1) {  // the quotient may not fit
    if (a == LowestOf(type)->int_value) return std::nullopt;
    return Int(type, op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv ? uint64_t{0} - static_cast<uint64_t>(a) : 0);
  }
  int64_t quotient = a / b, remainder = a % b;
  if ((op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod) && remainder != 0 && ((remainder < 0) != (b < 0))) {
    --quotient;
    remainder += b;
  }
  return Int(type, static_cast<uint64_t>(op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv ? quotient : remainder));
}

std::optional<Value> Integer(BinaryOp op, ElementType type, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const bool less = IsSigned(type) ? a < b : x < y;
  const int bits = static_cast<int>(ElementBytes(type)) * 8;
  switch (op) {
    case BinaryOp::kAdd: return Int(type, x + y);
    case BinaryOp::kSub: return Int(type, x - y);
    case BinaryOp::kMul: return Int(type, x * y);
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: return Divide(op, type, a, b);
    case BinaryOp::kMin: return Value{(IsSigned(type) ? b < a : y < x) ? b : a, 0};
    case BinaryOp::kMax: return Value{less ? b : a, 0};
    case BinaryOp::kAnd: return Int(type, x & y);
    case BinaryOp::kOr: return Int(type, x | y);
    case BinaryOp::kXor: return Int(type, x ^ y);
    case BinaryOp::kShiftLeft:
      if (y >= static_cast<uint64_t>(bits)) return std::nullopt;
      return Int(type, x << y);
    case BinaryOp::kShiftRight:
      if (y >= static_cast<uint64_t>(bits)) return std::nullopt;
      return IsSigned(type) ? Int(type, static_cast<uint64_t>(a >> y)) : Int(type, x >> y);
    default: return IsSigned(type) ? Compare(op, a, b) : Compare(op, x, y);
  }
}

}  // namespace

std::optional<Value> EvaluateBinary(BinaryOp op, ElementType type, Value a, Value b) {
  if (!IsFloat(type)) return Integer(op, type, a.integer, b.integer);
  if (IsComparison(op)) return Compare(op, a.real, b.real);
  const auto result = type == ElementType::kFloat32 ? Real(op, static_cast<float>(a.real), static_cast<float>(b.real))
                                                    : Real(op, a.real, b.real);
  if (!result) return std::nullopt;
  return Value{0, *result};
}

std::optional<Value> EvaluateCast(ElementType to, ElementType from, Value value) {
  if (IsFloat(to)) {
    if (IsFloat(from)) return Value{0, RoundTo(to, value.real)};
    if (from == ElementType::kUint64) {
      const auto bits = static_cast<uint64_t>(value.integer);
      return Value{0, to == ElementType::kFloat32 ? static_cast<float>(bits) : static_cast<double>(bits)};
    }
    return Value{0, to == ElementType::kFloat32 ? static_cast<float>(value.integer) : static_cast<double>(value.integer)};
  }
  if (to == ElementType::kBool) return Bool(IsFloat(from) ? value.real != 0 : value.integer != 0);
  if (!IsFloat(from)) return Value{WrapInteger(to, value.integer), 0};
  const int bits = static_cast<int>(ElementBytes(to)) * 8 - (IsSigned(to) ? 1 : 0);
  const double truncated = std::trunc(value.real), limit = std::ldexp(1.0, bits);
  if (!(truncated < limit && truncated >= (IsSigned(to) ? -limit : 0.0))) return std::nullopt;
  if (to == ElementType::kUint64) return Value{static_cast<int64_t>(static_cast<uint64_t>(truncated)), 0};
  return Value{static_cast<int64_t>(truncated), 0};
}

Value EvaluateCall(Intrinsic intrinsic, ElementType type, Value a, Value b) {
  if (!IsFloat(type)) {
    const bool negate = intrinsic == Intrinsic::kNeg || (IsSigned(type) && a.integer < 0);
    return negate ? Int(type, uint64_t{0} - static_cast<uint64_t>(a.integer)) : a;
  }
  const double x = a.real;
  double y = 0;
  switch (intrinsic) {
    case Intrinsic::kExp: y = std::exp(x); break;
    case Intrinsic::kLog: y = std::log(x); break;
    case Intrinsic::kTanh: y = std::tanh(x); break;
    case Intrinsic::kErf: y = std::erf(x); break;
    case Intrinsic::kSqrt: y = std::sqrt(x); break;
    case Intrinsic::kFloor: y = std::floor(x); break;
    case Intrinsic::kCeil: y = std::ceil(x); break;
    case Intrinsic::kTrunc: y = std::trunc(x); break;
    case Intrinsic::kRint: y = std::nearbyint(x); break;
    case Intrinsic::kAbs: y = std::fabs(x); break;
    case Intrinsic::kNeg: y = -x; break;
    case Intrinsic::kPow: y = std::pow(x, b.real); break;
    case Intrinsic::kFmod: y = std::fmod(x, b.real); break;
    case Intrinsic::kSin: y = std::sin(x); break;
    case Intrinsic::kCos: y = std::cos(x); break;
    case Intrinsic::kTan: y = std::tan(x); break;
    case Intrinsic::kAsin: y = std::asin(x); break;
    case Intrinsic::kAcos: y = std::acos(x); break;
    case Intrinsic::kAtan: y = std::atan(x); break;
    case Intrinsic::kSinh: y = std::sinh(x); break;
    case Intrinsic::kCosh: y = std::cosh(x); break;
    case Intrinsic::kAsinh: y = std::asinh(x); break;
    case Intrinsic::kAcosh: y = std::acosh(x); break;
    case Intrinsic::kAtanh: y = std::atanh(x); break;
    case Intrinsic::kAtan2: y = std::atan2(x, b.real); break;
  }
  return {0, RoundTo(type, y)};
}

}  // namespace heddle::ir::loops
