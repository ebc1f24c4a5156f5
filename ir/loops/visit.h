// Walking and rebuilding expressions and statements.
#ifndef HEDDLE_IR_LOOPS_VISIT_H_
#define HEDDLE_IR_LOOPS_VISIT_H_

#include <functional>
#include <unordered_map>
#include <vector>

#include "ir/loops/expr.h"
#include "ir/loops/stmt.h"

namespace heddle::ir::loops {

// Calls `visit` on every node once (shared nodes once), operands before users.
void ForEachExpr(const Expr& expr, const std::function<void(const Expr&)>& visit);
// Every statement, outer before inner.
void ForEachStmt(const Stmt& stmt, const std::function<void(const Stmt&)>& visit);
// Every expression that stands directly in some statement (indices, values, conditions).
void ForEachRootExpr(const Stmt& stmt, const std::function<void(const Expr&)>& visit);

// Rebuilds bottom-up: `rewrite` gets each node with its operands already rewritten and returns the replacement (or the
// node itself). Shared nodes are rewritten once.
Expr RewriteExpr(const Expr& expr, const std::function<Expr(const Expr&)>& rewrite);
// Applies `rewrite` to every root expression of the statement.
Stmt RewriteRootExprs(const Stmt& stmt, const std::function<Expr(const Expr&)>& rewrite);
// Rebuilds statements bottom-up.
Stmt RewriteStmt(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& rewrite);
// The node with other children (For, Allocate, Let: {body}; If: {then, else}; Block: all).
Stmt WithBody(const Stmt& stmt, Stmt body);

using Substitution = std::unordered_map<const ExprNode*, Expr>;  // variable -> replacement
Expr Substitute(const Expr& expr, const Substitution& substitution);
Stmt Substitute(const Stmt& stmt, const Substitution& substitution);
// Every access of `from` becomes one of `to`, with indices changed by `map` (identity where null).
Stmt ReplaceBuffer(const Stmt& stmt, const Buffer& from, const Buffer& to,
                   const std::function<std::vector<Expr>(const std::vector<Expr>&)>& map = nullptr);

bool UsesVar(const Expr& expr, const Expr& var);
bool UsesVar(const Stmt& stmt, const Expr& var);
bool ReadsBuffer(const Expr& expr, const Buffer& buffer);

// Row-major position of an element: sum of index * stride, as i64.
Expr FlatIndex(const Buffer& buffer, const std::vector<Expr>& indices);
std::vector<int64_t> RowMajorStrides(const Shape& shape);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_VISIT_H_
