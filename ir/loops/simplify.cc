// Folding and interval analysis. Integer identities are applied to i64 only, where they are index arithmetic whose values
// do not overflow (buffers and loops are far smaller than 2^63); values of data types are folded only where every operand is
// constant, which is exact.

#include "ir/loops/simplify.h"

#include <algorithm>

#include "ir/loops/eval.h"
#include "ir/loops/visit.h"

namespace heddle::ir::loops {
namespace {

constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargestTable = 4096;  // elements of a table whose contents are looked at
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

Interval TypeRange(ElementType type) {
  if (type == ElementType::kBool) return {0, 1};
  if (IsFloat(type) || ElementBytes(type) == 8) return {};
  return {LowestOf(type)->int_value, HighestOf(type)->int_value};
}

// The interval of four candidate ends, or everything where one of them overflowed.
template <typename F>
Interval Ends(const Interval& a, const Interval& b, F f) {
  Interval result{kMax64, kMin64};
  for (int64_t x : {a.low, a.high}) {
    for (int64_t y : {b.low, b.high}) {
      int64_t value = 0;
      if (f(x, y, &value)) return {};
      result = {std::min(result.low, value), std::max(result.high, value)};
    }
  }
  return result;
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

Interval DivideBounds(BinaryOp op, const Interval& a, const Interval& b) {
  if (!b.is_constant() || b.low <= 0) return {};
  const int64_t d = b.low;
  switch (op) {
    case BinaryOp::kDiv: return {a.low / d, a.high / d};
    case BinaryOp::kFloorDiv: return {FloorDivide(a.low, d), FloorDivide(a.high, d)};
    case BinaryOp::kMod:
    case BinaryOp::kFloorMod:
      if (a.low >= 0 && a.high < d) return a;
      return {op == BinaryOp::kMod && a.low < 0 ? 1 - d : 0, d - 1};
    default: return {};
  }
}

Interval CompareBounds(BinaryOp op, const Interval& a, const Interval& b) {
  const Interval yes{1, 1}, no{0, 0};
  switch (op) {
    case BinaryOp::kLess: return a.high < b.low ? yes : a.low >= b.high ? no : Interval{0, 1};
    case BinaryOp::kLessEqual: return a.high <= b.low ? yes : a.low > b.high ? no : Interval{0, 1};
    case BinaryOp::kGreater: return CompareBounds(BinaryOp::kLess, b, a);
    case BinaryOp::kGreaterEqual: return CompareBounds(BinaryOp::kLessEqual, b, a);
    case BinaryOp::kEqual:
      if (a.is_constant() && a == b) return yes;
      return a.high < b.low || b.high < a.low ? no : Interval{0, 1};
    default: {
      const Interval equal = CompareBounds(BinaryOp::kEqual, a, b);
      return equal == yes ? no : equal == no ? yes : equal;
    }
  }
}

Interval BinaryBounds(const Expr& e, const Interval& a, const Interval& b) {
  const ElementType type = e->operands[0].type();
  if (IsFloat(type) || type == ElementType::kUint64) return TypeRange(e.type());
  switch (e->binary) {
    case BinaryOp::kAdd: return Ends(a, b, [](int64_t x, int64_t y, int64_t* v) { return __builtin_add_overflow(x, y, v); });
    case BinaryOp::kSub: return Ends(a, b, [](int64_t x, int64_t y, int64_t* v) { return __builtin_sub_overflow(x, y, v); });
    case BinaryOp::kMul: return Ends(a, b, [](int64_t x, int64_t y, int64_t* v) { return __builtin_mul_overflow(x, y, v); });
    case BinaryOp::kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryOp::kMax: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: return DivideBounds(e->binary, a, b);
    case BinaryOp::kShiftRight:
      if (b.is_constant() && b.low >= 0 && b.low < 64) return {a.low >> b.low, a.high >> b.low};
      return {};
    case BinaryOp::kAnd:
      if (a.low >= 0 && b.low >= 0) return {0, std::min(a.high, b.high)};
      return type == ElementType::kBool ? Interval{0, 1} : Interval{};
    case BinaryOp::kOr:
    case BinaryOp::kXor: return TypeRange(e.type());
    case BinaryOp::kShiftLeft: return {};
    default: return CompareBounds(e->binary, a, b);
  }
}

// Intersected with the type's range: an interval that leaves it may have wrapped.
Interval Within(const Interval& interval, ElementType type) {
  const Interval range = TypeRange(type);
  return interval.low < range.low || interval.high > range.high ? range : interval;
}

Interval Bounds(const Expr& e, const VarIntervals& vars, std::unordered_map<const ExprNode*, Interval>& memo) {
  if (auto it = memo.find(e.get()); it != memo.end()) return it->second;
  Interval result = TypeRange(e.type());
  switch (e->kind) {
    case ExprKind::kIntImm: result = {e->int_value, e->int_value}; break;
    case ExprKind::kVar:
      if (auto it = vars.find(e.get()); it != vars.end()) result = it->second;
      break;
    case ExprKind::kLoad: {
      // What a small table holds is known.
      const Tensor* contents = e->buffer->contents.get();
      if (contents == nullptr || IsFloat(e.type()) || contents->elements() == 0 || contents->elements() > kLargestTable) break;
      result = {contents->at_int(0), contents->at_int(0)};
      for (int64_t i = 1; i < contents->elements(); ++i) {
        result = {std::min(result.low, contents->at_int(i)), std::max(result.high, contents->at_int(i))};
      }
      break;
    }
    case ExprKind::kSelect: {
      const Interval a = Bounds(e->operands[1], vars, memo), b = Bounds(e->operands[2], vars, memo);
      result = {std::min(a.low, b.low), std::max(a.high, b.high)};
      break;
    }
    case ExprKind::kCast:
      if (IsFloat(e->operands[0].type()) || IsFloat(e.type()) || e.type() == ElementType::kBool) break;
      if (e->operands[0].type() == ElementType::kUint64) break;
      result = Within(Bounds(e->operands[0], vars, memo), e.type());
      break;
    case ExprKind::kBinary:
      result = Within(BinaryBounds(e, Bounds(e->operands[0], vars, memo), Bounds(e->operands[1], vars, memo)), e.type());
      break;
    default: break;
  }
  memo.emplace(e.get(), result);
  return result;
}

Value ValueOf(const Expr& constant) { return {constant->int_value, constant->float_value}; }

Expr ConstantOf(ElementType type, const Value& value) {
  return IsFloat(type) ? FloatConstant(type, value.real) : IntConstant(type, value.integer);
}

// e with constant operands evaluated; empty where not all are constant or the operation is undefined.
Expr FoldConstants(const Expr& e) {
  if (e->operands.empty() || e->kind == ExprKind::kLoad || e->kind == ExprKind::kSelect) return {};
  for (const Expr& operand : e->operands) {
    if (!IsConstant(operand)) return {};
  }
  const ElementType from = e->operands[0].type();
  std::optional<Value> value;
  if (e->kind == ExprKind::kBinary) value = EvaluateBinary(e->binary, from, ValueOf(e->operands[0]), ValueOf(e->operands[1]));
  if (e->kind == ExprKind::kCast) value = EvaluateCast(e.type(), from, ValueOf(e->operands[0]));
  // Library functions stay: a device's own result for a constant must equal its result for data.
  if (!value) return {};
  return ConstantOf(e.type(), *value);
}

Expr I64(int64_t value) { return IntConstant(ElementType::kInt64, value); }

// (q * d + r) / d where the sum is affine, every coefficient in q a multiple of d, and r in [0, d).
Expr DivideAffine(const Expr& e, const VarIntervals& vars) {
  const int64_t d = e->operands[1]->int_value;
  if (d <= 0) return {};
  const std::optional<Affine> affine = AffineOf(e->operands[0]);
  if (!affine) return {};
  std::unordered_map<const ExprNode*, Expr> nodes;
  ForEachExpr(e->operands[0], [&](const Expr& x) {
    if (x->kind == ExprKind::kVar) nodes.emplace(x.get(), x);
  });
  // The order of variables decides the text of the result: take it from the expression, not from the hash table.
  std::vector<Expr> order;
  ForEachExpr(e->operands[0], [&](const Expr& x) {
    if (affine->coefficients.contains(x.get())) order.push_back(x);
  });
  const int64_t base = FloorDivide(affine->constant, d);
  Expr quotient = I64(base), rest = I64(affine->constant - base * d);
  bool any = base != 0;
  for (const Expr& var : order) {
    const int64_t c = affine->coefficient(var);
    if (c % d == 0) {
      quotient = quotient + var * I64(c / d);
      any = true;
    } else {
      rest = rest + var * I64(c);
    }
  }
  const Interval r = BoundsOf(rest, vars);
  const bool truncating = e->binary == BinaryOp::kDiv || e->binary == BinaryOp::kMod;
  if (truncating && BoundsOf(e->operands[0], vars).low < 0) return {};
  const bool is_div = e->binary == BinaryOp::kDiv || e->binary == BinaryOp::kFloorDiv;
  if (r.low >= 0 && r.high < d) return is_div ? quotient : rest;
  if (!any || r.low < 0) return {};
  return is_div ? quotient + Binary(e->binary, rest, I64(d)) : Binary(e->binary, rest, I64(d));
}

Expr SimplifyIndex(const Expr& e, const VarIntervals& vars) {
  const Expr &a = e->operands[0], &b = e->operands[1];
  switch (e->binary) {
    case BinaryOp::kMul:
      if (IsIntConstant(a, 0) || IsIntConstant(b, 0)) return I64(0);
      if (IsConstant(a) && !IsConstant(b)) return b * a;
      // (x * c1) * c2
      if (IsConstant(b) && a->kind == ExprKind::kBinary && a->binary == BinaryOp::kMul && IsConstant(a->operands[1])) {
        return a->operands[0] * (a->operands[1] * b);
      }
      return {};
    case BinaryOp::kAdd:
      if (IsConstant(a) && !IsConstant(b)) return b + a;
      if (IsConstant(b) && a->kind == ExprKind::kBinary && IsConstant(a->operands[1])) {
        if (a->binary == BinaryOp::kAdd) return a->operands[0] + (a->operands[1] + b);
        if (a->binary == BinaryOp::kSub) return a->operands[0] + (b - a->operands[1]);
      }
      return {};
    case BinaryOp::kSub:
      if (SameExpr(a, b)) return I64(0);
      if (b->kind == ExprKind::kIntImm && b->int_value != kMin64) return a + I64(-b->int_value);
      return {};
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorMod:
      if (IsIntConstant(b, 1)) return e->binary == BinaryOp::kDiv || e->binary == BinaryOp::kFloorDiv ? a : I64(0);
      return b->kind == ExprKind::kIntImm ? DivideAffine(e, vars) : Expr();
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      const Interval x = BoundsOf(a, vars), y = BoundsOf(b, vars);
      if (x.high <= y.low) return e->binary == BinaryOp::kMin ? a : b;
      if (y.high <= x.low) return e->binary == BinaryOp::kMin ? b : a;
      return {};
    }
    default: return {};
  }
}

Expr SimplifyBool(const Expr& e) {
  const Expr &a = e->operands[0], &b = e->operands[1];
  if (e->binary == BinaryOp::kAnd) {
    if (IsIntConstant(a, 1) || IsIntConstant(b, 0)) return b;
    if (IsIntConstant(b, 1) || IsIntConstant(a, 0)) return a;
  }
  if (e->binary == BinaryOp::kOr) {
    if (IsIntConstant(a, 0) || IsIntConstant(b, 1)) return b;
    if (IsIntConstant(b, 0) || IsIntConstant(a, 1)) return a;
  }
  return {};
}

Expr SimplifyNode(const Expr& e, const VarIntervals& vars) {
  if (Expr folded = FoldConstants(e)) return folded;
  if (e->kind == ExprKind::kSelect) {
    if (e->operands[0]->kind == ExprKind::kIntImm) return e->operands[0]->int_value ? e->operands[1] : e->operands[2];
    return e;
  }
  if (e->kind != ExprKind::kBinary) return e;
  const ElementType type = e->operands[0].type();
  if (type == ElementType::kBool && !IsComparison(e->binary)) {
    Expr simpler = SimplifyBool(e);
    return simpler ? simpler : e;
  }
  if (IsComparison(e->binary) && IsInteger(type)) {
    const Interval bounds = BoundsOf(e, vars);
    return bounds.is_constant() ? IntConstant(ElementType::kBool, bounds.low) : e;
  }
  if (type == ElementType::kInt64) {
    if (Expr simpler = SimplifyIndex(e, vars)) return SimplifyNode(simpler, vars);
  }
  return e;
}

Stmt SimplifyStmt(const Stmt& s, VarIntervals& vars) {
  if (!s) return s;
  StmtNode node = *s;
  for (Expr& index : node.indices) index = Simplify(index, vars);
  if (node.value) node.value = Simplify(node.value, vars);
  switch (node.kind) {
    case StmtKind::kFor:
      if (node.extent == 0) return Block({});
      // GPU index loops of extent 1 stay: printers and launch sizes find them there.
      if (node.extent == 1 && !IsGpuIndex(node.loop_kind)) return SimplifyStmt(Substitute(node.body, {{node.var.get(), 0}}), vars);
      vars[node.var.get()] = {0, node.extent - 1};
      break;
    case StmtKind::kLet:
      if (IsConstant(node.value)) return SimplifyStmt(Substitute(node.body, {{node.var.get(), node.value}}), vars);
      if (!IsFloat(node.var.type())) vars[node.var.get()] = BoundsOf(node.value, vars);
      break;
    case StmtKind::kIf:
      if (node.value->kind == ExprKind::kIntImm) return SimplifyStmt(node.value->int_value ? node.body : node.else_body, vars);
      break;
    case StmtKind::kBlock: {
      std::vector<Stmt> statements;
      for (const Stmt& child : node.statements) statements.push_back(SimplifyStmt(child, vars));
      return Block(std::move(statements));
    }
    default: break;
  }
  node.body = SimplifyStmt(node.body, vars);
  node.else_body = SimplifyStmt(node.else_body, vars);
  return Stmt(std::make_shared<const StmtNode>(std::move(node)));
}

Stmt LowerFloor(const Stmt& s, VarIntervals& vars) {
  if (!s) return s;
  if (s->kind == StmtKind::kFor) vars[s->var.get()] = {0, s->extent - 1};
  if (s->kind == StmtKind::kLet && !IsFloat(s->var.type())) vars[s->var.get()] = BoundsOf(s->value, vars);
  auto lower = [&](const Expr& root) {
    return RewriteExpr(root, [&](const Expr& e) {
      if (e->kind != ExprKind::kBinary) return e;
      const bool div = e->binary == BinaryOp::kFloorDiv;
      if (!div && e->binary != BinaryOp::kFloorMod) return e;
      const Expr &a = e->operands[0], &b = e->operands[1];
      const Expr quotient = Binary(BinaryOp::kDiv, a, b), remainder = Binary(BinaryOp::kMod, a, b);
      if (!IsSigned(a.type()) || BoundsOf(a, vars).low >= 0) return div ? quotient : remainder;
      const Expr below = remainder < 0;  // the divisor is positive
      return div ? quotient - Cast(a.type(), below) : Select(below, remainder + b, remainder);
    });
  };
  StmtNode node = *s;
  for (Expr& index : node.indices) index = lower(index);
  if (node.value) node.value = lower(node.value);
  node.body = LowerFloor(node.body, vars);
  node.else_body = LowerFloor(node.else_body, vars);
  for (Stmt& child : node.statements) child = LowerFloor(child, vars);
  return Stmt(std::make_shared<const StmtNode>(std::move(node)));
}

bool AddAffine(const Expr& e, int64_t factor, Affine& result) {
  switch (e->kind) {
    case ExprKind::kIntImm: {
      int64_t product = 0;
      return !__builtin_mul_overflow(factor, e->int_value, &product) &&
             !__builtin_add_overflow(result.constant, product, &result.constant);
    }
    case ExprKind::kVar: {
      int64_t& coefficient = result.coefficients[e.get()];
      return !__builtin_add_overflow(coefficient, factor, &coefficient);
    }
    case ExprKind::kBinary: break;
    default: return false;
  }
  const Expr &a = e->operands[0], &b = e->operands[1];
  if (e->binary == BinaryOp::kAdd) return AddAffine(a, factor, result) && AddAffine(b, factor, result);
  if (e->binary == BinaryOp::kSub) return factor != kMin64 && AddAffine(a, factor, result) && AddAffine(b, -factor, result);
  if (e->binary != BinaryOp::kMul) return false;
  int64_t product = 0;
  const Expr& constant = b->kind == ExprKind::kIntImm ? b : a;
  if (constant->kind != ExprKind::kIntImm || __builtin_mul_overflow(factor, constant->int_value, &product)) return false;
  return AddAffine(b->kind == ExprKind::kIntImm ? a : b, product, result);
}

}  // namespace

Interval BoundsOf(const Expr& expr, const VarIntervals& vars) {
  std::unordered_map<const ExprNode*, Interval> memo;
  return Bounds(expr, vars, memo);
}

Expr Simplify(const Expr& expr, const VarIntervals& vars) {
  return RewriteExpr(expr, [&](const Expr& e) { return SimplifyNode(e, vars); });
}

Stmt Simplify(const Stmt& stmt) {
  VarIntervals vars;
  return SimplifyStmt(stmt, vars);
}

Function Simplify(const Function& function) { return {function.name, function.params, Simplify(function.body)}; }

Function LowerFloorDivision(const Function& function) {
  VarIntervals vars;
  return {function.name, function.params, LowerFloor(function.body, vars)};
}

std::optional<Affine> AffineOf(const Expr& expr) {
  Affine affine;
  if (expr.type() != ElementType::kInt64 || !AddAffine(expr, 1, affine)) return std::nullopt;
  std::erase_if(affine.coefficients, [](const auto& item) { return item.second == 0; });
  return affine;
}

}  // namespace heddle::ir::loops
