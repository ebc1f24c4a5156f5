// Constant folding, integer identities, and interval analysis of index arithmetic.
#ifndef HEDDLE_IR_LOOPS_SIMPLIFY_H_
#define HEDDLE_IR_LOOPS_SIMPLIFY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>

#include "ir/loops/expr.h"
#include "ir/loops/stmt.h"

namespace heddle::ir::loops {

// Values an integer expression can take, both ends included.
struct Interval {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  bool is_constant() const { return low == high; }
  bool operator==(const Interval&) const = default;
};
using VarIntervals = std::unordered_map<const ExprNode*, Interval>;

// Sound bounds of an integer or bool expression; variables that are not listed have their type's range.
Interval BoundsOf(const Expr& expr, const VarIntervals& vars);

// The same value in simpler form, never evaluating more than before.
Expr Simplify(const Expr& expr, const VarIntervals& vars = {});
// Also drops loops of extent 0, replaces the variable of loops of extent 1, drops decided Ifs.
Stmt Simplify(const Stmt& stmt);
Function Simplify(const Function& function);

// Replaces kFloorDiv and kFloorMod by kDiv and kMod (plus a correction where the dividend may be negative): call before printing
// to a language that has only truncating division.
Function LowerFloorDivision(const Function& function);

// expr = constant + sum of coefficient * var, where expr is affine in variables; nullopt otherwise.
struct Affine {
  int64_t constant = 0;
  std::unordered_map<const ExprNode*, int64_t> coefficients;  // no zeros
  int64_t coefficient(const Expr& var) const {
    auto it = coefficients.find(var.get());
    return it == coefficients.end() ? 0 : it->second;
  }
};
std::optional<Affine> AffineOf(const Expr& expr);

// An index with the quotients and remainders of a fused loop put together again: 12 * (i / 4) + 3 * (i % 4) becomes 3 * i. The
// expression itself where it is no sum.
Expr JoinQuotients(const Expr& index);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_SIMPLIFY_H_
