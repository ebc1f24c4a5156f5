// Schedule primitives that move data: a temporary for the box of elements that one iteration touches, and a producer that is
// computed where it is used. A box is known where every index is affine: the part of variables outside is its corner, the
// range of the part of variables inside its extent.

#include <algorithm>
#include <unordered_set>

#include "ir/loops/schedule.h"
#include "ir/loops/schedule_internal.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

Expr I64(int64_t value) { return IntConstant(ElementType::kInt64, value); }

struct Box {
  std::vector<Expr> corner;  // of variables outside
  Shape extents;
};

using Access = std::vector<Expr>;

std::vector<Access> ReadsOf(const Stmt& body, const Buffer& buffer) {
  std::vector<Access> reads;
  ForEachRootExpr(body, [&](const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (e->kind == ExprKind::kLoad && e->buffer == buffer) reads.push_back(e->operands);
    });
  });
  return reads;
}

std::vector<Access> WritesOf(const Stmt& body, const Buffer& buffer) {
  std::vector<Access> writes;
  ForEachStmt(body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore && s->buffer == buffer) writes.push_back(s->indices);
  });
  return writes;
}

VarIntervals LoopIntervals(const Stmt& stmt) {
  VarIntervals intervals;
  ForEachStmt(stmt, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor) intervals[s->var.get()] = {0, std::max<int64_t>(s->extent - 1, 0)};
    if (s->kind == StmtKind::kLet) intervals[s->var.get()] = Interval{};
  });
  return intervals;
}

absl::StatusOr<Box> BoxOf(const Buffer& buffer, const std::vector<Access>& accesses, const Stmt& body) {
  const absl::Status refused = UserError(
      "E-SCHED-010", fmt::format("the elements of {} that one iteration touches are not a box of fixed size", buffer->name));
  const VarIntervals inside = LoopIntervals(body);
  Box box;
  for (size_t d = 0; d < buffer.shape().size(); ++d) {
    std::optional<Affine> outside;
    Expr corner = 0;
    Interval range;
    for (const Access& access : accesses) {
      std::optional<Affine> affine = AffineOf(access[d]);
      if (!affine) return refused;
      Expr inner = I64(affine->constant), outer = 0;
      Affine outer_part;
      std::vector<Expr> vars;
      ForEachExpr(access[d], [&](const Expr& e) {
        if (e->kind == ExprKind::kVar && affine->coefficient(e) != 0) vars.push_back(e);
      });
      for (const Expr& var : vars) {
        const int64_t coefficient = affine->coefficient(var);
        if (inside.contains(var.get())) {
          inner = inner + var * I64(coefficient);
        } else {
          outer = outer + var * I64(coefficient);
          outer_part.coefficients[var.get()] = coefficient;
        }
      }
      const Interval bounds = BoundsOf(inner, inside);
      if (!outside) {
        outside = outer_part;
        corner = outer;
        range = bounds;
      } else {
        if (outside->coefficients != outer_part.coefficients) return refused;
        range = {std::min(range.low, bounds.low), std::max(range.high, bounds.high)};
      }
    }
    int64_t extent = 0;
    constexpr int64_t kLargestExtent = int64_t{1} << 40;
    if (__builtin_sub_overflow(range.high, range.low, &extent) || extent >= kLargestExtent) return refused;
    box.corner.push_back(corner + I64(range.low));
    box.extents.push_back(extent + 1);
  }
  return box;
}

absl::StatusOr<Buffer> BufferOf(const Function& function, std::string_view name) {
  Buffer found;
  auto look = [&](const Buffer& buffer) {
    if (buffer->name == name) found = buffer;
  };
  for (const Param& param : function.params) look(param.buffer);
  ForEachStmt(function.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kAllocate) look(s->buffer);
  });
  for (const Buffer& table : TablesOf(function)) look(table);
  if (found) return found;
  return UserError("E-SCHED-001", fmt::format("{} has no buffer {}", function.name, std::string(name)));
}

// The buffer exists at `stmt`: a parameter, a table, or allocated around it.
bool IsVisibleAt(const Function& function, const Buffer& buffer, const Stmt& stmt) {
  if (buffer->contents) return true;
  bool visible = std::any_of(function.params.begin(), function.params.end(), [&](const Param& p) { return p.buffer == buffer; });
  ForEachStmt(function.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kAllocate || !(s->buffer == buffer)) return;
    ForEachStmt(s->body, [&](const Stmt& inner) { visible = visible || inner.get() == stmt.get(); });
  });
  return visible;
}

// Loops over a box with fresh variables; `body` gets the position in the box.
Stmt OverBox(const Function& function, const std::string& name, const Shape& extents,
             const std::function<Stmt(const std::vector<Expr>&)>& body) {
  std::vector<Expr> vars;
  for (size_t d = 0; d < extents.size(); ++d) vars.push_back(Var(FreshName(function, fmt::format("{}_{}", name, d))));
  Stmt stmt = body(vars);
  for (size_t d = extents.size(); d-- > 0;) stmt = For(vars[d], extents[d], stmt);
  return stmt;
}

std::vector<Expr> Plus(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  std::vector<Expr> sum;
  for (size_t d = 0; d < a.size(); ++d) sum.push_back(a[d] + b[d]);
  return sum;
}

// True where the indices lie in the buffer; constant true where that is known.
Expr Inside(const Function& function, const Buffer& buffer, const std::vector<Expr>& indices, const Shape& extents,
            const std::vector<Expr>& vars) {
  VarIntervals intervals = LoopIntervals(function.body);
  for (size_t d = 0; d < vars.size(); ++d) intervals[vars[d].get()] = {0, extents[d] - 1};
  Expr inside = True();
  for (size_t d = 0; d < indices.size(); ++d) inside = And(inside, InRange(indices[d], 0, buffer.shape()[d]));
  return Simplify(inside, intervals);
}

std::function<std::vector<Expr>(const std::vector<Expr>&)> RelativeTo(const Box& box) {
  return [box](const std::vector<Expr>& indices) {
    std::vector<Expr> relative;
    for (size_t d = 0; d < indices.size(); ++d) relative.push_back(Simplify(indices[d] - box.corner[d]));
    return relative;
  };
}

// Every element of the box is written in each iteration: one store, under no condition, whose indices are different loop
// variables of the body.
bool Covers(const Stmt& body, const Buffer& buffer) {
  bool conditional = false;
  std::vector<Access> writes = WritesOf(body, buffer);
  ForEachStmt(body, [&](const Stmt& s) { conditional = conditional || (s->kind == StmtKind::kIf && !WritesOf(s, buffer).empty()); });
  if (conditional || writes.size() != 1) return false;
  const VarIntervals inside = LoopIntervals(body);
  std::unordered_set<const ExprNode*> seen;
  for (const Expr& index : writes[0]) {
    const std::optional<Affine> affine = AffineOf(index);
    if (!affine) return false;
    int inner = 0;
    for (const auto& [var, coefficient] : affine->coefficients) {
      if (!inside.contains(var)) continue;
      ++inner;
      if (coefficient != 1 || !seen.insert(var).second) return false;
    }
    if (inner > 1) return false;
  }
  return true;
}

// Everything around and at `target` runs its iterations in order.
bool IsSerial(const Stmt& root, const StmtNode* target) {
  bool serial = true;
  ForEachStmt(root, [&](const Stmt& s) {
    if (s->kind != StmtKind::kFor) return;
    bool around = false;
    ForEachStmt(s, [&](const Stmt& inner) { around = around || inner.get() == target; });
    const bool ordered = s->loop_kind == LoopKind::kSerial || s->loop_kind == LoopKind::kUnrolled || s->loop_kind == LoopKind::kPipelined;
    serial = serial && (!around || ordered);
  });
  return serial;
}

}  // namespace

absl::StatusOr<Buffer> Schedule::CacheRead(std::string_view name, const Expr& loop, MemorySpace space) {
  HEDDLE_ASSIGN_OR_RETURN(const Stmt stmt, LoopOf(function_, loop));
  HEDDLE_ASSIGN_OR_RETURN(const Buffer buffer, BufferOf(function_, name));
  const std::vector<Access> reads = ReadsOf(stmt->body, buffer);
  if (reads.empty() || !WritesOf(stmt->body, buffer).empty() || !IsVisibleAt(function_, buffer, stmt)) {
    return UserError("E-SCHED-009", fmt::format("the body of {} does not read {}, or writes or allocates it", loop->name,
                                                buffer->name));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Box box, BoxOf(buffer, reads, stmt->body));
  Buffer cache(FreshName(function_, buffer->name + "_cache"), buffer.type(), box.extents, space);
  Stmt copy = OverBox(function_, cache->name, box.extents, [&](const std::vector<Expr>& at) {
    const std::vector<Expr> from = Plus(box.corner, at);
    const Expr inside = Inside(function_, buffer, from, box.extents, at);
    Expr value = buffer.At(from);
    if (!IsIntConstant(inside, 1)) value = Select(inside, value, Constant(buffer.type(), 0));
    return Store(cache, at, value);
  });
  Stmt body = Block({copy, ReplaceBuffer(stmt->body, buffer, cache, RelativeTo(box))});
  function_.body = ReplaceStmt(function_.body, stmt.get(), WithBody(stmt, Allocate(cache, body)));
  return cache;
}

absl::StatusOr<Buffer> Schedule::CacheWrite(std::string_view name, const Expr& loop, MemorySpace space) {
  HEDDLE_ASSIGN_OR_RETURN(const Stmt stmt, LoopOf(function_, loop));
  HEDDLE_ASSIGN_OR_RETURN(const Buffer buffer, BufferOf(function_, name));
  std::vector<Access> accesses = WritesOf(stmt->body, buffer);
  const std::vector<Access> reads = ReadsOf(stmt->body, buffer);
  if (accesses.empty() || !IsVisibleAt(function_, buffer, stmt)) {
    return UserError("E-SCHED-009", fmt::format("the body of {} does not write {}, or allocates it", loop->name, buffer->name));
  }
  accesses.insert(accesses.end(), reads.begin(), reads.end());
  HEDDLE_ASSIGN_OR_RETURN(const Box box, BoxOf(buffer, accesses, stmt->body));
  const bool covers = reads.empty() && Covers(stmt->body, buffer);
  if (!covers && !IsSerial(function_.body, stmt.get())) {
    return UserError("E-SCHED-011", fmt::format("iterations around {} may run together, and each would write back elements of {} "
                                                "that are another one's", loop->name, buffer->name));
  }
  Buffer cache(FreshName(function_, buffer->name + "_cache"), buffer.type(), box.extents, space);
  auto copy = [&](bool in) {
    return OverBox(function_, cache->name + (in ? "_in" : "_out"), box.extents, [&](const std::vector<Expr>& at) {
      const std::vector<Expr> there = Plus(box.corner, at);
      const Expr inside = Inside(function_, buffer, there, box.extents, at);
      Stmt move = in ? Store(cache, at, buffer.At(there)) : Store(buffer, there, cache.At(at));
      return IsIntConstant(inside, 1) ? move : If(inside, move);
    });
  };
  Stmt body = ReplaceBuffer(stmt->body, buffer, cache, RelativeTo(box));
  body = Block({covers ? Stmt() : copy(true), body, copy(false)});
  function_.body = ReplaceStmt(function_.body, stmt.get(), WithBody(stmt, Allocate(cache, body)));
  return cache;
}

absl::Status Schedule::ComputeAt(std::string_view name, const Expr& loop) {
  HEDDLE_ASSIGN_OR_RETURN(const Stmt stmt, LoopOf(function_, loop));
  HEDDLE_ASSIGN_OR_RETURN(const Buffer buffer, BufferOf(function_, name));
  const absl::Status refused = UserError(
      "E-SCHED-012", fmt::format("{} is not a temporary that one loop nest computes, element by element, for {} alone", buffer->name,
                                 loop->name));
  // The producer: the outermost loop that holds every write, with one loop for each dimension.
  Stmt producer;
  bool allocated = false;
  ForEachStmt(function_.body, [&](const Stmt& s) {
    allocated = allocated || (s->kind == StmtKind::kAllocate && s->buffer == buffer);
    if (!producer && s->kind == StmtKind::kFor && !WritesOf(s, buffer).empty()) producer = s;
  });
  const size_t writes = WritesOf(function_.body, buffer).size();
  if (!allocated || !producer || WritesOf(producer, buffer).size() != writes) return refused;
  std::vector<Expr> axes;
  Stmt body = producer;
  while (axes.size() < buffer.shape().size() && body->kind == StmtKind::kFor) {
    axes.push_back(body->var);
    if (body->extent != buffer.shape()[axes.size() - 1]) return refused;
    body = body->body;
  }
  std::vector<Access> own = WritesOf(body, buffer);
  const std::vector<Access> own_reads = ReadsOf(body, buffer);
  own.insert(own.end(), own_reads.begin(), own_reads.end());
  for (const Access& access : own) {
    for (size_t d = 0; d < access.size(); ++d) {
      if (axes.size() != access.size() || access[d].get() != axes[d].get()) return refused;
    }
  }
  // All readers inside the loop, which is elsewhere; what the producer reads is written by nobody else.
  const std::vector<Access> reads = ReadsOf(stmt->body, buffer);
  if (reads.empty() || reads.size() + own_reads.size() != ReadsOf(function_.body, buffer).size()) return refused;
  bool overlaps = false;
  ForEachStmt(producer, [&](const Stmt& s) { overlaps = overlaps || s.get() == stmt.get(); });
  ForEachStmt(stmt, [&](const Stmt& s) { overlaps = overlaps || s.get() == producer.get(); });
  if (overlaps) return refused;
  std::unordered_set<const BufferNode*> sources;
  bool changed = false;
  ForEachRootExpr(producer, [&](const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (e->kind != ExprKind::kLoad || e->buffer == buffer || !sources.insert(e->buffer.get()).second) return;
      bool inside = false;
      ForEachStmt(producer, [&](const Stmt& s) { inside = inside || (s->kind == StmtKind::kAllocate && s->buffer == e->buffer); });
      changed = changed || (!inside && !IsVisibleAt(function_, e->buffer, stmt)) ||
                WritesOf(function_.body, e->buffer).size() != WritesOf(producer, e->buffer).size();
    });
  });
  if (changed) return refused;
  HEDDLE_ASSIGN_OR_RETURN(const Box box, BoxOf(buffer, reads, stmt->body));
  Buffer local(FreshName(function_, buffer->name + "_here"), buffer.type(), box.extents, buffer->space);
  const Stmt element = FreshCopy(function_, body);
  Stmt compute = OverBox(function_, local->name, box.extents, [&](const std::vector<Expr>& at) {
    const std::vector<Expr> there = Plus(box.corner, at);
    Substitution where;
    for (size_t d = 0; d < axes.size(); ++d) where[axes[d].get()] = there[d];
    const Expr inside = Inside(function_, buffer, there, box.extents, at);
    Stmt here = Substitute(ReplaceBuffer(element, buffer, local, [&](const std::vector<Expr>&) { return at; }), where);
    return IsIntConstant(inside, 1) ? here : If(inside, here);
  });
  Stmt consumer = ReplaceBuffer(stmt->body, buffer, local, RelativeTo(box));
  function_.body = ReplaceStmt(function_.body, stmt.get(), WithBody(stmt, Allocate(local, Block({compute, consumer}))));
  function_.body = ReplaceStmt(function_.body, producer.get(), Block({}));
  function_.body = RewriteStmt(function_.body, [&](const Stmt& s) {
    return s->kind == StmtKind::kAllocate && s->buffer == buffer ? s->body : s;
  });
  return absl::OkStatus();
}

absl::Status Schedule::PartitionArray(std::string_view name, ArrayPartition partition) {
  Stmt allocation;
  ForEachStmt(function_.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kAllocate && s->buffer->name == name) allocation = s;
  });
  if (!allocation) return UserError("E-SCHED-001", fmt::format("{} allocates no buffer {}", function_.name, std::string(name)));
  const int rank = allocation->buffer.rank();
  const bool factored = partition.kind == PartitionKind::kCyclic || partition.kind == PartitionKind::kBlock;
  if (partition.dimension < 0 || partition.dimension >= rank ||
      (factored && (partition.factor < 1 || partition.factor > allocation->buffer.shape()[static_cast<size_t>(partition.dimension)]))) {
    return UserError("E-SCHED-013", fmt::format("{} has {} dimensions of {}; dimension {} with factor {} does not fit",
                                                allocation->buffer->name, rank, ShapeText(allocation->buffer.shape()),
                                                partition.dimension, partition.factor));
  }
  std::vector<ArrayPartition> partitions = allocation->partitions;
  std::erase_if(partitions, [&](const ArrayPartition& p) { return p.dimension == partition.dimension; });
  partitions.push_back(partition);
  function_.body = ReplaceStmt(function_.body, allocation.get(), Allocate(allocation->buffer, allocation->body, partitions));
  return absl::OkStatus();
}

}  // namespace heddle::ir::loops
