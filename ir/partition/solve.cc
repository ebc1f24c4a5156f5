// Chooses the solver by the problem's structure, cheapest exact method first, and fills the report about the plan.
#include "ir/partition/solve.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "ir/check.h"
#include "ir/partition/alternatives.h"
#include "ir/partition/balance_loads.h"
#include "ir/partition/dynamic_programme.h"
#include "ir/partition/evaluate.h"
#include "ir/partition/integer_programme.h"
#include "ir/partition/link_flips.h"
#include "ir/partition/local_search.h"
#include "ir/partition/min_cut.h"
#include "ir/partition/schedule_programme.h"
#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

constexpr size_t kFewColumns = 60;         // nodes x devices, where all loads can be looked at
constexpr size_t kProgrammeColumns = 600;  // nodes x devices of an integer programme that CBC ends in good time

struct Answer {
  Heuristic plan;
  double lower_bound = 0;  // in the objective's unit
  std::string solver;
};

absl::Status NoPlan() {
  return UserError("E-PARTITION-004", "no placement keeps to the devices' capacities, the area and the limits of regions",
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

  absl::StatusOr<Answer> Find() {
    if (problem_.devices.size() == 1) return OnlyDevice();
    switch (problem_.objective) {
      case Objective::kSerial: return FindSerial();
      case Objective::kLatency: return FindLatency();
      case Objective::kThroughput: return FindThroughput();
      case Objective::kEnergy: return FindEnergy();
    }
    return NoPlan();
  }

 private:
  absl::StatusOr<Answer> OnlyDevice() const {
    Answer answer{{Assignment(problem_.nodes.size(), 0), {}}, 0, "single device"};
    answer.plan.evaluation = Evaluate(problem_, adjacency_, answer.plan.device_of);
    if (!answer.plan.evaluation.feasible) return NoPlan();
    answer.lower_bound = answer.plan.evaluation.cost;
    return answer;
  }

  absl::StatusOr<Answer> FindSerial() {
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
      case Solver::kIntegerProgramme: return ByIntegerProgramme(Start(), options_.time_limit_seconds);
      case Solver::kAuto: break;
    }
    if (cut_applies) return ByCut();
    if (!HasCapacity(problem_)) {
      absl::StatusOr<std::optional<Answer>> answer = ByDynamicProgramme();
      HEDDLE_RETURN_IF_ERROR(answer.status());
      if (*answer) return **std::move(answer);
    }
    return ByIntegerProgramme(Start(), options_.time_limit_seconds);
  }

  // The energies as times, solved serially; the plan is then this problem's own.
  absl::StatusOr<Answer> FindEnergy() const {
    const Problem energies = problem_.EnergiesAsTimes();
    HEDDLE_ASSIGN_OR_RETURN(Answer answer, Solving(energies, options_).FindSerial());
    std::vector<Run> sequence;
    for (const Region& region : answer.plan.evaluation.regions) sequence.push_back({region.device, region.nodes});
    answer.plan.evaluation = EvaluateSequence(problem_, answer.plan.device_of, sequence);
    return answer;
  }

  // The best serial plan, and the best that local search finds for the schedule, are where the search starts.
  absl::StatusOr<Answer> FindLatency() {
    const Bounded bounded =
        SolveBySchedules(problem_, adjacency_, clusters_, BestStart(), options_.time_limit_seconds);
    if (!bounded.best) return NoPlan();
    return Answer{*bounded.best, bounded.lower_bound, "schedule programme"};
  }

  // Prices first, which need a narrow graph; what they leave open is for the integer programme where it is small enough.
  absl::StatusOr<Answer> FindThroughput() {
    const auto begin = std::chrono::steady_clock::now();
    std::optional<Heuristic> start = BestStart();
    double bound = 0;
    const size_t columns = clusters_.nodes.size() * problem_.devices.size();
    if (start && !HasCapacity(problem_) && columns > kFewColumns) {
      const std::optional<Bounded> balanced =
          BalanceLoads(problem_, adjacency_, clusters_, *start, options_.time_limit_seconds / 2, options_.max_states);
      if (balanced) {
        start = balanced->best;
        bound = balanced->lower_bound;
      }
    }
    if (columns <= kFewColumns) {
      const Bounded loads = SolveBySchedules(problem_, adjacency_, clusters_, start, options_.time_limit_seconds / 2);
      if (loads.infeasible) return NoPlan();
      if (loads.best) start = loads.best;
      bound = loads.lower_bound;
      if (start && bound >= start->evaluation.cost * (1 - 1e-6)) return Answer{*start, bound, "schedule programme"};
    }
    const double left = options_.time_limit_seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool proven = start && bound >= start->evaluation.cost * (1 - 1e-6);
    const bool small = columns <= kProgrammeColumns;
    if (proven || (start && bound > 0 && (!small || left <= 0))) return Answer{*start, bound, "priced dynamic programme"};
    HEDDLE_ASSIGN_OR_RETURN(Answer answer, ByIntegerProgramme(start, std::max(left, 0.1)));
    answer.lower_bound = std::max(answer.lower_bound, bound);
    Improve(problem_, adjacency_, clusters_, answer.plan);  // of plans with the same period, one that is less busy
    return answer;
  }

  std::optional<Heuristic> BestStart() {
    std::optional<Heuristic> start = Start();
    Problem serial = problem_;
    serial.objective = Objective::kSerial;
    SolveOptions quick = options_;
    quick.time_limit_seconds = std::min(1.0, options_.time_limit_seconds / 4);
    if (HasCapacity(problem_)) return start;
    const absl::StatusOr<std::optional<Answer>> answer = Solving(serial, quick).ByDynamicProgramme();
    if (!answer.ok() || !*answer) return start;
    Heuristic plan{(*answer)->plan.device_of, {}};
    plan.evaluation = Evaluate(problem_, adjacency_, plan.device_of);
    if (!plan.evaluation.feasible) return start;
    Improve(problem_, adjacency_, clusters_, plan);
    if (!start || Score(problem_, plan.evaluation) < Score(problem_, start->evaluation)) start = std::move(plan);
    return start;
  }

  absl::Status DoesNotApply(const std::string& solver, const std::string& needs) const {
    return UserError("E-PARTITION-005", solver + " does not apply here: it needs " + needs, "Leave the choice to us.");
  }

  Answer AnswerOf(Assignment device_of, double lower_bound, const std::string& solver) const {
    Answer answer{{std::move(device_of), {}}, lower_bound, solver};
    answer.plan.evaluation = Evaluate(problem_, adjacency_, answer.plan.device_of);
    HEDDLE_CHECK(answer.plan.evaluation.feasible, "a solver returned a plan that breaks a limit");
    return answer;
  }

  Answer ByCut() const {
    std::optional<Cut> cut = MinimumCut(problem_, clusters_, 0, 1);
    HEDDLE_CHECK(cut, "Validate lets no cluster pass that runs nowhere");
    return AnswerOf(std::move(cut->device_of), cut->value_us, "minimum cut");
  }

  const std::optional<Heuristic>& Start() {
    if (!start_) start_ = LocalSearch(problem_, adjacency_, clusters_);
    return *start_;
  }

  absl::StatusOr<std::optional<Answer>> ByDynamicProgramme() {
    const double upper_us = Start() ? Start()->evaluation.cost : std::numeric_limits<double>::infinity();
    Optimum optimum = SolveByDynamicProgramme(problem_, adjacency_, clusters_, upper_us, options_.max_states);
    if (optimum.gave_up) return std::optional<Answer>();
    if (!optimum.feasible) return NoPlan();
    return std::optional<Answer>(AnswerOf(std::move(optimum.device_of), optimum.cost_us, "dynamic programme"));
  }

  absl::StatusOr<Answer> ByIntegerProgramme(const std::optional<Heuristic>& start, double time_limit_seconds) const {
    const Bounded bounded = SolveByIntegerProgramme(problem_, adjacency_, clusters_, start, time_limit_seconds);
    if (!bounded.best) return NoPlan();
    return Answer{*bounded.best, bounded.lower_bound, "integer programme"};
  }

  const Problem& problem_;
  const SolveOptions& options_;
  const Adjacency adjacency_;
  const Clusters clusters_;
  std::optional<std::optional<Heuristic>> start_;
};

// The problem with only these devices (bits); the host may always be used.
Problem Restricted(const Problem& problem, unsigned devices) {
  Problem result = problem;
  for (Node& node : result.nodes) {
    for (size_t device = 0; device < node.on.size(); ++device) {
      if (!(devices >> device & 1)) node.on[device].cost_us.reset();
    }
  }
  return result;
}

// The largest sets of devices that fit into the area: a plan uses the devices of one of them.
std::vector<unsigned> SetsThatFit(const Problem& problem) {
  const int count = static_cast<int>(problem.devices.size());
  std::vector<unsigned> fitting;
  for (unsigned set = (1u << count) - 1; set > 0; --set) {
    if (!(set >> problem.host & 1)) continue;
    double area = 0;
    for (int device = 0; device < count; ++device) {
      if (device != problem.host && (set >> device & 1)) area += problem.devices[device].area;
    }
    const bool covered = std::any_of(fitting.begin(), fitting.end(), [&](unsigned other) { return (set & other) == set; });
    if (!covered && (!problem.max_area || area <= *problem.max_area)) fitting.push_back(set);
  }
  return fitting;
}

// The best over the sets of devices that fit; a bound on all is the least of their bounds.
absl::StatusOr<Answer> FindWithinArea(const Problem& problem, SolveOptions options) {
  const std::vector<unsigned> sets = SetsThatFit(problem);
  if (sets.size() == 1 && sets[0] + 1 == 1u << problem.devices.size()) return Solving(problem, options).Find();
  options.time_limit_seconds /= static_cast<double>(std::max<size_t>(1, sets.size()));
  std::optional<Answer> best;
  double bound = std::numeric_limits<double>::infinity();
  for (unsigned set : sets) {
    const Problem restricted = Restricted(problem, set);
    if (!Validate(restricted).ok()) continue;  // a node runs on none of these
    absl::StatusOr<Answer> answer = Solving(restricted, options).Find();
    if (!answer.ok()) {
      if (ErrorCode(answer.status()) == "E-PARTITION-004") continue;
      return answer;
    }
    bound = std::min(bound, answer->lower_bound);
    if (!best || Score(problem, answer->plan.evaluation) < Score(problem, best->plan.evaluation)) best = *std::move(answer);
  }
  if (!best) return NoPlan();
  best->lower_bound = bound;
  return *std::move(best);
}

// Everything on one device: its latency, for kSerial its sum; absent where it refuses a node.
std::optional<double> SingleDeviceUs(const Problem& problem, const Adjacency& adjacency, int device) {
  const Evaluation evaluation = Evaluate(problem, adjacency, Assignment(problem.nodes.size(), device));
  if (!evaluation.feasible) return std::nullopt;
  return problem.objective == Objective::kSerial ? evaluation.BusyUs() : evaluation.latency_us;
}

void SetCosts(const Answer& answer, Result& result) {
  result.device_of = answer.plan.device_of;
  result.evaluation = answer.plan.evaluation;
  result.cost = result.evaluation.cost;
  result.lower_bound = std::min(answer.lower_bound, result.cost);
  // Solvers work in floating point: what differs by less than a millionth of the cost is equal.
  if (result.cost - result.lower_bound <= 1e-6 * result.cost) result.lower_bound = result.cost;
  result.gap_percent = result.cost > 0 ? (result.cost - result.lower_bound) / result.cost * 100 : 0;
  result.solver = answer.solver;
}

}  // namespace

absl::StatusOr<Result> Solve(const Problem& problem, const SolveOptions& options) {
  HEDDLE_RETURN_IF_ERROR(Validate(problem));
  const auto begin = std::chrono::steady_clock::now();
  HEDDLE_ASSIGN_OR_RETURN(const Answer answer, FindWithinArea(problem, options));
  Result result;
  SetCosts(answer, result);
  const Adjacency adjacency = BuildAdjacency(problem);
  for (int device = 0; device < static_cast<int>(problem.devices.size()); ++device) {
    result.single_device_us.push_back(SingleDeviceUs(problem, adjacency, device));
  }
  result.solve_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (options.alternatives) {
    result.alternatives = SingleMoves(problem, adjacency, BuildClusters(problem), result.device_of, result.evaluation);
    FindLinkFlips(problem, options, result);
    DescribeFlips(problem, result.alternatives);
  }
  return result;
}

}  // namespace heddle::ir::partition
