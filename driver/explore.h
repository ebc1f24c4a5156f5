// `heddle explore`: one network on many accelerators. Each combination of parameters is compiled, its cycles come from the fast
// model and its size from the resource model; the Pareto front shows what cannot be had smaller and faster at once.
#ifndef HEDDLE_DRIVER_EXPLORE_H_
#define HEDDLE_DRIVER_EXPLORE_H_

#include <optional>
#include <string>
#include <vector>

#include "driver/options.h"
#include "driver/sweep.h"
#include "hls/resources.h"

namespace heddle::driver {

struct ExplorePoint {
  nlohmann::json parameters;      // those that are swept
  int64_t cycles_estimated = 0;   // of the accelerator, one inference
  double latency_us = 0;          // of the whole plan, predicted
  int64_t macs = 0;               // on the accelerator
  double utilisation = 0;         // macs ÷ (cycles × lanes)
  hls::Resources resources;
  bool fits = true;               // in the target's limits
  bool less_work = false;         // the plan leaves more to other devices than the best point does: not comparable
  bool on_front = false;
};

struct IllegalCombination {
  nlohmann::json parameters;
  std::string code, text;
};

struct Confirmation {
  int64_t cycles_estimated = 0, cycles_simulated = 0;
  bool bit_exact = false;
};

struct Exploration {
  static constexpr int kSchemaVersion = 1;
  std::string model, target;
  std::vector<SweepAxis> axes;
  std::optional<int64_t> max_lut, max_dsp, max_bram36;
  std::vector<ExplorePoint> points;
  std::vector<IllegalCombination> illegal;
  std::optional<size_t> best;      // fewest cycles in the limits, and the smallest of those
  std::optional<Confirmation> confirmation;  // of `best`
};

struct ExploreOptions {
  RunOptions run;
  std::vector<std::string> sweep;
  bool confirm = false;
};

// Marks what is less work, the front (fewer cycles, DSP, LUT or BRAM than every other point in at least one respect) and the best.
void Judge(Exploration& exploration);

// Prints a table, or JSON with options.run.json, and writes explore.txt, explore.json and explore.html to options.run.out.
absl::Status ExploreCommand(const ExploreOptions& options);

std::string PrintExplorationText(const Exploration& exploration);
std::string PrintExplorationJson(const Exploration& exploration);
std::string PrintExplorationHtml(const Exploration& exploration);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_EXPLORE_H_
