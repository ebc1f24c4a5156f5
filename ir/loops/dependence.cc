// When may iterations run in any order? Two accesses of a buffer cannot meet in different iterations of v where in some
// dimension (or in the flattened index) both are c * v + rest, |c| is more than the spread of the rests, and the parts that
// depend on variables outside are the same. Quotients and remainders that a fused loop leaves are put together again first.

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "ir/loops/schedule.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"

namespace heddle::ir::loops {
namespace {

// constant + sum of coefficient * atom; an atom is a variable or a quotient or remainder.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;

  void Add(const Expr& atom, int64_t coefficient) {
    for (auto& term : terms) {
      if (SameExpr(term.first, atom)) {
        term.second += coefficient;
        return;
      }
    }
    terms.emplace_back(atom, coefficient);
  }
};

bool IsQuotient(const Expr& e) {
  return e->kind == ExprKind::kBinary && (e->binary == BinaryOp::kFloorDiv || e->binary == BinaryOp::kDiv);
}
bool IsRemainder(const Expr& e) {
  return e->kind == ExprKind::kBinary && (e->binary == BinaryOp::kFloorMod || e->binary == BinaryOp::kMod);
}

bool Collect(const Expr& e, int64_t factor, Linear& result) {
  if (e->kind == ExprKind::kIntImm) {
    result.constant += factor * e->int_value;
    return true;
  }
  if (e->kind == ExprKind::kVar || IsQuotient(e) || IsRemainder(e)) {
    result.Add(e, factor);
    return true;
  }
  if (e->kind != ExprKind::kBinary) return false;
  const Expr &a = e->operands[0], &b = e->operands[1];
  if (e->binary == BinaryOp::kAdd) return Collect(a, factor, result) && Collect(b, factor, result);
  if (e->binary == BinaryOp::kSub) return Collect(a, factor, result) && Collect(b, -factor, result);
  if (e->binary != BinaryOp::kMul) return false;
  if (b->kind == ExprKind::kIntImm) return Collect(a, factor * b->int_value, result);
  return a->kind == ExprKind::kIntImm && Collect(b, factor * a->int_value, result);
}

// d * B * (x / d) + B * (x % d) = B * x. True where a pair was joined.
bool JoinOnePair(Linear& linear) {
  for (size_t q = 0; q < linear.terms.size(); ++q) {
    const Expr quotient = linear.terms[q].first;
    if (!IsQuotient(quotient) || quotient->operands[1]->kind != ExprKind::kIntImm) continue;
    for (size_t r = 0; r < linear.terms.size(); ++r) {
      const Expr remainder = linear.terms[r].first;
      if (!IsRemainder(remainder) || !SameExpr(remainder->operands[0], quotient->operands[0]) ||
          !SameExpr(remainder->operands[1], quotient->operands[1])) {
        continue;
      }
      const int64_t factor = linear.terms[r].second;
      if (linear.terms[q].second != factor * quotient->operands[1]->int_value) continue;
      linear.terms.erase(linear.terms.begin() + static_cast<std::ptrdiff_t>(std::max(q, r)));
      linear.terms.erase(linear.terms.begin() + static_cast<std::ptrdiff_t>(std::min(q, r)));
      return Collect(remainder->operands[0], factor, linear);
    }
  }
  return false;
}

std::optional<Linear> LinearOf(const Expr& index) {
  Linear linear;
  if (!Collect(index, 1, linear)) return std::nullopt;
  while (JoinOnePair(linear)) {
  }
  std::erase_if(linear.terms, [](const auto& term) { return term.second == 0; });
  return linear;
}

struct Split {
  int64_t coefficient = 0;  // of the variable in question
  Linear fixed;             // variables outside
  Interval spread;          // of all the rest
};

std::optional<Split> SplitIndex(const Expr& index, const Expr& var, const VarIntervals& free) {
  const std::optional<Linear> linear = LinearOf(index);
  if (!linear) return std::nullopt;
  Split split;
  Expr rest = IntConstant(ElementType::kInt64, linear->constant);
  for (const auto& [atom, coefficient] : linear->terms) {
    if (atom.get() == var.get()) {
      split.coefficient = coefficient;
      continue;
    }
    if (UsesVar(atom, var)) return std::nullopt;
    bool uses_free = false;
    ForEachExpr(atom, [&](const Expr& e) { uses_free = uses_free || free.contains(e.get()); });
    if (uses_free) {
      rest = rest + atom * IntConstant(ElementType::kInt64, coefficient);
    } else {
      split.fixed.Add(atom, coefficient);
    }
  }
  split.spread = BoundsOf(rest, free);
  return split;
}

bool SameTerms(const Linear& a, const Linear& b) {
  if (a.terms.size() != b.terms.size()) return false;
  return std::all_of(a.terms.begin(), a.terms.end(), [&](const auto& x) {
    return std::any_of(b.terms.begin(), b.terms.end(),
                       [&](const auto& y) { return x.second == y.second && SameExpr(x.first, y.first); });
  });
}

// All the indices (one of each access) differ for different values of var.
bool Separates(const std::vector<Expr>& indices, const Expr& var, const VarIntervals& free) {
  std::optional<Split> first;
  Interval spread;
  for (const Expr& index : indices) {
    std::optional<Split> split = SplitIndex(index, var, free);
    if (!split || split->coefficient == 0) return false;
    if (!first) {
      spread = split->spread;
      first = std::move(split);
      continue;
    }
    if (split->coefficient != first->coefficient || !SameTerms(split->fixed, first->fixed)) return false;
    spread = {std::min(spread.low, split->spread.low), std::max(spread.high, split->spread.high)};
  }
  int64_t width = 0;
  if (!first || __builtin_sub_overflow(spread.high, spread.low, &width)) return false;
  return width < std::abs(first->coefficient);
}

struct Accesses {
  Buffer buffer;
  std::vector<std::vector<Expr>> indices;
  bool written = false;
};

std::vector<Accesses> AccessesIn(const Stmt& body) {
  std::vector<Accesses> all;
  std::unordered_set<const BufferNode*> local;
  ForEachStmt(body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kAllocate) local.insert(s->buffer.get());
  });
  auto add = [&](const Buffer& buffer, const std::vector<Expr>& indices, bool written) {
    if (local.contains(buffer.get())) return;
    auto it = std::find_if(all.begin(), all.end(), [&](const Accesses& a) { return a.buffer == buffer; });
    if (it == all.end()) it = all.insert(all.end(), Accesses{buffer, {}, false});
    it->indices.push_back(indices);
    it->written = it->written || written;
  };
  ForEachStmt(body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) add(s->buffer, s->indices, true);
  });
  ForEachRootExpr(body, [&](const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (e->kind == ExprKind::kLoad) add(e->buffer, e->operands, false);
    });
  });
  return all;
}

}  // namespace

Expr JoinQuotients(const Expr& index) {
  const std::optional<Linear> linear = LinearOf(index);
  if (!linear) return index;
  Expr sum = IntConstant(ElementType::kInt64, linear->constant);
  for (const auto& [atom, coefficient] : linear->terms) sum = sum + atom * IntConstant(ElementType::kInt64, coefficient);
  return sum;
}

bool ConflictOnlyAtEqual(const Expr& var, const Stmt& body, const std::vector<std::pair<Expr, int64_t>>& free) {
  VarIntervals intervals;
  for (const auto& [v, extent] : free) intervals[v.get()] = {0, std::max<int64_t>(extent - 1, 0)};
  ForEachStmt(body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor) intervals[s->var.get()] = {0, std::max<int64_t>(s->extent - 1, 0)};
    // A let inside varies in a way that is not followed: as a free variable of unknown range it separates nothing.
    if (s->kind == StmtKind::kLet) intervals[s->var.get()] = Interval{};
  });
  for (const Accesses& accesses : AccessesIn(body)) {
    if (!accesses.written) continue;
    bool separated = false;
    const size_t rank = accesses.buffer.shape().size();
    for (size_t d = 0; d <= rank && !separated; ++d) {
      std::vector<Expr> indices;
      for (const auto& access : accesses.indices) indices.push_back(d < rank ? access[d] : FlatIndex(accesses.buffer, access));
      separated = Separates(indices, var, intervals);
    }
    if (!separated) return false;
  }
  return true;
}

bool IterationsAreIndependent(const Stmt& loop) {
  return loop->extent <= 1 || ConflictOnlyAtEqual(loop->var, loop->body, {});
}

}  // namespace heddle::ir::loops
