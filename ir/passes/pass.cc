// Runs passes by name. Options follow the name after a colon, so that a pipeline is a list of plain strings that can be
// given on the command line and printed in a report.

#include "ir/passes/pass.h"

#include <absl/strings/numbers.h>

#include <algorithm>

namespace heddle::ir {
namespace {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

absl::Status ApplyOption(const Pass& pass, const std::string& assignment, PassOptionValues& values) {
  const size_t equals = assignment.find('=');
  const std::string key = assignment.substr(0, equals);
  if (!values.contains(key)) {
    return UserError("E-PASS-002", fmt::format("pass '{}' has no option '{}'", pass.name, key), "see `heddle passes`");
  }
  int64_t value = 1;
  if (equals != std::string::npos && !absl::SimpleAtoi(assignment.substr(equals + 1), &value)) {
    return UserError("E-PASS-002", fmt::format("option '{}' of pass '{}' must be an integer", assignment, pass.name));
  }
  values[key] = value;
  return absl::OkStatus();
}

absl::Status RunOne(Graph& graph, const std::string& request) {
  const size_t colon = request.find(':');
  const Pass* pass = FindPass(request.substr(0, colon));
  if (!pass) {
    return UserError("E-PASS-001", fmt::format("unknown pass '{}'", request.substr(0, colon)), "see `heddle passes`");
  }
  PassOptionValues values;
  for (const PassOption& option : pass->options) values[std::string(option.name)] = option.default_value;
  if (colon != std::string::npos) {
    for (const std::string& assignment : Split(std::string_view(request).substr(colon + 1), ',')) {
      HEDDLE_RETURN_IF_ERROR(ApplyOption(*pass, assignment, values));
    }
  }
  return pass->run(graph, values);
}

}  // namespace

const std::vector<Pass>& AllPasses() {
  static const auto& passes = *new std::vector<Pass>{
      InferShapesPass(),       FoldConstantsPass(), SimplifyPass(),
      FoldBatchNormPass(),     LegaliseQuantisationPass(), EliminateCommonSubexpressionsPass(),
      EliminateDeadCodePass(), FuseVerticalPass(),
  };
  return passes;
}

const Pass* FindPass(std::string_view name) {
  const std::vector<Pass>& passes = AllPasses();
  auto it = std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
  return it == passes.end() ? nullptr : &*it;
}

absl::Status RunPasses(Graph& graph, const std::vector<std::string>& passes, const RunPassesOptions& options) {
  for (size_t i = 0; i < passes.size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(RunOne(graph, passes[i]));
    graph.Compact();
    if (options.verify_each) {
      if (const absl::Status status = Verify(graph); !status.ok()) {
        return absl::InternalError(fmt::format("after pass {} ({}): {}", i, passes[i], std::string(status.message())));
      }
    }
    if (options.after_pass) options.after_pass(static_cast<int>(i), passes[i], graph);
  }
  return absl::OkStatus();
}

absl::Status RunDefaultPipeline(Graph& graph, const RunPassesOptions& options) {
  std::vector<std::string> passes;
  for (const PipelineStep& step : DefaultPipeline()) passes.push_back(step.pass);
  return RunPasses(graph, passes, options);
}

}  // namespace heddle::ir
