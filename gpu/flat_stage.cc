// Flattening: views of one dimension make the index of every access one affine expression, in which it is plain to see which
// axes may be walked as one. Fewer axes mean fewer divisions in a kernel and longer contiguous runs.

#include "gpu/flat_stage.h"

#include <algorithm>

#include "ir/check.h"
#include "ir/loops/visit.h"

namespace heddle::gpu {
namespace {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types

class Flattener {
 public:
  explicit Flattener(const TensorExpr& stage) {
    flat_.axes = stage.axes;
    flat_.reduce_axes = stage.reduce_axes;
    flat_.is_reduction = stage.is_reduction;
    flat_.accumulator = stage.accumulator;
    flat_.term = stage.term;
    intervals_ = flat_.Intervals();
    flat_.value = FlattenLoads(stage.value);
    flat_.init = FlattenLoads(stage.init);
    flat_.combine = FlattenLoads(stage.combine);
    flat_.epilogue = FlattenLoads(stage.epilogue);
    flat_.output = ViewOf(stage.output);
    Indices indices;
    for (const Axis& axis : stage.axes) indices.push_back(axis.var);
    flat_.output_index = FlatIndex(stage.output, indices);
  }

  FlatStage Run() {
    DropUnitAxes(flat_.axes);
    DropUnitAxes(flat_.reduce_axes);
    MergeAxes(flat_.axes);
    MergeAxes(flat_.reduce_axes);
    const VarIntervals intervals = flat_.Intervals();
    for (Expr* expr : Exprs()) *expr = Simplify(*expr, intervals);
    return std::move(flat_);
  }

 private:
  std::vector<Expr*> Exprs() {
    std::vector<Expr*> exprs;
    for (Expr* expr : {&flat_.value, &flat_.init, &flat_.combine, &flat_.epilogue, &flat_.output_index}) {
      if (*expr) exprs.push_back(expr);
    }
    return exprs;
  }

  Buffer ViewOf(const Buffer& buffer) {
    for (const auto& [original, view] : flat_.views) {
      if (original == buffer) return view;
    }
    Buffer view(buffer->name, buffer.type(), {buffer->elements()});
    flat_.views.emplace_back(buffer, view);
    return view;
  }

  Expr FlattenLoads(const Expr& expr) {
    if (!expr) return expr;
    return RewriteExpr(expr, [&](const Expr& e) {
      if (e->kind != ExprKind::kLoad) return e;
      return Load(ViewOf(e->buffer), {Simplify(FlatIndex(e->buffer, e->operands), intervals_)});
    });
  }

  void SubstituteEverywhere(const Substitution& substitution) {
    for (Expr* expr : Exprs()) *expr = Substitute(*expr, substitution);
  }

  void DropUnitAxes(std::vector<Axis>& axes) {
    Substitution zero;
    for (const Axis& axis : axes) {
      if (axis.extent == 1) zero[axis.var.get()] = Expr(0);
    }
    std::erase_if(axes, [](const Axis& axis) { return axis.extent == 1; });
    if (!zero.empty()) SubstituteEverywhere(zero);
  }

  // True where every access sees outer * extent(inner) + inner only.
  bool CanMerge(const Axis& outer, const Axis& inner) {
    bool mergeable = true;
    auto check_index = [&](const Expr& index) {
      if (!UsesVar(index, outer.var) && !UsesVar(index, inner.var)) return;
      const std::optional<Affine> affine = AffineOf(index);
      mergeable = mergeable && affine && affine->coefficient(outer.var) == affine->coefficient(inner.var) * inner.extent;
    };
    // The expression without its accesses must not know the axes.
    auto check_expr = [&](const Expr& expr) {
      std::vector<Expr> checked;
      const Expr rest = RewriteExpr(expr, [&](const Expr& e) {
        if (e->kind != ExprKind::kLoad) return e;
        check_index(e->operands[0]);
        return Var("load", e.type());
      });
      mergeable = mergeable && !UsesVar(rest, outer.var) && !UsesVar(rest, inner.var);
    };
    check_index(flat_.output_index);
    for (const Expr& expr : {flat_.value, flat_.init, flat_.combine, flat_.epilogue}) {
      if (expr && mergeable) check_expr(expr);
    }
    return mergeable;
  }

  void MergeAxes(std::vector<Axis>& axes) {
    for (size_t i = axes.size(); i-- > 1;) {
      const Axis outer = axes[i - 1], inner = axes[i];
      if (!CanMerge(outer, inner)) continue;
      const Axis merged{Var(outer.var->name + inner.var->name), outer.extent * inner.extent};
      SubstituteEverywhere({{outer.var.get(), Expr(0)}, {inner.var.get(), merged.var}});
      axes[i - 1] = merged;
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  FlatStage flat_;
  VarIntervals intervals_;
};

}  // namespace

VarIntervals FlatStage::Intervals() const {
  VarIntervals intervals;
  for (const Axis& axis : axes) intervals[axis.var.get()] = {0, axis.extent - 1};
  for (const Axis& axis : reduce_axes) intervals[axis.var.get()] = {0, axis.extent - 1};
  return intervals;
}

FlatStage Flatten(const TensorExpr& stage) {
  HEDDLE_CHECK(!stage.imperative, "imperative stages have no axes");
  Flattener flattener(stage);
  return flattener.Run();
}

}  // namespace heddle::gpu
