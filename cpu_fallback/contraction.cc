// Matching is by how indices depend on axes: an output axis that only one operand uses can be a row or a column of a register
// tile; an output axis and a reduction axis that occur only as one weighted sum slide.

#include "cpu_fallback/contraction.h"

#include <algorithm>
#include <functional>

#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"

namespace heddle::cpu {
namespace {

using namespace ir::loops;  // NOLINT: the file is about its types

Expr I64(int64_t value) { return IntConstant(ir::ElementType::kInt64, value); }

// Calls `visit` on every largest affine index expression in `e` that uses `var`.
void ForEachAffineUse(const Expr& e, const Expr& var, const std::function<void(const Expr&)>& visit) {
  if (!UsesVar(e, var)) return;
  if (e.type() == ir::ElementType::kInt64 && AffineOf(e)) return visit(e);
  for (const Expr& operand : e->operands) ForEachAffineUse(operand, var, visit);
}

Expr ReplaceAffineUses(const Expr& e, const Expr& var, const std::function<Expr(const Expr&)>& replace) {
  if (!UsesVar(e, var)) return e;
  if (e.type() == ir::ElementType::kInt64 && AffineOf(e)) return replace(e);
  std::vector<Expr> operands;
  for (const Expr& operand : e->operands) operands.push_back(ReplaceAffineUses(operand, var, replace));
  return WithOperands(e, std::move(operands));
}

// The axis as a window of `operand`: sliding with one of the reduction axes, or alone.
std::optional<Window> WindowOf(const Expr& operand, const Axis& column, const std::vector<Axis>& reduce) {
  Window window{column, Axis{Expr(), 1}, 1, 1};
  bool first = true, consistent = true;
  ForEachAffineUse(operand, column.var, [&](const Expr& use) {
    const Affine affine = *AffineOf(use);
    Axis tap{Expr(), 1};
    for (const Axis& axis : reduce) {
      if (affine.coefficient(axis.var) == 0) continue;
      consistent = consistent && !tap.var;
      tap = axis;
    }
    const int64_t c = affine.coefficient(column.var), t = tap.var ? affine.coefficient(tap.var) : 0;
    if (first) window = {column, tap, tap.var ? c : 1, tap.var ? t : 1};
    first = false;
    if (tap.var.get() != window.tap.var.get()) consistent = false;
    if (window.slides()) {
      consistent = consistent && window.stride > 0 && window.dilation > 0 && c % window.stride == 0 &&
                   t == c / window.stride * window.dilation;
    }
  });
  if (first || !consistent) return std::nullopt;
  if (window.slides()) {  // the tap must not occur without the column
    bool alone = false;
    ForEachAffineUse(operand, window.tap.var, [&](const Expr& use) { alone = alone || !UsesVar(use, column.var); });
    if (alone) return std::nullopt;
  }
  return window;
}

// Axes of extent 1 become the constant 0.
TensorExpr DropUnitAxes(const TensorExpr& stage, std::vector<Expr>* indices) {
  TensorExpr result = stage;
  Substitution zero;
  for (const Axis& axis : stage.axes) {
    indices->push_back(axis.extent == 1 ? Expr(0) : axis.var);
    if (axis.extent == 1) zero[axis.var.get()] = Expr(0);
  }
  for (const Axis& axis : stage.reduce_axes) {
    if (axis.extent == 1) zero[axis.var.get()] = Expr(0);
  }
  auto is_unit = [](const Axis& axis) { return axis.extent == 1; };
  std::erase_if(result.axes, is_unit);
  std::erase_if(result.reduce_axes, is_unit);
  VarIntervals vars;
  for (const auto* axes : {&result.axes, &result.reduce_axes}) {
    for (const Axis& axis : *axes) vars[axis.var.get()] = {0, axis.extent - 1};
  }
  for (Expr* e : {&result.value, &result.init, &result.combine, &result.epilogue}) *e = Simplify(Substitute(*e, zero), vars);
  return result;
}

// An output axis that some index uses as FloorDiv(axis, c) becomes two: group * c + member (grouped convolution).
void SplitGroups(TensorExpr& stage, std::vector<Expr>& indices) {
  for (size_t a = 0; a < stage.axes.size(); ++a) {
    const Axis axis = stage.axes[a];
    int64_t members = 0;
    ForEachExpr(stage.value, [&](const Expr& e) {
      if (e->kind != ExprKind::kBinary || e->binary != BinaryOp::kFloorDiv || e->operands[0].get() != axis.var.get()) return;
      if (e->operands[1]->kind == ExprKind::kIntImm) members = e->operands[1]->int_value;
    });
    if (members <= 1 || axis.extent % members != 0 || axis.extent == members) continue;
    const Axis group{Var(axis.var->name + "_group"), axis.extent / members}, member{Var(axis.var->name + "_member"), members};
    const Substitution split = {{axis.var.get(), group.var * members + member.var}};
    stage.axes[a] = group;
    stage.axes.insert(stage.axes.begin() + static_cast<std::ptrdiff_t>(a) + 1, member);
    VarIntervals vars;
    for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const Axis& x : *axes) vars[x.var.get()] = {0, x.extent - 1};
    }
    for (Expr* e : {&stage.value, &stage.epilogue}) *e = Simplify(Substitute(*e, split), vars);
    for (Expr& index : indices) index = Substitute(index, split);
    ++a;
  }
}

// The two factors; a guard around the product moves to the factor that shares its variables.
bool Factors(const Expr& value, Expr* a, Expr* b) {
  if (value->kind == ExprKind::kBinary && value->binary == BinaryOp::kMul) {
    *a = value->operands[0];
    *b = value->operands[1];
    return true;
  }
  if (value->kind != ExprKind::kSelect || !Factors(value->operands[1], a, b)) return false;
  const Expr& other = value->operands[2];
  const bool zero = IsConstant(other) && other->int_value == 0 && other->float_value == 0;
  if (!zero) return false;
  bool in_a = true, in_b = true;
  ForEachExpr(value->operands[0], [&](const Expr& e) {
    if (e->kind != ExprKind::kVar) return;
    in_a = in_a && UsesVar(*a, e);
    in_b = in_b && UsesVar(*b, e);
  });
  if (!in_a && !in_b) return false;
  Expr& guarded = in_a ? *a : *b;
  guarded = Select(value->operands[0], guarded, other);
  return true;
}

// Products that have vector instructions; a start value that is the same for every element.
bool IsTileable(const TensorExpr& stage, bool product) {
  const ir::ElementType type = stage.value.type();
  bool depends = false;
  ForEachExpr(stage.init, [&](const Expr& e) { depends = depends || e->kind == ExprKind::kVar; });
  if (depends || type == ir::ElementType::kBool) return false;
  return !product || type == ir::ElementType::kFloat32 || type == ir::ElementType::kFloat64 || type == ir::ElementType::kInt32;
}

}  // namespace

int64_t Contraction::terms() const {
  int64_t terms = 1;
  for (const Axis& axis : depth) terms *= axis.extent;
  for (const Window& window : columns) terms *= window.tap.extent;
  return terms;
}

Expr AtPosition(const Expr& operand, const Window& window, const Expr& position) {
  return ReplaceAffineUses(operand, window.column.var, [&](const Expr& use) {
    const Affine affine = *AffineOf(use);
    Expr result = position * I64(affine.coefficient(window.column.var) / window.stride) + I64(affine.constant);
    ForEachExpr(use, [&](const Expr& e) {
      if (e->kind != ExprKind::kVar || e.get() == window.column.var.get() || e.get() == window.tap.var.get()) return;
      if (affine.coefficient(e) != 0) result = result + e * I64(affine.coefficient(e));
    });
    return result;
  });
}

std::optional<Contraction> MatchContraction(const TensorExpr& original) {
  if (!original.is_reduction || original.imperative || original.output->elements() == 0) return std::nullopt;
  for (const Axis& axis : original.reduce_axes) {
    if (axis.extent == 0) return std::nullopt;
  }
  Contraction c;
  c.stage = DropUnitAxes(original, &c.indices);
  SplitGroups(c.stage, c.indices);
  const std::vector<Axis>& axes = c.stage.axes;
  if (axes.empty()) return std::nullopt;
  Expr a, b;
  const bool product = c.stage.combiner == Combiner::kSum && Factors(c.stage.value, &a, &b);
  if (!product) a = c.stage.value;
  if (!IsTileable(c.stage, product)) return std::nullopt;
  const Expr innermost = axes.back().var;
  if (product && UsesVar(b, innermost)) std::swap(a, b);
  if (!UsesVar(a, innermost) || (product && UsesVar(b, innermost))) return std::nullopt;
  c.vector_operand = a;
  c.scalar_operand = product ? b : Expr();
  c.row = {Expr(), 1};
  // Columns: trailing axes of the vector operand alone.
  size_t first_column = axes.size();
  while (first_column > 0) {
    const Expr& var = axes[first_column - 1].var;
    if (!UsesVar(a, var) || (product && UsesVar(b, var)) || axes.size() - first_column == 2) break;
    --first_column;
  }
  for (size_t i = first_column; i < axes.size(); ++i) {
    std::optional<Window> window = WindowOf(a, axes[i], c.stage.reduce_axes);
    if (!window) return std::nullopt;
    for (const Window& other : c.columns) {
      if (window->slides() && other.tap.var.get() == window->tap.var.get()) return std::nullopt;
    }
    c.columns.push_back(*window);
  }
  // Without a second operand the tile only pays where columns share what they read.
  const bool slides = std::any_of(c.columns.begin(), c.columns.end(), [](const Window& w) { return w.slides(); });
  if (!product && !slides) return std::nullopt;
  // The row: the largest axis that only the scalar operand uses.
  for (size_t i = 0; i < first_column; ++i) {
    const bool only_scalar = product && UsesVar(b, axes[i].var) && !UsesVar(a, axes[i].var);
    if (only_scalar && axes[i].extent > c.row.extent) c.row = axes[i];
  }
  for (size_t i = 0; i < first_column; ++i) {
    if (axes[i].var.get() != c.row.var.get()) c.outer.push_back(axes[i]);
  }
  for (const Axis& axis : c.stage.reduce_axes) {
    const bool tap = std::any_of(c.columns.begin(), c.columns.end(), [&](const Window& w) { return w.tap.var.get() == axis.var.get(); });
    if (!tap) c.depth.push_back(axis);
  }
  return c;
}

}  // namespace heddle::cpu
