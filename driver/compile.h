// The main job, from a model file to a run directory with its report.
#ifndef HEDDLE_DRIVER_COMPILE_H_
#define HEDDLE_DRIVER_COMPILE_H_

#include "driver/options.h"
#include "ir/graph.h"
#include "ir/passes/pass.h"
#include "report/report.h"

namespace heddle::driver {

inline constexpr char kVersion[] = "0.1.0";

// import → verify → optimise and legalise → partition → compile each region → simulate → compare → report.
// Everything that is written goes to options.out, which appears when all is done. The status is an error where the run
// could not be finished; E-VERIFY-001 (after the directory was kept) where results differ, E-BUDGET-001 likewise where
// --strict and a limit is missed. `report` is filled as far as the run got.
absl::Status RunModel(const RunOptions& options, report::Report& report);

// A model file as a graph: .onnx, or .ir with the constants.bin beside it. `shapes` as in RunOptions.
absl::StatusOr<ir::Graph> LoadModel(const std::string& path, const std::vector<std::string>& shapes, bool keep_symbolic);

// The default pipeline without the passes named in `skip`. E-USAGE-043 where there is no such pass.
absl::Status RunPipeline(ir::Graph& graph, const std::vector<std::string>& skip, const ir::RunPassesOptions& passes = {});

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_COMPILE_H_
