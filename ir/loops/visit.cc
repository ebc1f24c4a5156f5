// Walking and rebuilding trees. Rebuilding keeps shared nodes shared and returns the old node where nothing changed, so
// that transformations cost what they change.

#include "ir/loops/visit.h"

#include <unordered_set>

namespace heddle::ir::loops {
namespace {

void VisitOnce(const Expr& expr, std::unordered_set<const ExprNode*>& seen, const std::function<void(const Expr&)>& visit) {
  if (!seen.insert(expr.get()).second) return;
  for (const Expr& operand : expr->operands) VisitOnce(operand, seen, visit);
  visit(expr);
}

using Memo = std::unordered_map<const ExprNode*, Expr>;

Expr RewriteOnce(const Expr& expr, Memo& memo, const std::function<Expr(const Expr&)>& rewrite) {
  if (auto it = memo.find(expr.get()); it != memo.end()) return it->second;
  bool changed = false;
  std::vector<Expr> operands;
  operands.reserve(expr->operands.size());
  for (const Expr& operand : expr->operands) {
    operands.push_back(RewriteOnce(operand, memo, rewrite));
    changed = changed || operands.back().get() != operand.get();
  }
  Expr result = rewrite(changed ? WithOperands(expr, std::move(operands)) : expr);
  memo.emplace(expr.get(), result);
  return result;
}

Stmt Copy(const StmtNode& node) { return Stmt(std::make_shared<const StmtNode>(node)); }

}  // namespace

void ForEachExpr(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  std::unordered_set<const ExprNode*> seen;
  VisitOnce(expr, seen, visit);
}

void ForEachStmt(const Stmt& stmt, const std::function<void(const Stmt&)>& visit) {
  if (!stmt) return;
  visit(stmt);
  ForEachStmt(stmt->body, visit);
  ForEachStmt(stmt->else_body, visit);
  for (const Stmt& child : stmt->statements) ForEachStmt(child, visit);
}

void ForEachRootExpr(const Stmt& stmt, const std::function<void(const Expr&)>& visit) {
  ForEachStmt(stmt, [&](const Stmt& s) {
    for (const Expr& index : s->indices) visit(index);
    if (s->value) visit(s->value);
  });
}

Expr RewriteExpr(const Expr& expr, const std::function<Expr(const Expr&)>& rewrite) {
  Memo memo;
  return RewriteOnce(expr, memo, rewrite);
}

Stmt RewriteStmt(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& rewrite) {
  if (!stmt) return stmt;
  StmtNode node = *stmt;
  bool changed = false;
  auto update = [&](Stmt& child) {
    Stmt next = RewriteStmt(child, rewrite);
    changed = changed || next.get() != child.get();
    child = std::move(next);
  };
  update(node.body);
  update(node.else_body);
  if (node.kind == StmtKind::kBlock) {
    for (Stmt& child : node.statements) update(child);
    return rewrite(changed ? Block(std::move(node.statements)) : stmt);
  }
  return rewrite(changed ? Copy(node) : stmt);
}

Stmt RewriteRootExprs(const Stmt& stmt, const std::function<Expr(const Expr&)>& rewrite) {
  return RewriteStmt(stmt, [&](const Stmt& s) {
    if (!s->value && s->indices.empty()) return s;
    StmtNode node = *s;
    bool changed = false;
    auto update = [&](Expr& expr) {
      Expr next = rewrite(expr);
      changed = changed || next.get() != expr.get();
      expr = std::move(next);
    };
    for (Expr& index : node.indices) update(index);
    if (node.value) update(node.value);
    return changed ? Copy(node) : s;
  });
}

Stmt WithBody(const Stmt& stmt, Stmt body) {
  StmtNode node = *stmt;
  node.body = std::move(body);
  return Copy(node);
}

Expr Substitute(const Expr& expr, const Substitution& substitution) {
  if (substitution.empty()) return expr;
  return RewriteExpr(expr, [&](const Expr& e) {
    if (e->kind != ExprKind::kVar) return e;
    auto it = substitution.find(e.get());
    return it == substitution.end() ? e : it->second;
  });
}

Stmt Substitute(const Stmt& stmt, const Substitution& substitution) {
  if (substitution.empty()) return stmt;
  return RewriteRootExprs(stmt, [&](const Expr& e) { return Substitute(e, substitution); });
}

Stmt ReplaceBuffer(const Stmt& stmt, const Buffer& from, const Buffer& to,
                   const std::function<std::vector<Expr>(const std::vector<Expr>&)>& map) {
  auto in_expr = [&](const Expr& root) {
    return RewriteExpr(root, [&](const Expr& e) {
      if (e->kind != ExprKind::kLoad || !(e->buffer == from)) return e;
      return Load(to, map ? map(e->operands) : e->operands);
    });
  };
  return RewriteStmt(RewriteRootExprs(stmt, in_expr), [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore && s->buffer == from) return Store(to, map ? map(s->indices) : s->indices, s->value);
    return s;
  });
}

bool UsesVar(const Expr& expr, const Expr& var) {
  bool uses = false;
  ForEachExpr(expr, [&](const Expr& e) { uses = uses || e.get() == var.get(); });
  return uses;
}

bool UsesVar(const Stmt& stmt, const Expr& var) {
  bool uses = false;
  ForEachRootExpr(stmt, [&](const Expr& e) { uses = uses || UsesVar(e, var); });
  return uses;
}

bool ReadsBuffer(const Expr& expr, const Buffer& buffer) {
  bool reads = false;
  ForEachExpr(expr, [&](const Expr& e) { reads = reads || (e->kind == ExprKind::kLoad && e->buffer == buffer); });
  return reads;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (int d = static_cast<int>(shape.size()) - 2; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = strides[static_cast<size_t>(d) + 1] * shape[static_cast<size_t>(d) + 1];
  }
  return strides;
}

Expr FlatIndex(const Buffer& buffer, const std::vector<Expr>& indices) {
  const std::vector<int64_t> strides = RowMajorStrides(buffer.shape());
  Expr flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) flat = flat + indices[d] * IntConstant(ElementType::kInt64, strides[d]);
  return flat;
}

}  // namespace heddle::ir::loops
