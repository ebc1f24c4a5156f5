// Compute definitions: what an operator means, element by element. Ops (ir/ops) return a list of these; fusion joins
// them, and LowerToFunction makes loops of them.
//
//   // Y = relu(X), any shape
//   return {Compute(out, [&](const Indices& i) { return Max(in.At(i), Constant(in.type(), 0)); })};
//
//   // Y[m, n] = sum over k of A[m, k] * B[k, n], then + C[n]
//   return {Reduce(out, {k_extent}, Combiner::kSum, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); },
//                  [&](Expr sum, const Indices& i) { return sum + c(i[1]); })};
//
//   // Softmax over the last axis of [rows, n]: four stages, of which three fill temporaries
//   Buffer peak("peak", type, {rows}), total("total", type, {rows}), e("e", type, {rows, n});
//   return {Reduce(peak, {n}, Combiner::kMax, …in(i[0], r[0])…), Compute(e, …Exp(in(i[0], i[1]) - peak(i[0]))…),
//           Reduce(total, {n}, Combiner::kSum, …e(i[0], r[0])…), Compute(out, …e(i[0], i[1]) / total(i[0])…)};
//
// Stages are in order: one reads only parameters, tables and the outputs of earlier stages. A read outside a buffer's shape
// is undefined: guard it with Select(InRange(…), in(…), zero), which does not evaluate the branch that is not taken. Values
// that come from data and are used as an index must be clamped by the op.
#ifndef HEDDLE_IR_LOOPS_TENSOR_EXPR_H_
#define HEDDLE_IR_LOOPS_TENSOR_EXPR_H_

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/loops/expr.h"
#include "ir/loops/stmt.h"

namespace heddle::ir::loops {

using Indices = std::vector<Expr>;

struct Axis {
  Expr var;
  int64_t extent = 0;
};

enum class Combiner : uint8_t { kSum, kProduct, kMax, kMin, kAnd, kOr, kCustom };

struct TensorExpr {
  Buffer output;           // shape, type and identity of what this stage computes
  std::vector<Axis> axes;  // one per dimension of the output, outermost first

  // A plain stage (no reduction): output[axes] = value.
  // A reduction: fold `value`, over reduce_axes in row-major order, into `accumulator` starting at `init`
  //   accumulator = combine(accumulator, value); output[axes] = epilogue, an expression of accumulator and axes.
  Expr value;
  bool is_reduction = false;
  std::vector<Axis> reduce_axes;
  Combiner combiner = Combiner::kSum;
  Expr init;
  Expr accumulator;  // variable of the type of `value`
  Expr term;         // variable that stands for `value` in `combine`
  Expr combine;      // of accumulator and term
  Expr epilogue;

  // An operator that is no element-wise definition (scan, sort): statements that write `output` and `also_written`. Such a stage
  // is never fused or rescheduled. `axes` and `value` are empty.
  Stmt imperative;
  std::vector<Buffer> also_written;
};

// output[i] = value(i) for every i of the output's shape. The value has the output's type.
TensorExpr Compute(Buffer output, const std::function<Expr(const Indices&)>& value);

// output[i] = epilogue(fold of value(i, r) over all r, i). init is the combiner's neutral element. Without an epilogue the
// accumulator itself, which must then have the output's type.
TensorExpr Reduce(Buffer output, Shape reduce_extents, Combiner combiner,
                  const std::function<Expr(const Indices&, const Indices&)>& value,
                  const std::function<Expr(Expr, const Indices&)>& epilogue = nullptr);

// As Reduce with any combination of (accumulator, term); `init` starts the fold.
TensorExpr ReduceCustom(Buffer output, Shape reduce_extents, Expr init, const std::function<Expr(Expr, Expr)>& combine,
                        const std::function<Expr(const Indices&, const Indices&)>& value,
                        const std::function<Expr(Expr, const Indices&)>& epilogue = nullptr);

TensorExpr Imperative(std::vector<Buffer> outputs, Stmt body);

// The neutral element of a combiner in a type.
Expr NeutralElement(Combiner combiner, ElementType type);

// ---- Fusion.

// `consumer` with every read of producer.output replaced by the producer's value. The producer is plain (no reduction).
TensorExpr InlineProducer(const TensorExpr& producer, const TensorExpr& consumer);

// True where `consumer` is plain and reads reduction.output only at its own axes (so that it can become an epilogue).
bool CanFuseEpilogue(const TensorExpr& reduction, const TensorExpr& consumer);
// The reduction with the consumer's value as epilogue; writes consumer.output.
TensorExpr FuseEpilogue(const TensorExpr& reduction, const TensorExpr& consumer);

// Fuses a list of stages as far as it pays: plain stages into their readers (where cheap or read once for each element), and plain
// readers into the epilogue of reductions. Buffers in `outputs` stay materialised; stages that nobody reads disappear.
std::vector<TensorExpr> FuseStages(std::vector<TensorExpr> stages, const std::vector<Buffer>& outputs);

// ---- Lowering.

// Serial loops, one nest a stage, in order; every stage output that is not a parameter becomes a temporary (kGlobal). Loop
// variables are unique in the function. Values used several times are bound by Let.
//   E-LOOPS-001 where a stage reads a buffer that is neither parameter, table nor an earlier output.
absl::StatusOr<Function> LowerToFunction(std::string name, const std::vector<TensorExpr>& stages, std::vector<Param> params);

// The loops of one stage, with fresh variables named `prefix` + i0, i1, … and r0, r1, … for reduction axes.
Stmt LowerStage(const TensorExpr& stage, const std::string& prefix = "");

// output[indices] = value with values that are used several times bound by Let (never evaluating what was not evaluated before).
Stmt StoreWithLets(const Buffer& output, std::vector<Expr> indices, const Expr& value);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_TENSOR_EXPR_H_
