// The proof that all agree: the plan, and every other way of computing the same graph, against the reference interpreter.
#ifndef HEDDLE_DRIVER_VERIFY_H_
#define HEDDLE_DRIVER_VERIFY_H_

#include <functional>
#include <string>
#include <vector>

#include "driver/execute.h"
#include "report/report.h"

namespace heddle::driver {

// A float output may differ from the reference by kFloatRelative times the largest magnitude in the tensor plus
// kFloatAbsolute: the sum order of vector code and fused multiply-adds differ. Integers may not differ at all.
inline constexpr double kFloatRelative = 1e-4;
inline constexpr double kFloatAbsolute = 1e-6;

// NaN equals NaN. max_abs_error counts every difference, mismatches only those beyond the bound.
report::OutputCheck CompareTensors(const std::string& name, const ir::Tensor& expected, const ir::Tensor& actual);

struct Reference {
  std::vector<ir::Tensor> outputs;
  NamedTensors values;  // every value of the graph, constants excepted
};
absl::StatusOr<Reference> ComputeReference(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs);

// One way of computing the graph, compared.
struct CrossCheck {
  std::string against;  // "cpu", "gpu (PoCL)", "rtl", "hls c++"
  std::vector<report::OutputCheck> outputs;
  std::string first_difference;  // name of the first value in topological order that differs; empty where none
  bool bit_exact() const;
  bool within_bounds() const;
};

// The plan's result. `against` names its devices.
CrossCheck CheckPlan(const ir::Graph& graph, const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                     const PlanRun& run, const DeviceList& devices);

// The whole graph on one device (nodes that it refuses are left to `host`).
absl::StatusOr<CrossCheck> CheckWholeOn(const ir::Graph& graph, const Reference& reference, const std::vector<ir::Tensor>& inputs,
                                        ir::Device& device, ir::Device& host, const std::function<void(const std::string&)>& progress);

// The program of every accelerator region on the SystemC platform with its fast accelerator, on the reference's values.
absl::StatusOr<CrossCheck> CheckSystemC(const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                                        const std::function<void(const std::string&)>& progress);

// The HLS C++ of every accelerator region, C-simulated on the reference's values. An error that is not a difference is
// returned as one.
absl::StatusOr<CrossCheck> CheckHls(const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                                    const std::function<void(const std::string&)>& progress);

// The RTL of every accelerator region in a second simulator, Icarus Verilog, on the reference's values. An error that is not a
// difference is returned as one.
absl::StatusOr<CrossCheck> CheckIcarus(const Reference& reference, const std::vector<CompiledPlanRegion>& plan,
                                       const std::function<void(const std::string&)>& progress);

// The HLS C++ of the parts of the whole graph that the accelerator takes, in a folder of its own that is removed again.
absl::StatusOr<CrossCheck> CheckHlsOf(const ir::Graph& graph, const Reference& reference, ir::Device& accelerator, ir::Device& host);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_VERIFY_H_
