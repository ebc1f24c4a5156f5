// Matchers for convolutions, matrix products and averages: a sum of products in the input's units, requantised once.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/passes/quant_patterns.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

const Node* ProducerNode(const Graph& graph, ValueId value) {
  const NodeId id = graph.ProducerOf(value);
  return id == kNoNode ? nullptr : &graph.node(id);
}

std::vector<NodeId> Concat(std::vector<NodeId> a, std::initializer_list<NodeId> b) {
  a.insert(a.end(), b);
  return a;
}

std::vector<double> Products(float a, const std::vector<float>& b) {
  std::vector<double> result;
  for (float s : b) result.push_back(static_cast<double>(a) * static_cast<double>(s));
  return result;
}

// Pads of a convolution or pooling node made explicit: auto_pad resolved by the input's shape.
std::optional<std::vector<int64_t>> ExplicitPads(const Node& node, const Shape& spatial, const Shape& kernel) {
  const size_t rank = spatial.size();
  const std::string mode = StringOr(node, "auto_pad", "NOTSET");
  if (mode == "NOTSET") {
    const std::vector<int64_t> pads = IntsOr(node, "pads", std::vector<int64_t>(2 * rank, 0));
    return pads.size() == 2 * rank ? std::optional(pads) : std::nullopt;
  }
  std::vector<int64_t> pads(2 * rank, 0);
  if (mode == "VALID") return pads;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") return std::nullopt;
  const std::vector<int64_t> strides = IntsOr(node, "strides", Shape(rank, 1)), dilations = IntsOr(node, "dilations", Shape(rank, 1));
  if (strides.size() != rank || dilations.size() != rank) return std::nullopt;
  for (size_t d = 0; d < rank; ++d) {
    if (strides[d] < 1) return std::nullopt;
    const int64_t outputs = (spatial[d] + strides[d] - 1) / strides[d];
    const int64_t total = std::max<int64_t>(0, (outputs - 1) * strides[d] + dilations[d] * (kernel[d] - 1) + 1 - spatial[d]);
    pads[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    pads[d + rank] = total - pads[d];
  }
  return pads;
}

}  // namespace

bool MatchConvolution(Graph& graph, const OutputQuantiser& q) {
  const ClampedValue clamped = PeelClamps(graph, q);
  const Node* conv = ProducerNode(graph, clamped.value);
  if (!conv || conv->op != "Conv" || !HasSingleUse(graph, clamped.value)) return false;
  const auto x = MatchDequantised(graph, conv->inputs[0]);
  const auto w = MatchDequantisedConstant(graph, conv->inputs[1], ElementType::kInt8);
  if (!x || !w || (w->axis != -1 && w->axis != 0)) return false;
  const Shape x_shape = graph.type(x->integer).static_shape(), w_shape = w->tensor->shape();
  if (x_shape.size() < 3 || w_shape.size() != x_shape.size()) return false;
  const auto pads = ExplicitPads(*conv, Shape(x_shape.begin() + 2, x_shape.end()), Shape(w_shape.begin() + 2, w_shape.end()));
  const std::vector<double> sum_scale = Products(x->scale, w->scale);
  const auto requantiser = RequantiserFor(sum_scale, q, clamped);
  if (!pads || !requantiser) return false;
  const size_t rank = x_shape.size() - 2;
  Attributes attributes = {{"pads", *pads},
                           {"strides", IntsOr(*conv, "strides", Shape(rank, 1))},
                           {"dilations", IntsOr(*conv, "dilations", Shape(rank, 1))},
                           {"group", IntOr(*conv, "group", 1)},
                           {"x_zero_point", x->zero},
                           {"w_zero_point", w->zero}};
  SetRequantiser(*requantiser, attributes);
  std::vector<ValueId> inputs = {x->integer, w->integer};
  std::vector<NodeId> absorbed = Concat(clamped.clamps, {conv->id});
  const std::string name = conv->name;
  if (conv->inputs.size() > 2 && conv->inputs[2] != kNoValue) {
    const auto bias = BiasFor(graph, conv->inputs[2], sum_scale, w_shape[0], 1, name);
    if (!bias) return false;
    inputs.push_back(*bias);
  }
  return Emit(graph, q, {"QConv", name, inputs, std::move(attributes), std::move(absorbed)});
}

namespace {

// The parts of a float matrix product, whichever operator expresses it.
struct ProductParts {
  const Node* node = nullptr;
  ValueId a = kNoValue, b = kNoValue, bias = kNoValue;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 1;
  std::vector<NodeId> nodes;
};

std::optional<ProductParts> MatchProduct(const Graph& graph, ValueId value) {
  const Node* node = ProducerNode(graph, value);
  if (!node || !HasSingleUse(graph, value)) return std::nullopt;
  ProductParts parts;
  parts.nodes = {node->id};
  if (node->op == "Add") {
    // MatMul + constant bias.
    for (size_t i = 0; i < 2; ++i) {
      const Node* product = ProducerNode(graph, node->inputs[i]);
      if (!product || product->op != "MatMul" || !HasSingleUse(graph, node->inputs[i])) continue;
      parts.bias = node->inputs[1 - i];
      parts.nodes.push_back(product->id);
      node = product;
      break;
    }
  }
  if (node->op == "Gemm") {
    if (node->inputs.size() > 2) parts.bias = node->inputs[2];
    parts.transpose_a = IntOr(*node, "transA", 0) != 0;
    parts.transpose_b = IntOr(*node, "transB", 0) != 0;
    if (node->Has("alpha")) parts.alpha = node->Float("alpha");
    if (node->Has("beta")) parts.beta = node->Float("beta");
  } else if (node->op != "MatMul") {
    return std::nullopt;
  }
  parts.node = node;
  parts.a = node->inputs[0];
  parts.b = node->inputs[1];
  return parts;
}

// The last two dimensions of an integer tensor exchanged: a new constant, or a Transpose node.
std::optional<ValueId> Transposed(Graph& graph, ValueId value, const std::string& name) {
  const ValueType type = graph.type(value);
  std::vector<int64_t> perm(type.shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  if (const Tensor* tensor = graph.ConstantOrNull(value); tensor && tensor->rank() == 2) {
    const int64_t rows = tensor->shape()[0], columns = tensor->shape()[1];
    Tensor turned(tensor->type(), {columns, rows});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) turned.set_int(c * rows + r, tensor->at_int(r * columns + c));
    }
    return graph.AddConstant(name, std::move(turned));
  }
  const auto added = AddTypedNode(graph, "Transpose", name, {value}, name, {{"perm", perm}});
  if (!added.ok()) return std::nullopt;
  ValueType turned = graph.type(*added);
  turned.quantisation = type.quantisation;
  graph.set_type(*added, std::move(turned));
  return *added;
}

}  // namespace

bool MatchMatrixProduct(Graph& graph, const OutputQuantiser& q) {
  const ClampedValue clamped = PeelClamps(graph, q);
  const auto parts = MatchProduct(graph, clamped.value);
  if (!parts) return false;
  const auto a = MatchDequantised(graph, parts->a);
  const auto b_constant = MatchDequantisedConstant(graph, parts->b, ElementType::kInt8);
  const auto b_activation = MatchDequantised(graph, parts->b);
  if (!a || (!b_constant && !b_activation)) return false;
  const Shape a_shape = graph.type(a->integer).static_shape();
  const ValueId b_integer = b_constant ? b_constant->integer : b_activation->integer;
  const Shape b_shape = graph.type(b_integer).static_shape();
  const auto b_rank = static_cast<int>(b_shape.size());
  if (a_shape.size() < 2 || b_rank < 2 || !(parts->alpha > 0)) return false;
  // Per-axis weights: the axis must be the one that becomes N.
  const int n_axis = parts->transpose_b ? b_rank - 2 : b_rank - 1;
  if (b_constant && b_constant->axis != -1 && (b_constant->axis != n_axis || b_rank != 2)) return false;
  const std::vector<float> b_scale = b_constant ? b_constant->scale : std::vector<float>{b_activation->scale};
  const std::vector<int64_t> b_zero = b_constant ? b_constant->zero : std::vector<int64_t>{b_activation->zero};
  const std::vector<double> sum_scale = Products(a->scale, b_scale);
  // alpha scales the product only: the accumulator's unit is alpha * sa * sb.
  std::vector<double> unit = sum_scale;
  for (double& u : unit) u *= parts->alpha;
  const auto requantiser = RequantiserFor(unit, q, clamped);
  if (!requantiser) return false;
  const std::string name = parts->node->name;
  std::vector<NodeId> absorbed = Concat(clamped.clamps, {});
  absorbed.insert(absorbed.end(), parts->nodes.begin(), parts->nodes.end());
  const bool transpose_a = parts->transpose_a, transpose_b = parts->transpose_b;
  std::vector<ValueId> inputs = {a->integer, b_integer};
  if (parts->bias != kNoValue && parts->beta != 0) {
    const int64_t n = b_shape[static_cast<size_t>(n_axis)];
    const Shape bias_shape = graph.type(parts->bias).static_shape();
    if (!bias_shape.empty() && ElementCount(bias_shape) != 1 && bias_shape.back() != n) return false;
    const auto bias = BiasFor(graph, parts->bias, unit, n, parts->beta, name);
    if (!bias) return false;
    inputs.push_back(*bias);
  }
  std::vector<ValueId> added;
  for (size_t i = 0; i < 2; ++i) {
    if (!(i == 0 ? transpose_a : transpose_b)) continue;
    const auto turned = Transposed(graph, inputs[i], name + (i == 0 ? "_a" : "_b"));
    if (!turned) return false;
    inputs[i] = *turned;
  }
  Attributes attributes = {{"a_zero_point", a->zero}, {"b_zero_point", b_zero}};
  SetRequantiser(*requantiser, attributes);
  return Emit(graph, q, {"QMatMul", name, inputs, std::move(attributes), std::move(absorbed)});
}

namespace {

// An average over windows of `input`, whichever operator expresses it.
struct AverageParts {
  Shape kernel, strides, dilations;
  std::vector<int64_t> pads;
  bool include_pad = false;
  Shape reshape_input;  // shape to give the input first; empty: as it is
};

std::optional<AverageParts> AverageOfPool(const Node& node, const Shape& x) {
  const size_t rank = x.size() - 2;
  AverageParts parts;
  parts.kernel = IntsOr(node, "kernel_shape", {});
  if (parts.kernel.size() != rank) return std::nullopt;
  parts.strides = IntsOr(node, "strides", Shape(rank, 1));
  parts.dilations = IntsOr(node, "dilations", Shape(rank, 1));
  parts.include_pad = IntOr(node, "count_include_pad", 0) != 0;
  const Shape spatial(x.begin() + 2, x.end());
  const auto pads = ExplicitPads(node, spatial, parts.kernel);
  if (!pads || parts.strides.size() != rank || parts.dilations.size() != rank) return std::nullopt;
  parts.pads = *pads;
  if (IntOr(node, "ceil_mode", 0) == 0) return parts;
  // Windows that ceil_mode adds reach behind the end pad; a larger end pad makes the same windows where pads do not count.
  for (size_t d = 0; d < rank; ++d) {
    if (parts.strides[d] < 1) return std::nullopt;
    const int64_t room = spatial[d] + parts.pads[d] + parts.pads[d + rank] - parts.dilations[d] * (parts.kernel[d] - 1) - 1;
    const int64_t extra = room < 0 ? 0 : (parts.strides[d] - room % parts.strides[d]) % parts.strides[d];
    if (extra > 0 && parts.include_pad) return std::nullopt;
    parts.pads[d + rank] += extra;
  }
  return parts;
}

std::optional<AverageParts> AverageOfMean(const Graph& graph, const Node& node, const Shape& x) {
  const auto rank = static_cast<int64_t>(x.size());
  std::vector<int64_t> axes = IntsOr(node, "axes", {});
  if (node.inputs.size() > 1 && node.inputs[1] != kNoValue) {
    const auto constant = ConstantInts(graph, node.inputs[1]);
    if (!constant) return std::nullopt;
    axes = *constant;
  }
  if (axes.empty()) return std::nullopt;
  for (int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != axes[0] + static_cast<int64_t>(i)) return std::nullopt;  // only neighbours are one window
  }
  AverageParts parts;
  if (axes[0] == 2 && axes.back() == rank - 1 && rank <= 5) {
    parts.kernel.assign(x.begin() + 2, x.end());
  } else {
    // [outer, axes, inner] as [outer, 1, axes, inner] with a window over all of axes.
    const int64_t outer = ElementCount(Shape(x.begin(), x.begin() + axes[0]));
    const int64_t inner = ElementCount(Shape(x.begin() + axes.back() + 1, x.end()));
    const int64_t middle = ElementCount(Shape(x.begin() + axes[0], x.begin() + axes.back() + 1));
    parts.reshape_input = {outer, 1, middle, inner};
    parts.kernel = {middle, 1};
  }
  parts.strides = Shape(parts.kernel.size(), 1);
  parts.dilations = Shape(parts.kernel.size(), 1);
  parts.pads = std::vector<int64_t>(2 * parts.kernel.size(), 0);
  return parts;
}

std::optional<ValueId> AddReshape(Graph& graph, ValueId value, const Shape& shape, const std::string& name) {
  const ValueId target = graph.AddConstant(name + "_shape", Tensor::Of<int64_t>({static_cast<int64_t>(shape.size())}, shape));
  const auto added = AddTypedNode(graph, "Reshape", name, {value, target}, name);
  if (!added.ok()) {
    graph.RemoveValue(target);
    return std::nullopt;
  }
  ValueType type = graph.type(*added);
  type.quantisation = graph.type(value).quantisation;
  graph.set_type(*added, std::move(type));
  return *added;
}

Shape PooledShape(const AverageParts& parts, const Shape& x) {
  Shape shape = {x[0], x[1]};
  for (size_t d = 0; d < parts.kernel.size(); ++d) {
    const int64_t padded = x[d + 2] + parts.pads[d] + parts.pads[d + parts.kernel.size()];
    shape.push_back((padded - parts.dilations[d] * (parts.kernel[d] - 1) - 1) / parts.strides[d] + 1);
  }
  return shape;
}

}  // namespace

bool MatchAverage(Graph& graph, const OutputQuantiser& q) {
  const ClampedValue clamped = PeelClamps(graph, q);
  const Node* node = ProducerNode(graph, clamped.value);
  if (!node || !HasSingleUse(graph, clamped.value)) return false;
  const bool is_pool = node->op == "AveragePool", is_global = node->op == "GlobalAveragePool", is_mean = node->op == "ReduceMean";
  if (!is_pool && !is_global && !is_mean) return false;
  const auto x = MatchDequantised(graph, node->inputs[0]);
  if (!x) return false;
  Shape shape = graph.type(x->integer).static_shape();
  if (ElementCount(shape) == 0 || (!is_mean && (shape.size() < 3 || shape.size() > 5))) return false;
  std::optional<AverageParts> parts;
  if (is_pool) parts = AverageOfPool(*node, shape);
  if (is_mean) parts = AverageOfMean(graph, *node, shape);
  if (is_global) {
    const Shape spatial(shape.begin() + 2, shape.end());
    parts = AverageParts{spatial, Shape(spatial.size(), 1), Shape(spatial.size(), 1), std::vector<int64_t>(2 * spatial.size(), 0), false, {}};
  }
  if (!parts) return false;
  if (!parts->reshape_input.empty()) shape = parts->reshape_input;

  const std::string name = node->name;
  std::vector<NodeId> absorbed = Concat(clamped.clamps, {node->id});
  Attributes attributes = {{"kernel_shape", parts->kernel}, {"strides", parts->strides}, {"dilations", parts->dilations},
                           {"pads", parts->pads}, {"count_include_pad", int64_t{parts->include_pad}}, {"x_zero_point", x->zero}};
  // Geometry as the op itself computes it.
  Graph scratch("window");
  const ValueId scratch_input = scratch.AddInput("x", ValueType(ElementType::kInt8, shape));
  const NodeId scratch_node = scratch.AddNode("QAveragePool", name, {scratch_input}, {"y"}, attributes);
  const auto window = CheckedWindowOf(NodeContext(scratch, scratch.node(scratch_node)), Shape(shape.begin() + 2, shape.end()), parts->kernel);
  if (!window.ok()) return false;
  const std::vector<int64_t> counts = WindowCounts(*window, parts->include_pad);
  std::vector<double> scales;
  for (int64_t count : counts) {
    if (count == 0) return false;  // a window on pads alone: 0 / 0
    scales.push_back(static_cast<double>(x->scale) / static_cast<double>(count));
  }
  const auto requantiser = RequantiserFor(scales, q, clamped);
  if (!requantiser) return false;
  attributes["counts"] = counts;
  SetRequantiser(*requantiser, attributes);

  const Shape target = graph.type(q.output).static_shape();
  ValueId input = x->integer;
  if (!parts->reshape_input.empty()) {
    const auto reshaped = AddReshape(graph, input, shape, name + "_windows");
    if (!reshaped) return false;
    input = *reshaped;
  }
  const Shape pooled = PooledShape(*parts, shape);
  if (pooled == target) return Emit(graph, q, {"QAveragePool", name, {input}, std::move(attributes), std::move(absorbed)});
  auto average = AddTypedNode(graph, "QAveragePool", name, {input}, name + "_pooled", std::move(attributes));
  if (!average.ok()) return false;
  ValueType type = graph.type(*average);
  type.quantisation = Quantisation{{q.scale}, {q.zero}, -1};
  graph.set_type(*average, std::move(type));
  MergeSources(graph, graph.ProducerOf(*average), absorbed);
  const ValueId shape_constant = graph.AddConstant(name + "_shape", Tensor::Of<int64_t>({static_cast<int64_t>(target.size())}, target));
  return Emit(graph, q, {"Reshape", name + "_reshape", {*average, shape_constant}, {}, std::move(absorbed)});
}

}  // namespace heddle::ir
