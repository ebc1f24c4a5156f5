// The files of a run directory beside those that devices write.
#ifndef HEDDLE_DRIVER_ARTEFACTS_H_
#define HEDDLE_DRIVER_ARTEFACTS_H_

#include <string>
#include <vector>

#include "driver/options.h"
#include "driver/run_directory.h"
#include "driver/target.h"
#include "driver/verify.h"
#include "ir/graph.h"
#include "report/report.h"
#include "sim/accelerator_device.h"

namespace heddle::driver {

// Path, SHA-256 of `bytes`, MACs and parameters of the imported graph.
report::Model DescribeModel(const std::string& path, const std::string& bytes, const ir::Graph& graph);

// "" none, "all", "START:END" in cycles. E-USAGE-006 otherwise.
absl::StatusOr<sim::WaveRequest> ParseWaves(const std::string& text);

// verify/expected.npz (where there is a reference) and verify/actual.npz, under the outputs' names.
absl::Status WriteTensors(const RunDirectory& directory, const ir::Graph& graph, const std::vector<ir::Tensor>* expected,
                          const std::vector<ir::Tensor>& actual);
// verify/diff.json: every cross-check with every output.
absl::Status WriteChecks(RunDirectory& directory, const std::vector<CrossCheck>& checks);
// report/{report.txt, report.json, index.html} and sim/trace.json.
absl::Status WriteReportFiles(RunDirectory& directory, const report::Report& report);
// sim/counters.json: every counter of every accelerator region.
absl::Status WriteCounters(RunDirectory& directory, const std::vector<CompiledPlanRegion>& regions, const PlanRun& run);
// partitioned.onnx: the source model with each node's device and cost; nothing for other kinds of models.
absl::Status WritePartitionedModel(RunDirectory& directory, const std::string& model_path, const ir::Graph& graph,
                                   const report::Report& report);
// manifest.json, resolved_config.json, log.txt, run.sh. The manifest is the mark of a whole run and is written last.
absl::Status WriteManifest(RunDirectory& directory, const RunOptions& options, const Target& target, const report::Report& report,
                           const std::string& log);

// E-BUDGET-001 where --max-luts, or with --strict a limit of the target, is exceeded: resource, allowed, needed.
absl::Status CheckBudget(const RunOptions& options, const Target& target, const report::Report& report);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_ARTEFACTS_H_
