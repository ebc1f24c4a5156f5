// Depth first: for a few rows of a group's last layer, each layer computes just the rows that are missing. A tensor in between
// lies in a buffer of some rows; new rows follow the old ones, and where the buffer ends, the rows that are still needed move
// to its start. So nothing is computed twice, addresses stay linear, and the moves cost little where the buffer is longer
// than what has to be moved.

#include "hls/plan_fused.h"

#include <algorithm>
#include <map>

#include "hls/plan_schedule.h"
#include "ir/check.h"

namespace heddle::hls {
namespace {

bool IsOutput(const Network& network, int root) {
  return std::any_of(network.outputs.begin(), network.outputs.end(),
                     [&](const BoundaryTensor& o) { return network.RootOf(o.view.storage) == root; });
}

bool Reads(const Network& network, const Operand& operand, int root) {
  return operand.storage >= 0 && network.RootOf(operand.storage) == root;
}

class Fusion {
 public:
  Fusion(const Network& network, int first, int last, Plan& plan)
      : network_(network), first_(first), last_(last), plan_(plan), done_(static_cast<size_t>(last - first + 1)) {
    for (int l = first; l <= last; ++l) {
      const int root = network.RootOf(network.layers[l].out.storage);
      if (CanRoll(network, first, last, root) && !plan.storages[root].spilled) rolls_[root].writer = l;
    }
  }

  void Run() {
    // Once to see how many rows are needed at a time, and once for good.
    Walk(false);
    for (auto& [root, roll] : rolls_) {
      // Room for some advances between two moves, if one move cannot be had for less.
      const int64_t height = network_.storages[root].extents[kAxisH];
      plan_.storages[root].rolling_rows = std::min(height, roll.live + (roll.live > roll.advance ? kAdvances * roll.advance : 0));
    }
    Walk(true);
  }

 private:
  static constexpr int64_t kAdvances = 2;
  struct Roll {
    int writer = -1;
    int64_t live = 0, advance = 0;  // most rows needed at a time, most rows written at a time
    int64_t origin = 0;             // row at the buffer's start
  };

  const Layer& layer(int l) const { return network_.layers[l]; }
  int64_t& done(int l) { return done_[static_cast<size_t>(l - first_)]; }
  int64_t Height(int root) const { return network_.storages[root].extents[kAxisH]; }

  void Walk(bool emit) {
    const Layer& last = layer(last_);
    const int64_t tile = std::max<int64_t>(1, plan_.layers[last_].rows_per_tile);
    if (emit) {
      for (int l = first_; l <= last_; ++l) plan_.layers[l].first_step = -1;
    }
    for (int64_t n = 0; n < last.batch; ++n) {
      std::fill(done_.begin(), done_.end(), 0);
      for (auto& [root, roll] : rolls_) roll.origin = n * Height(root);
      for (int64_t row = 0; row < last.out_h; row += tile) Tile(n, std::min(row + tile, last.out_h), emit);
    }
  }

  // All layers up to what rows [0, end) of the last one need.
  void Tile(int64_t n, int64_t end, bool emit) {
    std::vector<int64_t> need(done_.size());
    for (int l = last_; l >= first_; --l) {
      int64_t rows = l == last_ ? end : 0;
      const int root = network_.RootOf(layer(l).out.storage);
      if (end == layer(last_).out_h && !rolls_.contains(root)) rows = layer(l).out_h;
      for (int reader = l + 1; reader <= last_; ++reader) {
        rows = std::max(rows, RowsFor(l, reader, n, need[static_cast<size_t>(reader - first_)]));
      }
      need[static_cast<size_t>(l - first_)] = std::max(rows, done(l));
    }
    for (int l = first_; l <= last_; ++l) {
      const int64_t rows = need[static_cast<size_t>(l - first_)];
      if (rows > done(l)) Emit(l, n, rows, emit);
    }
  }

  // Rows of `writer` that `reader` needs for its rows [done, rows).
  int64_t RowsFor(int writer, int reader, int64_t n, int64_t rows) {
    if (rows <= done(reader)) return 0;
    const Layer& w = layer(writer);
    Box origin;
    const int root = network_.RootOf(w.out.storage, origin);
    int64_t most = 0;
    for (const Operand* operand : {&layer(reader).in, &layer(reader).b}) {
      if (!Reads(network_, *operand, root)) continue;
      const bool linear = w.out.h == DimRef{kAxisH, 1} && (w.batch == 1 || w.out.n == DimRef{kAxisN, 1});
      if (!linear) return w.out_h;
      int64_t from = 0, to = 0;
      PieceRows(network_, layer(reader), *operand, PieceOf(n, done(reader), rows), from, to);
      const int64_t start = (n + origin[kAxisN] + w.out.offset[kAxisN]) * Height(root) + origin[kAxisH] + w.out.offset[kAxisH];
      most = std::max(most, std::clamp<int64_t>(to - start + 1, 0, w.out_h));
    }
    return most;
  }

  static Piece PieceOf(int64_t n, int64_t row, int64_t row_end) {
    Piece piece;
    piece.n = n, piece.row = row, piece.row_end = row_end;
    return piece;
  }

  // The first row of a rolling storage that is still needed.
  int64_t FirstNeeded(int root, int64_t n, int64_t filled) {
    int64_t keep = filled;
    for (int reader = rolls_.at(root).writer + 1; reader <= last_; ++reader) {
      for (const Operand* operand : {&layer(reader).in, &layer(reader).b}) {
        if (!Reads(network_, *operand, root) || done(reader) >= layer(reader).out_h) continue;
        int64_t from = 0, to = 0;
        PieceRows(network_, layer(reader), *operand, PieceOf(n, done(reader), layer(reader).out_h), from, to);
        keep = std::min(keep, from);
      }
    }
    return keep;
  }

  void Emit(int l, int64_t n, int64_t rows, bool emit) {
    PlannedStep step;
    step.layer = l;
    step.piece = PieceOf(n, done(l), rows);
    step.piece.block_end = plan_.layers[l].mapping.blocks();
    const int root = network_.RootOf(layer(l).out.storage);
    if (const auto it = rolls_.find(root); it != rolls_.end()) MakeRoom(root, it->second, n, rows, step);
    if (emit) {
      step.in_origin = Origin(layer(l).in), step.b_origin = Origin(layer(l).b), step.out_origin = Origin(layer(l).out);
      LayerPlan& p = plan_.layers[l];
      p.last_step = static_cast<int>(plan_.steps.size());
      if (p.first_step < 0) p.first_step = p.last_step;
      plan_.steps.push_back(step);
    }
    done(l) = rows;
  }

  void MakeRoom(int root, Roll& roll, int64_t n, int64_t rows, PlannedStep& step) {
    const int64_t base = n * Height(root), filled = base + done(roll.writer), end = base + rows;
    const int64_t keep = FirstNeeded(root, n, filled);
    roll.live = std::max(roll.live, end - keep);
    roll.advance = std::max(roll.advance, end - filled);
    const int64_t room = plan_.storages[root].rolling_rows;
    if (room == 0 || end - roll.origin <= room) return;
    const int64_t row_bytes = plan_.storages[root].strides[kAxisH];
    step.move = {(keep - roll.origin) * row_bytes, (filled - keep) * row_bytes};
    roll.origin = keep;
  }

  int64_t Origin(const Operand& operand) const {
    if (operand.storage < 0) return 0;
    const auto it = rolls_.find(network_.RootOf(operand.storage));
    return it == rolls_.end() ? 0 : it->second.origin;
  }

  const Network& network_;
  int first_, last_;
  Plan& plan_;
  std::vector<int64_t> done_;  // rows of each layer that exist
  std::map<int, Roll> rolls_;
};

}  // namespace

bool CanFuseWithNext(const Network& network, int l) {
  if (l < 0 || l + 1 >= static_cast<int>(network.layers.size())) return false;
  const Layer& a = network.layers[l];
  const Layer& b = network.layers[l + 1];
  return a.batch == b.batch && a.out_h > 1 && a.weights_storage < 0 && b.weights_storage < 0 &&
         !network.storages[a.out.storage].as_weights && !network.storages[b.out.storage].as_weights;
}

bool CanRoll(const Network& network, int first, int last, int root) {
  const Storage& storage = network.storages[root];
  if (storage.parent >= 0 || storage.is_input || !storage.constant.empty() || IsOutput(network, root)) return false;
  for (size_t i = 0; i < network.storages.size(); ++i) {
    if (network.storages[i].parent >= 0 && network.RootOf(static_cast<int>(i)) == root) return false;
  }
  int writer = -1;
  for (int l = 0; l < static_cast<int>(network.layers.size()); ++l) {
    const Layer& layer = network.layers[l];
    const bool inside = l >= first && l <= last;
    if (layer.out.storage == root) {
      const bool whole = layer.out.h == DimRef{kAxisH, 1} && layer.out.offset == Box{} && layer.out_h == storage.extents[kAxisH] &&
                         (layer.out.w.axis == kAxisW || layer.out_w == 1) && (layer.batch == 1 || layer.out.n == DimRef{kAxisN, 1});
      if (!inside || writer >= 0 || !whole || layer.batch != storage.extents[kAxisN]) return false;
      writer = l;
    }
    for (const Operand* operand : {&layer.in, &layer.b}) {
      if (!Reads(network, *operand, root)) continue;
      const bool rows = (operand->h.axis == kAxisH && operand->h.multiple > 0) || layer.out_h == 1;
      const bool batches = layer.batch == 1 ? storage.extents[kAxisN] == 1 : operand->n == DimRef{kAxisN, 1};
      if (!inside || writer < 0 || !rows || !batches) return false;
    }
  }
  return writer >= 0;
}

bool FusionSpan(const Network& network, int root, int& first, int& last) {
  first = last = -1;
  for (int l = 0; l < static_cast<int>(network.layers.size()); ++l) {
    const Layer& layer = network.layers[l];
    if (network.RootOf(layer.out.storage) == root) {
      if (first >= 0) return false;
      first = l;
    }
    if (Reads(network, layer.in, root) || Reads(network, layer.b, root)) last = l;
  }
  return first >= 0 && last > first;
}

void FuseGroup(const Network& network, int first, int last, Plan& plan) {
  for (int l = first; l < last; ++l) plan.layers[l].fused_with_next = true;
  // Blocks are not tiled within a group.
  for (int l = GroupFirst(plan, first); l <= GroupLast(plan, last); ++l) {
    plan.layers[l].blocks_per_tile = 0;
    if (plan.layers[l].rows_per_tile == 0) plan.layers[l].rows_per_tile = network.layers[l].out_h;
  }
}

int GroupFirst(const Plan& plan, int l) {
  while (l > 0 && plan.layers[l - 1].fused_with_next) --l;
  return l;
}

int GroupLast(const Plan& plan, int l) {
  while (plan.layers[l].fused_with_next) ++l;
  return l;
}

void EnumerateFused(const Network& network, int first, int last, Plan& plan) { Fusion(network, first, last, plan).Run(); }

}  // namespace heddle::hls
