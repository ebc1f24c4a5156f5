// The decisions of a plan, by repair: start with everything on chip and whole; where a buffer finds no room, give up the
// cheapest thing that stands in its way, and try again. What fits, stays; what does not is cut only as far as it must.

#include "hls/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "hls/plan_schedule.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int kMostRepairs = 4000;
constexpr int kFirstPieces = 4;  // pieces of a layer whose operands do not stay: enough to overlap transfers with compute

class Planner {
 public:
  Planner(const Network& network, const AcceleratorParams& params, const PlanOptions& options)
      : network_(network), params_(params), options_(options) {}

  absl::StatusOr<Plan> Run() {
    plan_.storages.resize(network_.storages.size());
    plan_.layers.resize(network_.layers.size());
    if (!network_.layers.empty()) {
      plan_.layers.front().rows_per_tile = Pieces(network_.layers.front(), options_.input_pieces);
      LayerPlan& last = plan_.layers.back();
      const int64_t rows = Pieces(network_.layers.back(), options_.output_pieces);
      last.rows_per_tile = last.rows_per_tile == 0 ? rows : std::min(last.rows_per_tile, rows);
    }
    int failed = -1;
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
    return ir::UserError(code, fmt::format("'{}': {} of the {} do not fit; {}", layer, buffer.size, MemoryName(buffer.memory), text),
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

  // Weights and the like: the largest resident one is streamed instead; then layers are cut into fewer blocks a tile.
  absl::Status RepairConstants(const Buffer& failed) {
    const auto resident = [&](int l) -> bool& {
      LayerPlan& p = plan_.layers[l];
      return failed.memory == Target::kWeights ? p.weights_resident : failed.memory == Target::kParameters ? p.parameters_resident : p.lookup_resident;
    };
    int victim = -1, cut = -1;
    int64_t victim_size = 0, cut_size = 0;
    for (const Buffer& buffer : plan_.buffers) {
      if (!Together(buffer, failed)) continue;
      if (resident(buffer.layer) && buffer.size > victim_size) victim = buffer.layer, victim_size = buffer.size;
      if (plan_.layers[buffer.layer].blocks_per_tile > 1 && buffer.size > cut_size) cut = buffer.layer, cut_size = buffer.size;
    }
    if (victim >= 0) {
      resident(victim) = false;
    } else if (cut >= 0) {
      plan_.layers[cut].blocks_per_tile = (plan_.layers[cut].blocks_per_tile + 1) / 2;
    } else if (!StopPrefetch(failed)) {
      return Failure("E-ACC-012", failed, "one block of output channels is the least there can be");
    }
    return absl::OkStatus();
  }

  // Activations: the largest tensor that stays is put into DRAM, unless a piece of a layer is larger and can be cut.
  absl::Status RepairActivations(const Buffer& failed) {
    int victim = -1, cut = -1;
    int64_t victim_size = 0, cut_size = 0;
    for (const Buffer& buffer : plan_.buffers) {
      if (!Together(buffer, failed)) continue;
      if (buffer.storage >= 0) {
        if (buffer.size > victim_size) victim = buffer.storage, victim_size = buffer.size;
      } else if (plan_.layers[buffer.layer].rows_per_tile > 1 && buffer.size > cut_size) {
        cut = buffer.layer, cut_size = buffer.size;
      }
    }
    if (cut >= 0 && cut_size >= victim_size) {
      plan_.layers[cut].rows_per_tile = (plan_.layers[cut].rows_per_tile + 1) / 2;
    } else if (victim >= 0) {
      Spill(victim);
    } else if (!StopPrefetch(failed)) {
      return Failure("E-ACC-013", failed, "one row of output is the least there can be");
    }
    return absl::OkStatus();
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
        plan_.layers[l].rows_per_tile = std::min(plan_.layers[l].rows_per_tile, Pieces(layer, kFirstPieces));
      }
    }
  }

  const Network& network_;
  const AcceleratorParams& params_;
  const PlanOptions& options_;
  Plan plan_;
};

}  // namespace

absl::StatusOr<Plan> PlanNetwork(const Network& network, const AcceleratorParams& params, const PlanOptions& options) {
  return Planner(network, params, options).Run();
}

}  // namespace heddle::hls
