// Chooses the solver by the problem's structure, cheapest exact method first, and fills the report about the plan.
#include "ir/partition/solve.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "ir/check.h"
#include "ir/partition/alternatives.h"
#include "ir/partition/dynamic_programme.h"
#include "ir/partition/evaluate.h"
#include "ir/partition/integer_programme.h"
#include "ir/partition/local_search.h"
#include "ir/partition/min_cut.h"
#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

struct Answer {
  Assignment device_of;
  double lower_bound_us = 0;
  std::string solver;
};

absl::Status NoPlan() {
  return UserError("E-PARTITION-004", "no placement keeps to the devices' capacities and limits of regions",
                   "Raise a limit or allow one more device with --devices.");
}

bool HasCapacity(const Problem& problem) {
  return std::any_of(problem.devices.begin(), problem.devices.end(),
                     [](const Device& device) { return device.capacity.has_value(); });
}

class Solving {
 public:
  Solving(const Problem& problem, const SolveOptions& options)
      : problem_(problem), options_(options), adjacency_(BuildAdjacency(problem)), clusters_(BuildClusters(problem)) {}

  absl::StatusOr<Result> Run() {
    const auto begin = std::chrono::steady_clock::now();
    Answer answer;
    HEDDLE_ASSIGN_OR_RETURN(answer, Find());
    Result result;
    result.device_of = answer.device_of;
    result.evaluation = Evaluate(problem_, adjacency_, answer.device_of);
    HEDDLE_CHECK(result.evaluation.feasible, "a solver returned a plan that breaks a limit");
    result.cost_us = result.evaluation.TotalUs();
    result.lower_bound_us = std::min(answer.lower_bound_us, result.cost_us);
    // Solvers work in floating point: what differs by less than a millionth of the cost is equal.
    if (result.cost_us - result.lower_bound_us <= 1e-6 * result.cost_us) result.lower_bound_us = result.cost_us;
    result.gap_percent = result.cost_us > 0 ? (result.cost_us - result.lower_bound_us) / result.cost_us * 100 : 0;
    result.solver = answer.solver;
    for (int device = 0; device < static_cast<int>(problem_.devices.size()); ++device) {
      result.single_device_us.push_back(SingleDeviceUs(device));
    }
    result.solve_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (options_.alternatives) {
      result.alternatives = SingleMoves(problem_, adjacency_, clusters_, result.device_of, result.evaluation);
    }
    return result;
  }

 private:
  absl::StatusOr<Answer> Find() {
    const bool cut_applies = problem_.devices.size() == 2 && !HasCapacity(problem_) && !LaunchesMatter(problem_);
    switch (options_.solver) {
      case Solver::kMinimumCut:
        if (!cut_applies) return DoesNotApply("the minimum cut", "two devices without launch overhead or limits");
        return ByCut();
      case Solver::kDynamicProgramme: {
        if (HasCapacity(problem_)) return DoesNotApply("the dynamic programme", "devices without capacity");
        absl::StatusOr<std::optional<Answer>> answer = ByDynamicProgramme();
        HEDDLE_RETURN_IF_ERROR(answer.status());
        if (!*answer) return DoesNotApply("the dynamic programme", "a narrower graph, or more states");
        return **std::move(answer);
      }
      case Solver::kIntegerProgramme: return ByIntegerProgramme();
      case Solver::kAuto: break;
    }
    if (problem_.devices.size() == 1) {
      Answer answer{Assignment(problem_.nodes.size(), 0), 0, "single device"};
      const Evaluation evaluation = Evaluate(problem_, adjacency_, answer.device_of);
      if (!evaluation.feasible) return NoPlan();
      answer.lower_bound_us = evaluation.TotalUs();
      return answer;
    }
    if (cut_applies) return ByCut();
    if (!HasCapacity(problem_)) {
      absl::StatusOr<std::optional<Answer>> answer = ByDynamicProgramme();
      HEDDLE_RETURN_IF_ERROR(answer.status());
      if (*answer) return **std::move(answer);
    }
    return ByIntegerProgramme();
  }

  absl::Status DoesNotApply(const std::string& solver, const std::string& needs) const {
    return UserError("E-PARTITION-005", solver + " does not apply here: it needs " + needs, "Leave the choice to us.");
  }

  Answer ByCut() {
    std::optional<Cut> cut = MinimumCut(problem_, clusters_, 0, 1);
    HEDDLE_CHECK(cut, "Validate lets no cluster pass that runs nowhere");
    return {std::move(cut->device_of), cut->value_us, "minimum cut"};
  }

  const std::optional<Heuristic>& Start() {
    if (!start_) start_ = LocalSearch(problem_, adjacency_, clusters_);
    return *start_;
  }

  absl::StatusOr<std::optional<Answer>> ByDynamicProgramme() {
    const double upper_us = Start() ? Start()->cost_us : std::numeric_limits<double>::infinity();
    Optimum optimum = SolveByDynamicProgramme(problem_, adjacency_, clusters_, upper_us, options_.max_states);
    if (optimum.gave_up) return std::optional<Answer>();
    if (!optimum.feasible) return NoPlan();
    return std::optional<Answer>({std::move(optimum.device_of), optimum.cost_us, "dynamic programme"});
  }

  absl::StatusOr<Answer> ByIntegerProgramme() {
    const Bounded bounded =
        SolveByIntegerProgramme(problem_, adjacency_, clusters_, Start(), options_.time_limit_seconds);
    if (!bounded.best) return NoPlan();
    return Answer{bounded.best->device_of, bounded.lower_bound_us, "integer programme"};
  }

  std::optional<double> SingleDeviceUs(int device) const {
    for (size_t cluster = 0; cluster < clusters_.nodes.size(); ++cluster) {
      if (!clusters_.CostUs(problem_, cluster, device)) return std::nullopt;
    }
    const Evaluation evaluation = Evaluate(problem_, adjacency_, Assignment(problem_.nodes.size(), device));
    if (!evaluation.feasible) return std::nullopt;
    return evaluation.TotalUs();
  }

  const Problem& problem_;
  const SolveOptions& options_;
  const Adjacency adjacency_;
  const Clusters clusters_;
  std::optional<std::optional<Heuristic>> start_;
};

}  // namespace

absl::StatusOr<Result> Solve(const Problem& problem, const SolveOptions& options) {
  HEDDLE_RETURN_IF_ERROR(Validate(problem));
  return Solving(problem, options).Run();
}

}  // namespace heddle::ir::partition
