// Model inputs from files or from a seed.
#ifndef HEDDLE_DRIVER_INPUTS_H_
#define HEDDLE_DRIVER_INPUTS_H_

#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// One tensor for each graph input, of its type and shape. `specs` as in RunOptions::inputs: FILE.npz has keys named like
// the inputs (others are ignored; a leading batch dimension larger than the model's takes the first entries only where
// the model's batch is 1), NAME=FILE.npy gives one input, random:SEED fills what no file gives (floats uniform in [0, 1),
// integers over their whole range, token-like int64 in [0, 2)). Errors E-INPUT-001…005 name input, expected and found.
absl::StatusOr<std::vector<ir::Tensor>> LoadInputs(const ir::Graph& graph, const std::vector<std::string>& specs);

// NAME=1,3,224,224 → name and extents; E-USAGE-003 otherwise.
absl::StatusOr<std::pair<std::string, ir::Shape>> ParseShapeOption(const std::string& text);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_INPUTS_H_
