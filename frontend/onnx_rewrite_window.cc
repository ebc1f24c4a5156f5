// Convolutions, pooling and resizing: explicit pads instead of auto_pad, and Upsample as the Resize it became.

#include <algorithm>

#include "frontend/onnx_rewrite.h"

namespace heddle::frontend {
namespace {

using ir::kNoValue;
using ir::Shape;
using ir::ValueId;

absl::Status Convolution(NodeImporter& n, size_t weights) {
  HEDDLE_RETURN_IF_ERROR(n.Require(weights + 1));
  if (n.attributes.contains("auto_pad")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto kernel, KernelOf(n, n.inputs[weights]));
    HEDDLE_RETURN_IF_ERROR(ResolveAutoPad(n, n.inputs[0], kernel));
  }
  return n.EmitSame(n.source.op);
}

absl::Status Conv(NodeImporter& n) { return Convolution(n, 1); }

// auto_pad and output_shape as pads: what is more than the wanted extent is cut off, the odd one at the end for SAME_UPPER, at the
// begin otherwise.
absl::Status ConvTranspose(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  HEDDLE_ASSIGN_OR_RETURN(const std::string mode, n.TakeString("auto_pad", "NOTSET"));
  HEDDLE_ASSIGN_OR_RETURN(auto wanted, n.TakeInts("output_shape"));
  if (mode == "VALID") n.Drop({"pads"});
  if (wanted.empty() && mode != "SAME_UPPER" && mode != "SAME_LOWER") return n.EmitSame("ConvTranspose");
  HEDDLE_ASSIGN_OR_RETURN(const auto kernel, KernelOf(n, n.inputs[1]));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.inputs[0]));
  const size_t rank = kernel.size();
  if (shape.size() != rank + 2) return n.Malformed(fmt::format("a kernel of {} dimensions on {}", rank, ir::ShapeText(shape)));
  const auto list = [&](const std::string& key, int64_t fallback) -> absl::StatusOr<std::vector<int64_t>> {
    HEDDLE_ASSIGN_OR_RETURN(auto values, n.TakeInts(key));
    if (values.empty()) values.assign(rank, fallback);
    const auto bad = [](int64_t v) { return v < 0 || v > INT32_MAX; };
    if (values.size() != rank || std::any_of(values.begin(), values.end(), bad)) return n.Malformed("attribute '" + key + "'");
    n.attributes[key] = values;
    return values;
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto strides, list("strides", 1));
  HEDDLE_ASSIGN_OR_RETURN(const auto dilations, list("dilations", 1));
  HEDDLE_ASSIGN_OR_RETURN(const auto extra, list("output_padding", 0));
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);  // some exporters give the whole shape
  if (!wanted.empty() && wanted.size() != rank) return n.Malformed("attribute 'output_shape'");
  std::vector<int64_t> pads(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = shape[i + 2];
    if (kernel[i] < 1 || kernel[i] > INT32_MAX || extent > INT32_MAX) return n.Malformed("kernel_shape out of range");
    const int64_t target = wanted.empty() ? extent * strides[i] : wanted[i];
    const int64_t full = strides[i] * (extent - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1;
    if (target < 0 || target > full) return Unsupported(fmt::format("an output of {} where {} positions come out", target, full));
    const int64_t total = full - target;
    pads[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    pads[i + rank] = total - pads[i];
  }
  n.attributes["pads"] = pads;
  return n.EmitSame("ConvTranspose");
}

absl::Status QLinearConv(NodeImporter& n) {
  for (size_t scale : {1, 4, 6}) HEDDLE_RETURN_IF_ERROR(CheckScale(n, scale));
  return Convolution(n, 3);
}

absl::Status Pool(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.num_outputs() > 1) return Unsupported("the output Indices");
  n.Drop({"storage_order"});  // the order of Indices
  if (n.attributes.contains("auto_pad")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto kernel, n.TakeInts("kernel_shape"));
    n.attributes["kernel_shape"] = kernel;
    HEDDLE_RETURN_IF_ERROR(ResolveAutoPad(n, n.inputs[0], kernel));
  }
  return n.EmitSame(n.source.op);
}

// Scales of some axes (opset 18) for all of them.
absl::Status SpreadResizeAxes(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const auto axes, n.TakeInts("axes"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.Input(0)));
  const auto rank = static_cast<int64_t>(shape.size());
  const size_t input = n.Has(3) ? 3 : 2;
  const ir::Tensor* given = n.Constant(input);
  if (!given) return Unsupported("scales or sizes depend on the data");
  if (given->elements() != static_cast<int64_t>(axes.size())) return n.Malformed("scales or sizes do not match axes");
  ir::Tensor all(input == 3 ? ir::ElementType::kInt64 : ir::ElementType::kFloat32, {rank});
  for (int64_t i = 0; i < rank; ++i) all.set_double(i, input == 3 ? static_cast<double>(shape[static_cast<size_t>(i)]) : 1.0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -rank || axes[i] >= rank) return n.Malformed(fmt::format("axis {} of a tensor of rank {}", axes[i], rank));
    all.set_double(axes[i] < 0 ? axes[i] + rank : axes[i], given->at_double(static_cast<int64_t>(i)));
  }
  n.inputs[input] = n.AddConstant("resize", std::move(all));
  return absl::OkStatus();
}

absl::Status Resize(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.opset() < 11) {  // X, scales: samples at x_original = x_resized / scale, rounded down
    HEDDLE_RETURN_IF_ERROR(n.Require(2));
    n.inputs = {n.inputs[0], kNoValue, n.inputs[1]};
    n.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
    n.attributes["nearest_mode"] = std::string("floor");
    return n.EmitSame("Resize");
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t antialias, n.TakeInt("antialias", 0));
  HEDDLE_ASSIGN_OR_RETURN(const std::string policy, n.TakeString("keep_aspect_ratio_policy", "stretch"));
  if (antialias != 0) return Unsupported("antialias");
  if (policy != "stretch") return Unsupported("keep_aspect_ratio_policy " + policy);
  // Exporters of opset 11 give empty tensors for what is absent.
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    const ir::Tensor* tensor = n.Constant(i);
    if (tensor && tensor->elements() == 0) n.inputs[i] = kNoValue;
  }
  if (n.attributes.contains("axes")) HEDDLE_RETURN_IF_ERROR(SpreadResizeAxes(n));
  return n.EmitSame("Resize");
}

absl::Status Upsample(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.opset() < 9) {
    std::vector<float> scales;
    if (n.opset() < 7) {
      HEDDLE_ASSIGN_OR_RETURN(const double height, n.TakeFloat("height_scale", 1));
      HEDDLE_ASSIGN_OR_RETURN(const double width, n.TakeFloat("width_scale", 1));
      scales = {1, 1, static_cast<float>(height), static_cast<float>(width)};
    } else if (auto it = n.attributes.find("scales"); it != n.attributes.end()) {
      const auto* values = std::get_if<std::vector<double>>(&it->second);
      if (!values) return n.Malformed("attribute 'scales' is not a list of floats");
      scales.assign(values->begin(), values->end());
      n.Drop({"scales"});
    }
    n.SetInput(1, n.AddConstant("scales", ir::Tensor::Of<float>({static_cast<int64_t>(scales.size())}, scales)));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string mode, n.TakeString("mode", "nearest"));
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  n.attributes["mode"] = mode == "bilinear" ? std::string("linear") : mode;
  n.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  n.attributes["nearest_mode"] = std::string("floor");
  n.inputs = {n.inputs[0], kNoValue, n.inputs[1]};
  return n.EmitSame("Resize");
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> KernelOf(NodeImporter& n, ValueId weights) {
  if (auto it = n.attributes.find("kernel_shape"); it != n.attributes.end()) {
    const auto* kernel = std::get_if<std::vector<int64_t>>(&it->second);
    if (!kernel) return n.Malformed("attribute 'kernel_shape' is not a list of ints");
    return *kernel;
  }
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(weights));
  if (shape.size() < 3) return n.Malformed("the weights have fewer than 3 dimensions");
  return Shape(shape.begin() + 2, shape.end());
}

absl::Status ResolveAutoPad(NodeImporter& n, ValueId x, const std::vector<int64_t>& kernel) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string mode, n.TakeString("auto_pad", "NOTSET"));
  if (mode.empty() || mode == "NOTSET") return absl::OkStatus();
  n.Drop({"pads"});
  if (mode == "VALID") return absl::OkStatus();
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return n.Malformed(fmt::format("auto_pad '{}'", mode));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(x));
  const size_t rank = kernel.size();
  const auto list = [&](const std::string& key) -> absl::StatusOr<std::vector<int64_t>> {
    HEDDLE_ASSIGN_OR_RETURN(auto values, n.TakeInts(key));
    if (values.empty()) values.assign(rank, 1);
    n.attributes[key] = values;
    const auto bad = [](int64_t v) { return v < 1 || v > INT32_MAX; };
    if (values.size() != rank || std::any_of(values.begin(), values.end(), bad)) {
      return n.Malformed(fmt::format("attribute '{}' has {} entries where {} of 1 and more are expected", key, values.size(), rank));
    }
    return values;
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto strides, list("strides"));
  HEDDLE_ASSIGN_OR_RETURN(const auto dilations, list("dilations"));
  if (shape.size() != rank + 2) return n.Malformed(fmt::format("a kernel of {} dimensions on {}", rank, ir::ShapeText(shape)));
  std::vector<int64_t> pads(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = shape[i + 2];
    if (kernel[i] < 1 || kernel[i] > INT32_MAX || extent > INT32_MAX) return n.Malformed("kernel_shape out of range");
    const int64_t outputs = (extent + strides[i] - 1) / strides[i];
    const int64_t total = std::max<int64_t>(0, (outputs - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - extent);
    pads[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    pads[i + rank] = total - pads[i];
  }
  n.attributes["pads"] = pads;
  return absl::OkStatus();
}

const std::vector<RuleEntry>& WindowRules() {
  static const std::vector<RuleEntry>& rules = *new std::vector<RuleEntry>{
      {"Conv", Conv},       {"ConvInteger", Conv}, {"QLinearConv", QLinearConv}, {"MaxPool", Pool},
      {"AveragePool", Pool}, {"LpPool", Pool},      {"Resize", Resize},           {"Upsample", Upsample},
      {"ConvTranspose", ConvTranspose}};
  return rules;
}

}  // namespace heddle::frontend
