// One function for a fused group: each stage by the shape it has. Element-wise stages and reductions are here, contractions in
// contraction_schedule.cc.

#include "cpu_fallback/schedule_cpu.h"

#include <algorithm>
#include <unordered_set>

#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::cpu {

using namespace ir::loops;  // NOLINT: the file is about its types
using ir::ElementType;

namespace {

constexpr int64_t kReductionVectors = 4;  // vectors that advance together, to hide an addition's latency

bool IsUnit(const Axis& axis) { return axis.extent == 1; }

int64_t CostOf(const Expr& expr) {
  int64_t nodes = 0;
  ForEachExpr(expr, [&](const Expr& e) { nodes += e->kind == ExprKind::kCall ? 10 : 1; });
  return nodes;
}

// A stage whose axes of extent 1 are gone, with the output's indices.
struct Reduced {
  TensorExpr stage;
  Indices indices;
  VarIntervals vars;
};

Reduced DropUnits(const TensorExpr& original, const std::string& prefix) {
  Reduced r{original, {}, {}};
  Substitution names;
  // New variables: a stage may be one of several that came from one definition.
  auto rename = [&](std::vector<Axis>& axes) {
    for (Axis& axis : axes) {
      const Expr var = IsUnit(axis) ? Expr(0) : Var(prefix + axis.var->name);
      names[axis.var.get()] = var;
      axis.var = var;
      if (!IsUnit(axis)) r.vars[var.get()] = {0, std::max<int64_t>(axis.extent - 1, 0)};
    }
  };
  rename(r.stage.axes);
  rename(r.stage.reduce_axes);
  for (const Axis& axis : r.stage.axes) r.indices.push_back(axis.var);
  std::erase_if(r.stage.axes, IsUnit);
  std::erase_if(r.stage.reduce_axes, IsUnit);
  for (Expr* e : {&r.stage.value, &r.stage.init, &r.stage.combine, &r.stage.epilogue}) {
    if (*e) *e = Simplify(Substitute(*e, names), r.vars);
  }
  return r;
}

// The number of trailing axes that can run as one without losing contiguity: in every load their coefficients are those of
// one flat index (or all 0), and they occur nowhere else.
size_t FusableAxes(const std::vector<Axis>& axes, const std::vector<Expr>& values) {
  size_t count = axes.empty() ? 0 : 1;
  for (; count < axes.size(); ++count) {
    const Axis &next = axes[axes.size() - count - 1], &last = axes.back();
    int64_t extent = 1;
    for (size_t i = axes.size() - count; i < axes.size(); ++i) extent *= axes[i].extent;
    bool fusable = true;
    std::function<void(const Expr&)> check = [&](const Expr& e) {
      if (e.get() == next.var.get()) fusable = false;  // outside of a load's index
      for (size_t i = axes.size() - count; i < axes.size(); ++i) fusable = fusable && e.get() != axes[i].var.get();
      if (e->kind != ExprKind::kLoad) {
        for (const Expr& operand : e->operands) check(operand);
        return;
      }
      bool uses = UsesVar(e, next.var);
      for (size_t i = axes.size() - count; i < axes.size(); ++i) uses = uses || UsesVar(e, axes[i].var);
      if (!uses) return;
      const auto affine = AffineOf(FlatIndex(e->buffer, e->operands));
      fusable = fusable && affine && affine->coefficient(next.var) == affine->coefficient(last.var) * extent;
    };
    for (const Expr& value : values) check(value);
    if (!fusable) break;
  }
  return count;
}

// Replaces the last `count` axes by one; returns it, with the variables of the old ones in terms of its own.
Axis FuseTrailing(std::vector<Axis>& axes, size_t count, const std::string& name, Substitution& substitution) {
  Axis fused{Var(name), 1};
  for (size_t i = axes.size() - count; i < axes.size(); ++i) fused.extent *= axes[i].extent;
  Expr rest = fused.var;
  for (size_t i = axes.size(); i-- > axes.size() - count;) {
    const bool outermost = i == axes.size() - count;
    substitution[axes[i].var.get()] = outermost ? rest : FloorMod(rest, Expr(axes[i].extent));
    if (!outermost) rest = FloorDiv(rest, Expr(axes[i].extent));
  }
  axes.resize(axes.size() - count);
  return fused;
}

Stmt WrapLoops(const std::vector<Axis>& axes, Stmt body, bool parallel) {
  for (size_t i = axes.size(); i-- > 0;) {
    body = For(axes[i].var, axes[i].extent, body, i == 0 && parallel ? LoopKind::kParallel : LoopKind::kSerial);
  }
  return body;
}

int64_t Product(const std::vector<Axis>& axes) {
  int64_t product = 1;
  for (const Axis& axis : axes) product *= axis.extent;
  return product;
}

// Change of a load's address from one value of `var` to the next; nullopt where it is not constant.
std::optional<int64_t> StrideOf(const Expr& load, const Expr& var) {
  if (!UsesVar(load, var)) return 0;
  const auto affine = AffineOf(FlatIndex(load->buffer, load->operands));
  if (!affine) return std::nullopt;
  return affine->coefficient(var);
}

// How many loads in the value have stride 1 in `var`.
int ContiguousLoads(const Expr& value, const Expr& var) {
  int count = 0;
  ForEachExpr(value, [&](const Expr& e) { count += e->kind == ExprKind::kLoad && StrideOf(e, var) == 1; });
  return count;
}

Expr Combine(const TensorExpr& stage, const Expr& accumulator, const Expr& term) {
  return Substitute(stage.combine, {{stage.accumulator.get(), accumulator}, {stage.term.get(), term}});
}

// Sums in lanes along the innermost reduction axes, joined at the end.
Stmt ReduceAlongMemory(Reduced r, const std::string& prefix, int64_t lanes) {
  TensorExpr& stage = r.stage;
  Substitution columns;
  const size_t count = FusableAxes(stage.reduce_axes, {stage.value});
  const Axis inner = FuseTrailing(stage.reduce_axes, count, prefix + "along", columns);
  const Expr value = Substitute(stage.value, columns);
  lanes = std::min(lanes * kReductionVectors, inner.extent);
  Buffer partial(prefix + "partial", stage.accumulator.type(), {lanes}, MemorySpace::kPrivate);
  Buffer total(prefix + "total", stage.accumulator.type(), {1}, MemorySpace::kPrivate);
  const Expr zero = 0;
  const int64_t whole = inner.extent / lanes, rest = inner.extent % lanes;
  auto at = [&](const Expr& position) { return Substitute(value, {{inner.var.get(), position}}); };
  Stmt start = Block({Store(total, {zero}, stage.init),
                      For(prefix + "start", lanes, [&](Expr l) {
                        return Store(partial, {l}, NeutralElement(stage.combiner, stage.accumulator.type()));
                      }, LoopKind::kVectorised)});
  Stmt main = For(prefix + "step", whole, [&](Expr o) {
    return For(prefix + "lane", lanes, [&](Expr l) {
      return StoreWithLets(partial, {l}, Combine(stage, partial(l), at(o * lanes + l)));
    }, LoopKind::kVectorised);
  });
  Stmt tail = For(prefix + "tail", rest, [&](Expr i) {
    return StoreWithLets(total, {zero}, Combine(stage, total(zero), at(i + whole * lanes)));
  });
  Stmt join = For(prefix + "join", lanes, [&](Expr l) { return Store(total, {zero}, Combine(stage, total(zero), partial(l))); },
                  LoopKind::kUnrolled);
  Stmt finish = StoreWithLets(stage.output, r.indices, Substitute(stage.epilogue, {{stage.accumulator.get(), total(zero)}}));
  Stmt body = Allocate(partial, Allocate(total, Block({start, WrapLoops(stage.reduce_axes, Block({main, rest ? tail : Stmt()}), false),
                                                       join, finish})));
  const bool parallel = Product(stage.axes) * Product(stage.reduce_axes) * inner.extent >= kParallelWork;
  return WrapLoops(stage.axes, body, parallel);
}

// Neighbouring outputs are the lanes.
Stmt ReduceAcrossOutputs(Reduced r, const std::string& prefix, int64_t lanes) {
  TensorExpr& stage = r.stage;
  const bool parallel = Product(stage.axes) * Product(stage.reduce_axes) >= kParallelWork;
  if (stage.axes.empty()) stage.axes.push_back({Var(prefix + "one"), 1});
  const Axis inner = stage.axes.back();
  stage.axes.pop_back();
  auto chunk = [&](int64_t width, const std::function<Expr(Expr)>& position, const std::string& suffix) {
    Buffer acc(prefix + "acc" + suffix, stage.accumulator.type(), {width}, MemorySpace::kPrivate);
    auto lanes_loop = [&](const char* name, const std::function<Stmt(Expr, Substitution)>& body) {
      return For(prefix + name + suffix, width, [&](Expr l) { return body(l, {{inner.var.get(), position(l)}}); },
                 LoopKind::kVectorised);
    };
    std::vector<Axis> reduce;
    Substitution names;
    for (const Axis& axis : stage.reduce_axes) {
      reduce.push_back({Var(axis.var->name + suffix), axis.extent});
      names[axis.var.get()] = reduce.back().var;
    }
    Stmt start = lanes_loop("start", [&](Expr l, const Substitution& where) { return Store(acc, {l}, Substitute(stage.init, where)); });
    Stmt step = lanes_loop("step", [&](Expr l, Substitution where) {
      where.insert(names.begin(), names.end());
      return StoreWithLets(acc, {l}, Combine(stage, acc(l), Substitute(stage.value, where)));
    });
    Stmt finish = lanes_loop("finish", [&](Expr l, Substitution where) {
      Indices indices;
      for (const Expr& index : r.indices) indices.push_back(Substitute(index, where));
      where[stage.accumulator.get()] = acc(l);
      return StoreWithLets(stage.output, indices, Substitute(stage.epilogue, where));
    });
    return Allocate(acc, Block({start, WrapLoops(reduce, step, false), finish}));
  };
  const int64_t width = std::min(lanes * kReductionVectors, inner.extent);
  const int64_t whole = width ? inner.extent / width : 0, rest = width ? inner.extent % width : 0;
  Stmt main = For(prefix + "chunk", whole, [&](Expr o) { return chunk(width, [&](Expr l) { return o * width + l; }, "_m"); },
                  parallel && stage.axes.empty() ? LoopKind::kParallel : LoopKind::kSerial);
  Stmt tail = rest ? chunk(rest, [&](Expr l) { return l + whole * width; }, "_t") : Stmt();
  return WrapLoops(stage.axes, Block({main, tail}), parallel);
}

}  // namespace

int64_t LanesOf(ElementType type, const CpuTarget& target) {
  return std::max<int64_t>(1, target.vector_bytes / std::max<int64_t>(ir::ElementBytes(type), 1));
}

Stmt VectorLoop(const std::string& name, int64_t extent, int64_t lanes, const std::function<Stmt(const Expr&)>& body) {
  lanes = std::max<int64_t>(1, std::min(lanes, extent));
  const int64_t whole = extent / lanes, rest = extent % lanes;
  Stmt main, tail;
  if (whole > 0) {
    main = For(name + "_o", whole, [&](Expr o) {
      return For(name + "_l", lanes, [&](Expr l) { return body(o * lanes + l); }, LoopKind::kVectorised);
    });
  }
  if (rest > 0) tail = For(name + "_t", rest, [&](Expr l) { return body(l + whole * lanes); }, LoopKind::kVectorised);
  return Block({main, tail});
}

bool GroupBuilder::IsConstant(const Expr& expr) const {
  bool constant = true, reads = false;
  ForEachExpr(expr, [&](const Expr& e) {
    if (e->kind != ExprKind::kLoad || e->buffer->contents) return;
    auto it = std::find_if(params.begin(), params.end(), [&](const Param& p) { return p.buffer == e->buffer; });
    constant = constant && it != params.end() && it->role == ParamRole::kConstant;
    reads = true;
  });
  return constant && reads;
}

void GroupBuilder::Materialise(const Buffer& buffer, const Stmt& fill, bool constant) {
  if (!constant) {
    temporaries.push_back(buffer);
    statements.push_back(fill);
    return;
  }
  PackStep step;
  step.pack.name = "pack";
  for (size_t p = 0; p < params.size(); ++p) {
    bool reads = false;
    ForEachRootExpr(fill, [&](const Expr& e) { reads = reads || ReadsBuffer(e, params[p].buffer); });
    if (!reads) continue;
    step.sources.push_back(static_cast<int>(p));
    step.pack.params.push_back({params[p].buffer, ParamRole::kConstant});
  }
  step.pack.params.push_back({buffer, ParamRole::kOutput});
  step.pack.body = Simplify(fill);
  packs.push_back(std::move(step));
  packed.push_back(buffer);
}

Stmt SchedulePlain(const TensorExpr& stage, const GroupBuilder& builder) {
  Reduced r = DropUnits(stage, builder.prefix);
  std::vector<Axis>& axes = r.stage.axes;
  const bool parallel = stage.output->elements() * CostOf(stage.value) >= kParallelWork;
  const int64_t lanes = LanesOf(stage.output.type(), builder.target);
  if (axes.empty()) return StoreWithLets(stage.output, r.indices, r.stage.value);
  Substitution columns;
  const Axis inner = FuseTrailing(axes, FusableAxes(axes, {r.stage.value}), builder.prefix + "e", columns);
  Indices indices;
  for (const Expr& index : r.indices) indices.push_back(Substitute(index, columns));
  const Expr value = Substitute(r.stage.value, columns);
  auto at = [&](const Expr& position) {
    const Substitution where = {{inner.var.get(), position}};
    Indices here;
    for (const Expr& index : indices) here.push_back(Substitute(index, where));
    return StoreWithLets(stage.output, here, Substitute(value, where));
  };
  // One long loop: cut it into pieces that threads can take.
  const int64_t piece = lanes * 64;
  if (axes.empty() && parallel && inner.extent >= 2 * piece) {
    const int64_t pieces = inner.extent / piece, rest = inner.extent % piece;
    Stmt main = For(builder.prefix + "piece", pieces, [&](Expr p) {
      return VectorLoop(builder.prefix + "e", piece, lanes, [&](const Expr& i) { return at(p * piece + i); });
    }, LoopKind::kParallel);
    Stmt tail = VectorLoop(builder.prefix + "er", rest, lanes, [&](const Expr& i) { return at(i + pieces * piece); });
    return Block({main, tail});
  }
  return WrapLoops(axes, VectorLoop(builder.prefix + "e", inner.extent, lanes, at), parallel);
}

Stmt ScheduleReduction(const TensorExpr& stage, const GroupBuilder& builder) {
  Reduced r = DropUnits(stage, builder.prefix);
  const int64_t lanes = LanesOf(r.stage.accumulator.type(), builder.target);
  if (r.stage.reduce_axes.empty()) return ReduceAcrossOutputs(std::move(r), builder.prefix, lanes);
  const Axis& last = r.stage.reduce_axes.back();
  const int along = ContiguousLoads(r.stage.value, last.var);
  const int across = r.stage.axes.empty() ? 0 : ContiguousLoads(r.stage.value, r.stage.axes.back().var);
  const bool joins = r.stage.combiner != Combiner::kCustom && r.stage.accumulator.type() == r.stage.term.type() &&
                     r.stage.accumulator.type() != ElementType::kBool;
  if (joins && along > across && last.extent >= 2) return ReduceAlongMemory(std::move(r), builder.prefix, lanes);
  return ReduceAcrossOutputs(std::move(r), builder.prefix, lanes);
}

absl::StatusOr<ScheduledGroup> ScheduleForCpu(const std::string& name, const std::vector<TensorExpr>& stages,
                                              const std::vector<Param>& params, const CpuTarget& target) {
  // The plain lowering checks that every stage reads what exists.
  HEDDLE_ASSIGN_OR_RETURN(const Function plain, LowerToFunction(name, stages, params));
  GroupBuilder builder{target, params, "", {}, {}, {}, {}};
  for (size_t s = 0; s < stages.size(); ++s) {
    const TensorExpr& stage = stages[s];
    builder.prefix = fmt::format("s{}_", s);
    for (const auto* buffer : {&stage.output}) {
      const bool is_param = std::any_of(params.begin(), params.end(), [&](const Param& p) { return p.buffer == *buffer; });
      if (!is_param) builder.temporaries.push_back(*buffer);
    }
    for (const Buffer& buffer : stage.also_written) {
      const bool is_param = std::any_of(params.begin(), params.end(), [&](const Param& p) { return p.buffer == buffer; });
      if (!is_param) builder.temporaries.push_back(buffer);
    }
    if (stage.output->elements() == 0 && !stage.imperative) continue;
    if (stage.imperative) {
      builder.statements.push_back(stage.imperative);
    } else if (std::optional<Contraction> contraction = MatchContraction(stage)) {
      ScheduleContraction(*contraction, builder);
    } else if (stage.is_reduction) {
      builder.statements.push_back(ScheduleReduction(stage, builder));
    } else {
      builder.statements.push_back(SchedulePlain(stage, builder));
    }
  }
  Stmt body = Block(std::move(builder.statements));
  std::unordered_set<const BufferNode*> allocated;
  for (const Buffer& buffer : builder.temporaries) {
    if (allocated.insert(buffer.get()).second) body = Allocate(buffer, body);
  }
  ScheduledGroup group;
  group.function.name = name;
  group.function.body = Simplify(body);
  for (size_t p = 0; p < params.size(); ++p) {
    bool used = params[p].role == ParamRole::kOutput;
    ForEachRootExpr(group.function.body, [&](const Expr& e) { used = used || ReadsBuffer(e, params[p].buffer); });
    if (!used) continue;
    group.function.params.push_back(params[p]);
    group.param_sources.push_back(static_cast<int>(p));
  }
  for (size_t k = 0; k < builder.packed.size(); ++k) {
    group.function.params.push_back({builder.packed[k], ParamRole::kConstant});
    group.param_sources.push_back(-1 - static_cast<int>(k));
  }
  group.packs = std::move(builder.packs);
  return group;
}

}  // namespace heddle::cpu
