// Expressions over the lanes of a vectorised loop. Whatever has no vector form of exactly the same meaning is written lane by lane:
// (float4)(value in lane 0, …, value in lane 3), which is always right.

#include <algorithm>

#include "gpu/opencl_expr.h"
#include "ir/check.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::gpu {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using ir::ElementType;

namespace {

// True where the condition, if it holds for two values of `lane`, holds between them: comparisons of affine expressions, all true.
bool IsConvexIn(const Expr& condition) {
  if (condition->kind != ExprKind::kBinary) return false;
  switch (condition->binary) {
    case BinaryOp::kAnd: return IsConvexIn(condition->operands[0]) && IsConvexIn(condition->operands[1]);
    case BinaryOp::kLess:
    case BinaryOp::kLessEqual:
    case BinaryOp::kGreater:
    case BinaryOp::kGreaterEqual: return AffineOf(condition->operands[0]) && AffineOf(condition->operands[1]);
    default: return false;
  }
}

// The operands of a chain of ands, each once.
void CollectConjuncts(const Expr& condition, std::vector<Expr>& conjuncts) {
  if (condition->kind == ExprKind::kBinary && condition->binary == BinaryOp::kAnd) {
    for (const Expr& operand : condition->operands) CollectConjuncts(operand, conjuncts);
  } else if (std::none_of(conjuncts.begin(), conjuncts.end(), [&](const Expr& c) { return SameExpr(c, condition); })) {
    conjuncts.push_back(condition);
  }
}

}  // namespace

void ExprPrinter::BeginLanes(const Expr& lane, int lanes) {
  lane_ = lane;
  lanes_ = lanes;
  SetInterval(lane, {0, lanes - 1});
}

void ExprPrinter::EndLanes() {
  lane_ = Expr();
  lanes_ = 1;
  vector_vars_.clear();
}

bool ExprPrinter::UsesLane(const Expr& expr) const {
  bool uses = false;
  ForEachExpr(expr, [&](const Expr& e) {
    uses = uses || e.get() == lane_.get() || (e->kind == ExprKind::kVar && vector_vars_.contains(e.get()));
  });
  return uses;
}

std::string ExprPrinter::VectorType(ElementType type) const { return fmt::format("{}{}", OpenClStorage(type), lanes_); }

Expr ExprPrinter::AtLane(const Expr& expr, int lane) {
  const Expr moved = RewriteExpr(expr, [&](const Expr& e) {
    if (e.get() == lane_.get()) return Expr(lane);
    if (e->kind != ExprKind::kVar || !vector_vars_.contains(e.get())) return e;
    const std::string part = fmt::format("{}.s{:x}", Name(e), lane);
    auto [it, is_new] = lane_parts_.try_emplace(part);
    if (is_new) {
      it->second = Var(part, e.type());
      lane_part_names_[it->second.get()] = part;
      SetInterval(it->second, Bounds(e));
    }
    return it->second;
  });
  return Simplify(moved, intervals_);
}

std::string ExprPrinter::ContiguousBase(const Buffer& buffer, const std::vector<Expr>& indices) {
  const Expr index = FlatIndex(buffer, indices);
  const std::optional<Affine> affine = AffineOf(index);
  if (!affine || affine->coefficient(lane_) != 1) return "";
  for (const Expr& i : indices) {
    bool uses_vector = false;
    ForEachExpr(i, [&](const Expr& e) { uses_vector = uses_vector || (e->kind == ExprKind::kVar && vector_vars_.contains(e.get())); });
    if (uses_vector) return "";
  }
  return Scalar(AtLane(index, 0)).text;
}

std::string ExprPrinter::VectorElement(const Buffer& buffer, const std::vector<Expr>& indices) {
  ir::Shape rows(buffer.shape().begin(), buffer.shape().end() - 1);
  std::vector<Expr> row(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(rows.size()));
  const Buffer shape_only(buffer->name, buffer.type(), rows);
  return Name(buffer) + "[" + Scalar(Simplify(FlatIndex(shape_only, row), intervals_)).text + "]";
}

std::string ExprPrinter::PerLane(const Expr& expr) {
  std::string text = "(" + VectorType(expr.type()) + ")(";
  for (int lane = 0; lane < lanes_; ++lane) text += (lane > 0 ? ", " : "") + Scalar(AtLane(expr, lane)).text;
  return text + ")";
}

bool ExprPrinter::IsVectorLoad(const Expr& expr) {
  if (expr->kind != ExprKind::kLoad || expr.type() == ElementType::kBool) return false;
  return IsVectorBuffer(expr->buffer) || !ContiguousBase(expr->buffer, expr->operands).empty();
}

std::string ExprPrinter::VectorLoad(const Expr& expr) {
  if (IsVectorBuffer(expr->buffer)) return VectorElement(expr->buffer, expr->operands);
  const std::string base = ContiguousBase(expr->buffer, expr->operands);
  return fmt::format("vload{}(0, {} + {})", lanes_, Name(expr->buffer), base.find(' ') == std::string::npos ? base : "(" + base + ")");
}

std::string ExprPrinter::VectorBinary(const Expr& expr) {
  const Expr &a = expr->operands[0], &b = expr->operands[1];
  const ElementType type = expr.type();
  const bool is_float = ir::IsFloat(type);
  if (expr->binary == BinaryOp::kMin || expr->binary == BinaryOp::kMax) {
    const std::string name = expr->binary == BinaryOp::kMin ? "min" : "max";
    return (is_float ? Helper(name, VectorType(type)) : name) + "(" + Vector(a) + ", " + Vector(b) + ")";
  }
  const std::string symbol(BinaryOpSymbol(expr->binary));
  const bool divides = expr->binary == BinaryOp::kDiv || expr->binary == BinaryOp::kMod;
  if (is_float ? expr->binary == BinaryOp::kMod : divides) return PerLane(expr);
  const std::string left = Vector(a), right = Vector(b);
  const bool arithmetic = expr->binary == BinaryOp::kAdd || expr->binary == BinaryOp::kSub || expr->binary == BinaryOp::kMul;
  const bool may_wrap = (arithmetic && (MayWrap(expr) || ir::ElementBytes(type) < 4)) || expr->binary == BinaryOp::kShiftLeft;
  if (!is_float && IsSigned(type) && may_wrap) {
    const std::string bits = fmt::format("as_u{}", VectorType(type));
    return fmt::format("as_{}({}({}) {} {}({}))", VectorType(type), bits, left, symbol, bits, right);
  }
  return "(" + left + " " + symbol + " " + right + ")";
}

std::string ExprPrinter::VectorSelect(const Expr& expr) {
  const Expr &condition = expr->operands[0], &value = expr->operands[1];
  if (!UsesLane(condition)) {
    return "(" + Scalar(condition).Within(11) + " ? " + Vector(value) + " : " + Vector(expr->operands[2]) + ")";
  }
  // A guarded load (padding), perhaps converted: where the guard holds at both ends it holds in every lane.
  bool loads_vectors = false, loads_others = false;
  ForEachExpr(value, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad && UsesLane(e)) (IsVectorLoad(e) ? loads_vectors : loads_others) = true;
  });
  if (loads_vectors && !loads_others && IsConvexIn(condition)) {
    std::vector<Expr> conjuncts;
    CollectConjuncts(Simplify(And(AtLane(condition, 0), AtLane(condition, lanes_ - 1)), intervals_), conjuncts);
    Expr both = conjuncts[0];
    for (size_t c = 1; c < conjuncts.size(); ++c) both = And(both, conjuncts[c]);
    return "(" + Scalar(both).Within(11) + " ? " + Vector(value) + " : " + PerLane(expr) + ")";
  }
  return PerLane(expr);
}

std::string ExprPrinter::Vector(const Expr& expr) {
  if (!UsesLane(expr)) return "(" + VectorType(expr.type()) + ")(" + Scalar(expr).text + ")";
  // bool has no vector type in OpenCL C, and what is computed from the lane's number alone is no data.
  if (expr.type() == ElementType::kBool) return PerLane(expr);
  switch (expr->kind) {
    case ExprKind::kVar: return vector_vars_.contains(expr.get()) ? Name(expr) : PerLane(expr);
    case ExprKind::kLoad: return IsVectorLoad(expr) ? VectorLoad(expr) : PerLane(expr);
    case ExprKind::kBinary: return VectorBinary(expr);
    case ExprKind::kSelect: return VectorSelect(expr);
    case ExprKind::kCast:
      if (expr->operands[0].type() == ElementType::kBool) return PerLane(expr);
      return "convert_" + VectorType(expr.type()) + "(" + Vector(expr->operands[0]) + ")";
    case ExprKind::kCall: {
      if (!ir::IsFloat(expr.type())) return PerLane(expr);
      if (expr->intrinsic == Intrinsic::kNeg) return "(-" + Vector(expr->operands[0]) + ")";
      std::string text = expr->intrinsic == Intrinsic::kAbs ? "fabs(" : std::string(IntrinsicName(expr->intrinsic)) + "(";
      for (size_t i = 0; i < expr->operands.size(); ++i) text += (i > 0 ? ", " : "") + Vector(expr->operands[i]);
      return text + ")";
    }
    default: return PerLane(expr);
  }
}

}  // namespace heddle::gpu
