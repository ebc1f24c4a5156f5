// Passes over the graph IR, and how lists of them are run.
#ifndef HEDDLE_IR_PASSES_PASS_H_
#define HEDDLE_IR_PASSES_PASS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

struct PassOption {
  std::string_view name;
  std::string_view description;
  int64_t default_value = 0;
};

using PassOptionValues = std::map<std::string, int64_t>;

struct Pass {
  std::string_view name;  // "fold-constants"
  std::string_view description;
  std::vector<PassOption> options;
  absl::Status (*run)(Graph& graph, const PassOptionValues& options);  // every option is present
};

// One factory a file of this folder.
Pass InferShapesPass();
Pass FoldConstantsPass();
Pass EliminateDeadCodePass();
Pass EliminateCommonSubexpressionsPass();
Pass SimplifyPass();
Pass FoldBatchNormPass();
Pass LegaliseQuantisationPass();
Pass FuseVerticalPass();

const std::vector<Pass>& AllPasses();  // in the order of `heddle passes`
const Pass* FindPass(std::string_view name);

// One line of the pipeline: a pass as RunPasses takes it, and why it stands there.
struct PipelineStep {
  std::string pass;  // "fold-constants" or "fold-constants:dequantize=1,max-bytes=4096"
  std::string_view reason;
};
const std::vector<PipelineStep>& DefaultPipeline();

struct RunPassesOptions {
  bool verify_each = false;  // ir::Verify after each pass; a failure names the pass
  // Called after each pass, for dumps; may be empty. `index` counts from 0.
  std::function<void(int index, std::string_view pass, const Graph&)> after_pass;
};

// Runs the passes in order and compacts the graph after each. E-PASS-001 unknown pass, E-PASS-002 bad option.
absl::Status RunPasses(Graph& graph, const std::vector<std::string>& passes, const RunPassesOptions& options = {});
absl::Status RunDefaultPipeline(Graph& graph, const RunPassesOptions& options = {});

}  // namespace heddle::ir

#endif  // HEDDLE_IR_PASSES_PASS_H_
