// Cross-checks. Each compares outputs and, to say where a difference begins, every value at a border between regions.

#include "driver/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "ir/check.h"
#include "ir/interpreter.h"
#include "ir/region.h"
#include "sim/accelerator_device.h"

namespace heddle::driver {
namespace {

double LargestMagnitude(const ir::Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = std::abs(tensor.at_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

bool SameFloat(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void CompareFloats(const ir::Tensor& expected, const ir::Tensor& actual, report::OutputCheck& check) {
  const double bound = kFloatRelative * LargestMagnitude(expected) + kFloatAbsolute;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = expected.at_double(i), b = actual.at_double(i);
    if (SameFloat(a, b)) continue;
    const double error = std::abs(a - b);
    check.max_abs_error = std::max(check.max_abs_error, std::isfinite(error) ? error : HUGE_VAL);
    if (!(error <= bound)) ++check.mismatches;
  }
}

void CompareIntegers(const ir::Tensor& expected, const ir::Tensor& actual, report::OutputCheck& check) {
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const int64_t a = expected.at_int(i), b = actual.at_int(i);
    if (a == b) continue;
    ++check.mismatches;
    check.max_abs_error = std::max(check.max_abs_error, std::abs(static_cast<double>(a) - static_cast<double>(b)));
  }
}

// Values that leave regions, in the order of execution: the first that differs is where the trouble begins.
std::string FirstDifference(const Reference& reference, const std::vector<CompiledPlanRegion>& plan, const PlanRun& run) {
  for (size_t r = 0; r < plan.size(); ++r) {
    const ir::Graph& graph = *plan[r].graph;
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const std::string& name = graph.value(graph.outputs()[i]).name;
      auto it = reference.values.find(name);
      if (it != reference.values.end() && CompareTensors(name, it->second, run.regions[r].outputs[i]).mismatches) {
        return fmt::format("{} ({})", name, plan[r].name);
      }
    }
  }
  return "";
}

std::vector<report::OutputCheck> CompareOutputs(const ir::Graph& graph, const std::vector<ir::Tensor>& expected,
                                                const std::vector<ir::Tensor>& actual) {
  std::vector<report::OutputCheck> checks;
  for (size_t i = 0; i < expected.size(); ++i) {
    checks.push_back(CompareTensors(graph.value(graph.outputs()[i]).name, expected[i], actual[i]));
  }
  return checks;
}

std::vector<ir::Tensor> ValuesOf(const ir::Graph& graph, const std::vector<ir::ValueId>& ids, const Reference& reference) {
  std::vector<ir::Tensor> tensors;
  for (ir::ValueId id : ids) tensors.push_back(reference.values.at(graph.value(id).name));
  return tensors;
}

// Maximal runs of nodes in topological order that the device takes, the others on the host.
std::vector<PlannedRegion> WholePlan(const ir::Graph& graph, const std::vector<ir::NodeId>& order, ir::Device& device) {
  std::vector<PlannedRegion> plan;
  for (ir::NodeId id : order) {
    const int index = device.Supports(graph, graph.node(id)).supported ? 0 : 1;
    if (plan.empty() || plan.back().device != index) plan.push_back({index, {}, 0, 0});
    plan.back().nodes.push_back(id);
  }
  return plan;
}

// A device of somebody else's, for a list that owns.
class BorrowedDevice : public ir::Device {
 public:
  explicit BorrowedDevice(ir::Device& device) : device_(device) {}
  std::string name() const override { return device_.name(); }
  std::string kind() const override { return device_.kind(); }
  ir::Support Supports(const ir::Graph& graph, const ir::Node& node) const override { return device_.Supports(graph, node); }
  absl::StatusOr<ir::Cost> EstimateCost(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) const override {
    return device_.EstimateCost(graph, nodes);
  }
  absl::StatusOr<std::unique_ptr<ir::CompiledRegion>> Compile(std::shared_ptr<const ir::Graph> region, const ir::CompileRequest& request) override {
    return device_.Compile(std::move(region), request);
  }

 private:
  ir::Device& device_;
};

using RegionCheck = std::function<absl::Status(const sim::AcceleratorRegion&, const std::vector<ir::Tensor>& inputs, const std::vector<ir::Tensor>& expected)>;

// `check` on every accelerator region; its error `difference` counts as a difference of all outputs, others are returned.
absl::StatusOr<CrossCheck> CheckRegions(const std::string& against, const std::string& difference, const Reference& reference,
                                        const std::vector<CompiledPlanRegion>& plan, const std::function<void(const std::string&)>& progress,
                                        const RegionCheck& check_region) {
  CrossCheck check;
  check.against = against;
  for (const CompiledPlanRegion& region : plan) {
    const auto* accelerator = dynamic_cast<const sim::AcceleratorRegion*>(region.code.get());
    if (!accelerator) continue;
    if (progress) progress(against + ": simulating " + region.name);
    const std::vector<ir::Tensor> inputs = ValuesOf(*region.graph, region.graph->inputs(), reference);
    const std::vector<ir::Tensor> expected = ValuesOf(*region.graph, region.graph->outputs(), reference);
    const absl::Status status = check_region(*accelerator, inputs, expected);
    const bool differs = ir::ErrorCode(status) == difference;
    if (!status.ok() && !differs) return status;
    for (size_t i = 0; i < expected.size(); ++i) {
      report::OutputCheck output;
      output.name = region.graph->value(region.graph->outputs()[i]).name;
      output.elements = expected[i].elements();
      output.mismatches = differs ? output.elements : 0;
      check.outputs.push_back(output);
    }
    if (differs && check.first_difference.empty()) check.first_difference = region.name;
  }
  return check;
}

}  // namespace

report::OutputCheck CompareTensors(const std::string& name, const ir::Tensor& expected, const ir::Tensor& actual) {
  report::OutputCheck check;
  check.name = name;
  check.elements = expected.elements();
  if (expected.type() != actual.type() || expected.shape() != actual.shape()) {
    check.mismatches = std::max<int64_t>(1, expected.elements());
    check.max_abs_error = HUGE_VAL;
  } else if (ir::IsFloat(expected.type())) {
    CompareFloats(expected, actual, check);
  } else {
    CompareIntegers(expected, actual, check);
  }
  return check;
}

bool CrossCheck::bit_exact() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const auto& o) { return o.max_abs_error == 0 && o.mismatches == 0; });
}

bool CrossCheck::within_bounds() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const auto& o) { return o.mismatches == 0; });
}

absl::StatusOr<Reference> ComputeReference(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs) {
  Reference reference;
  ir::InterpretOptions options;
  options.on_value = [&](ir::ValueId id, const ir::Tensor& tensor) { reference.values[graph.value(id).name] = tensor; };
  HEDDLE_ASSIGN_OR_RETURN(reference.outputs, ir::Interpret(graph, inputs, options));
  return reference;
}

CrossCheck CheckPlan(const ir::Graph& graph, const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                     const PlanRun& run, const DeviceList& devices) {
  CrossCheck check;
  std::vector<std::string> names;
  for (const CompiledPlanRegion& region : plan) {
    const ir::Device& device = *devices[static_cast<size_t>(region.planned.device)];
    const auto* accelerator = dynamic_cast<const sim::AcceleratorDevice*>(&device);
    const std::string name = accelerator ? device.name() + " " + accelerator->simulator_name() : device.name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  check.against = fmt::format("plan ({})", fmt::join(names, " + "));
  check.outputs = CompareOutputs(graph, reference.outputs, run.outputs);
  check.first_difference = FirstDifference(reference, plan, run);
  return check;
}

absl::StatusOr<CrossCheck> CheckWholeOn(const ir::Graph& graph, const Reference& reference, const std::vector<ir::Tensor>& inputs,
                                        ir::Device& device, ir::Device& host, const std::function<void(const std::string&)>& progress) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::NodeId> order, graph.TopologicalOrder());
  DeviceList devices;
  devices.push_back(std::make_unique<BorrowedDevice>(device));
  devices.push_back(std::make_unique<BorrowedDevice>(host));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<CompiledPlanRegion> plan, CompilePlan(graph, WholePlan(graph, order, device), devices, {}, progress));
  HEDDLE_ASSIGN_OR_RETURN(const PlanRun run, RunPlan(graph, plan, inputs, progress));
  CrossCheck check;
  check.against = device.name();
  check.outputs = CompareOutputs(graph, reference.outputs, run.outputs);
  check.first_difference = FirstDifference(reference, plan, run);
  return check;
}

absl::StatusOr<CrossCheck> CheckHlsOf(const ir::Graph& graph, const Reference& reference, ir::Device& accelerator, ir::Device& host) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::NodeId> order, graph.TopologicalOrder());
  DeviceList devices;
  devices.push_back(std::make_unique<BorrowedDevice>(accelerator));
  devices.push_back(std::make_unique<BorrowedDevice>(host));
  std::string folder = (std::filesystem::temp_directory_path() / "heddle-hls-XXXXXX").string();
  if (!mkdtemp(folder.data())) return ir::UserError("E-SIM-002", "no temporary folder can be made");
  auto plan = CompilePlan(graph, WholePlan(graph, order, accelerator), devices, folder, {});
  absl::StatusOr<CrossCheck> check = plan.ok() ? CheckHls(reference, *plan, {}) : absl::StatusOr<CrossCheck>(plan.status());
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return check;
}

absl::StatusOr<CrossCheck> CheckSystemC(const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                                        const std::function<void(const std::string&)>& progress) {
  CrossCheck check;
  check.against = "SystemC";
  for (const CompiledPlanRegion& region : plan) {
    const auto* accelerator = dynamic_cast<const sim::AcceleratorRegion*>(region.code.get());
    if (!accelerator) continue;
    if (progress) progress("SystemC platform, " + region.name);
    HEDDLE_ASSIGN_OR_RETURN(const ir::RunResult result, accelerator->RunOnPlatform(ValuesOf(*region.graph, region.graph->inputs(), reference),
                                                                                   sim::PlatformAccelerator::kFast));
    const std::vector<ir::Tensor> expected = ValuesOf(*region.graph, region.graph->outputs(), reference);
    for (size_t i = 0; i < expected.size(); ++i) {
      check.outputs.push_back(CompareTensors(region.graph->value(region.graph->outputs()[i]).name, expected[i], result.outputs[i]));
      if (check.outputs.back().mismatches && check.first_difference.empty()) check.first_difference = region.name;
    }
  }
  return check;
}

absl::StatusOr<CrossCheck> CheckHls(const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                                    const std::function<void(const std::string&)>& progress) {
  return CheckRegions("HLS C++", "E-HLS-002", reference, plan, progress, [](const sim::AcceleratorRegion& region, const auto& inputs, const auto& expected) {
    return region.CheckHls(inputs, expected);
  });
}

absl::StatusOr<CrossCheck> CheckIcarus(const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                                       const std::function<void(const std::string&)>& progress) {
  return CheckRegions("RTL in Icarus Verilog", "E-SIM-004", reference, plan, progress, [](const sim::AcceleratorRegion& region, const auto& inputs, const auto&) {
    return region.CheckIcarus(inputs).status();
  });
}

}  // namespace heddle::driver
