// Scalar expressions. C promotes small integers and leaves signed overflow undefined, the loop IR does neither: every printed
// expression has exactly the C type of its loop IR type (TypeOf), and sums that interval analysis cannot bound go through unsigned.

#include "gpu/opencl_expr.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "ir/check.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::gpu {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using ir::ElementType;

namespace {

// C's precedence levels.
enum Level { kPrimary = 0, kUnary = 1, kMultiply = 2, kAdd = 3, kShift = 4, kRelational = 5, kEquality = 6, kBitAnd = 7, kBitXor = 8,
             kBitOr = 9, kTernary = 12 };

int LevelOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kMul: case BinaryOp::kDiv: case BinaryOp::kMod: return kMultiply;
    case BinaryOp::kAdd: case BinaryOp::kSub: return kAdd;
    case BinaryOp::kShiftLeft: case BinaryOp::kShiftRight: return kShift;
    case BinaryOp::kEqual: case BinaryOp::kNotEqual: return kEquality;
    case BinaryOp::kAnd: return kBitAnd;
    case BinaryOp::kXor: return kBitXor;
    case BinaryOp::kOr: return kBitOr;
    default: return kRelational;
  }
}

bool IsSmall(ElementType type) { return ir::ElementBytes(type) < 4; }

std::string UnsignedType(ElementType type) { return ir::ElementBytes(type) == 8 ? "ulong" : "uint"; }

Code Infix(const Code& a, const std::string& op, const Code& b, int level) {
  if (op == "+" && b.text[0] == '-' && b.level <= kUnary) return {a.Within(level) + " - " + b.text.substr(1), level};  // a + -1
  return {a.Within(level) + " " + op + " " + b.Within(level - 1), level};
}

std::string FloatText(double value, ElementType type) {
  const bool is_float = type == ElementType::kFloat32;
  if (std::isnan(value)) return is_float ? "NAN" : "(double)NAN";
  if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + (is_float ? "INFINITY" : "(double)INFINITY");
  std::string text = is_float ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text + (is_float ? "f" : "");
}

std::unordered_set<std::string> ReservedWords() {
  return {"kernel", "global", "local", "constant", "private", "half", "float", "double", "int", "uint", "long", "ulong", "char",
          "uchar", "short", "ushort", "bool", "void", "if", "else", "for", "while", "do", "switch", "case", "default", "break",
          "continue", "return", "goto", "const", "restrict", "volatile", "static", "inline", "extern", "register", "auto", "signed",
          "unsigned", "struct", "union", "enum", "typedef", "sizeof", "min", "max", "abs", "exp", "log", "tanh", "erf", "sqrt", "floor",
          "ceil", "trunc", "rint", "fabs", "pow", "fmod", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
          "atanh", "atan2", "select", "barrier", "image2d_t", "event_t", "size_t", "sampler_t", "complex", "imaginary", "quad", "pipe",
          "generic", "true", "false", "NAN", "INFINITY", "mix", "step", "sign", "dot", "cross", "length", "distance", "normalize",
          "clamp", "degrees", "radians", "prefetch", "any", "all", "shuffle", "printf", "clz", "hadd", "mad", "fma", "hypot", "ldexp",
          "exp2", "exp10", "log2", "log10", "log1p", "expm1", "gamma", "lgamma", "remainder", "round", "rotate", "rsqrt", "cbrt",
          "signbit", "isnan", "isinf", "isequal", "vec_step", "popcount", "upsample", "frexp", "modf", "fract", "nan", "main", "M_PI",
          "uniform", "linux", "unix", "asm", "typeof", "wait_group_events", "mem_fence", "fmin", "fmax", "fdim", "powr", "pown",
          "rootn", "sincos", "erfc", "tgamma", "ilogb", "logb", "nextafter", "maxmag", "minmag", "copysign", "acospi", "asinpi",
          "atanpi", "sinpi", "cospi", "tanpi", "mul24", "mad24", "mul_hi", "mad_hi", "mad_sat", "add_sat", "sub_sat", "abs_diff",
          "rhadd", "bitselect"};
}

}  // namespace

std::string OpenClType(ElementType type) {
  switch (type) {
    case ElementType::kFloat32: return "float";
    case ElementType::kFloat64: return "double";
    case ElementType::kInt8: return "char";
    case ElementType::kUint8: return "uchar";
    case ElementType::kInt16: return "short";
    case ElementType::kUint16: return "ushort";
    case ElementType::kInt32: return "int";
    case ElementType::kUint32: return "uint";
    case ElementType::kInt64: return "long";
    case ElementType::kUint64: return "ulong";
    case ElementType::kBool: return "bool";
  }
  return "void";
}

std::string OpenClStorage(ElementType type) { return type == ElementType::kBool ? "uchar" : OpenClType(type); }

ExprPrinter::ExprPrinter() : names_(ReservedWords()) {}

bool ExprPrinter::IsNarrow(const Expr& expr) {
  if (expr.type() != ElementType::kInt64 || expr->kind == ExprKind::kLoad || expr->kind == ExprKind::kCall) return false;
  if (auto it = narrow_.find(expr.get()); it != narrow_.end()) return it->second.second;
  const Interval bounds = Bounds(expr);
  bool narrow = bounds.low >= std::numeric_limits<int32_t>::min() && bounds.high <= std::numeric_limits<int32_t>::max();
  for (const Expr& operand : expr->operands) {
    narrow = narrow && (operand.type() != ElementType::kInt64 || IsNarrow(operand));
  }
  // Shifting a negative number left is no multiplication in C; floats are converted to the full width.
  if (expr->kind == ExprKind::kBinary && expr->binary == BinaryOp::kShiftLeft) narrow = false;
  if (expr->kind == ExprKind::kCast && ir::IsFloat(expr->operands[0].type())) narrow = false;
  narrow_[expr.get()] = {expr, narrow};
  return narrow;
}

std::string ExprPrinter::TypeOf(const Expr& expr) { return IsNarrow(expr) ? "int" : OpenClType(expr.type()); }

std::string ExprPrinter::Wide(const Expr& expr) {
  const Code code = Scalar(expr);
  return IsNarrow(expr) ? "(long)" + code.Within(kUnary) : code.text;
}

bool ExprPrinter::MayWrap(const Expr& expr) const {
  const Interval a = Bounds(expr->operands[0]), b = Bounds(expr->operands[1]);
  using Big = __int128;
  Big low = 0, high = 0;
  switch (expr->binary) {
    case BinaryOp::kAdd: low = Big{a.low} + b.low, high = Big{a.high} + b.high; break;
    case BinaryOp::kSub: low = Big{a.low} - b.high, high = Big{a.high} - b.low; break;
    case BinaryOp::kMul: {
      const Big products[] = {Big{a.low} * b.low, Big{a.low} * b.high, Big{a.high} * b.low, Big{a.high} * b.high};
      low = *std::min_element(products, products + 4), high = *std::max_element(products, products + 4);
      break;
    }
    default: return true;
  }
  if (ir::ElementBytes(expr.type()) == 8) {
    return low < std::numeric_limits<int64_t>::min() || high > std::numeric_limits<int64_t>::max();
  }
  return low < std::numeric_limits<int32_t>::min() || high > std::numeric_limits<int32_t>::max();
}

Code ExprPrinter::Immediate(const Expr& expr) {
  if (expr->kind == ExprKind::kFloatImm) {
    std::string text = FloatText(expr->float_value, expr->type);
    const int level = text[0] == '-' || text[0] == '(' ? kUnary : kPrimary;
    return {std::move(text), level};
  }
  const int64_t value = expr->int_value;
  const int level = value < 0 ? kUnary : kPrimary;
  switch (expr->type) {
    case ElementType::kBool: return {value != 0 ? "true" : "false", kPrimary};
    case ElementType::kUint32: return {fmt::format("{}u", static_cast<uint32_t>(value)), kPrimary};
    case ElementType::kUint64: return {fmt::format("{}UL", static_cast<uint64_t>(value)), kPrimary};
    case ElementType::kInt32: break;
    case ElementType::kInt64:
      if (value == std::numeric_limits<int64_t>::min()) return {"LONG_MIN", kUnary};
      return {IsNarrow(expr) ? fmt::format("{}", value) : fmt::format("{}L", value), level};
    default: return {fmt::format("({}){}", OpenClType(expr->type), value), kUnary};
  }
  if (value == std::numeric_limits<int32_t>::min()) return {"INT_MIN", kUnary};
  return {fmt::format("{}", value), level};
}

std::string ExprPrinter::Element(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Expr index = Simplify(FlatIndex(buffer, indices), intervals_);
  return Name(buffer) + "[" + Scalar(index).text + "]";
}

Code ExprPrinter::Scalar(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm: {
      Code code = Immediate(expr);
      if (expr.type() == ElementType::kInt64 && IsNarrow(expr) && expr->int_value == std::numeric_limits<int32_t>::min()) {
        return {"INT_MIN", kUnary};
      }
      return code;
    }
    case ExprKind::kVar: {
      auto part = lane_part_names_.find(expr.get());
      if (part == lane_part_names_.end()) return {Name(expr), kPrimary};
      // A part of a vector of longs is a long, whatever its range.
      return IsNarrow(expr) ? Code{"(int)" + part->second, kUnary} : Code{part->second, kPrimary};
    }
    case ExprKind::kLoad: {
      Code code{Element(expr->buffer, expr->operands), kPrimary};
      if (IsVectorBuffer(expr->buffer)) {  // one lane of an array of vectors
        const Expr& part = expr->operands.back();
        HEDDLE_CHECK(part->kind == ExprKind::kIntImm, "a lane is picked by a constant");
        std::vector<Expr> row = expr->operands;
        row.pop_back();
        return {fmt::format("{}.s{:x}", VectorElement(expr->buffer, row), part->int_value), kPrimary};
      }
      if (expr.type() == ElementType::kBool) return {code.text + " != 0", kEquality};
      return code;
    }
    case ExprKind::kBinary: return Binary(expr);
    case ExprKind::kSelect: {
      const bool widen = expr.type() == ElementType::kInt64 && !IsNarrow(expr);
      const std::string a = widen ? Wide(expr->operands[1]) : Scalar(expr->operands[1]).Within(kTernary - 1);
      const std::string b = widen ? Wide(expr->operands[2]) : Scalar(expr->operands[2]).Within(kTernary - 1);
      const Code text{Scalar(expr->operands[0]).Within(kTernary - 1) + " ? " + a + " : " + b, kTernary};
      if (IsSmall(expr.type()) && expr.type() != ElementType::kBool) {
        return {"(" + OpenClType(expr.type()) + ")(" + text.text + ")", kUnary};
      }
      return text;
    }
    case ExprKind::kCast: return CastCode(expr);
    case ExprKind::kCall: return CallCode(expr);
  }
  return {};
}

Code ExprPrinter::CastCode(const Expr& expr) {
  const Expr& from = expr->operands[0];
  const Code operand = Scalar(from);
  if (expr.type() == ElementType::kBool) return Infix(operand, "!=", {"0", kPrimary}, kEquality);
  const std::string type = TypeOf(expr);
  if (type == TypeOf(from)) return operand;
  return {"(" + type + ")" + operand.Within(kUnary), kUnary};
}

Code ExprPrinter::Binary(const Expr& expr) {
  const Expr &a = expr->operands[0], &b = expr->operands[1];
  const int level = LevelOf(expr->binary);
  const std::string symbol(BinaryOpSymbol(expr->binary));
  if (expr->binary == BinaryOp::kMin || expr->binary == BinaryOp::kMax) return MinMax(expr);
  HEDDLE_CHECK(!symbol.empty(), "floor division is lowered before printing");
  if (IsComparison(expr->binary)) return Infix(Scalar(a), symbol, Scalar(b), level);
  if (ir::IsFloat(expr.type())) {
    if (expr->binary == BinaryOp::kMod) return {"fmod(" + Scalar(a).text + ", " + Scalar(b).text + ")", kPrimary};
    return Infix(Scalar(a), symbol, Scalar(b), level);
  }
  if (expr.type() == ElementType::kBool) {
    if (level >= kBitAnd) return Infix(Scalar(a), symbol, Scalar(b), level);
    return {"(" + Infix(Scalar(a), symbol, Scalar(b), level).text + ") & 1", kBitAnd};
  }
  return IntegerBinary(expr);
}

Code ExprPrinter::IntegerBinary(const Expr& expr) {
  const Expr &a = expr->operands[0], &b = expr->operands[1];
  const int level = LevelOf(expr->binary);
  const std::string symbol(BinaryOpSymbol(expr->binary));
  const ElementType type = expr.type();
  if (IsNarrow(expr)) return Infix(Scalar(a), symbol, Scalar(b), level);
  Code left = Scalar(a), right = Scalar(b);
  if (type == ElementType::kInt64 && IsNarrow(a)) left = {"(long)" + left.Within(kUnary), kUnary};
  if (type == ElementType::kInt64 && IsNarrow(b)) right = {"(long)" + right.Within(kUnary), kUnary};
  const bool arithmetic = level == kAdd || expr->binary == BinaryOp::kMul;
  const bool shift_left = expr->binary == BinaryOp::kShiftLeft;
  const bool is_signed = IsSigned(type);
  if ((arithmetic && (is_signed || IsSmall(type)) && MayWrap(expr)) || (shift_left && (is_signed || IsSmall(type)))) {
    // (int)((uint)a + (uint)b): modulo 2^n, where C's signed sum would be undefined.
    const std::string wide = "(" + UnsignedType(type) + ")";
    left = {wide + left.Within(kUnary), kUnary};
    if (arithmetic) right = {wide + right.Within(kUnary), kUnary};
    return {"(" + OpenClType(type) + ")(" + Infix(left, symbol, right, level).text + ")", kUnary};
  }
  const Code code = Infix(left, symbol, right, level);
  if (IsSmall(type)) return {"(" + OpenClType(type) + ")(" + code.text + ")", kUnary};
  return code;
}

Code ExprPrinter::MinMax(const Expr& expr) {
  const Expr &a = expr->operands[0], &b = expr->operands[1];
  const std::string name = expr->binary == BinaryOp::kMin ? "min" : "max";
  if (ir::IsFloat(expr.type())) {
    return {Helper(name, OpenClType(expr.type())) + "(" + Scalar(a).text + ", " + Scalar(b).text + ")", kPrimary};
  }
  if (expr.type() == ElementType::kBool) {
    return Infix(Scalar(a), name == "min" ? "&" : "|", Scalar(b), name == "min" ? kBitAnd : kBitOr);
  }
  const bool narrow = IsNarrow(expr);
  const std::string left = narrow ? Scalar(a).text : Wide(a), right = narrow ? Scalar(b).text : Wide(b);
  return {name + "(" + left + ", " + right + ")", kPrimary};
}

Code ExprPrinter::CallCode(const Expr& expr) {
  const Expr& a = expr->operands[0];
  const ElementType type = expr.type();
  if (expr->intrinsic == Intrinsic::kNeg && ir::IsFloat(type)) return {"-" + Scalar(a).Within(kPrimary), kUnary};
  if (expr->intrinsic == Intrinsic::kNeg) {
    const std::string wide = UnsignedType(type);
    return {fmt::format("({})(0 - ({}){})", OpenClType(type), wide, Scalar(a).Within(kUnary)), kUnary};
  }
  if (expr->intrinsic == Intrinsic::kAbs && !ir::IsFloat(type)) {
    return {fmt::format("({})abs({})", OpenClType(type), type == ElementType::kInt64 ? Wide(a) : Scalar(a).text), kUnary};
  }
  std::string name(IntrinsicName(expr->intrinsic));
  if (expr->intrinsic == Intrinsic::kAbs) name = "fabs";
  std::string arguments = Scalar(a).text;
  if (expr->operands.size() > 1) arguments += ", " + Scalar(expr->operands[1]).text;
  return {name + "(" + arguments + ")", kPrimary};
}

// std::min and std::max, which settle what a NaN does, under a name of their own for each type.
std::string ExprPrinter::Helper(const std::string& name, const std::string& type) {
  const std::string comparison = name == "min" ? "b < a" : "a < b";
  const bool is_vector = std::isdigit(static_cast<unsigned char>(type.back())) != 0;
  const std::string value = is_vector ? "select(a, b, " + comparison + ")" : comparison + " ? b : a";
  helpers_.insert(fmt::format("static inline {0} {1}_{0}({0} a, {0} b) {{ return {2}; }}\n", type, name, value));
  return name + "_" + type;
}

}  // namespace heddle::gpu
