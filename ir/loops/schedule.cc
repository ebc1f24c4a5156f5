// Schedule primitives on loops. Each finds its loop, checks, and rebuilds the part of the tree that changes; data movement
// (caches, compute-at) is in schedule_data.cc, the question of independence in dependence.cc.

#include "ir/loops/schedule.h"

#include <algorithm>
#include <unordered_set>

#include "ir/loops/schedule_internal.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

Stmt WithKind(const Stmt& loop, LoopKind kind, int initiation_interval = 1) {
  StmtNode node = *loop;
  node.loop_kind = kind;
  node.initiation_interval = initiation_interval;
  return Stmt(std::make_shared<const StmtNode>(std::move(node)));
}

// buffer[…] = combine(buffer[…], x) with x free of the buffer, and an operation whose order does not matter.
bool IsUpdate(const Stmt& store) {
  if (store->kind != StmtKind::kStore || store->value->kind != ExprKind::kBinary) return false;
  const BinaryOp op = store->value->binary;
  const bool commutative = op == BinaryOp::kAdd || op == BinaryOp::kMul || op == BinaryOp::kMin || op == BinaryOp::kMax ||
                           op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor;
  const Expr old = Load(store->buffer, store->indices);
  const Expr &a = store->value->operands[0], &b = store->value->operands[1];
  if (!commutative) return false;
  return (SameExpr(a, old) && !ReadsBuffer(b, store->buffer)) || (SameExpr(b, old) && !ReadsBuffer(a, store->buffer));
}

// The body (through lets and ifs) does nothing but update one element by a commutative operation.
bool IsSingleUpdate(const Stmt& body) {
  if (body->kind == StmtKind::kFor || body->kind == StmtKind::kLet) return IsSingleUpdate(body->body);
  if (body->kind == StmtKind::kIf) return !body->else_body && IsSingleUpdate(body->body);
  return IsUpdate(body);
}

// Every temporary allocated in `body` gets an innermost dimension of `extent`, indexed by `var`: one copy for each iteration,
// side by side as the lanes of a vector.
Stmt ExpandTemporaries(const Stmt& body, const Expr& var, int64_t extent) {
  return RewriteStmt(body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kAllocate) return s;
    Shape shape = s->buffer.shape();
    shape.push_back(extent);
    Buffer expanded(s->buffer->name, s->buffer.type(), shape, s->buffer->space);
    Stmt inner = ReplaceBuffer(s->body, s->buffer, expanded, [&](std::vector<Expr> indices) {
      indices.push_back(var);
      return indices;
    });
    return Allocate(expanded, inner, s->partitions);
  });
}

}  // namespace

Stmt ReplaceStmt(const Stmt& root, const StmtNode* target, const Stmt& replacement) {
  if (!root || root.get() == target) return root ? replacement : root;
  StmtNode node = *root;
  bool changed = false;
  auto update = [&](Stmt& child) {
    Stmt next = ReplaceStmt(child, target, replacement);
    changed = changed || next.get() != child.get();
    child = std::move(next);
  };
  update(node.body);
  update(node.else_body);
  for (Stmt& child : node.statements) update(child);
  if (!changed) return root;
  if (node.kind == StmtKind::kBlock) return Block(std::move(node.statements));
  return Stmt(std::make_shared<const StmtNode>(std::move(node)));
}

absl::StatusOr<Stmt> LoopOf(const Function& function, const Expr& var) {
  Stmt found;
  ForEachStmt(function.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor && s->var.get() == var.get()) found = s;
  });
  if (found) return found;
  return UserError("E-SCHED-001", fmt::format("{} has no loop {}", function.name, var ? var->name : "(none)"),
                   "Name a loop that is still there: split and fuse replace loops by new ones.");
}

std::string FreshName(const Function& function, const std::string& wanted) {
  std::unordered_set<std::string> used;
  ForEachStmt(function.body, [&](const Stmt& s) {
    if (s->var) used.insert(s->var->name);
    if (s->buffer) used.insert(s->buffer->name);
  });
  for (const Param& param : function.params) used.insert(param.buffer->name);
  std::string name = wanted;
  for (int n = 1; used.contains(name); ++n) name = fmt::format("{}_{}", wanted, n);
  return name;
}

Stmt FreshCopy(const Function& function, const Stmt& stmt) {
  Substitution vars;
  std::unordered_set<std::string> taken;
  auto fresh = [&](const std::string& wanted) {
    std::string name = FreshName(function, wanted);
    for (int n = 1; !taken.insert(name).second; ++n) name = FreshName(function, fmt::format("{}_c{}", wanted, n));
    return name;
  };
  ForEachStmt(stmt, [&](const Stmt& s) {
    if (s->var) vars[s->var.get()] = Var(fresh(s->var->name), s->var.type());
  });
  Stmt renamed = RewriteStmt(Substitute(stmt, vars), [&](const Stmt& s) {
    if (!s->var) return s;
    StmtNode node = *s;
    node.var = vars.at(s->var.get());
    return Stmt(std::make_shared<const StmtNode>(std::move(node)));
  });
  return RewriteStmt(renamed, [&](const Stmt& s) {
    if (s->kind != StmtKind::kAllocate) return s;
    Buffer copy(fresh(s->buffer->name), s->buffer.type(), s->buffer.shape(), s->buffer->space);
    return Allocate(copy, ReplaceBuffer(s->body, s->buffer, copy), s->partitions);
  });
}

absl::StatusOr<Expr> Schedule::FindLoop(std::string_view name) const {
  for (const Expr& loop : Loops()) {
    if (loop->name == name) return loop;
  }
  return UserError("E-SCHED-001", fmt::format("{} has no loop {}", function_.name, name));
}

std::vector<Expr> Schedule::Loops() const {
  std::vector<Expr> loops;
  ForEachStmt(function_.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor) loops.push_back(s->var);
  });
  return loops;
}

absl::StatusOr<int64_t> Schedule::Extent(const Expr& loop) const {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  return stmt->extent;
}

absl::StatusOr<std::pair<Expr, Expr>> Schedule::Split(const Expr& loop, int64_t factor, Tail tail) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  if (factor < 1 || stmt->loop_kind != LoopKind::kSerial) {
    return UserError("E-SCHED-002", fmt::format("cannot split {} loop {} by {}", LoopKindName(stmt->loop_kind), loop->name, factor),
                     "Split serial loops, by a factor of at least 1, before annotating them.");
  }
  const Expr outer = Var(FreshName(function_, loop->name + "_o")), inner = Var(FreshName(function_, loop->name + "_i"));
  const int64_t whole = stmt->extent / factor, rest = stmt->extent % factor;
  const Expr value = outer * factor + inner;
  Stmt body = Substitute(stmt->body, {{loop.get(), value}});
  if (rest == 0 || tail == Tail::kGuard) {
    if (rest != 0) body = If(value < stmt->extent, body);
    function_.body = ReplaceStmt(function_.body, stmt.get(), For(outer, whole + (rest != 0), For(inner, factor, body)));
    return std::pair{outer, inner};
  }
  const Expr last = Var(FreshName(function_, loop->name + "_tail"));
  Stmt main = For(outer, whole, For(inner, factor, body));
  Stmt copy = FreshCopy(function_, stmt->body);
  copy = For(last, rest, Substitute(copy, {{loop.get(), last + whole * factor}}));
  function_.body = ReplaceStmt(function_.body, stmt.get(), Block({main, copy}));
  return std::pair{outer, inner};
}

absl::Status Schedule::Reorder(const std::vector<Expr>& order) {
  std::vector<Stmt> nest;  // from the outermost named loop down to the innermost named one
  ForEachStmt(function_.body, [&](const Stmt& s) {
    const bool named = std::any_of(order.begin(), order.end(), [&](const Expr& e) { return s->var.get() == e.get(); });
    if (nest.empty() && s->kind == StmtKind::kFor && named) nest.push_back(s);
  });
  size_t found = nest.size();
  while (!nest.empty() && found < order.size() && nest.back()->body->kind == StmtKind::kFor) {
    nest.push_back(nest.back()->body);
    found += std::any_of(order.begin(), order.end(), [&](const Expr& e) { return nest.back()->var.get() == e.get(); });
  }
  if (order.empty() || found < order.size()) {
    return UserError("E-SCHED-003", "the loops to reorder are not perfectly nested in one another");
  }
  std::vector<std::pair<Expr, int64_t>> free;
  for (const Stmt& loop : nest) free.emplace_back(loop->var, loop->extent);
  const Stmt body = nest.back()->body;
  size_t separating = 0;
  for (const Stmt& loop : nest) separating += loop->extent <= 1 || ConflictOnlyAtEqual(loop->var, body, free);
  if (separating + 1 < nest.size() && !IsSingleUpdate(body)) {
    return UserError("E-SCHED-004", fmt::format("reordering {} may change which value is written last", nest[0]->var->name));
  }
  // Named loops take the named places in the new order.
  std::vector<Stmt> next = nest;
  size_t position = 0;
  for (Stmt& place : next) {
    const bool named = std::any_of(order.begin(), order.end(), [&](const Expr& e) { return place->var.get() == e.get(); });
    if (!named) continue;
    const Expr& var = order[position++];
    place = *std::find_if(nest.begin(), nest.end(), [&](const Stmt& s) { return s->var.get() == var.get(); });
  }
  Stmt rebuilt = body;
  for (auto loop = next.rbegin(); loop != next.rend(); ++loop) rebuilt = WithBody(*loop, rebuilt);
  function_.body = ReplaceStmt(function_.body, nest[0].get(), rebuilt);
  return absl::OkStatus();
}

absl::StatusOr<Expr> Schedule::Fuse(const Expr& outer, const Expr& inner) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt first, LoopOf(function_, outer));
  HEDDLE_ASSIGN_OR_RETURN(Stmt second, LoopOf(function_, inner));
  if (first->body.get() != second.get() || first->loop_kind != LoopKind::kSerial || second->loop_kind != LoopKind::kSerial) {
    return UserError("E-SCHED-005", fmt::format("{} and {} are not two serial loops, one directly in the other", outer->name,
                                                inner->name));
  }
  const Expr fused = Var(FreshName(function_, outer->name + "_" + inner->name));
  const int64_t extent = std::max<int64_t>(second->extent, 1);
  Stmt body = Substitute(second->body, {{outer.get(), FloorDiv(fused, extent)}, {inner.get(), FloorMod(fused, extent)}});
  function_.body = ReplaceStmt(function_.body, first.get(), For(fused, first->extent * second->extent, body));
  return fused;
}

absl::StatusOr<std::vector<Expr>> Schedule::Interleave(const Expr& loop) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  if (!IterationsAreIndependent(stmt)) {
    return UserError("E-SCHED-006", fmt::format("iterations of {} depend on one another", loop->name));
  }
  std::vector<Expr> vars;
  std::unordered_set<std::string> taken;
  auto place = [&](const Stmt& leaf) {
    std::string name = FreshName(function_, loop->name);
    for (int n = 1; !taken.insert(name).second; ++n) name = FreshName(function_, fmt::format("{}_{}", loop->name, n));
    vars.push_back(Var(name));
    return For(vars.back(), stmt->extent, Substitute(leaf, {{loop.get(), vars.back()}}), stmt->loop_kind);
  };
  std::function<Stmt(const Stmt&)> sink = [&](const Stmt& s) -> Stmt {
    const bool depends = s->kind == StmtKind::kIf && UsesVar(s->value, loop);
    if (s->kind == StmtKind::kStore || s->kind == StmtKind::kLet || depends || s->kind == StmtKind::kBarrier) return place(s);
    StmtNode node = *s;
    if (node.body) node.body = sink(node.body);
    if (node.else_body) node.else_body = sink(node.else_body);
    for (Stmt& child : node.statements) child = sink(child);
    return Stmt(std::make_shared<const StmtNode>(std::move(node)));
  };
  Stmt body = sink(ExpandTemporaries(stmt->body, loop, stmt->extent));
  function_.body = ReplaceStmt(function_.body, stmt.get(), body);
  return vars;
}

absl::Status Schedule::Unroll(const Expr& loop) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  function_.body = ReplaceStmt(function_.body, stmt.get(), WithKind(stmt, LoopKind::kUnrolled));
  return absl::OkStatus();
}

absl::Status Schedule::Vectorise(const Expr& loop) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  bool nested = false;
  ForEachStmt(stmt->body, [&](const Stmt& s) {
    nested = nested || (s->kind == StmtKind::kFor && (s->loop_kind == LoopKind::kVectorised || s->loop_kind == LoopKind::kParallel ||
                                                      IsGpuIndex(s->loop_kind)));
  });
  if (nested || !IterationsAreIndependent(stmt)) {
    return UserError("E-SCHED-006", fmt::format("{} cannot be vectorised: {}", loop->name,
                                                nested ? "a vector or parallel loop is inside" : "its iterations depend on one another"));
  }
  Stmt expanded = WithBody(stmt, ExpandTemporaries(stmt->body, loop, stmt->extent));
  // The expanded temporaries are shared by the lanes, so they are allocated outside the loop.
  std::vector<Stmt> allocations;
  Stmt body = RewriteStmt(expanded->body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kAllocate) return s;
    allocations.push_back(s);
    return s->body;
  });
  Stmt result = WithKind(WithBody(stmt, body), LoopKind::kVectorised);
  for (const Stmt& allocation : allocations) result = Allocate(allocation->buffer, result, allocation->partitions);
  function_.body = ReplaceStmt(function_.body, stmt.get(), result);
  return absl::OkStatus();
}

absl::Status Schedule::Parallelise(const Expr& loop) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  if (!IterationsAreIndependent(stmt)) {
    return UserError("E-SCHED-006", fmt::format("{} cannot run in parallel: its iterations depend on one another", loop->name));
  }
  function_.body = ReplaceStmt(function_.body, stmt.get(), WithKind(stmt, LoopKind::kParallel));
  return absl::OkStatus();
}

absl::Status Schedule::Pipeline(const Expr& loop, int initiation_interval) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  if (initiation_interval < 1) return UserError("E-SCHED-007", "an initiation interval is at least 1 cycle");
  function_.body = ReplaceStmt(function_.body, stmt.get(), WithKind(stmt, LoopKind::kPipelined, initiation_interval));
  return absl::OkStatus();
}

absl::Status Schedule::Bind(const Expr& loop, LoopKind kind) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  if (!IsGpuIndex(kind)) return UserError("E-SCHED-008", fmt::format("{} is no GPU index", LoopKindName(kind)));
  bool taken = false;
  ForEachStmt(function_.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kFor || s->loop_kind != kind) return;
    bool around = false;
    ForEachStmt(s->body, [&](const Stmt& inner) { around = around || inner.get() == stmt.get(); });
    taken = taken || around;
  });
  ForEachStmt(stmt->body, [&](const Stmt& s) { taken = taken || (s->kind == StmtKind::kFor && s->loop_kind == kind); });
  if (taken) return UserError("E-SCHED-008", fmt::format("a loop around or inside {} is {} already", loop->name, LoopKindName(kind)));
  if (!IterationsAreIndependent(stmt)) {
    return UserError("E-SCHED-006", fmt::format("{} cannot be bound: its iterations depend on one another", loop->name));
  }
  function_.body = ReplaceStmt(function_.body, stmt.get(), WithKind(stmt, kind));
  return absl::OkStatus();
}

absl::Status Schedule::Tensorise(const Expr& loop, std::string intrinsic) {
  HEDDLE_ASSIGN_OR_RETURN(Stmt stmt, LoopOf(function_, loop));
  StmtNode node = *stmt;
  node.annotation = std::move(intrinsic);
  function_.body = ReplaceStmt(function_.body, stmt.get(), Stmt(std::make_shared<const StmtNode>(std::move(node))));
  return absl::OkStatus();
}

}  // namespace heddle::ir::loops
