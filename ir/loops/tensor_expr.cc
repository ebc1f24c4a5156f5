// Compute definitions: construction, and lowering to loops. Fusion is in fuse_stages.cc.

#include "ir/loops/tensor_expr.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/check.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

std::vector<Axis> MakeAxes(const Shape& shape, char letter) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < shape.size(); ++d) axes.push_back({Var(fmt::format("{}{}", letter, d)), shape[d]});
  return axes;
}

Indices VarsOf(const std::vector<Axis>& axes) {
  Indices vars;
  for (const Axis& axis : axes) vars.push_back(axis.var);
  return vars;
}

// Below this many nodes a repeated value is cheaper to write again than to name.
constexpr int kSmallestLet = 2;

struct Uses {
  int count = 0;        // references from users
  bool strict = false;  // evaluated whenever the whole expression is
};

class LetBinder {
 public:
  // Finds shared values and fills lets() in evaluation order; returns the root in terms of them.
  Expr Bind(const Expr& root) {
    Count(root, true);
    return Replace(root);
  }
  const std::vector<std::pair<Expr, Expr>>& lets() const { return lets_; }

 private:
  void Count(const Expr& expr, bool strict) {
    Uses& uses = uses_[expr.get()];
    const bool first = ++uses.count == 1;
    const bool newly_strict = strict && !uses.strict;
    uses.strict = uses.strict || strict;
    if (!first && !newly_strict) return;
    for (size_t i = 0; i < expr->operands.size(); ++i) {
      const bool lazy = expr->kind == ExprKind::kSelect && i > 0;
      if (first) {
        Count(expr->operands[i], strict && !lazy);
      } else if (!lazy) {
        MarkStrict(expr->operands[i]);
      }
    }
  }

  void MarkStrict(const Expr& expr) {
    Uses& uses = uses_[expr.get()];
    if (uses.strict) return;
    uses.strict = true;
    for (size_t i = 0; i < expr->operands.size(); ++i) {
      if (expr->kind != ExprKind::kSelect || i == 0) MarkStrict(expr->operands[i]);
    }
  }

  // True where evaluating the value early cannot go wrong.
  bool IsTotal(const Expr& expr) {
    bool total = true;
    ForEachExpr(expr, [&](const Expr& e) {
      const bool divides = e->kind == ExprKind::kBinary && !IsFloat(e.type()) &&
                           (e->binary == BinaryOp::kDiv || e->binary == BinaryOp::kMod);
      total = total && e->kind != ExprKind::kLoad && !divides;
    });
    return total;
  }

  bool Deserves(const Expr& expr) {
    if (expr->operands.empty() || uses_[expr.get()].count < 2) return false;
    int nodes = 0;
    ForEachExpr(expr, [&](const Expr&) { ++nodes; });
    if (nodes < kSmallestLet || (expr->kind == ExprKind::kCast && IsConstant(expr->operands[0]))) return false;
    return uses_[expr.get()].strict || IsTotal(expr);
  }

  Expr Replace(const Expr& expr) {
    if (auto it = done_.find(expr.get()); it != done_.end()) return it->second;
    Expr result = expr;
    if (!expr->operands.empty()) {
      std::vector<Expr> operands;
      for (const Expr& operand : expr->operands) operands.push_back(Replace(operand));
      result = WithOperands(expr, std::move(operands));
      if (Deserves(expr)) {
        Expr var = Var(fmt::format("t{}", lets_.size()), expr.type());
        lets_.emplace_back(var, result);
        result = var;
      }
    }
    done_.emplace(expr.get(), result);
    return result;
  }

  std::unordered_map<const ExprNode*, Uses> uses_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::vector<std::pair<Expr, Expr>> lets_;
};

Expr Combine(Combiner combiner, const Expr& a, const Expr& b) {
  switch (combiner) {
    case Combiner::kSum: return a + b;
    case Combiner::kProduct: return a * b;
    case Combiner::kMax: return Max(a, b);
    case Combiner::kMin: return Min(a, b);
    case Combiner::kAnd: return And(a, b);
    case Combiner::kOr: return Or(a, b);
    case Combiner::kCustom: break;
  }
  CheckFailed(__FILE__, __LINE__, "combiner", "a custom combiner has its own expression");
}

TensorExpr MakeReduction(Buffer output, Shape reduce_extents, Combiner combiner, Expr init,
                         const std::function<Expr(Expr, Expr)>& combine,
                         const std::function<Expr(const Indices&, const Indices&)>& value,
                         const std::function<Expr(Expr, const Indices&)>& epilogue) {
  TensorExpr stage;
  stage.axes = MakeAxes(output.shape(), 'i');
  stage.reduce_axes = MakeAxes(reduce_extents, 'r');
  stage.is_reduction = true;
  const Indices i = VarsOf(stage.axes);
  stage.value = value(i, VarsOf(stage.reduce_axes));
  stage.combiner = combiner;
  stage.init = init ? init : NeutralElement(combiner, stage.value.type());
  stage.accumulator = Var("acc", stage.init.type());
  stage.term = Var("term", stage.value.type());
  stage.combine = combine ? combine(stage.accumulator, stage.term) : Combine(combiner, stage.accumulator, stage.term);
  stage.epilogue = epilogue ? epilogue(stage.accumulator, i) : stage.accumulator;
  HEDDLE_CHECK(stage.combine.type() == stage.accumulator.type(), "a combiner gives the accumulator's type");
  HEDDLE_CHECK(stage.epilogue.type() == output.type(), "the reduction of " + output->name + " does not give its type");
  stage.output = std::move(output);
  return stage;
}

Stmt WrapLoops(const std::vector<Axis>& axes, Stmt body) {
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) body = For(axis->var, axis->extent, body);
  return body;
}

// Fresh variables for the axes, recorded in `substitution`.
std::vector<Axis> Rename(const std::vector<Axis>& axes, const std::string& prefix, Substitution& substitution) {
  std::vector<Axis> renamed;
  for (const Axis& axis : axes) {
    Expr var = Var(prefix + axis.var->name);
    substitution[axis.var.get()] = var;
    renamed.push_back({var, axis.extent});
  }
  return renamed;
}

}  // namespace

Expr NeutralElement(Combiner combiner, ElementType type) {
  switch (combiner) {
    case Combiner::kSum: return Constant(type, 0);
    case Combiner::kProduct: return Constant(type, 1);
    case Combiner::kMax: return LowestOf(type);
    case Combiner::kMin: return HighestOf(type);
    case Combiner::kAnd: return IntConstant(type, -1);
    case Combiner::kOr: return IntConstant(type, 0);
    case Combiner::kCustom: break;
  }
  CheckFailed(__FILE__, __LINE__, "combiner", "a custom combiner has no known neutral element");
}

TensorExpr Compute(Buffer output, const std::function<Expr(const Indices&)>& value) {
  TensorExpr stage;
  stage.axes = MakeAxes(output.shape(), 'i');
  stage.value = value(VarsOf(stage.axes));
  HEDDLE_CHECK(stage.value.type() == output.type(),
               fmt::format("{} is {} and its definition {}", output->name, ElementTypeName(output.type()),
                           ElementTypeName(stage.value.type())));
  stage.output = std::move(output);
  return stage;
}

TensorExpr Reduce(Buffer output, Shape reduce_extents, Combiner combiner,
                  const std::function<Expr(const Indices&, const Indices&)>& value,
                  const std::function<Expr(Expr, const Indices&)>& epilogue) {
  return MakeReduction(std::move(output), std::move(reduce_extents), combiner, Expr(), nullptr, value, epilogue);
}

TensorExpr ReduceCustom(Buffer output, Shape reduce_extents, Expr init, const std::function<Expr(Expr, Expr)>& combine,
                        const std::function<Expr(const Indices&, const Indices&)>& value,
                        const std::function<Expr(Expr, const Indices&)>& epilogue) {
  return MakeReduction(std::move(output), std::move(reduce_extents), Combiner::kCustom, std::move(init), combine, value, epilogue);
}

TensorExpr Imperative(std::vector<Buffer> outputs, Stmt body) {
  HEDDLE_CHECK(!outputs.empty() && body, "an imperative stage writes something");
  TensorExpr stage;
  stage.output = outputs[0];
  stage.also_written.assign(outputs.begin() + 1, outputs.end());
  stage.imperative = std::move(body);
  return stage;
}

Stmt StoreWithLets(const Buffer& output, std::vector<Expr> indices, const Expr& value) {
  LetBinder binder;
  Expr bound = binder.Bind(value);
  Stmt stmt = Store(output, std::move(indices), bound);
  for (auto let = binder.lets().rbegin(); let != binder.lets().rend(); ++let) stmt = Let(let->first, let->second, stmt);
  return stmt;
}

Stmt LowerStage(const TensorExpr& stage, const std::string& prefix) {
  if (stage.imperative) return stage.imperative;
  Substitution substitution;
  const std::vector<Axis> axes = Rename(stage.axes, prefix, substitution);
  const Indices indices = VarsOf(axes);
  if (!stage.is_reduction) {
    return WrapLoops(axes, StoreWithLets(stage.output, indices, Substitute(stage.value, substitution)));
  }
  const std::vector<Axis> reduce_axes = Rename(stage.reduce_axes, prefix, substitution);
  Buffer acc(prefix + "acc", stage.accumulator.type(), {1}, MemorySpace::kPrivate);
  const Expr zero = 0;
  Substitution combine = {{stage.accumulator.get(), acc(zero)}, {stage.term.get(), Substitute(stage.value, substitution)}};
  Stmt fold = StoreWithLets(acc, {zero}, Substitute(stage.combine, combine));
  substitution[stage.accumulator.get()] = acc(zero);
  Stmt finish = StoreWithLets(stage.output, indices, Substitute(stage.epilogue, substitution));
  Stmt start = Store(acc, {zero}, Substitute(stage.init, substitution));
  return WrapLoops(axes, Allocate(acc, Block({start, WrapLoops(reduce_axes, fold), finish})));
}

absl::StatusOr<Function> LowerToFunction(std::string name, const std::vector<TensorExpr>& stages, std::vector<Param> params) {
  std::unordered_set<const BufferNode*> known;
  for (const Param& param : params) known.insert(param.buffer.get());
  std::vector<Buffer> temporaries;
  std::vector<Stmt> nests;
  for (size_t s = 0; s < stages.size(); ++s) {
    const TensorExpr& stage = stages[s];
    Stmt nest = LowerStage(stage, stages.size() == 1 ? "" : fmt::format("s{}_", s));
    std::unordered_set<const BufferNode*> local;
    ForEachStmt(nest, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kAllocate) local.insert(stmt->buffer.get());
    });
    std::string unknown;
    auto written = stage.also_written;
    written.push_back(stage.output);
    for (const Buffer& buffer : written) {
      if (known.insert(buffer.get()).second) temporaries.push_back(buffer);
    }
    ForEachRootExpr(nest, [&](const Expr& root) {
      ForEachExpr(root, [&](const Expr& e) {
        if (e->kind != ExprKind::kLoad || e->buffer->contents != nullptr) return;
        if (!known.contains(e->buffer.get()) && !local.contains(e->buffer.get())) unknown = e->buffer->name;
      });
    });
    if (!unknown.empty()) {
      return UserError("E-LOOPS-001", fmt::format("{}: the stage of {} reads {}, which no earlier stage or parameter gives", name,
                                                  stage.output->name, unknown));
    }
    nests.push_back(std::move(nest));
  }
  Stmt body = Block(std::move(nests));
  for (auto buffer = temporaries.rbegin(); buffer != temporaries.rend(); ++buffer) body = Allocate(*buffer, body);
  return Function{std::move(name), std::move(params), std::move(body)};
}

}  // namespace heddle::ir::loops
