// Hill climbing over the decisions of a plan: the tiles' rows, which tensors roll, are spilled or stay whole, which layers form
// a group. Each change is repaired until it fits and judged by an estimate of the whole program, so that a tile's fill, the
// bus and the prefetch of other layers all count.

#include "hls/plan_search.h"

#include <algorithm>

#include "hls/plan_fused.h"

namespace heddle::hls {
namespace {

constexpr int kMostTrials = 600;
constexpr int kMostRounds = 4;

class Search {
 public:
  Search(const Network& network, const AcceleratorParams& params, const PlanOptions& options, Plan plan, const PlanCost& cost)
      : network_(network), params_(params), options_(options), best_(std::move(plan)), cost_(cost) {}

  absl::StatusOr<Plan> Run() {
    HEDDLE_ASSIGN_OR_RETURN(best_cycles_, cost_(best_));
    for (int round = 0; round < kMostRounds; ++round) {
      const int64_t before = best_cycles_;
      for (int l = 0; l < static_cast<int>(network_.layers.size()) && trials_ < kMostTrials; ++l) ImproveLayer(l);
      if (best_cycles_ == before) break;
    }
    return std::move(best_);
  }

 private:
  void ImproveLayer(int l) {
    if (!best_.layers[l].fused_with_next) ImproveRows(l);
    const int root = network_.RootOf(network_.layers[l].out.storage);
    const StoragePlan& storage = best_.storages[root];
    int first = 0, last = 0;
    if (storage.spilled && !network_.storages[root].as_weights && FusionSpan(network_, root, first, last)) {
      Try([&](Plan& plan) {
        plan.storages[root].spilled = plan.storages[root].apart = false;
        return true;  // the repair fuses it
      });
    }
    if (best_.storages[root].rolling_rows > 0) {
      Try([&](Plan& plan) {
        plan.layers[l].fused_with_next = false;
        plan.storages[root].apart = true;
        return true;
      });
    } else if (!best_.layers[l].fused_with_next && CanFuseWithNext(network_, l) && InGroup(l)) {
      Try([&](Plan& plan) {
        FuseGroup(network_, l, l + 1, plan);
        return true;
      });
    }
  }

  bool InGroup(int l) const {
    return best_.layers[l + 1].fused_with_next || (l > 0 && best_.layers[l - 1].fused_with_next);
  }

  // Larger and smaller tiles of rows, as long as that helps.
  void ImproveRows(int l) {
    const int64_t height = network_.layers[l].out_h;
    const bool tiled = best_.layers[l].rows_per_tile < height || (l > 0 && best_.layers[l - 1].fused_with_next);
    if (!tiled || height == 1) return;
    for (const auto& [up, down] : {std::pair<int64_t, int64_t>{2, 1}, {1, 2}, {4, 3}}) {
      const auto change = [&, up = up, down = down](Plan& plan) {
        int64_t& rows = plan.layers[l].rows_per_tile;
        const int64_t wanted = std::clamp<int64_t>((rows * up + down - 1) / down, 1, height);
        if (wanted == rows) return false;
        rows = wanted;
        return true;
      };
      while (Try(change)) {
      }
    }
  }

  template <typename Change>
  bool Try(const Change& change) {
    if (++trials_ > kMostTrials) return false;
    Plan plan = best_;
    if (!change(plan)) return false;
    auto repaired = PlanNetwork(network_, params_, options_, &plan);
    if (!repaired.ok()) return false;
    const auto cycles = cost_(*repaired);
    if (!cycles.ok() || *cycles >= best_cycles_) return false;
    best_ = *std::move(repaired);
    best_cycles_ = *cycles;
    return true;
  }

  const Network& network_;
  const AcceleratorParams& params_;
  const PlanOptions& options_;
  Plan best_;
  const PlanCost& cost_;
  int64_t best_cycles_ = 0;
  int trials_ = 0;
};

}  // namespace

absl::StatusOr<Plan> ImprovePlan(const Network& network, const AcceleratorParams& params, const PlanOptions& options, Plan plan,
                                 const PlanCost& cost) {
  return Search(network, params, options, std::move(plan), cost).Run();
}

}  // namespace heddle::hls
