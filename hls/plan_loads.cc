// As late as possible, but in time: from the last load to the first, each takes the cycles of the steps before the one that needs
// it that the bus has left, as long as its memory has room. So weights of large layers come in under several layers before
// them, and no buffer is held longer than that needs.

#include "hls/plan_loads.h"

#include <algorithm>
#include <array>

#include "hls/timing.h"

namespace heddle::hls {
namespace {

constexpr int64_t kLoadOverheadCycles = 16;  // addresses, first data

std::vector<int64_t> StepCycles(const Network& network, const AcceleratorParams& params, const Plan& plan) {
  std::vector<int64_t> cycles;
  for (const PlannedStep& step : plan.steps) {
    const LayerPlan& p = plan.layers[step.layer];
    int64_t sum = step.move.bytes / params.output_lanes;
    for (const Instruction& i : BuildCompute(network.layers[step.layer], p.mapping, p.steps, params, step.piece)) {
      sum += ComputeCycles(params, i.compute);
    }
    cycles.push_back(sum * step.batches);
  }
  return cycles;
}

int64_t Capacity(const AcceleratorParams& params, const Plan& plan, Target memory) {
  switch (memory) {
    case Target::kWeights: return static_cast<int64_t>(plan.weight_fill * params.weight_words);
    case Target::kParameters: return static_cast<int64_t>(plan.parameter_fill * params.parameter_blocks);
    default: return params.lookup_tables;
  }
}

}  // namespace

void ScheduleConstantLoads(const Network& network, const AcceleratorParams& params, const PlanOptions& options, std::vector<int> loads,
                           Plan& plan) {
  if (loads.empty()) return;
  const double rate = options.bytes_per_cycle > 0 ? std::min<double>(options.bytes_per_cycle, params.beat_bytes()) : params.beat_bytes();
  const auto cycles_of = [&](const Transfer& t) { return static_cast<int64_t>(static_cast<double>(t.bytes) / rate) + kLoadOverheadCycles; };
  std::vector<int64_t> left = StepCycles(network, params, plan);
  std::array<std::vector<int64_t>, 4> used;
  for (auto& list : used) list.assign(plan.steps.size(), 0);
  for (const Buffer& buffer : plan.buffers) {
    for (int s = std::max(0, buffer.first_step); s <= std::min<int>(buffer.last_step, static_cast<int>(plan.steps.size()) - 1); ++s) {
      used[static_cast<size_t>(buffer.memory)][static_cast<size_t>(s)] += buffer.size;
    }
  }
  std::vector<bool> constant(plan.loads.size());
  for (int i : loads) constant[static_cast<size_t>(i)] = true;
  for (size_t i = 0; i < plan.loads.size(); ++i) {
    if (!constant[i]) left[static_cast<size_t>(plan.loads[i].step)] -= cycles_of(plan.loads[i]);
  }
  for (const Transfer& store : plan.stores) left[static_cast<size_t>(store.step)] -= cycles_of(store);
  std::stable_sort(loads.begin(), loads.end(), [&](int a, int b) { return plan.loads[a].step < plan.loads[b].step; });
  int latest = static_cast<int>(plan.steps.size());  // loads behind this one are asked for from this step on
  for (size_t k = loads.size(); k-- > 0;) {
    Transfer& load = plan.loads[loads[k]];
    Buffer& buffer = plan.buffers[load.buffer];
    if (!plan.layers[load.layer].prefetch) continue;
    std::vector<int64_t>& occupied = used[static_cast<size_t>(buffer.memory)];
    const int64_t room = Capacity(params, plan, buffer.memory) - buffer.size;
    int64_t need = cycles_of(load);
    int at = load.step;
    while (at > load.earliest && need > 0 && occupied[static_cast<size_t>(at - 1)] <= room) {
      --at;
      occupied[static_cast<size_t>(at)] += buffer.size;
      if (at > latest) continue;
      const int64_t taken = std::clamp<int64_t>(left[static_cast<size_t>(at)], 0, need);
      left[static_cast<size_t>(at)] -= taken;
      need -= taken;
    }
    latest = std::min(latest, at);
    load.step = at;
    buffer.first_step = at;
  }
}

}  // namespace heddle::hls
