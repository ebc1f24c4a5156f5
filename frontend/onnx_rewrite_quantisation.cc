// Quantisation operators: scales are checked here, once, so that no later part has to think of NaN or zero.

#include <cmath>

#include "frontend/onnx_codes.h"
#include "frontend/onnx_rewrite.h"

namespace heddle::frontend {
namespace {

absl::Status QuantizeDequantize(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  HEDDLE_RETURN_IF_ERROR(CheckScale(n, 1));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t block_size, n.TakeInt("block_size", 0));
  if (block_size != 0) return Unsupported("blocked quantisation");
  n.Drop({"saturate"});  // of the 8-bit floats, which are refused
  HEDDLE_ASSIGN_OR_RETURN(const int64_t precision, n.TakeInt("precision", 0));
  if (precision != 0 && precision != CodeOfElement(ir::ElementType::kFloat32)) return Unsupported("precision " + DataTypeText(precision));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t output_type, n.TakeInt("output_dtype", 0));
  if (output_type != 0) {
    const auto element = ElementOfCode(output_type);
    if (!element) return Unsupported("output_dtype " + DataTypeText(output_type));
    const bool quantize = n.source.op == "QuantizeLinear";
    if (quantize == ir::IsFloat(*element)) return n.Malformed("output_dtype " + DataTypeText(output_type));
    if (quantize && !n.Has(2)) {
      HEDDLE_ASSIGN_OR_RETURN(const ir::Shape shape, n.ShapeOf(n.inputs[1]));
      HEDDLE_RETURN_IF_ERROR(ir::CheckedElementCount(shape, int64_t{1} << 24).status());
      n.SetInput(2, n.AddConstant("zero_point", ir::Tensor(*element, shape)));
    }
    if (quantize && n.Known(n.inputs[2]) && n.graph.type(n.inputs[2]).element != *element) {
      return n.Malformed("output_dtype differs from the type of the zero point");
    }
  }
  // Per-tensor scales have no axis; exporters write the attribute all the same.
  if (n.Known(n.inputs[1]) && n.graph.type(n.inputs[1]).shape.empty()) n.Drop({"axis"});
  return n.EmitSame(n.source.op);
}

absl::Status QLinearMatMul(NodeImporter& n) {
  for (size_t scale : {1, 4, 6}) HEDDLE_RETURN_IF_ERROR(CheckScale(n, scale));
  return n.EmitSame("QLinearMatMul");
}

}  // namespace

absl::Status CheckScale(const NodeImporter& n, size_t input) {
  const ir::Tensor* scale = n.Constant(input);
  if (!scale) return absl::OkStatus();
  for (int64_t i = 0; i < scale->elements(); ++i) {
    const double value = scale->at_double(i);
    if (std::isfinite(value) && value > 0) continue;
    return ir::UserError("E-IMPORT-041", fmt::format("node '{}' ({}): scale {} (input {}, element {}) is not finite and positive",
                                                     n.source.name, n.source.op, value, input, i),
                         "quantise the model again");
  }
  return absl::OkStatus();
}

const std::vector<RuleEntry>& QuantisationRules() {
  static const std::vector<RuleEntry>& rules = *new std::vector<RuleEntry>{
      {"QuantizeLinear", QuantizeDequantize}, {"DequantizeLinear", QuantizeDequantize}, {"QLinearMatMul", QLinearMatMul}};
  return rules;
}

}  // namespace heddle::frontend
