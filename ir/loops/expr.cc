// Construction and queries of loop expressions. Construction folds i64 constants (index arithmetic), so that trees stay
// small; everything else is left to Simplify.

#include "ir/loops/expr.h"

#include <cmath>
#include <limits>

#include "ir/check.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

Expr Make(ExprNode node) { return Expr(std::make_shared<const ExprNode>(std::move(node))); }

int TypeBits(ElementType type) { return type == ElementType::kBool ? 1 : static_cast<int>(ElementBytes(type) * 8); }

// Index arithmetic on constants and neutral elements; empty where nothing folds.
Expr FoldIndex(BinaryOp op, const Expr& a, const Expr& b) {
  const bool ca = a->kind == ExprKind::kIntImm, cb = b->kind == ExprKind::kIntImm;
  if (ca && cb) {
    const auto x = static_cast<uint64_t>(a->int_value), y = static_cast<uint64_t>(b->int_value);
    if (op == BinaryOp::kAdd) return IntConstant(ElementType::kInt64, static_cast<int64_t>(x + y));
    if (op == BinaryOp::kSub) return IntConstant(ElementType::kInt64, static_cast<int64_t>(x - y));
    if (op == BinaryOp::kMul) return IntConstant(ElementType::kInt64, static_cast<int64_t>(x * y));
    return {};
  }
  if (op == BinaryOp::kAdd && IsIntConstant(a, 0)) return b;
  if ((op == BinaryOp::kAdd || op == BinaryOp::kSub) && IsIntConstant(b, 0)) return a;
  if (op == BinaryOp::kMul && IsIntConstant(a, 1)) return b;
  if (op == BinaryOp::kMul && IsIntConstant(b, 1)) return a;
  return {};
}

}  // namespace

std::string_view BinaryOpName(BinaryOp op) {
  static constexpr std::string_view kNames[] = {"add", "sub", "mul", "div", "mod", "floor_div", "floor_mod",
                                                "min", "max", "shl", "shr", "and", "or", "xor",
                                                "eq", "ne", "lt", "le", "gt", "ge"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view BinaryOpSymbol(BinaryOp op) {
  static constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "%", "", "", "", "", "<<", ">>",
                                                  "&", "|", "^", "==", "!=", "<", "<=", ">", ">="};
  return kSymbols[static_cast<size_t>(op)];
}

bool IsComparison(BinaryOp op) { return op >= BinaryOp::kEqual; }

std::string_view IntrinsicName(Intrinsic intrinsic) {
  static constexpr std::string_view kNames[] = {"exp", "log", "tanh", "erf", "sqrt", "floor", "ceil", "trunc", "rint",
                                                "abs", "neg", "pow", "fmod", "sin", "cos", "tan", "asin", "acos", "atan",
                                                "sinh", "cosh", "asinh", "acosh", "atanh", "atan2"};
  return kNames[static_cast<size_t>(intrinsic)];
}

ElementType Expr::type() const { return node_->type; }

Expr Expr::Index(int64_t value) { return IntConstant(ElementType::kInt64, value); }

Buffer::Buffer(std::string name, ElementType type, Shape shape, MemorySpace space)
    : node_(std::make_shared<const BufferNode>(BufferNode{std::move(name), type, std::move(shape), space, nullptr})) {}

Buffer Buffer::Table(std::string name, Tensor contents) {
  Buffer buffer;
  BufferNode node{std::move(name), contents.type(), contents.shape(), MemorySpace::kConstant, nullptr};
  node.contents = std::make_shared<const Tensor>(std::move(contents));
  buffer.node_ = std::make_shared<const BufferNode>(std::move(node));
  return buffer;
}

Expr Buffer::At(std::vector<Expr> indices) const { return Load(*this, std::move(indices)); }

bool IsSigned(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kUint16:
    case ElementType::kUint32:
    case ElementType::kUint64:
    case ElementType::kBool: return false;
    default: return true;
  }
}

int64_t WrapInteger(ElementType type, int64_t value) {
  if (type == ElementType::kBool) return value & 1;
  const int unused = 64 - TypeBits(type);
  const auto shifted = static_cast<uint64_t>(value) << unused;
  return IsSigned(type) ? static_cast<int64_t>(shifted) >> unused : static_cast<int64_t>(shifted >> unused);
}

Expr Var(std::string name, ElementType type) {
  ExprNode node;
  node.kind = ExprKind::kVar;
  node.type = type;
  node.name = std::move(name);
  return Make(std::move(node));
}

Expr IntConstant(ElementType type, int64_t value) {
  HEDDLE_CHECK(!IsFloat(type), "an integer constant of a float type");
  ExprNode node;
  node.kind = ExprKind::kIntImm;
  node.type = type;
  node.int_value = type == ElementType::kBool ? (value != 0) : WrapInteger(type, value);
  return Make(std::move(node));
}

Expr FloatConstant(ElementType type, double value) {
  HEDDLE_CHECK(IsFloat(type), "a float constant of an integer type");
  ExprNode node;
  node.kind = ExprKind::kFloatImm;
  node.type = type;
  node.float_value = type == ElementType::kFloat32 ? static_cast<float>(value) : value;
  return Make(std::move(node));
}

Expr Constant(ElementType type, double value) {
  if (IsFloat(type)) return FloatConstant(type, value);
  if (type == ElementType::kBool) return IntConstant(type, value != 0);
  return IntConstant(type, value < 0 ? static_cast<int64_t>(value) : static_cast<int64_t>(static_cast<uint64_t>(value)));
}

Expr True() { return IntConstant(ElementType::kBool, 1); }
Expr False() { return IntConstant(ElementType::kBool, 0); }

Expr Binary(BinaryOp op, Expr a, Expr b) {
  HEDDLE_CHECK(a && b, "an operand is missing");
  HEDDLE_CHECK(a.type() == b.type(), fmt::format("{} of {} and {}", BinaryOpName(op), ElementTypeName(a.type()),
                                                 ElementTypeName(b.type())));
  const bool bits = op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor;
  const bool integer_only = bits || op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight || op == BinaryOp::kMod ||
                            op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  HEDDLE_CHECK(!(integer_only && IsFloat(a.type())), fmt::format("{} of floats", BinaryOpName(op)));
  HEDDLE_CHECK(a.type() != ElementType::kBool || bits || IsComparison(op), fmt::format("{} of bool", BinaryOpName(op)));
  if (a.type() == ElementType::kInt64) {
    if (Expr folded = FoldIndex(op, a, b)) return folded;
  }
  ExprNode node;
  node.kind = ExprKind::kBinary;
  node.type = IsComparison(op) ? ElementType::kBool : a.type();
  node.binary = op;
  node.operands = {std::move(a), std::move(b)};
  return Make(std::move(node));
}

Expr Call(Intrinsic intrinsic, std::vector<Expr> operands) {
  const bool two = intrinsic == Intrinsic::kPow || intrinsic == Intrinsic::kFmod || intrinsic == Intrinsic::kAtan2;
  HEDDLE_CHECK(operands.size() == (two ? 2u : 1u), fmt::format("operands of {}", IntrinsicName(intrinsic)));
  const ElementType type = operands[0].type();
  HEDDLE_CHECK(!two || operands[1].type() == type, fmt::format("{} of two types", IntrinsicName(intrinsic)));
  const bool number = intrinsic == Intrinsic::kAbs || intrinsic == Intrinsic::kNeg;
  HEDDLE_CHECK(IsFloat(type) || (number && IsInteger(type)),
               fmt::format("{} of {}", IntrinsicName(intrinsic), ElementTypeName(type)));
  ExprNode node;
  node.kind = ExprKind::kCall;
  node.type = type;
  node.intrinsic = intrinsic;
  node.operands = std::move(operands);
  return Make(std::move(node));
}

Expr Cast(ElementType type, Expr value) {
  if (value.type() == type) return value;
  ExprNode node;
  node.kind = ExprKind::kCast;
  node.type = type;
  node.operands = {std::move(value)};
  return Make(std::move(node));
}

Expr Select(Expr condition, Expr if_true, Expr if_false) {
  HEDDLE_CHECK(condition.type() == ElementType::kBool, "a select's condition is bool");
  HEDDLE_CHECK(if_true.type() == if_false.type(), fmt::format("select of {} and {}", ElementTypeName(if_true.type()),
                                                              ElementTypeName(if_false.type())));
  ExprNode node;
  node.kind = ExprKind::kSelect;
  node.type = if_true.type();
  node.operands = {std::move(condition), std::move(if_true), std::move(if_false)};
  return Make(std::move(node));
}

Expr Load(Buffer buffer, std::vector<Expr> indices) {
  HEDDLE_CHECK(indices.size() == buffer.shape().size(),
               fmt::format("{} indices for {} of rank {}", indices.size(), buffer->name, buffer.rank()));
  for (const Expr& index : indices) HEDDLE_CHECK(index.type() == ElementType::kInt64, "an index is i64");
  ExprNode node;
  node.kind = ExprKind::kLoad;
  node.type = buffer.type();
  node.buffer = std::move(buffer);
  node.operands = std::move(indices);
  return Make(std::move(node));
}

Expr WithOperands(const Expr& expr, std::vector<Expr> operands) {
  switch (expr->kind) {
    case ExprKind::kBinary: return Binary(expr->binary, operands[0], operands[1]);
    case ExprKind::kSelect: return Select(operands[0], operands[1], operands[2]);
    case ExprKind::kCast: return Cast(expr->type, operands[0]);
    case ExprKind::kCall: return Call(expr->intrinsic, std::move(operands));
    case ExprKind::kLoad: return Load(expr->buffer, std::move(operands));
    default: return expr;
  }
}

Expr Not(Expr a) { return Xor(a, IntConstant(a.type(), -1)); }

Expr Sigmoid(Expr a) { return 1.0 / (1.0 + Exp(Neg(a))); }

Expr LowestOf(ElementType type) {
  if (IsFloat(type)) return FloatConstant(type, -std::numeric_limits<double>::infinity());
  if (!IsSigned(type)) return IntConstant(type, 0);
  return IntConstant(type, static_cast<int64_t>(uint64_t{1} << (TypeBits(type) - 1)));
}

Expr HighestOf(ElementType type) {
  if (IsFloat(type)) return FloatConstant(type, std::numeric_limits<double>::infinity());
  if (!IsSigned(type)) return IntConstant(type, -1);
  return IntConstant(type, static_cast<int64_t>((uint64_t{1} << (TypeBits(type) - 1)) - 1));
}

Expr SaturatingCast(ElementType type, Expr value) {
  const ElementType from = value.type();
  if (from == type || IsFloat(type) || type == ElementType::kBool || from == ElementType::kBool) return Cast(type, value);
  if (!IsFloat(from)) {
    // Compare in the source type where the target's end lies inside it.
    const int from_bits = TypeBits(from) - (IsSigned(from) ? 1 : 0), to_bits = TypeBits(type) - (IsSigned(type) ? 1 : 0);
    Expr result = value;
    if (IsSigned(from) && (!IsSigned(type) || to_bits < from_bits)) result = Max(result, Cast(from, LowestOf(type)));
    if (to_bits < from_bits) result = Min(result, IntConstant(from, HighestOf(type)->int_value));
    return Cast(type, result);
  }
  // The range as powers of two, which every float type represents: low <= x < limit.
  const int bits = TypeBits(type) - (IsSigned(type) ? 1 : 0);
  const double limit = std::ldexp(1.0, bits), low = IsSigned(type) ? -limit : 0.0;
  // A value just below zero truncates to 0 for unsigned types: the inner select keeps it out of the conversion.
  Expr inside = Cast(type, value);
  Expr not_high = Select(value >= Constant(from, low), inside, LowestOf(type));
  Expr number = Select(value >= Constant(from, limit), HighestOf(type), not_high);
  return Select(Equal(value, value), number, IntConstant(type, 0));
}

Expr SafeDiv(Expr a, Expr b) {
  if (IsFloat(a.type())) return a / b;
  const Expr zero = IntConstant(a.type(), 0), one = IntConstant(a.type(), 1);
  if (!IsSigned(a.type())) return Select(Equal(b, zero), zero, a / Select(Equal(b, zero), one, b));
  const Expr minus_one = IntConstant(a.type(), -1);
  const Expr special = Or(Equal(b, zero), Equal(b, minus_one));
  return Select(Equal(b, zero), zero, Select(Equal(b, minus_one), zero - a, a / Select(special, one, b)));
}

Expr SafeMod(Expr a, Expr b) {
  if (IsFloat(a.type())) return Call(Intrinsic::kFmod, {a, b});
  const Expr zero = IntConstant(a.type(), 0), one = IntConstant(a.type(), 1);
  Expr special = Equal(b, zero);
  if (IsSigned(a.type())) special = Or(special, Equal(b, IntConstant(a.type(), -1)));
  return Select(special, zero, a % Select(special, one, b));
}

Expr InRange(Expr index, int64_t low, int64_t high) {
  return And(Binary(BinaryOp::kGreaterEqual, index, IntConstant(index.type(), low)),
             Binary(BinaryOp::kLess, index, IntConstant(index.type(), high)));
}

bool IsConstant(const Expr& expr) { return expr->kind == ExprKind::kIntImm || expr->kind == ExprKind::kFloatImm; }

bool IsIntConstant(const Expr& expr, int64_t value) {
  return expr->kind == ExprKind::kIntImm && expr->int_value == value;
}

bool SameExpr(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b || a->kind != b->kind || a->type != b->type || a->operands.size() != b->operands.size()) return false;
  switch (a->kind) {
    case ExprKind::kIntImm: return a->int_value == b->int_value;
    case ExprKind::kFloatImm:  // by bits: a NaN equals itself, -0 differs from 0
      return std::memcmp(&a->float_value, &b->float_value, sizeof(double)) == 0;
    case ExprKind::kVar: return false;
    case ExprKind::kLoad:
      if (!(a->buffer == b->buffer)) return false;
      break;
    case ExprKind::kBinary:
      if (a->binary != b->binary) return false;
      break;
    case ExprKind::kCall:
      if (a->intrinsic != b->intrinsic) return false;
      break;
    default: break;
  }
  for (size_t i = 0; i < a->operands.size(); ++i) {
    if (!SameExpr(a->operands[i], b->operands[i])) return false;
  }
  return true;
}

}  // namespace heddle::ir::loops
