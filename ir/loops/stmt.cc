// Construction of loop statements.

#include "ir/loops/stmt.h"

#include <unordered_set>

#include "ir/check.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

Stmt Make(StmtNode node) { return Stmt(std::make_shared<const StmtNode>(std::move(node))); }

}  // namespace

std::string_view LoopKindName(LoopKind kind) {
  static constexpr std::string_view kNames[] = {"serial", "parallel", "vectorised", "unrolled", "pipelined", "block_x",
                                                "block_y", "block_z", "thread_x", "thread_y", "thread_z"};
  return kNames[static_cast<size_t>(kind)];
}

bool IsGpuIndex(LoopKind kind) { return kind >= LoopKind::kBlockX; }

Stmt For(Expr var, int64_t extent, Stmt body, LoopKind kind) {
  HEDDLE_CHECK(var->kind == ExprKind::kVar && var.type() == ElementType::kInt64, "a loop variable is an i64 variable");
  HEDDLE_CHECK(extent >= 0, "negative extent of a loop");
  StmtNode node;
  node.kind = StmtKind::kFor;
  node.var = std::move(var);
  node.extent = extent;
  node.loop_kind = kind;
  node.body = std::move(body);
  return Make(std::move(node));
}

Stmt For(std::string_view name, int64_t extent, const std::function<Stmt(Expr)>& body, LoopKind kind) {
  Expr var = Var(std::string(name));
  return For(var, extent, body(var), kind);
}

Stmt Store(Buffer buffer, std::vector<Expr> indices, Expr value) {
  HEDDLE_CHECK(indices.size() == buffer.shape().size(),
               fmt::format("{} indices for {} of rank {}", indices.size(), buffer->name, buffer.rank()));
  HEDDLE_CHECK(value.type() == buffer.type(), fmt::format("{} stored to {} of {}", ElementTypeName(value.type()), buffer->name,
                                                          ElementTypeName(buffer.type())));
  HEDDLE_CHECK(buffer->space != MemorySpace::kConstant, "a store to a table");
  StmtNode node;
  node.kind = StmtKind::kStore;
  node.buffer = std::move(buffer);
  node.indices = std::move(indices);
  node.value = std::move(value);
  return Make(std::move(node));
}

Stmt If(Expr condition, Stmt then_body, Stmt else_body) {
  HEDDLE_CHECK(condition.type() == ElementType::kBool, "an if's condition is bool");
  StmtNode node;
  node.kind = StmtKind::kIf;
  node.value = std::move(condition);
  node.body = std::move(then_body);
  node.else_body = std::move(else_body);
  return Make(std::move(node));
}

Stmt Block(std::vector<Stmt> statements) {
  StmtNode node;
  node.kind = StmtKind::kBlock;
  for (Stmt& statement : statements) {
    if (!statement) continue;
    if (statement->kind == StmtKind::kBlock) {
      node.statements.insert(node.statements.end(), statement->statements.begin(), statement->statements.end());
    } else {
      node.statements.push_back(std::move(statement));
    }
  }
  if (node.statements.size() == 1) return node.statements[0];
  return Make(std::move(node));
}

Stmt Allocate(Buffer buffer, Stmt body, std::vector<ArrayPartition> partitions) {
  StmtNode node;
  node.kind = StmtKind::kAllocate;
  node.buffer = std::move(buffer);
  node.body = std::move(body);
  node.partitions = std::move(partitions);
  return Make(std::move(node));
}

Stmt Let(Expr var, Expr value, Stmt body) {
  HEDDLE_CHECK(var->kind == ExprKind::kVar && var.type() == value.type(), "a let binds a variable of the value's type");
  StmtNode node;
  node.kind = StmtKind::kLet;
  node.var = std::move(var);
  node.value = std::move(value);
  node.body = std::move(body);
  return Make(std::move(node));
}

Stmt Barrier() {
  StmtNode node;
  node.kind = StmtKind::kBarrier;
  return Make(std::move(node));
}

std::vector<Buffer> TablesOf(const Function& function) {
  std::vector<Buffer> tables;
  std::unordered_set<const BufferNode*> seen;
  ForEachRootExpr(function.body, [&](const Expr& root) {
    ForEachExpr(root, [&](const Expr& expr) {
      if (expr->kind != ExprKind::kLoad || expr->buffer->contents == nullptr) return;
      if (seen.insert(expr->buffer.get()).second) tables.push_back(expr->buffer);
    });
  });
  return tables;
}

}  // namespace heddle::ir::loops
