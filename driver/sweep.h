// What `heddle explore` sweeps over: "contraction_lanes=8,16,output_lanes=8,16".
#ifndef HEDDLE_DRIVER_SWEEP_H_
#define HEDDLE_DRIVER_SWEEP_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/status.h"

namespace heddle::driver {

// One parameter of the accelerator (docs/accelerator.md) and the values it takes.
struct SweepAxis {
  std::string name;
  std::vector<double> values;
};

// Parts of one or several --sweep options, split at commas: a part with '=' begins a parameter. `rows` and `cols` stand for
// contraction_lanes and output_lanes. E-USAGE-014 for an unknown parameter, a value that is no number, a parameter given twice,
// nothing to sweep, or more than 4096 combinations.
absl::StatusOr<std::vector<SweepAxis>> ParseSweep(const std::vector<std::string>& parts);

// Every combination as parameter objects, the first axis outermost.
std::vector<nlohmann::json> Combinations(const std::vector<SweepAxis>& axes);

// 16, not 16.0, where it is a whole number.
nlohmann::json ParameterValue(double value);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_SWEEP_H_
