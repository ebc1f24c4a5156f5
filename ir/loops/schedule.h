// Schedule primitives: transformations of a function's loops that keep its result. Each checks that it is legal and
// returns E-SCHED-… otherwise, leaving the function as it was. Loops are named by their variable (unique in a function);
// FindLoop gives the variable of a loop by its name.
#ifndef HEDDLE_IR_LOOPS_SCHEDULE_H_
#define HEDDLE_IR_LOOPS_SCHEDULE_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/loops/stmt.h"

namespace heddle::ir::loops {

// What to do with the last iterations where a split does not divide the extent.
enum class Tail : uint8_t {
  kGuard,  // one nest, its body under an If
  kPeel,   // a main nest of whole tiles and a second loop for the rest
};

class Schedule {
 public:
  explicit Schedule(Function function) : function_(std::move(function)) {}
  const Function& function() const { return function_; }

  absl::StatusOr<Expr> FindLoop(std::string_view name) const;
  // Variables of all loops, outer before inner.
  std::vector<Expr> Loops() const;
  absl::StatusOr<int64_t> Extent(const Expr& loop) const;

  // loop -> (outer, inner) with inner extent `factor`; value = outer * factor + inner. 1 <= factor. After kPeel the
  // returned pair names the main nest (the rest is a serial loop `<name>_tail`).
  absl::StatusOr<std::pair<Expr, Expr>> Split(const Expr& loop, int64_t factor, Tail tail = Tail::kGuard);
  // Puts the perfectly nested loops in the given order (they may be listed partially: the others keep their places). Legal where
  // no two iterations conflict, or only as updates of one sum, product, minimum or maximum (a float sum may then round otherwise,
  // within the op's bound; integers are exact).
  absl::Status Reorder(const std::vector<Expr>& order);
  // Two perfectly nested loops become one; value = outer * extent(inner) + inner.
  absl::StatusOr<Expr> Fuse(const Expr& outer, const Expr& inner);

  // Moves a loop with independent iterations inwards, into every statement of its body: temporaries inside get one element
  // per iteration, and `for v { s1; for r { s2 } }` becomes `for v { s1 }; for r { for v' { s2 } }` (register blocking: a tile
  // of sums that advances together). Returns the variables of the innermost loops that result.
  absl::StatusOr<std::vector<Expr>> Interleave(const Expr& loop);

  absl::Status Unroll(const Expr& loop);
  // Iterations must be independent. Temporaries allocated inside get a lane dimension.
  absl::Status Vectorise(const Expr& loop);
  absl::Status Parallelise(const Expr& loop);
  absl::Status Pipeline(const Expr& loop, int initiation_interval);
  // kind is one of the GPU indices; iterations must be independent, and no loop around may have the same kind.
  absl::Status Bind(const Expr& loop, LoopKind kind);
  // Marks the nest as implemented by a hardware intrinsic. The nest stays as its meaning.
  absl::Status Tensorise(const Expr& loop, std::string intrinsic);
  // Splits an allocated array over memories.
  absl::Status PartitionArray(std::string_view buffer, ArrayPartition partition);

  // Copies the part of `buffer` that the body of `loop` reads into a new temporary before each iteration of `loop`, and reads
  // that instead. Indices of the reads are affine. Returns the temporary.
  absl::StatusOr<Buffer> CacheRead(std::string_view buffer, const Expr& loop, MemorySpace space);
  // As CacheRead for a buffer that the body only writes (every element of the touched box, else the old contents are read first).
  absl::StatusOr<Buffer> CacheWrite(std::string_view buffer, const Expr& loop, MemorySpace space);
  // Moves the nest that computes the temporary `buffer` into the body of `loop`, shrunk to what that body reads.
  absl::Status ComputeAt(std::string_view buffer, const Expr& loop);

 private:
  Function function_;
};

// True where no iteration of `loop` (a kFor) reads or writes what another one writes; conservative.
bool IterationsAreIndependent(const Stmt& loop);

// True where two iterations of the nest around `body` that touch the same element (one of them writing) have the same value of
// `var`, whatever the `free` variables (extents given) are; other variables are fixed.
bool ConflictOnlyAtEqual(const Expr& var, const Stmt& body, const std::vector<std::pair<Expr, int64_t>>& free);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_SCHEDULE_H_
