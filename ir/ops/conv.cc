// Conv: cross-correlation in one to three spatial dimensions with groups, strides, dilations and padding.
//
// The reference adds up in double, so its result is the correctly rounded one for all practical purposes and the error bound has to
// cover only the device's own float32 sum. The loop nest keeps one output plane of sums and adds a shifted, weighted input row
// to it at a time: contiguous, and fast enough for whole networks.

#include <algorithm>
#include <cmath>

#include "ir/ops/all_ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/window.h"

namespace heddle::ir {
namespace {

// One-by-one kernels without stride and padding see one long row.
Window FoldPointwise(Window w) {
  for (size_t d = 0; d < 3; ++d) {
    if (w.kernel[d] != 1 || w.strides[d] != 1 || w.pads_begin[d] != 0 || w.pads_end[d] != 0) return w;
  }
  const int64_t plane = ElementCount(w.input);
  w.input = w.output = {1, 1, plane};
  return w;
}

template <typename T>
void AddRow(double* sums, const T* row, int64_t stride, int64_t count, double weight) {
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<double>(row[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<double>(row[i * stride]);
  }
}

// Adds one input channel's plane, correlated with one kernel plane, to the sums of one output channel.
template <typename T>
void AddPlane(const Window& w, const T* x, const T* kernel, double* sums) {
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
    const int64_t offset_d = kd * w.dilations[0] - w.pads_begin[0];
    const auto [d_low, d_high] = ValidRange(offset_d, w.strides[0], w.input[0], w.output[0]);
    for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
      const int64_t offset_h = kh * w.dilations[1] - w.pads_begin[1];
      const auto [h_low, h_high] = ValidRange(offset_h, w.strides[1], w.input[1], w.output[1]);
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
        const int64_t offset_w = kw * w.dilations[2] - w.pads_begin[2];
        const auto [w_low, w_high] = ValidRange(offset_w, w.strides[2], w.input[2], w.output[2]);
        const auto weight = static_cast<double>(*kernel++);
        for (int64_t od = d_low; od < d_high; ++od) {
          for (int64_t oh = h_low; oh < h_high; ++oh) {
            const int64_t row = (od * w.strides[0] + offset_d) * w.input[1] + oh * w.strides[1] + offset_h;
            AddRow(sums + (od * w.output[1] + oh) * w.output[2] + w_low, x + row * w.input[2] + w_low * w.strides[2] + offset_w,
                   w.strides[2], w_high - w_low, weight);
          }
        }
      }
    }
  }
}

class Conv : public Op {
 public:
  std::string_view name() const override { return "Conv"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kFloat; }
  std::string_view doc() const override {
    return "X [N, C, spatial…] (1 to 3 spatial dimensions), W [M, C/group, kernel…], optional B [M]; f32 or f64. Attributes strides, "
           "pads (begins, then ends), dilations, group, kernel_shape. Y [N, M, spatial…] is the cross-correlation plus B; outside "
           "X counts as 0. ONNX Conv 11.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 3, {HEDDLE_WINDOW_ATTRIBUTES, {"group", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    const Shape x = c.input_shape(0), w = c.input_shape(1);
    HEDDLE_RETURN_IF_ERROR(VerifyWindowAttributes(c, static_cast<int>(x.size()) - 2));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 1, static_cast<int>(x.size()), static_cast<int>(x.size())));
    const int64_t group = c.node().Int("group", 1);
    if (group < 1 || w[0] < 1 || w[0] % group != 0 || x[1] % group != 0 || w[1] != x[1] / group) {
      return NodeError("E-OP-003", c.node(), fmt::format("X {} and W {} do not go together in {} groups", ShapeText(x),
                                                         ShapeText(w), group));
    }
    if (c.node().Ints("kernel_shape", Shape(w.begin() + 2, w.end())) != Shape(w.begin() + 2, w.end())) {
      return NodeError("E-OP-004", c.node(), fmt::format("kernel_shape differs from W {}", ShapeText(w)));
    }
    if (c.has_input(2) && c.input_shape(2) != Shape{w[0]}) {
      return NodeError("E-OP-003", c.node(), fmt::format("B has shape {}, expected {}", ShapeText(c.input_shape(2)), w[0]));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window w, GetWindow(c));
    Shape y = {c.input_shape(0)[0], c.input_shape(1)[0]};
    y.insert(y.end(), w.output.begin(), w.output.end());
    return std::vector<ValueType>{ValueType(c.input_type(0).element, y)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(Window w, GetWindow(c));
    w = FoldPointwise(ToThreeDimensions(w));
    Tensor y(in[0]->type(), c.output_shape());
    const Tensor* bias = in.size() > 2 ? in[2] : nullptr;
    DispatchFloat(y.type(), [&]<typename T>(Tag<T>) { Run<T>(w, c.node().Int("group", 1), *in[0], *in[1], bias, y); });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window w, GetWindow(c));
    const loops::Buffer x = l.input(0), weights = l.input(1);
    const int64_t group_inputs = weights.shape()[1];
    const int64_t group_outputs = weights.shape()[0] / c.node().Int("group", 1);
    auto value = [&](const loops::Indices& i, const loops::Indices& r) {
      loops::Indices at = {i[0], r[0]};
      if (group_inputs != x.shape()[1]) {
        const loops::Expr group = group_outputs == 1 ? i[1] : loops::FloorDiv(i[1], group_outputs);
        at[1] = group_inputs == 1 ? group : Times(group, group_inputs) + r[0];
      }
      loops::Indices positions, weight_at = {i[1], r[0]};
      for (int d = 0; d < w.rank(); ++d) {
        const auto s = static_cast<size_t>(d);
        positions.push_back(WindowIndex(w, d, i[2 + s], r[1 + s]));
        weight_at.push_back(r[1 + s]);
      }
      at.insert(at.end(), positions.begin(), positions.end());
      loops::Expr element = x.At(at);
      if (const loops::Expr guard = WindowGuard(w, positions)) element = loops::Select(guard, element, loops::Constant(x.type(), 0));
      return element * weights.At(weight_at);
    };
    Shape reduce = {group_inputs};
    reduce.insert(reduce.end(), w.kernel.begin(), w.kernel.end());
    l.Add(loops::Reduce(l.output(), reduce, loops::Combiner::kSum, value, [&](loops::Expr sum, const loops::Indices& i) {
      return l.has_input(2) ? sum + l.input(2)(i[1]) : sum;
    }));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * Terms(c);
    work.other_ops = c.has_input(2) ? c.output_type().elements() : 0;
    return work;
  }

  double ErrorBound(const NodeContext& c, double reference) const override {
    return SumErrorBound(c.output_type().element, Terms(c), reference);
  }
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    return ProductSumBound(*in[0], LargestRowMagnitude(*in[1], in[1]->shape()[0]), Terms(c));
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const int rank = static_cast<int>(b.Pick({1, 2, 2, 2, 3}));
    const Window w = RandomWindow(b, rank, /*with_dilations=*/true, /*pads_below_kernel=*/false);
    const ElementType type = b.Int(0, 4) == 0 ? ElementType::kFloat64 : ElementType::kFloat32;
    const int64_t group = b.Int(1, 3), inputs = b.Int(1, 4), outputs = b.Int(1, 3);
    Shape x = {b.Int(1, 2), group * inputs}, weights = {group * outputs, inputs};
    x.insert(x.end(), w.input.begin(), w.input.end());
    weights.insert(weights.end(), w.kernel.begin(), w.kernel.end());
    Attributes attributes = WindowAttributes(w);
    attributes["group"] = group;
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, x)), b.Either(b.RandomTensor(type, weights, -1, 1))};
    if (b.Coin()) ids.push_back(b.Either(b.RandomTensor(type, {group * outputs})));
    return b.Finish(name(), ids, attributes);
  }

 private:
  static absl::StatusOr<Window> GetWindow(const NodeContext& c) {
    const Shape x = c.input_shape(0), w = c.input_shape(1);
    return WindowOf(c, Shape(x.begin() + 2, x.end()), Shape(w.begin() + 2, w.end()));
  }

  static int64_t Terms(const NodeContext& c) { return c.input_type(1).elements() / c.input_shape(1)[0]; }

  template <typename T>
  static void Run(const Window& w, int64_t group, const Tensor& x, const Tensor& weights, const Tensor* bias, Tensor& y) {
    const int64_t batch = x.shape()[0], outputs = weights.shape()[0], inputs = weights.shape()[1];
    const int64_t in_plane = ElementCount(w.input), out_plane = ElementCount(w.output), taps = w.kernel_elements();
    const T* x_data = x.as<T>().data();
    const T* w_data = weights.as<T>().data();
    T* y_data = y.as<T>().data();
    std::vector<double> sums(static_cast<size_t>(out_plane));
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t m = 0; m < outputs; ++m) {
        std::fill(sums.begin(), sums.end(), bias ? static_cast<double>(bias->as<T>()[static_cast<size_t>(m)]) : 0.0);
        const int64_t first = n * inputs * group + m / (outputs / group) * inputs;
        for (int64_t ic = 0; ic < inputs; ++ic) {
          AddPlane(w, x_data + (first + ic) * in_plane, w_data + (m * inputs + ic) * taps, sums.data());
        }
        T* out = y_data + (n * outputs + m) * out_plane;
        for (int64_t i = 0; i < out_plane; ++i) out[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
    }
  }
};

}  // namespace

void AddConv(OpList& ops) { ops.push_back(std::make_unique<Conv>()); }

}  // namespace heddle::ir
