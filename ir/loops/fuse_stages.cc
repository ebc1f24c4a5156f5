// Fusion of compute definitions. A plain stage disappears into its readers where that repeats no expensive work; a plain
// reader becomes the epilogue of the reduction it reads. What remains is what needs memory between its parts.

#include <algorithm>

#include "ir/check.h"
#include "ir/loops/tensor_expr.h"
#include "ir/loops/visit.h"

namespace heddle::ir::loops {
namespace {

// Work that may be repeated for every read without asking: a load and about two operations.
constexpr int kCheapCost = 3;

std::vector<Expr*> ExprsOf(TensorExpr& stage) {
  std::vector<Expr*> exprs;
  for (Expr* expr : {&stage.value, &stage.init, &stage.combine, &stage.epilogue}) {
    if (*expr) exprs.push_back(expr);
  }
  return exprs;
}

bool Reads(const TensorExpr& stage, const Buffer& buffer) {
  if (stage.imperative) {
    bool reads = false;
    ForEachRootExpr(stage.imperative, [&](const Expr& e) { reads = reads || ReadsBuffer(e, buffer); });
    return reads;
  }
  for (const Expr& expr : {stage.value, stage.init, stage.combine, stage.epilogue}) {
    if (expr && ReadsBuffer(expr, buffer)) return true;
  }
  return false;
}

// Rough cost of one evaluation, index arithmetic aside.
int Cost(const Expr& expr) {
  int cost = 0;
  switch (expr->kind) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar: return 0;
    case ExprKind::kLoad: return 1;
    case ExprKind::kCast: break;
    case ExprKind::kSelect: cost = 1; break;
    case ExprKind::kCall: cost = expr->intrinsic == Intrinsic::kNeg || expr->intrinsic == Intrinsic::kAbs ? 1 : 12; break;
    case ExprKind::kBinary: cost = expr->binary == BinaryOp::kDiv || expr->binary == BinaryOp::kMod ? 5 : 1; break;
  }
  for (const Expr& operand : expr->operands) cost += Cost(operand);
  return cost;
}

// How often the reader evaluates elements of `buffer` in one run.
double Evaluations(const TensorExpr& reader, const Buffer& buffer) {
  double outputs = 1, terms = 1;
  for (const Axis& axis : reader.axes) outputs *= static_cast<double>(axis.extent);
  for (const Axis& axis : reader.reduce_axes) terms *= static_cast<double>(axis.extent);
  auto distinct_reads = [&](const Expr& expr) {
    std::vector<Expr> loads;
    if (!expr) return 0.0;
    ForEachExpr(expr, [&](const Expr& e) {
      if (e->kind != ExprKind::kLoad || !(e->buffer == buffer)) return;
      if (std::none_of(loads.begin(), loads.end(), [&](const Expr& l) { return SameExpr(l, e); })) loads.push_back(e);
    });
    return static_cast<double>(loads.size());
  };
  if (!reader.is_reduction) return outputs * distinct_reads(reader.value);
  return outputs * terms * distinct_reads(reader.value) + outputs * distinct_reads(reader.epilogue);
}

bool ShouldInline(const TensorExpr& producer, const std::vector<const TensorExpr*>& readers) {
  double evaluations = 0;
  for (const TensorExpr* reader : readers) {
    if (reader->imperative) return false;
    evaluations += Evaluations(*reader, producer.output);
  }
  return Cost(producer.value) <= kCheapCost || evaluations <= static_cast<double>(producer.output->elements());
}

bool Contains(const std::vector<Buffer>& buffers, const Buffer& buffer) {
  return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

// One fusion step at stage `p`; true where something changed.
bool FuseAt(std::vector<TensorExpr>& stages, size_t p, const std::vector<Buffer>& outputs) {
  const TensorExpr producer = stages[p];
  if (producer.imperative || Contains(outputs, producer.output)) return false;
  std::vector<size_t> readers;
  std::vector<const TensorExpr*> reader_stages;
  for (size_t s = p + 1; s < stages.size(); ++s) {
    if (!Reads(stages[s], producer.output)) continue;
    readers.push_back(s);
    reader_stages.push_back(&stages[s]);
  }
  if (!readers.empty() && !producer.is_reduction) {
    if (!ShouldInline(producer, reader_stages)) return false;
    for (size_t s : readers) stages[s] = InlineProducer(producer, stages[s]);
  } else if (readers.size() == 1) {
    if (!CanFuseEpilogue(producer, stages[readers[0]])) return false;
    stages[readers[0]] = FuseEpilogue(producer, stages[readers[0]]);
  } else if (!readers.empty()) {
    return false;
  }
  stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(p));
  return true;
}

}  // namespace

TensorExpr InlineProducer(const TensorExpr& producer, const TensorExpr& consumer) {
  HEDDLE_CHECK(!producer.is_reduction && !producer.imperative && !consumer.imperative, "only plain stages are inlined");
  TensorExpr result = consumer;
  for (Expr* expr : ExprsOf(result)) {
    *expr = RewriteExpr(*expr, [&](const Expr& e) {
      if (e->kind != ExprKind::kLoad || !(e->buffer == producer.output)) return e;
      Substitution substitution;
      for (size_t d = 0; d < producer.axes.size(); ++d) substitution[producer.axes[d].var.get()] = e->operands[d];
      return Substitute(producer.value, substitution);
    });
  }
  return result;
}

bool CanFuseEpilogue(const TensorExpr& reduction, const TensorExpr& consumer) {
  if (!reduction.is_reduction || reduction.imperative || consumer.imperative || consumer.is_reduction) return false;
  if (reduction.output.shape() != consumer.output.shape()) return false;
  bool identity = true, reads = false;
  ForEachExpr(consumer.value, [&](const Expr& e) {
    if (e->kind != ExprKind::kLoad || !(e->buffer == reduction.output)) return;
    reads = true;
    for (size_t d = 0; d < e->operands.size(); ++d) {
      // An axis of extent 1 may be read at the constant 0.
      const bool unit = consumer.axes[d].extent == 1 && IsIntConstant(e->operands[d], 0);
      identity = identity && (unit || e->operands[d].get() == consumer.axes[d].var.get());
    }
  });
  return identity && reads;
}

TensorExpr FuseEpilogue(const TensorExpr& reduction, const TensorExpr& consumer) {
  TensorExpr result = reduction;
  Substitution to_consumer_axes;  // the consumer's value speaks of its own axes
  for (size_t d = 0; d < consumer.axes.size(); ++d) to_consumer_axes[consumer.axes[d].var.get()] = reduction.axes[d].var;
  result.epilogue = RewriteExpr(Substitute(consumer.value, to_consumer_axes), [&](const Expr& e) {
    return e->kind == ExprKind::kLoad && e->buffer == reduction.output ? reduction.epilogue : e;
  });
  result.output = consumer.output;
  return result;
}

std::vector<TensorExpr> FuseStages(std::vector<TensorExpr> stages, const std::vector<Buffer>& outputs) {
  for (size_t p = stages.size(); p-- > 0;) {
    // From the back: a stage is judged when its readers have their final form. An epilogue fusion moves the reduction to its
    // reader's place, where it is judged again.
    while (p < stages.size() && FuseAt(stages, p, outputs)) {
    }
  }
  return stages;
}

}  // namespace heddle::ir::loops
