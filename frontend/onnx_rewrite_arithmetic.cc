// Element-wise arithmetic, reductions, softmax and normalisation. The differences over the opsets: broadcasting by attributes
// before 7, axes as attributes before 13 or 18, and the softmax family over a flattened tail before 13.

#include <algorithm>
#include <numeric>

#include "frontend/onnx_rewrite.h"

namespace heddle::frontend {
namespace {

using ir::kNoValue;
using ir::Shape;
using ir::ValueId;

// Before opset 7 the second operand broadcasts only where `broadcast` says so, aligned at `axis` of the first.
absl::Status Binary(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  if (n.opset() >= 7) return n.EmitSame(n.source.op);
  HEDDLE_ASSIGN_OR_RETURN(const int64_t broadcast, n.TakeInt("broadcast", 0));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t given_axis, n.TakeInt("axis", INT64_MIN));
  if (broadcast == 0 || given_axis == INT64_MIN) return n.EmitSame(n.source.op);
  HEDDLE_ASSIGN_OR_RETURN(const Shape a, n.ShapeOf(n.inputs[0]));
  HEDDLE_ASSIGN_OR_RETURN(Shape b, n.ShapeOf(n.inputs[1]));
  const auto rank = static_cast<int64_t>(a.size());
  const int64_t axis = given_axis < 0 ? given_axis + rank : given_axis;
  if (axis < 0 || axis + static_cast<int64_t>(b.size()) > rank) {
    return n.Malformed(fmt::format("axis {} does not align {} with {}", given_axis, ir::ShapeText(b), ir::ShapeText(a)));
  }
  if (axis + static_cast<int64_t>(b.size()) != rank) {
    b.resize(a.size() - static_cast<size_t>(axis), 1);
    HEDDLE_ASSIGN_OR_RETURN(n.inputs[1], n.Reshape(n.inputs[1], b));
  }
  return n.EmitSame(n.source.op);
}

// Any number of operands, as a chain of operators of two.
absl::StatusOr<ValueId> Chain(NodeImporter& n, const std::string& op) {
  HEDDLE_RETURN_IF_ERROR(n.Require(std::max<size_t>(1, n.inputs.size())));
  ValueId sum = n.inputs[0];
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(sum, n.Emit(op, {sum, n.inputs[i]}));
  }
  return sum;
}

absl::Status Sum(NodeImporter& n) { return n.Finish(Chain(n, "Add")); }
absl::Status MaxMin(NodeImporter& n) { return n.Finish(Chain(n, n.source.op)); }

absl::Status Mean(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueId sum, Chain(n, "Add"));
  if (n.inputs.size() == 1) return n.Finish(sum);
  HEDDLE_ASSIGN_OR_RETURN(const ValueId count, n.AddScalar("count", n.inputs[0], static_cast<double>(n.inputs.size())));
  return n.Finish(n.Emit("Div", {sum, count}));
}

absl::Status Clip(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.opset() < 11) {
    for (const auto& [key, index] : {std::pair<const char*, size_t>{"min", 1}, {"max", 2}}) {
      if (!n.attributes.contains(key)) continue;
      HEDDLE_ASSIGN_OR_RETURN(const double bound, n.TakeFloat(key, 0));
      HEDDLE_ASSIGN_OR_RETURN(const ValueId value, n.AddScalar(key, n.inputs[0], bound));
      n.SetInput(index, value);
    }
  }
  if (n.inputs.size() == 1) return n.Finish(n.inputs[0]);  // no bound at all
  return n.EmitSame("Clip");
}

// Before opset 7 a slope of one dimension belongs to the channels.
absl::Status PRelu(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  if (n.opset() < 7) {
    HEDDLE_ASSIGN_OR_RETURN(const Shape x, n.ShapeOf(n.inputs[0]));
    HEDDLE_ASSIGN_OR_RETURN(Shape slope, n.ShapeOf(n.inputs[1]));
    if (slope.size() == 1 && slope[0] != 1 && x.size() > 2) {
      slope.resize(x.size() - 1, 1);
      HEDDLE_ASSIGN_OR_RETURN(n.inputs[1], n.Reshape(n.inputs[1], slope));
    }
  }
  return n.EmitSame("PRelu");
}

absl::Status Selu(NodeImporter& n) {
  if (n.opset() < 6) {
    n.attributes.try_emplace("alpha", 1.6732);
    n.attributes.try_emplace("gamma", 1.0507);
  }
  return n.EmitSame("Selu");
}

absl::Status Gemm(NodeImporter& n) {
  if (n.opset() < 7) n.Drop({"broadcast"});
  return n.EmitSame("Gemm");
}

// ReduceSum has its axes as an input from opset 13 on; the other reductions are kept with an attribute, as in opset 13.
absl::Status ReduceSum(NodeImporter& n) {
  if (n.opset() < 13 && n.attributes.contains("axes")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto axes, n.TakeInts("axes"));
    n.SetInput(1, n.AddInts("axes", axes));
  }
  return n.EmitSame("ReduceSum");
}

// log(Σ exp(x)) as max + log(Σ exp(x - max)), so that no term overflows; and log(Σ x).
absl::Status ReduceLog(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.inputs[0]));
  HEDDLE_ASSIGN_OR_RETURN(auto axes, n.TakeInts("axes"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t keep, n.TakeInt("keepdims", 1));
  const auto rank = static_cast<int64_t>(shape.size());
  if (axes.empty()) {
    axes.resize(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) return n.Malformed(fmt::format("axis {} of a tensor of rank {}", axis, rank));
    axis = axis < 0 ? axis + rank : axis;
  }
  ValueId terms = n.inputs[0], largest = kNoValue;
  if (n.source.op == "ReduceLogSumExp") {
    HEDDLE_ASSIGN_OR_RETURN(largest, n.Emit("ReduceMax", {terms}, {{"axes", axes}}));
    HEDDLE_ASSIGN_OR_RETURN(terms, n.Emit("Sub", {terms, largest}));
    HEDDLE_ASSIGN_OR_RETURN(terms, n.Emit("Exp", {terms}));
  }
  HEDDLE_ASSIGN_OR_RETURN(const ValueId sum, n.Emit("ReduceSum", {terms, n.AddInts("axes", axes)}));
  HEDDLE_ASSIGN_OR_RETURN(ValueId y, n.Emit("Log", {sum}));
  if (largest != kNoValue) {
    HEDDLE_ASSIGN_OR_RETURN(y, n.Emit("Add", {y, largest}));
  }
  if (keep != 0) return n.Finish(y);
  Shape kept;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) kept.push_back(shape[static_cast<size_t>(i)]);
  }
  return n.Finish(n.Reshape(y, kept));
}

absl::Status EmitReduction(NodeImporter& n) {
  const bool log = n.source.op == "ReduceLogSum" || n.source.op == "ReduceLogSumExp";
  return log && !ir::FindOp(n.source.op) ? ReduceLog(n) : n.EmitSame(n.source.op);
}

absl::Status Reduce(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.opset() < 18) return EmitReduction(n);
  HEDDLE_ASSIGN_OR_RETURN(const int64_t noop, n.TakeInt("noop_with_empty_axes", 0));
  std::vector<int64_t> axes;
  if (n.Has(1)) {
    HEDDLE_ASSIGN_OR_RETURN(axes, n.ConstantInts(1, "axes"));
  }
  n.inputs.resize(1);
  if (!axes.empty()) n.attributes["axes"] = axes;
  if (axes.empty() && noop != 0) {
    // Nothing is reduced: what remains is the function of one element.
    const std::string& op = n.source.op;
    if (op == "ReduceMax" || op == "ReduceMin" || op == "ReduceMean" || op == "ReduceProd" || op == "ReduceLogSumExp") {
      return n.Finish(n.inputs[0]);
    }
    if (op == "ReduceL1" || op == "ReduceL2") return n.Finish(n.Emit("Abs", {n.inputs[0]}));
    if (op == "ReduceLogSum") return n.Finish(n.Emit("Log", {n.inputs[0]}));
    return n.Finish(n.Emit("Mul", {n.inputs[0], n.inputs[0]}));  // ReduceSumSquare
  }
  return EmitReduction(n);
}

absl::Status Softmax(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  const bool flatten = n.opset() < 13;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, n.TakeInt("axis", flatten ? 1 : -1));
  return n.Finish(EmitSoftmax(n, n.source.op, n.inputs[0], axis, flatten));
}

// Before opset 9 `spatial` = 0 normalises every activation by itself, with parameters of the shape of one sample.
absl::Status BatchNormPerActivation(NodeImporter& n, double epsilon) {
  HEDDLE_ASSIGN_OR_RETURN(const ValueId small, n.AddScalar("epsilon", n.inputs[4], epsilon));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId variance, n.Emit("Add", {n.inputs[4], small}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId deviation, n.Emit("Sqrt", {variance}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId centred, n.Emit("Sub", {n.inputs[0], n.inputs[3]}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId normal, n.Emit("Div", {centred, deviation}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId scaled, n.Emit("Mul", {normal, n.inputs[1]}));
  return n.Finish(n.Emit("Add", {scaled, n.inputs[2]}));
}

absl::Status BatchNormalization(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(5));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t training, n.TakeInt("training_mode", 0));
  if (training != 0 || n.num_outputs() > 1) return Unsupported("training mode");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t spatial, n.TakeInt("spatial", 1));
  n.Drop({"momentum", "is_test"});
  if (n.opset() < 9 && spatial == 0) {
    HEDDLE_ASSIGN_OR_RETURN(const double epsilon, n.TakeFloat("epsilon", 1e-5f));
    return BatchNormPerActivation(n, epsilon);
  }
  return n.EmitSame("BatchNormalization");
}

}  // namespace

absl::StatusOr<ValueId> EmitSoftmax(NodeImporter& n, const std::string& op, ValueId x, int64_t axis, bool flatten) {
  if (!flatten) return n.Emit(op, {x}, {{"axis", axis}});
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(x));
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis > rank) return n.Malformed(fmt::format("axis {} of a tensor of rank {}", axis, rank));
  const auto first = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  const auto ones_after = std::all_of(shape.begin() + static_cast<int64_t>(std::min(first + 1, shape.size())), shape.end(),
                                      [](int64_t extent) { return extent == 1; });
  if (first < shape.size() && ones_after) return n.Emit(op, {x}, {{"axis", static_cast<int64_t>(first)}});
  const auto product = [](auto begin, auto end) { return std::accumulate(begin, end, int64_t{1}, std::multiplies<>()); };
  const auto middle = shape.begin() + static_cast<int64_t>(first);
  HEDDLE_ASSIGN_OR_RETURN(const ValueId flat, n.Reshape(x, {product(shape.begin(), middle), product(middle, shape.end())}));
  HEDDLE_ASSIGN_OR_RETURN(const ValueId y, n.Emit(op, {flat}, {{"axis", int64_t{1}}}));
  return n.Reshape(y, shape);
}

const std::vector<RuleEntry>& ArithmeticRules() {
  static const std::vector<RuleEntry>& rules = *new std::vector<RuleEntry>{
      {"Add", Binary},         {"Sub", Binary},       {"Mul", Binary},          {"Div", Binary},
      {"Pow", Binary},         {"And", Binary},       {"Or", Binary},           {"Xor", Binary},
      {"Greater", Binary},     {"Less", Binary},      {"Equal", Binary},        {"Sum", Sum},
      {"Max", MaxMin},         {"Min", MaxMin},       {"Mean", Mean},           {"Clip", Clip},
      {"PRelu", PRelu},        {"Selu", Selu},        {"Gemm", Gemm},           {"ReduceSum", ReduceSum},
      {"ReduceMean", Reduce},  {"ReduceMax", Reduce}, {"ReduceMin", Reduce},    {"ReduceProd", Reduce},
      {"ReduceL1", Reduce},    {"ReduceL2", Reduce},  {"ReduceLogSum", Reduce}, {"ReduceLogSumExp", Reduce},
      {"ReduceSumSquare", Reduce}, {"Softmax", Softmax}, {"LogSoftmax", Softmax}, {"Hardmax", Softmax},
      {"BatchNormalization", BatchNormalization}};
  return rules;
}

}  // namespace heddle::frontend
