// Operators that ONNX itself defines by others. Where ir/ops/ has the operator it is taken as it is.

#include <cmath>

#include "frontend/onnx_rewrite.h"

namespace heddle::frontend {
namespace {

using ir::Shape;
using ir::ValueId;

absl::StatusOr<ValueId> MulScalar(NodeImporter& n, ValueId x, std::string_view role, double factor) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueId scalar, n.AddScalar(role, x, factor));
  return n.Emit("Mul", {x, scalar});
}

absl::StatusOr<ValueId> AddScalarTo(NodeImporter& n, ValueId x, std::string_view role, double addend) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueId scalar, n.AddScalar(role, x, addend));
  return n.Emit("Add", {x, scalar});
}

absl::Status HardSwish(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (ir::FindOp("HardSwish")) return n.EmitSame("HardSwish");
  HEDDLE_ASSIGN_OR_RETURN(const ValueId gate,
                          n.Emit("HardSigmoid", {n.inputs[0]}, {{"alpha", static_cast<double>(1.0f / 6)}, {"beta", 0.5}}));
  return n.Finish(n.Emit("Mul", {n.inputs[0], gate}));
}

absl::Status Mish(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (ir::FindOp("Mish")) return n.EmitSame("Mish");
  HEDDLE_ASSIGN_OR_RETURN(const ValueId softplus, n.Emit("Softplus", {n.inputs[0]}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId gate, n.Emit("Tanh", {softplus}));
  return n.Finish(n.Emit("Mul", {n.inputs[0], gate}));
}

// x · sigmoid(alpha x)
absl::Status Swish(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  HEDDLE_ASSIGN_OR_RETURN(const double alpha, n.TakeFloat("alpha", 1));
  ValueId x = n.inputs[0];
  if (alpha != 1) {
    HEDDLE_ASSIGN_OR_RETURN(x, MulScalar(n, x, "alpha", alpha));
  }
  HEDDLE_ASSIGN_OR_RETURN(const ValueId gate, n.Emit("Sigmoid", {x}));
  return n.Finish(n.Emit("Mul", {n.inputs[0], gate}));
}

// The axes from attribute `axis` on, and that attribute's default of -1.
absl::StatusOr<std::vector<int64_t>> TakeTailAxes(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.inputs[0]));
  const auto rank = static_cast<int64_t>(shape.size());
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, n.TakeInt("axis", -1));
  if (axis < -rank || axis >= rank) return n.Malformed(fmt::format("axis {} of a tensor of rank {}", axis, rank));
  std::vector<int64_t> axes;
  for (int64_t i = axis < 0 ? axis + rank : axis; i < rank; ++i) axes.push_back(i);
  return axes;
}

// sqrt(mean(x²) + epsilon) over `axes`
absl::StatusOr<ValueId> RootMeanSquare(NodeImporter& n, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueId square, n.Emit("Mul", {x, x}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId mean, n.Emit("ReduceMean", {square}, {{"axes", axes}}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId shifted, AddScalarTo(n, mean, "epsilon", epsilon));
  return n.Emit("Sqrt", {shifted});
}

// (x - mean) / sqrt(variance + epsilon) over the axes from `axis` on, scaled and shifted; and mean and 1 / sqrt(…) themselves.
absl::Status LayerNormalization(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t stash_type, n.TakeInt("stash_type", 1));
  if (stash_type != 1) return Unsupported("stash_type other than float32");
  if (ir::FindOp("LayerNormalization") && n.num_outputs() == 1) return n.EmitSame("LayerNormalization");
  HEDDLE_ASSIGN_OR_RETURN(const auto axes, TakeTailAxes(n));
  HEDDLE_ASSIGN_OR_RETURN(const double epsilon, n.TakeFloat("epsilon", 1e-5f));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId mean, n.Emit("ReduceMean", {n.inputs[0]}, {{"axes", axes}}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId centred, n.Emit("Sub", {n.inputs[0], mean}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId deviation, RootMeanSquare(n, centred, axes, epsilon));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId normal, n.Emit("Div", {centred, deviation}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId scaled, n.Emit("Mul", {normal, n.inputs[1]}));
  if (n.num_outputs() > 1) n.results[1] = mean;
  if (n.num_outputs() > 2) {
    HEDDLE_ASSIGN_OR_RETURN(n.results[2], n.Emit("Reciprocal", {deviation}));
  }
  return n.Finish(n.Has(2) ? n.Emit("Add", {scaled, n.inputs[2]}) : scaled);
}

absl::Status RmsNormalization(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t stash_type, n.TakeInt("stash_type", 1));
  if (stash_type != 1) return Unsupported("stash_type other than float32");
  HEDDLE_ASSIGN_OR_RETURN(const auto axes, TakeTailAxes(n));
  HEDDLE_ASSIGN_OR_RETURN(const double epsilon, n.TakeFloat("epsilon", 1e-5f));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId root, RootMeanSquare(n, n.inputs[0], axes, epsilon));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId normal, n.Emit("Div", {n.inputs[0], root}));
  return n.Finish(n.Emit("Mul", {normal, n.inputs[1]}));
}

// 0.5 x (1 + erf(x / √2)), or with tanh in place of erf.
absl::Status Gelu(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  const ValueId x = n.inputs[0];
  const auto approximate = n.TakeString("approximate", "none");
  if (!approximate.ok()) return approximate.status();
  const bool tanh = *approximate == "tanh";
  if (!tanh && *approximate != "none") return n.Malformed("attribute 'approximate' is '" + *approximate + "'");
  if (ir::FindOp("Gelu") && !tanh) return n.EmitSame("Gelu");
  ValueId inner = x;
  if (tanh) {  // tanh(√(2/π) (x + 0.044715 x³))
    HEDDLE_ASSIGN_OR_RETURN(const ValueId square, n.Emit("Mul", {x, x}));
    HEDDLE_ASSIGN_OR_RETURN(const ValueId cube, n.Emit("Mul", {square, x}));
    HEDDLE_ASSIGN_OR_RETURN(const ValueId small, MulScalar(n, cube, "c", 0.044715));
    HEDDLE_ASSIGN_OR_RETURN(const ValueId sum, n.Emit("Add", {x, small}));
    HEDDLE_ASSIGN_OR_RETURN(const ValueId scaled, MulScalar(n, sum, "s", std::sqrt(2 / M_PI)));
    HEDDLE_ASSIGN_OR_RETURN(inner, n.Emit("Tanh", {scaled}));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const ValueId scaled, MulScalar(n, x, "s", std::sqrt(0.5)));
    HEDDLE_ASSIGN_OR_RETURN(inner, n.Emit("Erf", {scaled}));
  }
  HEDDLE_ASSIGN_OR_RETURN(const ValueId gate, AddScalarTo(n, inner, "one", 1));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId product, n.Emit("Mul", {x, gate}));
  return n.Finish(MulScalar(n, product, "half", 0.5));
}

}  // namespace

const std::vector<RuleEntry>& CompositeRules() {
  static const std::vector<RuleEntry>& rules = *new std::vector<RuleEntry>{
      {"HardSwish", HardSwish}, {"Mish", Mish}, {"Swish", Swish}, {"Gelu", Gelu},
      {"LayerNormalization", LayerNormalization}, {"RMSNormalization", RmsNormalization}};
  return rules;
}

}  // namespace heddle::frontend
