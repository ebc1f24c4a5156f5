// Tiles, work-items and groups for one stage. The choice is a fixed rule and not a search: a tile of rows x lanes accumulators needs
// rows + lanes operands for rows * lanes multiply-accumulates, which is what register tiling is for (Goto and van de Geijn,
// "Anatomy of high-performance matrix multiplication", 2008); lanes are neighbours in memory so that one vector load feeds them.

#include "gpu/kernel_schedule.h"

#include <algorithm>

#include "gpu/flat_stage.h"
#include "ir/check.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"

namespace heddle::gpu {
namespace {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types

// Groups along y must stay below this (CUDA's limit for y and z is 65,535).
constexpr int64_t kLargestY = 32768;
// Extents up to this are walked as one with their neighbour: a row of work-items shorter than this wastes the machine.
constexpr int64_t kShortestRow = 64;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A tile along one output axis: `size` elements from min(tile * size, extent - size).
struct Tile {
  int axis = -1;  // index into FlatStage::axes; -1: none
  int64_t size = 1;
};

struct Tiles {
  Tile rows;
  Tile lanes;
};

// Memory accesses of one load of the reduction's value.
struct LoadUse {
  Expr index;
  std::optional<Affine> affine;
};

std::vector<LoadUse> LoadsOf(const Expr& value) {
  std::vector<LoadUse> loads;
  ForEachExpr(value, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) loads.push_back({e->operands[0], AffineOf(e->operands[0])});
  });
  return loads;
}

// Fixed cost of a tile beside its elements, in elements: what lets wide tiles win although their last one does work twice.
constexpr int64_t kTileCost = 4;

// The size up to `largest` with the least work along an axis.
int64_t BestTile(int64_t extent, int64_t largest, bool powers_of_two) {
  int64_t best = 1, best_cost = extent * (1 + kTileCost);
  for (int64_t size = 2; size <= std::min(largest, extent); size += powers_of_two ? size : 1) {
    const int64_t cost = CeilDiv(extent, size) * (size + kTileCost);
    if (cost <= best_cost) best = size, best_cost = cost;
  }
  return best;
}

// Strides up to this still share cache lines between lanes (convolutions of stride 2 and 4).
constexpr int64_t kLargestLaneStride = 4;

Tiles ChooseTiles(const FlatStage& stage, const ScheduleOptions& options) {
  Tiles tiles;
  if (!stage.is_reduction || stage.axes.empty() || stage.reduce_axes.empty()) return tiles;
  const std::vector<LoadUse> loads = LoadsOf(stage.value);
  const int last = static_cast<int>(stage.axes.size()) - 1;
  const Expr& lane = stage.axes[static_cast<size_t>(last)].var;
  bool contiguous = false;
  for (const LoadUse& load : loads) {
    const int64_t stride = load.affine ? load.affine->coefficient(lane) : 0;
    contiguous = contiguous || (stride >= 1 && stride <= kLargestLaneStride);
  }
  if (contiguous) {
    const int64_t size = BestTile(stage.axes[static_cast<size_t>(last)].extent, options.max_lanes, true);
    if (size > 1) tiles.lanes = {last, size};
  }
  // Rows pay where some operand does not change along them while another one does and does not change along the lanes.
  for (int axis = last - 1; axis >= 0; --axis) {
    const Expr& row = stage.axes[static_cast<size_t>(axis)].var;
    bool reused = false, streamed = false;
    for (const LoadUse& load : loads) {
      reused = reused || (!UsesVar(load.index, row) && UsesVar(load.index, lane));
      streamed = streamed || (UsesVar(load.index, row) && !UsesVar(load.index, lane));
    }
    const int64_t size = BestTile(stage.axes[static_cast<size_t>(axis)].extent, options.max_rows, false);
    if (reused && streamed && size > 1) {
      tiles.rows = {axis, size};
      break;
    }
  }
  return tiles;
}

// Wraps statements in Lets and GPU loops from the inside out.
class GridBuilder {
 public:
  GridBuilder(const FlatStage& stage, const Tiles& tiles, const ScheduleOptions& options) : options_(options) {
    for (size_t a = 0; a < stage.axes.size(); ++a) {
      const Axis& axis = stage.axes[a];
      int64_t size = 1;
      if (tiles.rows.axis == static_cast<int>(a)) size = tiles.rows.size;
      if (tiles.lanes.axis == static_cast<int>(a)) size = tiles.lanes.size;
      steps_.push_back({axis, size, CeilDiv(axis.extent, size)});
    }
  }

  // `body` speaks of the axes' variables, which stand for the first element of the work-item's tile.
  Stmt Build(Stmt body) {
    size_t first_in_x = steps_.size();
    int64_t x = 1;
    while (first_in_x > 0 && (x < kShortestRow || Product(0, first_in_x) > kLargestY)) x *= steps_[--first_in_x].count;
    const int64_t y = Product(0, first_in_x);
    const int64_t items = ItemsFor(x);
    const Expr x_var = Var("tile"), y_var = Var("slab"), group = Var("group"), item = Var("item");
    body = BindSteps(first_in_x, steps_.size(), x_var, body);
    body = BindSteps(0, first_in_x, y_var, body);
    if (x % items != 0) body = If(x_var < Expr(x), body);
    body = Let(x_var, group * Expr(items) + item, body);
    body = For(item, items, body, LoopKind::kThreadX);
    body = For(group, CeilDiv(x, items), body, LoopKind::kBlockX);
    return For(y_var, y, body, LoopKind::kBlockY);
  }

 private:
  struct Step {
    Axis axis;
    int64_t size;
    int64_t count;
  };

  int64_t Product(size_t first, size_t last) const {
    int64_t product = 1;
    for (size_t s = first; s < last; ++s) product *= steps_[s].count;
    return product;
  }

  // Work-items of a group: a divisor of the row near the wanted size, else the wanted size with a guard.
  int64_t ItemsFor(int64_t x) const {
    if (x <= options_.group_size) return std::max<int64_t>(x, 1);
    for (int64_t items = options_.group_size; items * 2 > options_.group_size; --items) {
      if (x % items == 0) return items;
    }
    return options_.group_size;
  }

  // Binds the axes' variables of steps [first, last) to what `flat` says about them.
  Stmt BindSteps(size_t first, size_t last, const Expr& flat, Stmt body) const {
    int64_t stride = 1;
    for (size_t s = last; s-- > first;) {
      const Step& step = steps_[s];
      Expr index = flat;
      if (stride > 1) index = index / Expr(stride);
      if (s > first) index = index % Expr(step.count);
      if (step.size > 1) {
        index = index * Expr(step.size);
        if (step.axis.extent % step.size != 0) index = Min(index, Expr(step.axis.extent - step.size));
      }
      body = Let(step.axis.var, index, body);
      stride *= step.count;
    }
    return body;
  }

  const ScheduleOptions& options_;
  std::vector<Step> steps_;
};

// Takes the parts of a reduction's value that do not change along the rows of a tile, to be computed once for all rows:
// they become variables, listed with their values. What only one branch of a Select evaluates stays.
Expr TakeSharedOperands(const Expr& expr, const Expr& row_axis, std::vector<std::pair<Expr, Expr>>& taken) {
  bool reads = false;
  ForEachExpr(expr, [&](const Expr& e) { reads = reads || e->kind == ExprKind::kLoad; });
  if (!reads) return expr;
  if (!UsesVar(expr, row_axis) && expr.type() != ir::ElementType::kBool) {
    for (const auto& [value, var] : taken) {
      if (SameExpr(value, expr)) return var;
    }
    taken.emplace_back(expr, Var("operand", expr.type()));
    return taken.back().second;
  }
  std::vector<Expr> operands = expr->operands;
  if (expr->kind == ExprKind::kLoad) return expr;
  const size_t strict = expr->kind == ExprKind::kSelect ? 1 : operands.size();
  for (size_t i = 0; i < strict; ++i) operands[i] = TakeSharedOperands(operands[i], row_axis, taken);
  return operands.empty() ? expr : WithOperands(expr, std::move(operands));
}

// Loops over the elements of a work-item's tile.
class TileLoops {
 public:
  TileLoops(const FlatStage& stage, const Tiles& tiles) : tiles_(tiles) {
    if (rows() > 1) row_axis_ = stage.axes[static_cast<size_t>(tiles.rows.axis)].var;
    if (lanes() > 1) lane_axis_ = stage.axes[static_cast<size_t>(tiles.lanes.axis)].var;
  }
  int64_t rows() const { return tiles_.rows.size; }
  int64_t lanes() const { return tiles_.lanes.size; }
  const Expr& row_axis() const { return row_axis_; }  // empty where there is one row

  // `make` gets the element's place in the tile and the axes' variables moved there.
  using Make = std::function<Stmt(const Expr& row, const Expr& lane, Substitution move)>;
  Stmt Over(const Make& make, bool over_rows = true, LoopKind row_kind = LoopKind::kUnrolled) const {
    const Expr row = Var("row"), lane = Var("lane");
    const bool has_rows = over_rows && rows() > 1;
    Substitution move;
    if (has_rows) move[row_axis_.get()] = row_axis_ + row;
    if (lanes() > 1) move[lane_axis_.get()] = lane_axis_ + lane;
    Stmt stmt = make(has_rows ? row : Expr(0), lanes() > 1 ? lane : Expr(0), move);
    if (lanes() > 1) stmt = For(lane, lanes(), stmt, LoopKind::kVectorised);
    return has_rows ? For(row, rows(), stmt, row_kind) : stmt;
  }

 private:
  Tiles tiles_;
  Expr row_axis_, lane_axis_;
};

// One step of the reduction for the whole tile.
Stmt FoldTile(const FlatStage& stage, const TileLoops& tile, const Buffer& acc) {
  std::vector<std::pair<Expr, Expr>> taken;
  const Expr value = tile.row_axis() ? TakeSharedOperands(stage.value, tile.row_axis(), taken) : stage.value;
  std::vector<Buffer> operands;
  std::vector<Stmt> statements;
  for (const auto& [shared, var] : taken) {
    const Buffer buffer("operand", var.type(), {tile.lanes()}, MemorySpace::kPrivate);
    operands.push_back(buffer);
    statements.push_back(tile.Over([&](const Expr&, const Expr& lane, const Substitution& move) {
      return StoreWithLets(buffer, {lane}, Substitute(shared, move));
    }, false));
  }
  statements.push_back(tile.Over([&](const Expr& row, const Expr& lane, Substitution move) {
    for (size_t i = 0; i < taken.size(); ++i) move[taken[i].second.get()] = operands[i](lane);
    const Expr term = Substitute(value, move);
    move[stage.accumulator.get()] = acc(row, lane);
    move[stage.term.get()] = term;
    return StoreWithLets(acc, {row, lane}, Substitute(stage.combine, move));
  }));
  Stmt fold = Block(std::move(statements));
  for (const Buffer& buffer : operands) fold = Allocate(buffer, fold);
  return fold;
}

Stmt ReductionBody(const FlatStage& stage, const Tiles& tiles) {
  const TileLoops tile(stage, tiles);
  const Buffer acc("acc", stage.accumulator.type(), {tile.rows(), tile.lanes()}, MemorySpace::kPrivate);
  const Stmt start = tile.Over([&](const Expr& row, const Expr& lane, const Substitution& move) {
    return Store(acc, {row, lane}, Substitute(stage.init, move));
  });
  Stmt fold = FoldTile(stage, tile, acc);
  for (auto axis = stage.reduce_axes.rbegin(); axis != stage.reduce_axes.rend(); ++axis) {
    fold = For(axis->var, axis->extent, fold);
  }
  const Stmt finish = tile.Over([&](const Expr& row, const Expr& lane, Substitution move) {
    const Expr index = Substitute(stage.output_index, move);
    move[stage.accumulator.get()] = acc(row, lane);
    return StoreWithLets(stage.output, {index}, Substitute(stage.epilogue, move));
  }, true, LoopKind::kSerial);
  return Allocate(acc, Block({start, fold, finish}));
}

// Temporaries in global memory become arguments.
Stmt HoistGlobals(const Stmt& stmt, std::vector<Buffer>& hoisted) {
  return RewriteStmt(stmt, [&](const Stmt& s) {
    if (s->kind != StmtKind::kAllocate || s->buffer->space != MemorySpace::kGlobal) return s;
    hoisted.push_back(s->buffer);
    return s->body;
  });
}

Kernel ScheduleImperative(const TensorExpr& stage, const std::string& name) {
  Kernel kernel;
  std::vector<Buffer> written = stage.also_written;
  written.push_back(stage.output);
  const Stmt body = HoistGlobals(stage.imperative, written);
  auto is_known = [&](const Buffer& buffer) {
    return std::find(kernel.arguments.begin(), kernel.arguments.end(), buffer) != kernel.arguments.end() ||
           std::find(written.begin(), written.end(), buffer) != written.end();
  };
  ForEachRootExpr(body, [&](const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (e->kind != ExprKind::kLoad || e->buffer->space != MemorySpace::kGlobal || is_known(e->buffer)) return;
      kernel.arguments.push_back(e->buffer);
      kernel.function.params.push_back({e->buffer, ParamRole::kInput});
    });
  });
  for (const Buffer& buffer : written) {
    kernel.arguments.push_back(buffer);
    kernel.function.params.push_back({buffer, ParamRole::kOutput});
  }
  kernel.function.name = name;
  kernel.function.body = For(Var("group"), 1, body, LoopKind::kBlockX);
  return kernel;
}

}  // namespace

Kernel ScheduleStage(const TensorExpr& stage, const std::string& name, const ScheduleOptions& options) {
  if (stage.imperative) return ScheduleImperative(stage, name);
  const FlatStage flat = Flatten(stage);
  const Tiles tiles = ChooseTiles(flat, options);
  const Stmt body = flat.is_reduction ? ReductionBody(flat, tiles) : StoreWithLets(flat.output, {flat.output_index}, flat.value);
  Kernel kernel;
  kernel.function.name = name;
  for (const auto& [original, view] : flat.views) {
    kernel.arguments.push_back(original);
    kernel.function.params.push_back({view, original == stage.output ? ParamRole::kOutput : ParamRole::kInput});
  }
  GridBuilder grid(flat, tiles, options);
  kernel.function.body = grid.Build(body);
  kernel.function = LowerFloorDivision(Simplify(kernel.function));
  return kernel;
}

Grid GridOf(const Function& function) {
  Grid grid;
  ForEachStmt(function.body, [&](const Stmt& stmt) {
    if (stmt->kind != StmtKind::kFor || !IsGpuIndex(stmt->loop_kind)) return;
    const int block = static_cast<int>(stmt->loop_kind) - static_cast<int>(LoopKind::kBlockX);
    const int thread = static_cast<int>(stmt->loop_kind) - static_cast<int>(LoopKind::kThreadX);
    if (thread >= 0) {
      grid.items[static_cast<size_t>(thread)] = stmt->extent;
    } else {
      grid.groups[static_cast<size_t>(block)] = stmt->extent;
    }
  });
  return grid;
}

KernelNeeds NeedsOf(const Function& function) {
  KernelNeeds needs;
  bool divides = false;
  for (const Param& param : function.params) needs.fp64 = needs.fp64 || param.buffer.type() == ir::ElementType::kFloat64;
  ForEachRootExpr(function.body, [&](const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      needs.fp64 = needs.fp64 || e.type() == ir::ElementType::kFloat64;
      divides = divides || (e->kind == ExprKind::kBinary && e->binary == BinaryOp::kDiv && e.type() == ir::ElementType::kFloat32);
      if (e->kind != ExprKind::kCast || e.type() == ir::ElementType::kBool) return;
      const ir::ElementType from = e->operands[0].type();
      const bool converts = from != ir::ElementType::kBool && ir::IsFloat(e.type()) != ir::IsFloat(from);
      needs.exact_rounding = needs.exact_rounding || converts;
    });
  });
  needs.exact_division = divides && needs.exact_rounding;
  return needs;
}

}  // namespace heddle::gpu
