// The register-tiled loop nest of a contraction:
//
//   for tile of (outer, block of columns, rows / R), in parallel:
//     for tile of Q columns in the block:
//       sums[R][Q] = init                              (registers)
//       for depth, taps:  sums[r][q] (+)= V[.. tap offset + q] * S[.. r]
//       store sums to the block's buffer
//     epilogue of the block, row by row, into the output
//
// V holds positions row by row with one pitch, so that a tap is a constant distance and a tile of columns is contiguous even across
// rows: the few columns computed beyond a row's end are dropped by the epilogue. For strides, positions are stored by remainder.
// The blocks keep V in the second-level cache while all rows pass over it (Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", 2008, for the order; direct convolution instead of im2col saves the copy).

#include <algorithm>

#include "cpu_fallback/schedule_cpu.h"
#include "ir/check.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

using namespace ir::loops;  // NOLINT: the file is about its types
using ir::ElementType;
using ir::Shape;

constexpr int64_t kSumsOnStack = 24 << 10;  // bytes of a block's buffer of sums
constexpr int64_t kUnrolledTaps = 9;
constexpr int64_t kLargestTile = 256;  // columns

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
Expr I64(int64_t value) { return IntConstant(ElementType::kInt64, value); }

// Integer operands fit 16 bits nearly always; the products of 16-bit numbers are cheap.
ElementType OperandType(const Expr& operand) {
  if (operand.type() != ElementType::kInt32) return operand.type();
  const Interval bounds = BoundsOf(operand, {});
  return bounds.low >= -32768 && bounds.high <= 32767 ? ElementType::kInt16 : ElementType::kInt32;
}

std::vector<Axis> UsedBy(const Expr& operand, const std::vector<Axis>& axes) {
  std::vector<Axis> used;
  for (const Axis& axis : axes) {
    if (UsesVar(operand, axis.var)) used.push_back(axis);
  }
  return used;
}

class Tiler {
 public:
  Tiler(const Contraction& c, GroupBuilder& builder)
      : c_(c), b_(builder), sum_type_(c.stage.accumulator.type()), lanes_(LanesOf(sum_type_, builder.target)) {
    ChooseTile();
    ChooseBlocks();
  }

  void Build() {
    MakeVectorOperand();
    MakeScalarOperand();
    b_.statements.push_back(Nest());
  }

 private:
  const Window& Inner() const { return c_.columns.back(); }

  void ChooseTile() {
    pitch_ = Inner().stored_extent();
    lines_ = c_.columns.size() == 2 ? c_.columns[0].column.extent : 1;
    flat_ = lines_ == 1 || pitch_ == Inner().column.extent;  // no columns to drop: lines and columns are one index
    if (flat_) {
      pitch_ = Inner().column.extent * lines_;
      lines_ = 1;
    }
    columns_ = lines_ * pitch_;
    const int64_t registers = b_.target.vector_registers;
    // Sums take what two vectors of columns, a broadcast and a spare leave.
    const int64_t most_rows = std::max<int64_t>(1, (registers - 4) / 2);
    row_tiles_ = CeilDiv(c_.row.extent, most_rows);
    rows_ = CeilDiv(c_.row.extent, row_tiles_);
    const int64_t budget = rows_ == 1 ? registers / 2 : registers - 4;
    const int64_t vectors = std::clamp<int64_t>(budget / rows_, 1, 8);
    tile_ = std::max<int64_t>(lanes_, std::min({vectors * lanes_, CeilDiv(columns_, lanes_) * lanes_, kLargestTile / lanes_ * lanes_}));
  }

  void ChooseBlocks() {
    int64_t depth = 1;
    for (const Axis& axis : c_.depth) depth *= axis.extent;
    const int64_t bytes = ir::ElementBytes(sum_type_);
    const int64_t cache_columns = b_.target.l2_bytes / 2 / (bytes * depth);
    const int64_t stack_columns = kSumsOnStack / (bytes * rows_);
    const int64_t most = std::max(tile_, std::min(cache_columns, stack_columns) / tile_ * tile_);
    if (lines_ > 1) {
      const int64_t most_lines = std::clamp<int64_t>(most / pitch_, 1, lines_);
      blocks_ = CeilDiv(lines_, most_lines);
      block_lines_ = CeilDiv(lines_, blocks_);
      blocks_ = CeilDiv(lines_, block_lines_);
      block_step_ = block_lines_ * pitch_;
      tiles_ = CeilDiv(block_step_, tile_);
    } else {
      const int64_t all_tiles = CeilDiv(columns_, tile_);
      tiles_ = std::clamp<int64_t>(most / tile_, 1, all_tiles);
      blocks_ = CeilDiv(all_tiles, tiles_);
      tiles_ = CeilDiv(all_tiles, blocks_);
      blocks_ = CeilDiv(all_tiles, tiles_);
      block_step_ = tiles_ * tile_;
    }
  }

  // Distance in V of a tap from the column itself.
  Expr TapOffset() const {
    Expr offset = 0;
    for (size_t i = 0; i < c_.columns.size(); ++i) {
      const Window& w = c_.columns[i];
      if (!w.slides()) continue;
      const int64_t step = i + 1 == c_.columns.size() ? 1 : Inner().stored_extent();
      offset = offset + FloorDiv(w.tap.var * w.dilation, I64(w.stride)) * step;
    }
    return offset;
  }

  bool Slides() const {
    return std::any_of(c_.columns.begin(), c_.columns.end(), [](const Window& w) { return w.slides(); });
  }

  // The columns' variables for a flat column index.
  Substitution ColumnsAt(const Expr& flat) const {
    if (c_.columns.size() == 1) return {{Inner().column.var.get(), flat}};
    const int64_t width = Inner().column.extent;
    return {{c_.columns[0].column.var.get(), FloorDiv(flat, I64(width))}, {Inner().column.var.get(), FloorMod(flat, I64(width))}};
  }

  // The vector operand can be read where it lies: a plain load whose lanes are contiguous.
  bool CanReadInPlace() const {
    if (Slides() || !flat_ || columns_ < tile_ || c_.vector_operand->kind != ExprKind::kLoad) return false;
    if (c_.vector_operand.type() != sum_type_ || IsFloat(sum_type_) == false) return false;
    // The last tile may move back, but not out of its block.
    const int64_t last_block_tiles = CeilDiv(columns_, tile_) - (blocks_ - 1) * tiles_;
    if (columns_ % tile_ != 0 && last_block_tiles < 2) return false;
    const auto affine = AffineOf(FlatIndex(c_.vector_operand->buffer, c_.vector_operand->operands));
    if (!affine || affine->coefficient(Inner().column.var) != 1) return false;
    return c_.columns.size() == 1 || affine->coefficient(c_.columns[0].column.var) == Inner().column.extent;
  }

  void MakeVectorOperand() {
    const bool constant = b_.IsConstant(c_.vector_operand);
    in_place_ = CanReadInPlace() && !constant;
    if (in_place_) return;
    const std::vector<Axis> outer = UsedBy(c_.vector_operand, c_.outer), depth = UsedBy(c_.vector_operand, c_.depth);
    const ElementType type = OperandType(c_.vector_operand);
    Shape shape;
    for (const Axis& axis : outer) shape.push_back(axis.extent);
    tiled_ = constant && !Slides() && flat_;
    if (tiled_) shape.push_back(CeilDiv(columns_, tile_));
    for (const Axis& axis : depth) shape.push_back(axis.extent);
    if (tiled_) {
      shape.push_back(tile_);
    } else {
      for (const Window& w : c_.columns) shape.push_back(w.phases());
      shape.push_back((blocks_ - 1) * block_step_ + tiles_ * tile_ + LargestTapOffset());
    }
    vector_buffer_ = Buffer(b_.prefix + "columns", type, shape);
    b_.Materialise(vector_buffer_, tiled_ ? FillTiled(outer, depth) : FillPlanes(outer, depth), constant);
  }

  int64_t LargestTapOffset() const {
    int64_t offset = 0;
    for (size_t i = 0; i < c_.columns.size(); ++i) {
      const Window& w = c_.columns[i];
      const int64_t step = i + 1 == c_.columns.size() ? 1 : Inner().stored_extent();
      if (w.slides()) offset += (w.tap.extent - 1) * w.dilation / w.stride * step;
    }
    return offset;
  }

  static Stmt WrapAxes(const std::vector<Axis>& axes, Stmt body, bool parallel) {
    for (size_t i = axes.size(); i-- > 0;) {
      body = For(axes[i].var, axes[i].extent, body, i == 0 && parallel ? LoopKind::kParallel : LoopKind::kSerial);
    }
    return body;
  }

  // Axes again with variables of their own (a variable names one loop of a function).
  std::vector<Axis> Rename(const std::vector<Axis>& axes, const char* suffix, Substitution& substitution) const {
    std::vector<Axis> renamed;
    for (const Axis& axis : axes) {
      renamed.push_back({Var(b_.prefix + axis.var->name + suffix), axis.extent});
      substitution[axis.var.get()] = renamed.back().var;
    }
    return renamed;
  }

  static Indices Vars(const std::vector<Axis>& axes) {
    Indices vars;
    for (const Axis& axis : axes) vars.push_back(axis.var);
    return vars;
  }

  // V[outer, tile, depth, lane], zero beyond the last column.
  Stmt FillTiled(const std::vector<Axis>& outer, const std::vector<Axis>& depth) {
    Substitution names;
    const auto o = Rename(outer, "_v", names), d = Rename(depth, "_v", names);
    const Expr tile = Var(b_.prefix + "tile_v"), lane = Var(b_.prefix + "lane_v");
    const Expr flat = tile * tile_ + lane;
    Substitution columns = ColumnsAt(flat);
    columns.insert(names.begin(), names.end());
    const Expr zero = Constant(vector_buffer_.type(), 0);
    Expr value = Select(flat < columns_, Cast(vector_buffer_.type(), Substitute(c_.vector_operand, columns)), zero);
    Indices at = Vars(o);
    at.push_back(tile);
    for (const Axis& axis : d) at.push_back(axis.var);
    at.push_back(lane);
    Stmt body = For(lane, tile_, StoreWithLets(vector_buffer_, at, value));
    body = For(tile, CeilDiv(columns_, tile_), WrapAxes(d, body, false));
    return WrapAxes(o, body, false);
  }

  // V[outer, depth, phases, position]: every position that some column and tap read.
  Stmt FillPlanes(const std::vector<Axis>& outer, const std::vector<Axis>& depth) {
    Substitution names;
    std::vector<Axis> around = Rename(outer, "_v", names);
    for (const Axis& axis : Rename(depth, "_v", names)) around.push_back(axis);
    Expr value = c_.vector_operand;
    std::vector<Axis> phases, lines;
    for (const Window& w : c_.columns) {
      phases.push_back({Var(fmt::format("{}phase{}", b_.prefix, phases.size())), w.phases()});
      lines.push_back({Var(fmt::format("{}line{}", b_.prefix, lines.size())), w.stored_extent()});
      const Expr position = lines.back().var * w.phases() + phases.back().var;
      value = AtPosition(value, w, position);
      // The last positions of some remainders lie beyond what any column and tap reads.
      const int64_t positions = (w.column.extent - 1) * w.stride + (w.tap.extent - 1) * w.dilation + 1;
      if (w.slides() && w.stored_extent() * w.phases() > positions) {
        value = Select(position < positions, value, Constant(value.type(), 0));
      }
    }
    value = Cast(vector_buffer_.type(), Substitute(value, names));
    Indices at = Vars(around);
    for (const Axis& phase : phases) at.push_back(phase.var);
    const int64_t width = Inner().stored_extent();
    const int64_t stored = (lines.size() == 2 ? lines[0].extent : 1) * width;
    VarIntervals vars;
    for (const auto* axes : {&around, &phases, &lines}) {
      for (const Axis& axis : *axes) vars[axis.var.get()] = {0, axis.extent - 1};
    }
    auto copy = [&](int64_t begin, int64_t end, const char* part) {
      return VectorLoop(lines.back().var->name + part, end - begin, lanes_, [&](const Expr& i) {
        const Expr x = i + begin;
        vars[lines.back().var.get()] = {begin, end - 1};
        Expr flat = lines.size() == 2 ? lines[0].var * width + x : x;
        // Simplified while the position is one variable with known bounds, so that a guard that always holds goes.
        Expr simple = Substitute(Simplify(value, vars), {{lines.back().var.get(), x}});
        Indices index = at;
        index.push_back(flat);
        return StoreWithLets(vector_buffer_, index, simple);
      });
    };
    const auto [low, high] = UnguardedRange(value, lines.back().var, width, vars);
    Stmt row = Block({copy(0, low, "_l"), copy(low, high, "_m"), copy(high, width, "_r")});
    if (lines.size() == 2) row = For(lines[0].var, lines[0].extent, row);
    const int64_t slack = vector_buffer_.shape().back() - stored;
    if (slack > 0) {
      Stmt zero = VectorLoop(b_.prefix + "slack", slack, lanes_, [&](const Expr& i) {
        Indices index = at;
        index.push_back(i + stored);
        return Store(vector_buffer_, index, Constant(vector_buffer_.type(), 0));
      });
      row = Block({row, zero});
    }
    row = WrapAxes(phases, row, false);
    return WrapAxes(around, row, vector_buffer_->elements() >= kParallelWork);
  }

  // The longest middle part of [0, width) in which no select depends on `x` any more.
  static std::pair<int64_t, int64_t> UnguardedRange(const Expr& value, const Expr& x, int64_t width, VarIntervals vars) {
    auto guarded = [&](int64_t low, int64_t high) {
      vars[x.get()] = {low, high - 1};
      bool found = false;
      ForEachExpr(Simplify(value, vars), [&](const Expr& e) {
        found = found || (e->kind == ExprKind::kSelect && UsesVar(e->operands[0], x));
      });
      return found;
    };
    constexpr int64_t kWidestBorder = 16;
    if (!guarded(0, width)) return {0, width};
    for (int64_t border = 1; border <= kWidestBorder && 2 * border < width; ++border) {
      if (guarded(border, width - border)) continue;
      const int64_t low = guarded(border - 1, width - border) ? border : border - 1;
      int64_t high = width - border;
      while (high < width && !guarded(low, high + 1)) ++high;
      int64_t first = low;
      while (first > 0 && !guarded(first - 1, high)) --first;
      return {first, high};
    }
    return {0, 0};
  }

  // S[outer, row tile, depth, taps, row], zero beyond the last row.
  void MakeScalarOperand() {
    if (!c_.scalar_operand) return;
    const bool constant = b_.IsConstant(c_.scalar_operand);
    // Read in place where one row is one load anyway.
    if (!constant && rows_ == 1 && c_.scalar_operand->kind == ExprKind::kLoad) return;
    const std::vector<Axis> outer = UsedBy(c_.scalar_operand, c_.outer), depth = UsedBy(c_.scalar_operand, c_.depth);
    Shape shape;
    for (const Axis& axis : outer) shape.push_back(axis.extent);
    shape.push_back(row_tiles_);
    for (const Axis& axis : depth) shape.push_back(axis.extent);
    const std::vector<Axis> taps = Taps(c_.scalar_operand);
    for (const Axis& axis : taps) shape.push_back(axis.extent);
    shape.push_back(rows_);
    scalar_buffer_ = Buffer(b_.prefix + "rows", OperandType(c_.scalar_operand), shape);
    Substitution names;
    const auto o = Rename(outer, "_s", names), d = Rename(depth, "_s", names), t = Rename(taps, "_s", names);
    const Expr tile = Var(b_.prefix + "row_tile_s"), row = Var(b_.prefix + "row_s");
    const Expr flat = tile * rows_ + row;
    if (c_.row.var) names[c_.row.var.get()] = flat;
    Expr value = Cast(scalar_buffer_.type(), Substitute(c_.scalar_operand, names));
    if (row_tiles_ * rows_ != c_.row.extent) value = Select(flat < c_.row.extent, value, Constant(scalar_buffer_.type(), 0));
    Indices at = Vars(o);
    at.push_back(tile);
    for (const auto* axes : {&d, &t}) {
      for (const Axis& axis : *axes) at.push_back(axis.var);
    }
    at.push_back(row);
    Stmt body = WrapAxes(d, WrapAxes(t, For(row, rows_, StoreWithLets(scalar_buffer_, at, value)), false), false);
    b_.Materialise(scalar_buffer_, WrapAxes(o, For(tile, row_tiles_, body), false), constant);
  }

  std::vector<Axis> Taps(const Expr& operand) const {
    std::vector<Axis> taps;
    for (const Window& w : c_.columns) {
      if (w.slides() && UsesVar(operand, w.tap.var)) taps.push_back(w.tap);
    }
    return taps;
  }

  // V at a column of the block's tile; `start` is the tile's first flat column, `tile` its number in all.
  Expr VectorAt(const Expr& start, const Expr& tile, const Expr& lane) const {
    if (in_place_) return Substitute(c_.vector_operand, ColumnsAt(start + lane));
    Indices at = Vars(UsedBy(c_.vector_operand, c_.outer));
    if (tiled_) at.push_back(tile);
    for (const Axis& axis : UsedBy(c_.vector_operand, c_.depth)) at.push_back(axis.var);
    if (tiled_) {
      at.push_back(lane);
    } else {
      for (const Window& w : c_.columns) {
        at.push_back(w.phases() == 1 ? Expr(0) : FloorMod(w.tap.var * w.dilation, I64(w.stride)));
      }
      at.push_back(start + TapOffset() + lane);
    }
    return vector_buffer_.At(at);
  }

  Expr ScalarAt(const Expr& row_tile, const Expr& row) const {
    if (!scalar_buffer_) {
      return c_.row.var ? Substitute(c_.scalar_operand, {{c_.row.var.get(), row_tile * rows_ + row}}) : c_.scalar_operand;
    }
    Indices at = Vars(UsedBy(c_.scalar_operand, c_.outer));
    at.push_back(row_tile);
    for (const Axis& axis : UsedBy(c_.scalar_operand, c_.depth)) at.push_back(axis.var);
    for (const Axis& axis : Taps(c_.scalar_operand)) at.push_back(axis.var);
    at.push_back(row);
    return scalar_buffer_.At(at);
  }

  // for row in the tile (unrolled), for lane (vector): body
  Stmt OverTile(const char* name, const std::function<Stmt(const Expr&, const Expr&)>& body) const {
    return For(b_.prefix + name + "_r", rows_, [&](Expr row) {
      return For(b_.prefix + name + "_q", tile_, [&](Expr lane) { return body(row, lane); }, LoopKind::kVectorised);
    }, LoopKind::kUnrolled);
  }

  Stmt Nest() {
    int64_t outer = 1;
    for (const Axis& axis : c_.outer) outer *= axis.extent;
    const int64_t tasks = outer * blocks_ * row_tiles_;
    const Expr task = Var(b_.prefix + "task");
    // Rows pass fastest over a block, which stays in the cache.
    const Expr row_tile = FloorMod(task, I64(row_tiles_));
    Expr rest = FloorDiv(task, I64(row_tiles_));
    const Expr block = FloorMod(rest, I64(blocks_));
    rest = FloorDiv(rest, I64(blocks_));
    Substitution outer_vars;
    for (size_t i = c_.outer.size(); i-- > 0;) {
      outer_vars[c_.outer[i].var.get()] = i == 0 ? rest : FloorMod(rest, I64(c_.outer[i].extent));
      rest = FloorDiv(rest, I64(c_.outer[i].extent));
    }
    const Expr row_var = Var(b_.prefix + "row_tile"), block_var = Var(b_.prefix + "block");
    Buffer sums(b_.prefix + "sums", sum_type_, {rows_, tiles_ * tile_}, MemorySpace::kPrivate);
    Stmt body = Allocate(sums, Block({SumTiles(sums, row_var, block_var), Epilogue(sums, row_var, block_var)}));
    body = Let(row_var, row_tile, Let(block_var, block, body));
    for (const Axis& axis : c_.outer) body = Let(axis.var, outer_vars.at(axis.var.get()), body);
    const bool parallel = tasks > 1 && c_.stage.output->elements() * c_.terms() >= kParallelWork;
    Stmt nest = For(task, tasks, body, parallel ? LoopKind::kParallel : LoopKind::kSerial);
    return nest;
  }

  Stmt SumTiles(const Buffer& sums, const Expr& row_tile, const Expr& block) {
    Buffer acc(b_.prefix + "acc", sum_type_, {rows_, tile_}, MemorySpace::kPrivate);
    const Expr tile = Var(b_.prefix + "tile");
    const Expr number = block * tiles_ + tile;
    Expr start = lines_ > 1 ? block * block_step_ + tile * tile_ : number * tile_;
    // In place there is nothing to read behind the last column: the last tile moves back and computes some columns twice.
    if (in_place_ && columns_ % tile_ != 0) start = Min(start, I64(columns_ - tile_));
    const Expr start_var = Var(b_.prefix + "start");
    Stmt begin = OverTile("init", [&](const Expr& r, const Expr& q) { return Store(acc, {r, q}, c_.stage.init); });
    Stmt step = OverTile("step", [&](const Expr& r, const Expr& q) {
      Expr term = Cast(c_.stage.term.type(), VectorAt(start_var, number, q));
      if (c_.scalar_operand) term = term * Cast(c_.stage.term.type(), ScalarAt(row_tile, r));
      return Store(acc, {r, q}, Substitute(c_.stage.combine, {{c_.stage.accumulator.get(), acc(r, q)}, {c_.stage.term.get(), term}}));
    });
    for (size_t i = c_.columns.size(); i-- > 0;) {
      const Axis& tap = c_.columns[i].tap;
      if (!c_.columns[i].slides()) continue;
      const bool unroll = i + 1 == c_.columns.size() && tap.extent <= kUnrolledTaps;
      step = For(tap.var, tap.extent, step, unroll ? LoopKind::kUnrolled : LoopKind::kSerial);
    }
    step = WrapAxes(c_.depth, step, false);
    // Blocks are as long as the last one is short: its superfluous tiles are left out.
    Expr offset = start_var - block * block_step_;
    Stmt end = OverTile("save", [&](const Expr& r, const Expr& q) { return Store(sums, {r, offset + q}, acc(r, q)); });
    Stmt body = Let(start_var, start, Allocate(acc, Block({begin, step, end})));
    const int64_t all_tiles = CeilDiv(columns_, tile_);
    if (lines_ == 1 && blocks_ * tiles_ != all_tiles) body = If(number < all_tiles, body);
    return For(tile, tiles_, body);
  }

  // output[…] = epilogue(sum) for the rows and columns of a block.
  Stmt Epilogue(const Buffer& sums, const Expr& row_tile, const Expr& block) {
    const Expr row = Var(b_.prefix + "row");
    const Expr flat_row = row_tile * rows_ + row;
    auto store = [&](const Expr& at, Substitution where) {
      if (c_.row.var) where[c_.row.var.get()] = flat_row;
      Indices indices;
      for (const Expr& index : c_.indices) indices.push_back(Substitute(index, where));
      where[c_.stage.accumulator.get()] = sums(row, at);
      return StoreWithLets(c_.stage.output, indices, Substitute(c_.stage.epilogue, where));
    };
    Stmt body;
    if (lines_ > 1) {
      const Expr line = Var(b_.prefix + "line");
      const Expr whole_line = block * block_lines_ + line;
      body = VectorLoop(b_.prefix + "column", Inner().column.extent, lanes_, [&](const Expr& q) {
        return store(line * pitch_ + q, {{c_.columns[0].column.var.get(), whole_line}, {Inner().column.var.get(), q}});
      });
      if (block_lines_ * blocks_ != lines_) body = If(whole_line < lines_, body);
      body = For(line, block_lines_, body);
    } else {
      const int64_t last = columns_ - (blocks_ - 1) * block_step_;  // columns of the last block
      auto part = [&](int64_t begin, int64_t end, const char* name) {
        return VectorLoop(b_.prefix + name, end - begin, lanes_, [&](const Expr& q) {
          const Expr at = q + begin;
          return store(at, ColumnsAt(block * block_step_ + at));
        });
      };
      body = part(0, last, "column");
      if (last < block_step_ && blocks_ > 1) body = Block({body, If(block < blocks_ - 1, part(last, block_step_, "column_rest"))});
    }
    if (rows_ * row_tiles_ != c_.row.extent) body = If(flat_row < c_.row.extent, body);
    return For(row, rows_, body);
  }

  const Contraction& c_;
  GroupBuilder& b_;
  ElementType sum_type_;
  int64_t lanes_;
  int64_t rows_ = 1, row_tiles_ = 1;  // rows of a tile and their number
  int64_t tile_ = 1;                  // columns of a tile
  bool flat_ = true;
  int64_t pitch_ = 1, lines_ = 1, columns_ = 1;  // stored columns: lines of `pitch_`
  int64_t blocks_ = 1, tiles_ = 1;               // tiles of a block
  int64_t block_lines_ = 1, block_step_ = 1;     // first column of a block from that of the one before
  bool in_place_ = false, tiled_ = false;
  Buffer vector_buffer_, scalar_buffer_;
};

}  // namespace

void ScheduleContraction(const Contraction& contraction, GroupBuilder& builder) { Tiler(contraction, builder).Build(); }

}  // namespace heddle::cpu
