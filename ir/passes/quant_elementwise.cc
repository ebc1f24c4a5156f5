// Matchers for element-wise layers of two tensors and for softmax.

#include <algorithm>
#include <cmath>

#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// Both summands' scales over the output's as integers below 2^20 and a common shift.
struct SumScales {
  int64_t a = 0, b = 0, shift = 0;
};

std::optional<SumScales> SumScalesFor(double a, double b) {
  int exponent = 0;
  std::frexp(std::max(a, b), &exponent);  // larger scale in [2^(exponent-1), 2^exponent)
  int shift = std::min(20 - exponent, 40);
  if (shift < 0) return std::nullopt;
  // Rounding may reach 2^20 itself.
  if (std::nearbyint(std::ldexp(std::max(a, b), shift)) >= (1 << 20)) --shift;
  if (shift < 0) return std::nullopt;
  return SumScales{static_cast<int64_t>(std::nearbyint(std::ldexp(a, shift))),
                   static_cast<int64_t>(std::nearbyint(std::ldexp(b, shift))), shift};
}

// -x for a quantised tensor: the bits inverted are -q - 1, with zero point -1 - z.
std::optional<QuantisedInput> Negated(Graph& graph, const QuantisedInput& input, const std::string& name) {
  Tensor table(ElementType::kInt8, {256});
  for (int64_t i = 0; i < 256; ++i) table.set_int(i, -(i - 128) - 1);
  const auto added = AddTypedNode(graph, "QLut", name, {input.integer}, name,
                                  {{"table", std::make_shared<const Tensor>(std::move(table))}});
  if (!added.ok()) return std::nullopt;
  const QuantisedInput result{*added, input.scale, -1 - input.zero, kNoNode};
  ValueType type = graph.type(*added);
  type.quantisation = Quantisation{{result.scale}, {result.zero}, -1};
  graph.set_type(*added, std::move(type));
  return result;
}

bool MatchSum(Graph& graph, const OutputQuantiser& q, const ClampedValue& clamped, const QuantisedInput& a, QuantisedInput b,
              const Node& node) {
  const auto scales = SumScalesFor(static_cast<double>(a.scale) / q.scale, static_cast<double>(b.scale) / q.scale);
  if (!scales) return false;
  const std::string name = node.name;
  std::vector<NodeId> absorbed = clamped.clamps;
  absorbed.push_back(node.id);
  if (node.op == "Sub") {
    const auto negated = Negated(graph, b, name + "_negated");
    if (!negated) return false;
    b = *negated;
  }
  Attributes attributes = {{"a_zero_point", a.zero}, {"b_zero_point", b.zero}, {"a_multiplier", scales->a},
                           {"b_multiplier", scales->b}, {"shift", scales->shift}, {"y_zero_point", q.zero},
                           {"clamp_low", clamped.low}, {"clamp_high", clamped.high}};
  return Emit(graph, q, {"QAdd", name, {a.integer, b.integer}, std::move(attributes), std::move(absorbed)});
}

}  // namespace

bool MatchBinary(Graph& graph, const OutputQuantiser& q) {
  const ClampedValue clamped = PeelClamps(graph, q);
  const NodeId producer = graph.ProducerOf(clamped.value);
  if (producer == kNoNode || !HasSingleUse(graph, clamped.value)) return false;
  const Node& node = graph.node(producer);
  if (node.op != "Add" && node.op != "Sub" && node.op != "Mul") return false;
  const auto a = MatchDequantised(graph, node.inputs[0]), b = MatchDequantised(graph, node.inputs[1]);
  if (!a || !b) return false;
  if (node.op != "Mul") return MatchSum(graph, q, clamped, *a, *b, node);
  const auto requantiser = RequantiserFor({static_cast<double>(a->scale) * b->scale}, q, clamped);
  if (!requantiser) return false;
  Attributes attributes = {{"a_zero_point", a->zero}, {"b_zero_point", b->zero}};
  SetRequantiser(*requantiser, attributes, /*as_list=*/false);
  std::vector<NodeId> absorbed = clamped.clamps;
  absorbed.push_back(producer);
  return Emit(graph, q, {"QMul", node.name, {a->integer, b->integer}, std::move(attributes), std::move(absorbed)});
}

bool MatchSoftmax(Graph& graph, const OutputQuantiser& q) {
  const NodeId producer = graph.ProducerOf(q.input);
  if (producer == kNoNode || !HasSingleUse(graph, q.input)) return false;
  const Node& node = graph.node(producer);
  if (node.op != "Softmax") return false;
  const auto x = MatchDequantised(graph, node.inputs[0]);
  if (!x) return false;
  const Shape shape = graph.type(x->integer).static_shape();
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = IntOr(node, "axis", -1);
  if (rank == 0 || axis < -rank || axis >= rank) return false;
  // Rounding each table entry costs 2^-24 of the sum's largest term: with so many terms it stays far below one step.
  constexpr int64_t kLongestRow = 1 << 14;
  if (shape[static_cast<size_t>((axis + rank) % rank)] > kLongestRow) return false;
  const double inverse = 1.0 / static_cast<double>(q.scale);
  // An output range beyond [0, 1] by more than this leaves too few steps for a whole multiplier to be near 1 / scale.
  if (inverse < 1 || inverse > (int64_t{1} << 30)) return false;
  Attributes attributes = {{"axis", axis},
                           {"exp_table", std::make_shared<const Tensor>(SoftmaxExpTable(static_cast<double>(x->scale)))},
                           {"y_multiplier", static_cast<int64_t>(std::nearbyint(inverse))},
                           {"y_zero_point", q.zero}};
  return Emit(graph, q, {"QSoftmax", node.name, {x->integer}, std::move(attributes), {producer}});
}

}  // namespace heddle::ir
