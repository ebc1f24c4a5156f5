// Operators of com.microsoft that ONNX Runtime's quantiser and optimiser write, expanded to ONNX's own: quantised forms become
// DequantizeLinear → operator → QuantizeLinear, which the passes recognise; fused forms become their parts.
// Signatures: ONNX Runtime's docs/ContribOperators.md.

#include <cmath>

#include "frontend/onnx_rewrite.h"

namespace heddle::frontend {
namespace {

using ir::kNoValue;
using ir::Shape;
using ir::ValueId;

// inputs[first], its scale and its zero point, as floats.
absl::StatusOr<ValueId> Dequantize(NodeImporter& n, ValueId x, size_t scale) {
  HEDDLE_RETURN_IF_ERROR(n.Require(scale + 1));
  HEDDLE_RETURN_IF_ERROR(CheckScale(n, scale));
  return n.Emit("DequantizeLinear", {x, n.inputs[scale], n.Input(scale + 1)});
}

absl::Status Quantize(NodeImporter& n, absl::StatusOr<ValueId> y, size_t scale) {
  if (!y.ok()) return y.status();
  HEDDLE_RETURN_IF_ERROR(n.Require(scale + 1));
  HEDDLE_RETURN_IF_ERROR(CheckScale(n, scale));
  return n.Finish(n.Emit("QuantizeLinear", {*y, n.inputs[scale], n.Input(scale + 1)}));
}

// A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point
absl::Status QLinearBinary(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId a, Dequantize(n, n.inputs[0], 1));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId b, Dequantize(n, n.Input(3), 4));
  return Quantize(n, n.Emit(n.source.op == "QLinearAdd" ? "Add" : "Mul", {a, b}), 6);
}

// X, x_scale, x_zero_point, y_scale, y_zero_point, with the attributes that the float operator takes.
absl::Status QLinearUnary(NodeImporter& n, const std::string& op) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId x, Dequantize(n, n.inputs[0], 1));
  return Quantize(n, n.Emit(op, {x}, n.attributes), 3);
}

absl::Status QLinearSigmoid(NodeImporter& n) { return QLinearUnary(n, "Sigmoid"); }
absl::Status QLinearLeakyRelu(NodeImporter& n) { return QLinearUnary(n, "LeakyRelu"); }

absl::Status ChannelsFirst(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t channels_last, n.TakeInt("channels_last", 0));
  return channels_last == 0 ? absl::OkStatus() : Unsupported("channels_last");
}

absl::Status QLinearGlobalAveragePool(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(ChannelsFirst(n));
  return QLinearUnary(n, "GlobalAveragePool");
}

absl::Status QLinearAveragePool(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(ChannelsFirst(n));
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.attributes.contains("auto_pad")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto kernel, n.TakeInts("kernel_shape"));
    n.attributes["kernel_shape"] = kernel;
    HEDDLE_RETURN_IF_ERROR(ResolveAutoPad(n, n.inputs[0], kernel));
  }
  return QLinearUnary(n, "AveragePool");
}

absl::Status QLinearSoftmax(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t opset, n.TakeInt("opset", 13));  // whose Softmax is meant
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, n.TakeInt("axis", -1));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId x, Dequantize(n, n.inputs[0], 1));
  return Quantize(n, EmitSoftmax(n, "Softmax", x, axis, opset < 13), 3);
}

// Y_scale, Y_zero_point, then x, scale, zero point of each operand.
absl::Status QLinearConcat(NodeImporter& n) {
  if (n.inputs.size() < 5) return n.Malformed("takes 5 inputs and more");
  std::vector<ValueId> operands;
  for (size_t i = 2; i + 1 < n.inputs.size(); i += 3) {
    HEDDLE_ASSIGN_OR_RETURN(const ValueId x, Dequantize(n, n.inputs[i], i + 1));
    operands.push_back(x);
  }
  return Quantize(n, n.Emit("Concat", operands, n.attributes), 0);
}

absl::StatusOr<ValueId> Activate(NodeImporter& n, ValueId y, const std::string& activation, const std::vector<double>& parameters) {
  const auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? parameters[i] : fallback; };
  if (activation.empty()) return y;
  if (activation == "Relu" || activation == "Tanh" || activation == "Sigmoid") return n.Emit(activation, {y});
  if (activation == "LeakyRelu") return n.Emit("LeakyRelu", {y}, {{"alpha", parameter(0, 0.01f)}});
  if (activation == "HardSigmoid") {
    return n.Emit("HardSigmoid", {y}, {{"alpha", parameter(0, 0.2f)}, {"beta", parameter(1, 0.5)}});
  }
  if (activation == "Clip" && parameters.size() == 2) {
    HEDDLE_ASSIGN_OR_RETURN(const ValueId low, n.AddScalar("low", y, parameters[0]));
    HEDDLE_ASSIGN_OR_RETURN(const ValueId high, n.AddScalar("high", y, parameters[1]));
    return n.Emit("Clip", {y, low, high});
  }
  return Unsupported("activation " + activation);
}

// X, W, B, Z: activation(Conv(X, W, B) + Z)
absl::Status FusedConv(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  HEDDLE_ASSIGN_OR_RETURN(const std::string activation, n.TakeString("activation", ""));
  std::vector<double> parameters;
  if (auto it = n.attributes.find("activation_params"); it != n.attributes.end()) {
    const auto* values = std::get_if<std::vector<double>>(&it->second);
    if (!values) return n.Malformed("attribute 'activation_params' is not a list of floats");
    parameters = *values;
    n.Drop({"activation_params"});
  }
  if (n.attributes.contains("auto_pad")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto kernel, KernelOf(n, n.inputs[1]));
    HEDDLE_RETURN_IF_ERROR(ResolveAutoPad(n, n.inputs[0], kernel));
  }
  HEDDLE_ASSIGN_OR_RETURN(ValueId y, n.Emit("Conv", {n.inputs[0], n.inputs[1], n.Input(2)}, n.attributes));
  if (n.Has(3)) {
    HEDDLE_ASSIGN_OR_RETURN(y, n.Emit("Add", {y, n.inputs[3]}));
  }
  return n.Finish(Activate(n, y, activation, parameters));
}

// alpha · op(A) · op(B), where op swaps the last two dimensions on transA and transB.
absl::Status FusedMatMul(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  for (const char* key : {"transBatchA", "transBatchB"}) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t batch, n.TakeInt(key, 0));
    if (batch != 0) return Unsupported(key);
  }
  for (size_t i : {0, 1}) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t transpose, n.TakeInt(i == 0 ? "transA" : "transB", 0));
    if (transpose == 0) continue;
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.inputs[i]));
    std::vector<int64_t> order(shape.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int64_t>(k);
    if (order.size() < 2) continue;  // a vector stays one
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    HEDDLE_ASSIGN_OR_RETURN(n.inputs[i], n.Emit("Transpose", {n.inputs[i]}, {{"perm", order}}));
  }
  HEDDLE_ASSIGN_OR_RETURN(const double alpha, n.TakeFloat("alpha", 1));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId product, n.Emit("MatMul", {n.inputs[0], n.inputs[1]}));
  if (alpha == 1) return n.Finish(product);
  HEDDLE_ASSIGN_OR_RETURN(const ValueId scale, n.AddScalar("alpha", product, alpha));
  return n.Finish(n.Emit("Mul", {product, scale}));
}

absl::Status Gelu(NodeImporter& n) { return FindRule("", "Gelu")(n); }

}  // namespace

const std::vector<RuleEntry>& MicrosoftRules() {
  static const std::vector<RuleEntry>& rules = *new std::vector<RuleEntry>{
      {"QLinearAdd", QLinearBinary},
      {"QLinearMul", QLinearBinary},
      {"QLinearSigmoid", QLinearSigmoid},
      {"QLinearLeakyRelu", QLinearLeakyRelu},
      {"QLinearAveragePool", QLinearAveragePool},
      {"QLinearGlobalAveragePool", QLinearGlobalAveragePool},
      {"QLinearSoftmax", QLinearSoftmax},
      {"QLinearConcat", QLinearConcat},
      {"FusedConv", FusedConv},
      {"FusedMatMul", FusedMatMul},
      {"Gelu", Gelu}};
  return rules;
}

}  // namespace heddle::frontend
