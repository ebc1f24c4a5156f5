// The decisions of a plan, by repair: start with everything on chip and whole; where a buffer finds no room, give up the
// cheapest thing that stands in its way, and try again. What fits, stays; a tensor that does not fit rolls through a group of
// fused layers, or is spilled; layers are cut only as far as they must. plan_search.cc then tries what is better.

#include "hls/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "hls/plan_fused.h"
#include "hls/plan_schedule.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int kMostRepairs = 4000;
constexpr int kFirstPieces = 4;  // pieces of a layer whose operands do not stay: enough to overlap transfers with compute
constexpr int kFusedPieces = 8;  // pieces of a group at first
constexpr int kLongestFusion = 8;
constexpr double kLeastFill = 0.3;

class Planner {
 public:
  Planner(const Network& network, const AcceleratorParams& params, const PlanOptions& options)
      : network_(network), params_(params), options_(options) {}

  absl::StatusOr<Plan> Run(const Plan* start) {
    if (start) plan_ = *start;
    plan_.storages.resize(network_.storages.size());
    plan_.layers.resize(network_.layers.size());
    if (!start && !network_.layers.empty()) {
      plan_.layers.front().rows_per_tile = Pieces(network_.layers.front(), options_.input_pieces);
      LayerPlan& last = plan_.layers.back();
      const int64_t rows = Pieces(network_.layers.back(), options_.output_pieces);
      last.rows_per_tile = last.rows_per_tile == 0 ? rows : std::min(last.rows_per_tile, rows);
    }
    int failed = -1;
    if (!start) {
      for (size_t i = 0; i < network_.storages.size(); ++i) {
        if (network_.storages[i].as_weights) plan_.storages[i].spilled = plan_.storages[i].apart = true;
      }
      ScheduleNetwork(network_, params_, options_, plan_);
      ChooseResidents();
    }
    for (int repair = 0; repair < kMostRepairs; ++repair) {
      ScheduleNetwork(network_, params_, options_, plan_);
      HEDDLE_RETURN_IF_ERROR(CheckSizes());
      if (PlaceBuffers(params_, plan_, failed)) return std::move(plan_);
      HEDDLE_RETURN_IF_ERROR(Repair(plan_.buffers[failed]));
    }
    return Failure("E-ACC-013", plan_.buffers[failed], "no plan was found");
  }

 private:
  static int64_t Pieces(const Layer& layer, int pieces) { return std::max<int64_t>(1, (layer.out_h + pieces - 1) / pieces); }

  const char* MemoryName(Target memory) const {
    static constexpr const char* kNames[] = {"activation memory", "weight memory", "parameter memory", "lookup memory"};
    return kNames[static_cast<int>(memory)];
  }

  absl::Status Failure(std::string_view code, const Buffer& buffer, const std::string& text) const {
    const std::string layer = buffer.layer >= 0 ? network_.layers[buffer.layer].name
                              : buffer.storage >= 0 ? network_.storages[buffer.storage].name : "";
    static constexpr const char* kUnits[] = {"bytes", "tiles", "blocks", "tables"};
    const int64_t capacities[] = {params_.activation_bytes, params_.weight_words, params_.parameter_blocks, params_.lookup_tables};
    const auto memory = static_cast<size_t>(buffer.memory);
    return ir::UserError(code, fmt::format("'{}': {} {} do not fit in the {} of {}{}; {}", layer, buffer.size, kUnits[memory], MemoryName(buffer.memory), capacities[memory],
                                             buffer.size > capacities[memory] ? "" : " beside what else is there at the time", text),
                         "enlarge that memory in the target file, or run the node on another device");
  }

  // Loops are 16 bit wide.
  absl::Status CheckSizes() const {
    for (size_t l = 0; l < network_.layers.size(); ++l) {
      const Mapping& m = plan_.layers[l].mapping;
      if (m.passes > 65535 || m.blocks() > 65535 || m.kernel_rows > 255 || m.kernel_columns > 255) {
        return ir::UserError("E-ACC-011", fmt::format("layer '{}' has {} passes and {} blocks; expected at most 65535",
                                                      network_.layers[l].name, m.passes, m.blocks()));
      }
    }
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.size >= int64_t{1} << 40) return Failure("E-ACC-013", buffer, "it is too large");
    }
    return absl::OkStatus();
  }

  bool Together(const Buffer& a, const Buffer& b) const {
    return a.memory == b.memory && a.first_step <= b.last_step && b.first_step <= a.last_step;
  }

  absl::Status Repair(const Buffer failed) {
    if (failed.memory == Target::kActivations) return RepairActivations(failed);
    return RepairConstants(failed);
  }

  // All weights stay if they fit. If not, those that are read for the fewest pixels: they cost most to load for what they do.
  void ChooseResidents() {
    int64_t words = 0, blocks = 0;
    std::vector<std::pair<int64_t, int>> by_pixels;
    for (int l = 0; l < static_cast<int>(network_.layers.size()); ++l) {
      const Layer& layer = network_.layers[l];
      blocks += ParameterBlocks(layer, plan_.layers[l].mapping);
      if (layer.weights_storage >= 0) continue;
      words += plan_.layers[l].mapping.weight_words();
      by_pixels.emplace_back(layer.batch * layer.out_h * layer.out_w, l);
    }
    const bool all_words = words <= params_.weight_words;
    for (size_t l = 0; l < plan_.layers.size(); ++l) {
      LayerPlan& p = plan_.layers[l];
      if (!all_words || network_.layers[l].weights_storage >= 0) p.weights_resident = false;
      if (blocks > params_.parameter_blocks) p.parameters_resident = false;
    }
    int64_t room = static_cast<int64_t>(options_.resident_part * params_.weight_words);
    std::sort(by_pixels.begin(), by_pixels.end());
    for (const auto& [pixels, l] : by_pixels) {
      LayerPlan& p = plan_.layers[l];
      if (all_words || p.mapping.weight_words() == 0) continue;
      const int64_t fits = room / p.mapping.steps();
      if (fits == 0) break;
      p.weights_resident = fits >= p.mapping.blocks();
      p.resident_blocks = p.weights_resident ? 0 : fits;
      room -= std::min(fits, p.mapping.blocks()) * p.mapping.steps();
    }
  }

  // Weights and the like: the largest resident one is streamed instead; then less is loaded early; then layers are cut into fewer
  // blocks a tile.
  absl::Status RepairConstants(const Buffer& failed) {
    double& fill = failed.memory == Target::kParameters ? plan_.parameter_fill : plan_.weight_fill;
    const auto resident = [&](int l) -> bool& {
      LayerPlan& p = plan_.layers[l];
      return failed.memory == Target::kWeights ? p.weights_resident : failed.memory == Target::kParameters ? p.parameters_resident : p.lookup_resident;
    };
    int victim = -1, cut = -1;
    int64_t victim_size = 0, cut_size = 0;
    for (const Buffer& buffer : plan_.buffers) {
      if (!Together(buffer, failed)) continue;
      LayerPlan& p = plan_.layers[buffer.layer];
      const bool stays = resident(buffer.layer) || (failed.memory == Target::kWeights && p.resident_blocks > 0 && buffer.first_step < 0);
      if (stays && buffer.size > victim_size) victim = buffer.layer, victim_size = buffer.size;
      if (p.blocks_per_tile > 1 && !InGroup(buffer.layer) && buffer.size > cut_size) cut = buffer.layer, cut_size = buffer.size;
    }
    if (victim >= 0) {
      resident(victim) = false;
      plan_.layers[victim].resident_blocks = 0;
    } else if (failed.memory != Target::kLookup && fill > kLeastFill) {
      fill *= 0.85;
    } else if (cut >= 0) {
      plan_.layers[cut].blocks_per_tile = (plan_.layers[cut].blocks_per_tile + 1) / 2;
    } else if (failed.memory != Target::kLookup && fill > 0) {
      fill = 0;
    } else if (!StopPrefetch(failed) && !BreakGroup(failed)) {
      return Failure("E-ACC-012", failed, "one block of output channels is the least there can be");
    }
    return absl::OkStatus();
  }

  bool InGroup(int l) const { return plan_.layers[l].fused_with_next || (l > 0 && plan_.layers[l - 1].fused_with_next); }

  // Activations: the largest tensor that stays rolls or is put into DRAM, unless a piece of a layer or a rolling tensor is larger
  // and can be cut.
  absl::Status RepairActivations(const Buffer& failed) {
    int victim = -1, cut = -1;
    int64_t victim_size = 0, cut_size = 0;
    for (const Buffer& buffer : plan_.buffers) {
      if (!Together(buffer, failed)) continue;
      const bool rolls = buffer.storage >= 0 && plan_.storages[buffer.storage].rolling_rows > 0;
      if (buffer.storage >= 0 && !rolls) {
        if (buffer.size > victim_size) victim = buffer.storage, victim_size = buffer.size;
        continue;
      }
      const int layer = GroupLast(plan_, rolls ? WriterOf(buffer.storage) : buffer.layer);
      if (plan_.layers[layer].rows_per_tile > 1 && buffer.size > cut_size) cut = layer, cut_size = buffer.size;
    }
    if (cut >= 0 && cut_size >= victim_size) {
      plan_.layers[cut].rows_per_tile = (plan_.layers[cut].rows_per_tile + 1) / 2;
    } else if (victim >= 0) {
      if (!Fuse(victim)) Spill(victim);
    } else if (cut >= 0) {
      plan_.layers[cut].rows_per_tile = (plan_.layers[cut].rows_per_tile + 1) / 2;
    } else if (!BreakGroup(failed) && !StopPrefetch(failed)) {
      return Failure("E-ACC-013", failed, "one row of output is the least there can be");
    }
    return absl::OkStatus();
  }

  int WriterOf(int root) const {
    for (size_t l = 0; l < network_.layers.size(); ++l) {
      if (network_.RootOf(network_.layers[l].out.storage) == root) return static_cast<int>(l);
    }
    return -1;
  }

  bool Fuse(int root) {
    if (plan_.storages[root].apart) return false;
    int first = 0, last = 0;
    if (!FusionSpan(network_, root, first, last) || last - first >= kLongestFusion) return false;
    int64_t words = 0, blocks = 0;
    const int group_first = GroupFirst(plan_, first), group_last = GroupLast(plan_, last);
    for (int l = group_first; l <= group_last; ++l) {
      words += plan_.layers[l].mapping.weight_words();
      blocks += ParameterBlocks(network_.layers[l], plan_.layers[l].mapping);
      if (l < group_last && !CanFuseWithNext(network_, l)) return false;
    }
    // The weights of a group are all there at once.
    if (2 * words > params_.weight_words || 2 * blocks > params_.parameter_blocks) return false;
    if (!CanRoll(network_, group_first, group_last, root)) return false;
    FuseGroup(network_, first, last, plan_);
    LayerPlan& driver = plan_.layers[group_last];
    driver.rows_per_tile = std::min(driver.rows_per_tile, Pieces(network_.layers[group_last], kFusedPieces));
    return true;
  }

  // A group whose single rows do not fit comes apart, and its tensors are spilled.
  bool BreakGroup(const Buffer& failed) {
    for (const Buffer& buffer : plan_.buffers) {
      if (!Together(buffer, failed)) continue;
      const int layer = buffer.layer >= 0 ? buffer.layer : buffer.storage >= 0 ? WriterOf(buffer.storage) : -1;
      if (layer < 0 || !InGroup(layer)) continue;
      const int first = GroupFirst(plan_, layer), last = GroupLast(plan_, layer);
      for (int l = first; l <= last; ++l) {
        const int root = network_.RootOf(network_.layers[l].out.storage);
        plan_.layers[l].fused_with_next = false;
        plan_.layers[l].rows_per_tile = plan_.layers[l].blocks_per_tile = 0;
        if (plan_.storages[root].rolling_rows > 0) plan_.storages[root].apart = true;
      }
      for (int l = first; l <= last; ++l) {
        const int root = network_.RootOf(network_.layers[l].out.storage);
        if (plan_.storages[root].apart) Spill(root);
      }
      return true;
    }
    return false;
  }

  // The last resort: a layer waits for its loads and stores. False where every layer in the way does so already.
  bool StopPrefetch(const Buffer& failed) {
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.layer < 0 || !Together(buffer, failed) || !plan_.layers[buffer.layer].prefetch) continue;
      plan_.layers[buffer.layer].prefetch = false;
      return true;
    }
    return false;
  }

  void Spill(int root) {
    plan_.storages[root].spilled = true;
    for (size_t l = 0; l < network_.layers.size(); ++l) {
      const Layer& layer = network_.layers[l];
      for (const Operand* operand : {&layer.in, &layer.b, &layer.out}) {
        if (operand->storage < 0 || network_.RootOf(operand->storage) != root) continue;
        int64_t& rows = plan_.layers[l].rows_per_tile;
        rows = std::min(rows == 0 ? layer.out_h : rows, Pieces(layer, kFirstPieces));
      }
    }
  }

  const Network& network_;
  const AcceleratorParams& params_;
  const PlanOptions& options_;
  Plan plan_;
};

}  // namespace

absl::StatusOr<Plan> PlanNetwork(const Network& network, const AcceleratorParams& params, const PlanOptions& options, const Plan* start) {
  return Planner(network, params, options).Run(start);
}

}  // namespace heddle::hls
