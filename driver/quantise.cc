// The story of a quantisation. What is measured is what was written: the quantised graph is imported from the bytes of
// the file.

#include "driver/quantise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "driver/calibration_data.h"
#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/execute.h"
#include "frontend/onnx_import.h"
#include "frontend/onnx_write.h"
#include "ir/check.h"
#include "ir/op.h"
#include "ir/passes/pass.h"
#include "ir/quantise/plan.h"
#include "ir/quantise/prepare.h"
#include "ir/quantise/softmax_input.h"

namespace heddle::driver {
namespace {

namespace quantise = ir::quantise;

constexpr int kSteps = 5;

// The default pipeline in two parts: what makes the float graph better, and the rest up to the fusion of nodes, which
// would hide the tensors between them.
absl::Status RunPipelinePart(ir::Graph& graph, bool before_legalisation) {
  std::vector<std::string> passes;
  bool before = true;
  for (const ir::PipelineStep& step : ir::DefaultPipeline()) {
    before = before && step.pass != "legalise-quantisation";
    if (before == before_legalisation && step.pass != "fuse-vertical") passes.push_back(step.pass);
  }
  return ir::RunPasses(graph, passes);
}

// A graph compiled for the CPU that gives tensors from its middle.
class TappedGraph {
 public:
  // `names`: values of the graph; graph inputs and names that it does not have are left out.
  static absl::StatusOr<TappedGraph> Compile(ir::Graph graph, const std::vector<std::string>& names,
                                             ir::Device& device) {
    TappedGraph tapped;
    for (const std::string& name : names) {
      const auto id = graph.FindValue(name);
      if (id && graph.ProducerOf(*id) != ir::kNoNode && !graph.IsOutput(*id)) graph.MarkOutput(*id);
    }
    tapped.graph_ = std::make_shared<const ir::Graph>(std::move(graph));
    HEDDLE_ASSIGN_OR_RETURN(tapped.code_, device.Compile(tapped.graph_, {"quantise", {}, {}}));
    return tapped;
  }

  // By name: graph inputs, what was asked for, graph outputs.
  absl::StatusOr<NamedTensors> Run(const std::vector<ir::Tensor>& inputs) {
    HEDDLE_ASSIGN_OR_RETURN(ir::RunResult run, code_->Run(inputs));
    NamedTensors tensors;
    for (size_t i = 0; i < inputs.size(); ++i) tensors[graph_->value(graph_->inputs()[i]).name] = inputs[i];
    for (size_t i = 0; i < run.outputs.size(); ++i)
      tensors[graph_->value(graph_->outputs()[i]).name] = std::move(run.outputs[i]);
    return tensors;
  }

  const ir::Graph& graph() const { return *graph_; }

 private:
  std::shared_ptr<const ir::Graph> graph_;
  std::unique_ptr<ir::CompiledRegion> code_;
};

class QuantiseRun {
 public:
  explicit QuantiseRun(const QuantiseOptions& options)
      : options_(options), talk_(options.talk.verbosity, options.talk.color, kSteps) {}

  absl::StatusOr<QuantiseReport> Go() {
    HEDDLE_RETURN_IF_ERROR(Import());
    HEDDLE_RETURN_IF_ERROR(Calibrate());
    HEDDLE_RETURN_IF_ERROR(QuantiseGraph());
    HEDDLE_RETURN_IF_ERROR(Compare());
    talk_.Step("write " + options_.out);
    HEDDLE_RETURN_IF_ERROR(frontend::WriteOnnxBytes(bytes_, options_.out));
    talk_.Done();
    return std::move(report_);
  }

 private:
  absl::Status Import() {
    talk_.Step("import " + options_.model);
    HEDDLE_ASSIGN_OR_RETURN(const Target target, LoadTarget("this-machine"));
    HEDDLE_ASSIGN_OR_RETURN(DeviceSet set, MakeDevices(target, {"cpu"}, options_.threads));
    devices_ = std::move(set.devices);
    HEDDLE_ASSIGN_OR_RETURN(graph_, LoadModel(options_.model, options_.shapes, false));
    HEDDLE_RETURN_IF_ERROR(ir::Verify(graph_));
    HEDDLE_RETURN_IF_ERROR(RunPipelinePart(graph_, true));
    HEDDLE_RETURN_IF_ERROR(quantise::FoldChannelConstants(graph_));
    HEDDLE_ASSIGN_OR_RETURN(plan_, quantise::PlanQuantisation(graph_, {options_.keep_float}));
    report_.model = options_.model;
    report_.out = options_.out;
    report_.method = quantise::MethodName(options_.calibration.method);
    if (options_.calibration.method == quantise::Method::kPercentile)
      report_.percentile = options_.calibration.percentile;
    return absl::OkStatus();
  }

  absl::Status Calibrate() {
    talk_.Step("calibrate");
    HEDDLE_ASSIGN_OR_RETURN(CalibrationData data,
                            CalibrationData::Open(graph_, options_.calibrate, options_.most_samples));
    data_ = std::make_unique<CalibrationData>(std::move(data));
    std::map<std::string, ir::ValueId> sources;
    std::vector<std::string> taps;
    for (const quantise::ParameterClass& entry : plan_.classes) {
      for (ir::ValueId id : entry.members) taps.push_back(graph_.value(id).name);
      for (ir::ValueId id : entry.sources) sources[graph_.value(id).name] = id;
    }
    HEDDLE_ASSIGN_OR_RETURN(TappedGraph tapped, TappedGraph::Compile(graph_, taps, HostOf(devices_)));
    float_graph_ = std::make_unique<TappedGraph>(std::move(tapped));
    HEDDLE_RETURN_IF_ERROR(data_->ForEach([&](const std::vector<ir::Tensor>& inputs) -> absl::Status {
      talk_.Progress("a sample");
      HEDDLE_ASSIGN_OR_RETURN(const NamedTensors tensors, float_graph_->Run(inputs));
      for (const auto& [name, id] : sources) HEDDLE_RETURN_IF_ERROR(AddValues(id, tensors.at(name)));
      return absl::OkStatus();
    }));
    report_.samples = data_->Description();
    if (data_->random()) {
      report_.notes.push_back(fmt::format(
          "calibrated on {}: ranges and figures say little about real data; give --calibrate DATA", report_.samples));
    }
    return absl::OkStatus();
  }

  absl::Status AddValues(ir::ValueId id, const ir::Tensor& tensor) {
    quantise::Histogram& histogram = histograms_[id];
    histogram.Add(quantise::Observed(plan_, id, tensor).as<float>());
    if (histogram.not_finite() == 0) return absl::OkStatus();
    return ir::UserError(
        "E-QUANT-107",
        fmt::format(
            "value '{}' has {} elements that are NaN or infinite on the calibration data; expected finite numbers",
            graph_.value(id).name, histogram.not_finite()),
        "check the data's scale, or keep the node in float (--keep-float)");
  }

  absl::Status QuantiseGraph() {
    talk_.Step("quantise");
    HEDDLE_ASSIGN_OR_RETURN(quantise::Quantised quantised,
                            quantise::Quantise(graph_, plan_, histograms_, options_.calibration));
    report_.layers = quantised.layers;
    report_.weight_bytes = quantised.weight_bytes;
    report_.float_weight_bytes = quantised.float_weight_bytes;
    for (quantise::QuantisedTensor& tensor : quantised.tensors) report_.tensors.push_back({std::move(tensor), {}});
    HEDDLE_ASSIGN_OR_RETURN(bytes_, frontend::OnnxBytes(quantised.graph));
    HEDDLE_ASSIGN_OR_RETURN(ir::Graph legalised, frontend::ImportOnnxBytes(bytes_));
    HEDDLE_RETURN_IF_ERROR(RunPipelinePart(legalised, true));
    HEDDLE_RETURN_IF_ERROR(RunPipelinePart(legalised, false));
    HEDDLE_RETURN_IF_ERROR(ir::Verify(legalised));
    CountNodes(legalised);
    std::vector<std::string> taps;
    for (const TensorNoise& entry : report_.tensors) taps.push_back(entry.tensor.integers);
    HEDDLE_ASSIGN_OR_RETURN(TappedGraph tapped, TappedGraph::Compile(std::move(legalised), taps, HostOf(devices_)));
    quantised_graph_ = std::make_unique<TappedGraph>(std::move(tapped));
    return absl::OkStatus();
  }

  void CountNodes(const ir::Graph& graph) {
    for (ir::NodeId id : graph.NodeIds()) {
      const ir::Node& node = graph.node(id);
      if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") continue;
      const ir::OpKind kind = ir::FindOp(node.op)->kind(ir::NodeContext(graph, node));
      if (kind == ir::OpKind::kInteger) ++report_.integer_nodes;
      if (kind == ir::OpKind::kFloat) report_.float_nodes.push_back({node.name, node.op});
    }
  }

  absl::Status Compare() {
    talk_.Step("compare with the float model");
    for (ir::ValueId id : graph_.outputs()) {
      OutputNoise output;
      output.name = graph_.value(id).name;
      if (graph_.type(id).element != ir::ElementType::kFloat32) continue;
      output.classes = quantise::ClassesOf(graph_.type(id).static_shape());
      report_.outputs.push_back(std::move(output));
    }
    return data_->ForEach([&](const std::vector<ir::Tensor>& inputs) -> absl::Status {
      talk_.Progress("a sample");
      HEDDLE_ASSIGN_OR_RETURN(const NamedTensors real, float_graph_->Run(inputs));
      HEDDLE_ASSIGN_OR_RETURN(const NamedTensors found, quantised_graph_->Run(inputs));
      for (TensorNoise& entry : report_.tensors) {
        const auto it = found.find(entry.tensor.integers);
        if (it == found.end()) continue;
        entry.noise.Add(Seen(entry.tensor, real.at(entry.tensor.value)), Seen(entry.tensor, it->second),
                        entry.tensor.parameters.scale, entry.tensor.parameters.zero_point);
      }
      for (OutputNoise& output : report_.outputs) {
        output.noise.Add(real.at(output.name), found.at(output.name));
        if (output.classes) output.top_one.Add(real.at(output.name), found.at(output.name), output.classes);
      }
      return absl::OkStatus();
    });
  }

  // What counts as noise: for a softmax's input what the softmax sees.
  static ir::Tensor Seen(const quantise::QuantisedTensor& entry, const ir::Tensor& tensor) {
    if (entry.softmax_axis < 0) return tensor;
    ir::Tensor real(ir::ElementType::kFloat32, tensor.shape());
    for (int64_t i = 0; i < real.elements(); ++i) {
      const double value =
          tensor.type() == ir::ElementType::kInt8
              ? entry.parameters.scale * static_cast<double>(tensor.at_int(i) - entry.parameters.zero_point)
              : tensor.at_double(i);
      real.set_double(i, value);
    }
    return quantise::VisibleToSoftmax(real, entry.softmax_axis);
  }

  const QuantiseOptions& options_;
  Talk talk_;
  DeviceList devices_;
  ir::Graph graph_;
  quantise::Plan plan_;
  quantise::Histograms histograms_;
  std::unique_ptr<CalibrationData> data_;
  std::unique_ptr<TappedGraph> float_graph_, quantised_graph_;
  std::string bytes_;
  QuantiseReport report_;
};

}  // namespace

absl::StatusOr<QuantiseReport> QuantiseModel(const QuantiseOptions& options) { return QuantiseRun(options).Go(); }

absl::Status QuantiseCommand(const QuantiseOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const QuantiseReport report, QuantiseModel(options));
  const std::string text = options.json ? PrintQuantiseJson(report) : PrintQuantiseText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const std::string& note : report.notes) {
    if (options.json && options.talk.verbosity != Verbosity::kQuiet) fmt::print(stderr, "note: {}\n", note);
  }
  return absl::OkStatus();
}

}  // namespace heddle::driver
