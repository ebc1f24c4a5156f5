// Steps, buffers and transfers of a network under given decisions.

#include "hls/plan_schedule.h"

#include <algorithm>
#include <map>

#include "hls/plan_fused.h"
#include "hls/plan_loads.h"
#include "ir/check.h"

namespace heddle::hls {
namespace {

// Rows of the root storage (n * height + h) that loops of an operand reach: [first, last].
void RootRows(const Network& network, const Operand& operand, int64_t height, const std::vector<std::pair<DimRef, std::pair<int64_t, int64_t>>>& loops,
              int64_t& first, int64_t& last) {
  Box origin;
  network.RootOf(operand.storage, origin);
  first = last = (origin[kAxisN] + operand.offset[kAxisN]) * height + origin[kAxisH] + operand.offset[kAxisH];
  for (const auto& [ref, range] : loops) {
    const int64_t step = ref.axis == kAxisN ? ref.multiple * height : ref.axis == kAxisH ? ref.multiple : 0;
    first += step * range.first;
    last += step * range.second;
  }
}

}  // namespace

void PieceRows(const Network& network, const Layer& layer, const Operand& operand, const Piece& piece, int64_t& first, int64_t& last) {
  const int64_t height = network.storages[network.RootOf(operand.storage)].extents[kAxisH];
  const std::pair<int64_t, int64_t> n{piece.n, piece.n}, rows{piece.row, piece.row_end - 1}, columns{0, layer.out_w - 1};
  if (&operand != &layer.in) {
    RootRows(network, operand, height, {{operand.n, n}, {operand.h, rows}, {operand.w, columns}}, first, last);
  } else if (!layer.bounded) {
    RootRows(network, operand, height, {{operand.n, n}, {operand.h, rows}, {operand.w, columns}, {operand.kh, {0, layer.kernel_h - 1}},
                               {operand.kw, {0, layer.kernel_w - 1}}}, first, last);
  } else {
    int64_t in_first = 0, in_last = 0;
    InputRows(layer, piece.row, piece.row_end, in_first, in_last);
    const DimRef row{operand.h.axis, operand.h.multiple / layer.stride_h};
    const DimRef column{operand.w.axis, operand.w.multiple / layer.stride_w};
    RootRows(network, operand, height, {{operand.n, n}, {row, {in_first, std::max(in_first, in_last - 1)}}, {column, {0, layer.in_w - 1}}},
             first, last);
    // A window that lies in the padding alone reads nothing; any row will do.
    const int64_t end = height * network.storages[network.RootOf(operand.storage)].extents[kAxisN] - 1;
    first = std::min(first, end), last = std::min(last, end);
  }
}

namespace {

constexpr int64_t kWeightParts = 8;

class Scheduler {
 public:
  Scheduler(const Network& network, const AcceleratorParams& params, const PlanOptions& options, Plan& plan)
      : network_(network), params_(params), options_(options), plan_(plan) {}

  void Run() {
    SetStrides();
    for (size_t l = 0; l < network_.layers.size(); ++l) SetMapping(static_cast<int>(l));
    PlaceInDram();
    plan_.buffers.clear(), plan_.steps.clear(), plan_.setup_loads.clear(), plan_.loads.clear(), plan_.stores.clear();
    const int layers = static_cast<int>(network_.layers.size());
    for (int first = 0, last = 0; first < layers; first = last + 1) {
      last = GroupLast(plan_, first);
      while (SameTiles(first, last)) ++last;
      if (network_.storages[network_.layers[first].out.storage].as_weights) {
        EnumerateTiles(first, last);
      } else if (last > first) {
        EnumerateFused(network_, first, last, plan_);
      } else {
        EnumerateSteps(first);
      }
    }
    AddStorageBuffers();
    for (size_t l = 0; l < network_.layers.size(); ++l) AddLayerConstants(static_cast<int>(l));
    for (size_t s = 0; s < plan_.steps.size(); ++s) AddOperands(static_cast<int>(s));
    AddInputLoads();
    AddOutputStores();
    ScheduleConstantLoads(network_, params_, options_, constant_loads_, plan_);
  }

 private:
  // ---- Layout.

  // Alignment of everything on chip that windows or the bus address.
  int64_t Alignment() const { return std::max(params_.bank_bytes(), params_.beat_bytes()); }

  void SetStrides() {
    for (size_t i = 0; i < network_.storages.size(); ++i) {
      StoragePlan& p = plan_.storages[i];
      p.buffer = -1, p.rolling_rows = 0;
      if (network_.storages[i].parent >= 0) continue;
      const Storage& storage = network_.storages[i];
      const Box& e = storage.extents;
      const int64_t pixel = storage.align_pixels ? RoundUp(e[kAxisC], params_.output_lanes) : e[kAxisC];
      int64_t row = e[kAxisW] * pixel;
      if (storage.odd_rows) {
        int64_t words = RoundUp(row, params_.bank_bytes()) / params_.bank_bytes();
        row = (words | 1) * params_.bank_bytes();
      }
      if (p.spilled) row = RoundUp(row, params_.beat_bytes());
      p.strides = {e[kAxisH] * row, row, pixel, 1};
      p.bytes = e[kAxisN] * e[kAxisH] * row;
    }
    for (size_t i = 0; i < network_.storages.size(); ++i) {
      plan_.storages[i].strides = plan_.storages[network_.RootOf(static_cast<int>(i))].strides;
    }
  }

  int64_t Step(const Operand& operand, const DimRef& ref) const {
    return ref.axis < 0 ? 0 : ref.multiple * plan_.storages[operand.storage].strides[ref.axis];
  }
  Steps StepsOf(const Operand& o) const {
    if (o.storage < 0) return {};
    return {Step(o, o.n), Step(o, o.h), Step(o, o.w), Step(o, o.kh), Step(o, o.kw)};
  }

  void SetMapping(int l) {
    const Layer& layer = network_.layers[l];
    LayerPlan& p = plan_.layers[l];
    p.steps = {StepsOf(layer.in), StepsOf(layer.b), StepsOf(layer.out), 0, 0};
    p.steps.in_pixel = p.steps.in.w / layer.stride_w;
    p.steps.in_row = p.steps.in.h / layer.stride_h;
    // A single column has no step of its own, but columns of padding beside it need one.
    if (layer.bounded && p.steps.in_pixel == 0) {
      p.steps.in_pixel = plan_.storages[layer.in.storage].strides[kAxisW];
      p.steps.in.w = p.steps.in_pixel * layer.stride_w;
      p.steps.in.kw = p.steps.in_pixel * layer.dilation_w;
    }
    p.mapping = MapLayer(layer, p.steps, params_);
    if (p.rows_per_tile == 0) p.rows_per_tile = layer.out_h;
    if (p.blocks_per_tile == 0) p.blocks_per_tile = p.mapping.blocks();
    p.resident_blocks = std::min(p.resident_blocks, p.mapping.blocks() - 1);
  }

  // Weights that are streamed come in parts of a fraction of their memory, so that a part is loaded under the ones before. Layers
  // whose rows are tiled would load each part again for each tile of rows, so they do so only where not all weights can be there.
  int64_t BlocksPerTile(int l) const {
    const LayerPlan& p = plan_.layers[l];
    const int64_t words = p.mapping.weight_words();
    if (p.weights_resident || words == 0 || p.mapping.shared_weights) return p.blocks_per_tile;
    if (p.rows_per_tile < network_.layers[l].out_h && words <= params_.weight_words / 2) return p.blocks_per_tile;
    const int64_t most = std::max<int64_t>(1, params_.weight_words / kWeightParts / p.mapping.steps());
    const int64_t blocks = p.mapping.blocks(), tiles = (blocks + most - 1) / most;
    return std::min(p.blocks_per_tile, (blocks + tiles - 1) / tiles);
  }

  int64_t DramAlignment() const { return std::max(128, params_.beat_bytes()); }

  void PlaceInDram() {
    int64_t at = RoundUp(options_.first_dram_address, DramAlignment());
    const auto take = [&](int64_t bytes) {
      const int64_t address = at;
      at = RoundUp(at + bytes, DramAlignment());
      return address;
    };
    plan_.constants_begin = at;
    for (size_t l = 0; l < network_.layers.size(); ++l) {
      const Layer& layer = network_.layers[l];
      LayerPlan& p = plan_.layers[l];
      p.weight_address = take(layer.weights_storage >= 0 ? 0 : p.mapping.weight_words() * params_.weight_word_pitch_bytes());
      p.parameter_address = take(ParameterBlocks(layer, p.mapping) * params_.parameter_block_pitch_bytes());
      p.lookup_address = take(layer.drain_fields.use_lookup ? kLookupEntries : 0);
    }
    for (const bool constants : {true, false}) {
      for (size_t i = 0; i < network_.storages.size(); ++i) {
        const Storage& storage = network_.storages[i];
        StoragePlan& p = plan_.storages[i];
        if (storage.parent >= 0 || storage.constant.empty() == constants) continue;
        if (constants || storage.is_input || p.spilled || IsOutput(static_cast<int>(i))) p.dram_address = take(RoundUp(p.bytes, params_.beat_bytes()));
      }
      if (constants) plan_.constants_end = at;
    }
    plan_.dram_end = at;
  }

  bool IsOutput(int root) const {
    return std::any_of(network_.outputs.begin(), network_.outputs.end(),
                       [&](const BoundaryTensor& o) { return network_.RootOf(o.view.storage) == root; });
  }

  // ---- Steps.

  bool Spilled(const Operand& operand) const {
    return operand.storage >= 0 && plan_.storages[network_.RootOf(operand.storage)].spilled;
  }

  void EnumerateSteps(int l) {
    const Layer& layer = network_.layers[l];
    LayerPlan& p = plan_.layers[l];
    p.first_step = static_cast<int>(plan_.steps.size());
    const bool pieces = layer.weights_storage >= 0 || Spilled(layer.in) || Spilled(layer.b) || Spilled(layer.out) || p.rows_per_tile < layer.out_h;
    const int64_t blocks = p.mapping.blocks(), tile = BlocksPerTile(l), streamed = blocks - p.resident_blocks;
    for (int64_t n = 0; n < (pieces ? layer.batch : 1); ++n) {
      for (int64_t row = 0; row < layer.out_h; row += p.rows_per_tile) {
        for (int64_t block = 0, end = 0; block < blocks; block = end) {
          end = block < streamed ? std::min(block + tile, streamed) : blocks;
          PlannedStep step;
          step.layer = l;
          step.batches = pieces ? 1 : layer.batch;
          step.piece.n = n;
          step.piece.row = row;
          step.piece.row_end = std::min(row + p.rows_per_tile, layer.out_h);
          step.piece.block = block;
          step.piece.block_end = end;
          plan_.steps.push_back(step);
        }
      }
    }
    p.last_step = static_cast<int>(plan_.steps.size()) - 1;
  }

  // Consecutive layers that write parts of the same weight tiles.
  bool SameTiles(int first, int last) const {
    const int storage = network_.layers[first].out.storage;
    return network_.storages[storage].as_weights && last + 1 < static_cast<int>(network_.layers.size()) &&
           network_.layers[last + 1].out.storage == storage;
  }

  // One matrix after the other, all its parts together.
  void EnumerateTiles(int first, int last) {
    for (int64_t n = 0; n < network_.layers[first].batch; ++n) {
      for (int l = first; l <= last; ++l) {
        PlannedStep step;
        step.layer = l;
        step.piece.n = n;
        step.piece.row_end = network_.layers[l].out_h;
        step.piece.block_end = plan_.layers[l].mapping.blocks();
        plan_.layers[l].last_step = static_cast<int>(plan_.steps.size());
        if (n == 0) plan_.layers[l].first_step = plan_.layers[l].last_step;
        plan_.steps.push_back(step);
      }
    }
  }

  int AddBuffer(Target memory, int64_t size, int first_step, int last_step, int storage, int layer) {
    plan_.buffers.push_back({memory, size, first_step, last_step, -1, storage, layer});
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  // Storages that stay on chip, from the step that first touches them to the last; one more where a load or store overlaps.
  void AddStorageBuffers() {
    std::map<int, std::pair<int, int>> used;
    for (size_t l = 0; l < network_.layers.size(); ++l) {
      const Layer& layer = network_.layers[l];
      for (const Operand* operand : {&layer.in, &layer.b, &layer.out}) {
        if (operand->storage < 0) continue;
        const int root = network_.RootOf(operand->storage);
        auto [it, fresh] = used.try_emplace(root, plan_.layers[l].first_step, plan_.layers[l].last_step);
        it->second.first = std::min(it->second.first, plan_.layers[l].first_step);
        it->second.second = std::max(it->second.second, plan_.layers[l].last_step);
      }
    }
    used_ = used;
    for (auto [root, interval] : used) {
      StoragePlan& p = plan_.storages[root];
      if (p.spilled) continue;
      const Storage& storage = network_.storages[root];
      if (storage.is_input || !storage.constant.empty()) --interval.first;
      if (IsOutput(root)) ++interval.second;
      const int64_t bytes = p.rolling_rows > 0 ? p.rolling_rows * p.strides[kAxisH] : p.bytes;
      p.buffer = AddBuffer(Target::kActivations, RoundUp(bytes, Alignment()), interval.first, interval.second, root, -1);
    }
  }

  // ---- Weights, parameters, tables.

  void AddConstant(int l, Target memory, bool resident, int64_t units, int64_t unit_bytes, int64_t units_per_block, int64_t dram,
                   int PlannedStep::*slot) {
    if (units == 0) return;
    const LayerPlan& p = plan_.layers[l];
    const int end = static_cast<int>(plan_.steps.size());
    const auto add = [&](bool stays, int64_t first, int64_t count, int first_step, int last_step) {
      const int buffer = stays ? AddBuffer(memory, count, -1, end, -1, l) : AddBuffer(memory, count, first_step, last_step, -1, l);
      const Transfer transfer{buffer, 0, dram + first * unit_bytes, count * unit_bytes, l, stays ? 0 : first_step};
      if (!stays) constant_loads_.push_back(static_cast<int>(plan_.loads.size()));
      (stays ? plan_.setup_loads : plan_.loads).push_back(transfer);
      return buffer;
    };
    const bool whole = resident || units_per_block == 0 || !BlocksTiled(l);
    const int64_t staying = memory == Target::kWeights && !whole ? p.resident_blocks * units_per_block : 0;
    const int stays = whole ? add(resident, 0, units, p.first_step, p.last_step) : staying > 0 ? add(true, units - staying, staying, 0, 0) : -1;
    for (int s = p.first_step; s <= p.last_step; ++s) {
      PlannedStep& step = plan_.steps[s];
      if (step.layer != l) continue;
      const int64_t first = step.piece.block * units_per_block;
      const bool streamed = !whole && first < units - staying;
      step.*slot = streamed ? add(false, first, (step.piece.block_end - step.piece.block) * units_per_block, s, s) : stays;
    }
  }

  bool BlocksTiled(int l) const {
    const Piece& piece = plan_.steps[plan_.layers[l].first_step].piece;
    return piece.block_end - piece.block < plan_.layers[l].mapping.blocks();
  }

  void AddLayerConstants(int l) {
    const Layer& layer = network_.layers[l];
    const LayerPlan& p = plan_.layers[l];
    AddConstant(l, Target::kWeights, p.weights_resident, layer.weights_storage >= 0 ? 0 : p.mapping.weight_words(), params_.weight_word_pitch_bytes(), p.mapping.shared_weights ? 0 : p.mapping.steps(),
                p.weight_address, &PlannedStep::weight_buffer);
    AddConstant(l, Target::kParameters, p.parameters_resident, ParameterBlocks(layer, p.mapping), params_.parameter_block_pitch_bytes(),
                layer.uniform_parameters ? 0 : 1, p.parameter_address, &PlannedStep::parameter_buffer);
    AddConstant(l, Target::kLookup, p.lookup_resident, layer.drain_fields.use_lookup, kLookupEntries, 0, p.lookup_address,
                &PlannedStep::lookup_buffer);
    for (int s = p.first_step; s <= p.last_step; ++s) {
      PlannedStep& step = plan_.steps[s];
      if (step.layer != l) continue;
      const auto tiled = [&](int buffer, int64_t whole) { return buffer >= 0 && plan_.buffers[buffer].size < whole; };
      step.piece.weight_base = tiled(step.weight_buffer, p.mapping.weight_words()) ? -step.piece.block * p.mapping.steps() : 0;
      step.piece.parameter_base = tiled(step.parameter_buffer, ParameterBlocks(layer, p.mapping)) ? -step.piece.block : 0;
    }
  }

  // ---- Operands.

  // Bytes from the start of the root storage to the operand's origin.
  int64_t OriginBytes(const Operand& operand) const {
    Box origin;
    const int root = network_.RootOf(operand.storage, origin);
    int64_t bytes = 0;
    for (int axis = 0; axis < 4; ++axis) bytes += (origin[axis] + operand.offset[axis]) * plan_.storages[root].strides[axis];
    return bytes;
  }

  // Loads run under the steps before, but not before what they read has been stored.
  static int IssueStep(int needed, int stored, int ahead) { return std::max({0, needed - ahead, stored + 1}); }

  // The last step that stores one of the rows of a spilled root; -1 where none does.
  int StoredAt(int root, int64_t first, int64_t last) const {
    int found = -1;
    const auto it = written_.find(root);
    if (it == written_.end()) return found;
    for (const auto& [rows, step] : it->second) {
      if (rows.first <= last && rows.second >= first) found = std::max(found, step);
    }
    return found;
  }

  void AddOperand(int s, const Operand& operand, int PlannedStep::*slot, int64_t Piece::*base, int64_t PlannedStep::*origin) {
    if (operand.storage < 0) return;
    PlannedStep& step = plan_.steps[s];
    const Layer& layer = network_.layers[step.layer];
    const int root = network_.RootOf(operand.storage);
    StoragePlan& p = plan_.storages[root];
    step.piece.*base = OriginBytes(operand);
    if (!p.spilled) {
      step.*slot = p.buffer;
      if (p.rolling_rows > 0) step.piece.*base -= step.*origin * p.strides[kAxisH];
      return;
    }
    const bool is_out = &operand == &layer.out;
    const int64_t row_bytes = p.strides[kAxisH];
    // Transfers overlap with the steps of one tile before or behind.
    const int ahead = plan_.layers[step.layer].prefetch ? GroupLast(plan_, step.layer) - GroupFirst(plan_, step.layer) + 1 : 0;
    int64_t first = 0, last = 0;
    PieceRows(network_, layer, operand, step.piece, first, last);
    step.piece.*base -= first * row_bytes;
    // Blocks of one piece of rows share its buffers, and so do the layers that make one matrix of tiles.
    const bool same_tiles = is_out && network_.storages[root].as_weights;
    const bool same_rows = same_tiles ? s > 0 && network_.layers[plan_.steps[s - 1].layer].out.storage == root && plan_.steps[s - 1].piece.n == step.piece.n
                                      : s > plan_.layers[step.layer].first_step && step.piece.block > 0;
    if (same_rows) {
      step.*slot = plan_.steps[s - 1].*slot;
      plan_.buffers[step.*slot].last_step = s + (is_out ? ahead : 0);
    } else {
      step.*slot = AddBuffer(Target::kActivations, RoundUp((last - first + 1) * row_bytes, Alignment()), s - (is_out ? 0 : ahead),
                             s + (is_out ? ahead : 0), -1, step.layer);
      const bool shared = is_out && !same_tiles && written_.contains(root) && !WritesWholeRows(layer, step.piece, last - first + 1);
      if (!is_out || shared) {
        plan_.loads.push_back({step.*slot, 0, p.dram_address + first * row_bytes, (last - first + 1) * row_bytes, step.layer,
                               IssueStep(s, StoredAt(root, first, last), ahead)});
        if (shared) plan_.buffers[step.*slot].first_step = s - ahead;
      }
    }
    const bool more_tiles = same_tiles && s + 1 < static_cast<int>(plan_.steps.size()) &&
                            network_.layers[plan_.steps[s + 1].layer].out.storage == root && plan_.steps[s + 1].piece.n == step.piece.n;
    if (is_out && !more_tiles && step.piece.block_end == plan_.layers[step.layer].mapping.blocks()) {
      plan_.stores.push_back({step.*slot, 0, p.dram_address + first * row_bytes, (last - first + 1) * row_bytes, step.layer, s});
      written_[root].push_back({{first, last}, s});
    }
  }

  // Whether a piece writes every element of the rows it touches.
  bool WritesWholeRows(const Layer& layer, const Piece& piece, int64_t rows) const {
    const Box& e = network_.storages[network_.RootOf(layer.out.storage)].extents;
    return (piece.row_end - piece.row) * layer.out_w * layer.out_c == rows * e[kAxisW] * e[kAxisC];
  }

  // Tiles that the network makes itself come from where they were stored; tiles of rows of one batch share them.
  void AddMadeWeights(int s) {
    PlannedStep& step = plan_.steps[s];
    const Layer& layer = network_.layers[step.layer];
    if (layer.weights_storage < 0) return;
    const LayerPlan& p = plan_.layers[step.layer];
    const StoragePlan& tiles = plan_.storages[layer.weights_storage];
    step.piece.weight_base = -step.piece.block * p.mapping.steps();
    if (s > p.first_step) {
      const PlannedStep& before = plan_.steps[s - 1];
      if (before.piece.n == step.piece.n && before.piece.block == step.piece.block && before.piece.block_end == step.piece.block_end) {
        step.weight_buffer = before.weight_buffer;
        plan_.buffers[step.weight_buffer].last_step = s;
        return;
      }
    }
    const int64_t first = step.piece.n * p.mapping.blocks() + step.piece.block, count = step.piece.block_end - step.piece.block;
    const int64_t words = count * p.mapping.steps(), row_bytes = tiles.strides[kAxisH];
    HEDDLE_CHECK(row_bytes == p.mapping.steps() * params_.weight_word_pitch_bytes(), "rows of tiles are not contiguous");
    step.weight_buffer = AddBuffer(Target::kWeights, words, s, s, -1, step.layer);
    constant_loads_.push_back(static_cast<int>(plan_.loads.size()));
    plan_.loads.push_back({step.weight_buffer, 0, tiles.dram_address + first * row_bytes, words * params_.weight_word_pitch_bytes(), step.layer, s,
                           StoredAt(layer.weights_storage, first, first + count - 1) + 1});
  }

  void AddOperands(int s) {
    const Layer& layer = network_.layers[plan_.steps[s].layer];
    AddMadeWeights(s);
    AddOperand(s, layer.in, &PlannedStep::in_buffer, &Piece::in_base, &PlannedStep::in_origin);
    AddOperand(s, layer.b, &PlannedStep::b_buffer, &Piece::b_base, &PlannedStep::b_origin);
    AddOperand(s, layer.out, &PlannedStep::out_buffer, &Piece::out_base, &PlannedStep::out_origin);
  }

  // ---- Inputs and outputs that are on chip as a whole.

  // Inputs (and constants) come in as far as each step of their first reader needs them.
  void AddInputLoads() {
    for (const auto& [root, interval] : used_) {
      const Storage& storage = network_.storages[root];
      StoragePlan& p = plan_.storages[root];
      if (p.spilled || (!storage.is_input && storage.constant.empty())) continue;
      const int reader = plan_.steps[interval.first].layer;
      const Layer& layer = network_.layers[reader];
      int64_t loaded = 0;
      for (int s = interval.first; s <= plan_.layers[reader].last_step && loaded < p.bytes; ++s) {
        if (plan_.steps[s].layer != reader) continue;
        int64_t first = 0, last = 0, want = p.bytes;
        const bool whole = network_.RootOf(layer.in.storage) != root || s == plan_.layers[reader].last_step || plan_.steps[s].batches > 1;
        if (!whole) {
          PieceRows(network_, layer, layer.in, plan_.steps[s].piece, first, last);
          want = std::min(p.bytes, RoundUp((last + 1) * p.strides[kAxisH], params_.beat_bytes()));
        }
        if (want <= loaded) continue;
        plan_.loads.push_back({p.buffer, loaded, p.dram_address + loaded, want - loaded, reader, IssueStep(s, -1, 1)});
        loaded = want;
      }
    }
  }

  // Outputs go out as far as each step of their last writer has completed them.
  void AddOutputStores() {
    for (const auto& [root, interval] : used_) {
      StoragePlan& p = plan_.storages[root];
      if (p.spilled || !IsOutput(root) || network_.storages[root].is_input) continue;
      int writer = -1, writers = 0;
      for (size_t l = 0; l < network_.layers.size(); ++l) {
        if (network_.RootOf(network_.layers[l].out.storage) != root) continue;
        ++writers;
        if (writer < 0 || plan_.layers[l].last_step > plan_.layers[writer].last_step) writer = static_cast<int>(l);
      }
      const Layer& layer = network_.layers[writer];
      const bool in_order = (layer.batch == 1 || layer.out.n == DimRef{kAxisN, 1}) && (layer.out_h == 1 || layer.out.h == DimRef{kAxisH, 1}) &&
                            (layer.out_w == 1 || layer.out.w.axis == kAxisW || layer.out.w.axis == kAxisC);
      int64_t stored = 0;
      for (int s = plan_.layers[writer].first_step; s <= plan_.layers[writer].last_step; ++s) {
        const PlannedStep& step = plan_.steps[s];
        if (step.layer != writer) continue;
        int64_t first = 0, last = 0, ready = p.bytes;
        if (s < plan_.layers[writer].last_step) {
          if (writers > 1 || !in_order || step.piece.block_end < plan_.layers[writer].mapping.blocks()) continue;
          PieceRows(network_, layer, layer.out, step.piece, first, last);
          ready = (last + 1) * p.strides[kAxisH] / params_.beat_bytes() * params_.beat_bytes();
        }
        if (ready <= stored) continue;
        plan_.stores.push_back({p.buffer, stored, p.dram_address + stored, ready - stored, writer, s});
        stored = ready;
      }
    }
  }

  const Network& network_;
  const AcceleratorParams& params_;
  const PlanOptions& options_;
  Plan& plan_;
  std::map<int, std::pair<int, int>> used_;  // root: first and last step
  // Spilled root: rows [first, last] and the step that stores them.
  std::map<int, std::vector<std::pair<std::pair<int64_t, int64_t>, int>>> written_;
  std::vector<int> constant_loads_;  // indices into plan_.loads, in the order in which they are needed
};

int64_t MemorySize(const AcceleratorParams& params, Target memory) {
  switch (memory) {
    case Target::kActivations: return params.activation_bytes;
    case Target::kWeights: return params.weight_words;
    case Target::kParameters: return params.parameter_blocks;
    case Target::kLookup: return params.lookup_tables;
  }
  return 0;
}

}  // namespace

void ScheduleNetwork(const Network& network, const AcceleratorParams& params, const PlanOptions& options, Plan& plan) {
  plan.storages.resize(network.storages.size());
  plan.layers.resize(network.layers.size());
  Scheduler(network, params, options, plan).Run();
}

// Largest first; each at the lowest address that is free over its whole interval.
bool PlaceBuffers(const AcceleratorParams& params, Plan& plan, int& failed) {
  std::vector<int> order(plan.buffers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return plan.buffers[a].size > plan.buffers[b].size; });
  std::vector<int> placed[4];
  for (int i : order) {
    Buffer& buffer = plan.buffers[i];
    std::vector<int>& others = placed[static_cast<int>(buffer.memory)];
    int64_t at = 0;
    // `others` is sorted by address.
    for (int other : others) {
      const Buffer& o = plan.buffers[other];
      const bool together = o.first_step <= buffer.last_step && buffer.first_step <= o.last_step;
      if (!together || o.address + o.size <= at) continue;
      if (o.address >= at + buffer.size) break;
      at = o.address + o.size;
    }
    if (at + buffer.size > MemorySize(params, buffer.memory)) {
      failed = i;
      return false;
    }
    buffer.address = at;
    others.insert(std::upper_bound(others.begin(), others.end(), i, [&](int a, int b) {
      return plan.buffers[a].address < plan.buffers[b].address;
    }), i);
  }
  return true;
}

}  // namespace heddle::hls
