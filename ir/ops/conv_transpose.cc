// ConvTranspose: the transpose of Conv with respect to its input, in one to three spatial dimensions.
//
// The reference scatters each input element, weighted, over the outputs it reaches (sums in double). The loop definition gathers: an
// output sums over the window positions that fall on an input element, which parallel code can compute element by element.

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/window.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

class ConvTranspose : public Op {
 public:
  std::string_view name() const override { return "ConvTranspose"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kFloat; }
  std::string_view doc() const override {
    return "X [N, C, spatial…] (1 to 3 spatial dimensions), W [C, M/group, kernel…], optional B [M]; f32 or f64. Attributes strides, pads, "
           "dilations, group, kernel_shape, output_padding, output_shape or auto_pad SAME_… (then pads follow; the larger half in front, "
           "behind with SAME_UPPER). Y [N, M, spatial…]: element x at i adds x·W[k] to the output at i·stride + k·dilation - pad. ONNX ConvTranspose 11.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 3, {HEDDLE_WINDOW_ATTRIBUTES, {"group", AttributeKind::kInt},
                                                     {"output_padding", AttributeKind::kInts}, {"output_shape", AttributeKind::kInts}}));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    const Shape x = c.input_shape(0), w = c.input_shape(1);
    const int rank = static_cast<int>(x.size()) - 2;
    HEDDLE_RETURN_IF_ERROR(VerifyWindowAttributes(c, rank, {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}));
    HEDDLE_RETURN_IF_ERROR(ExpectInts(c, "output_padding", rank, 0, int64_t{1} << 24));
    HEDDLE_RETURN_IF_ERROR(ExpectInts(c, "output_shape", rank, 1, int64_t{1} << 24));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 1, rank + 2, rank + 2));
    const int64_t group = c.node().Int("group", 1);
    if (group < 1 || x[1] % group != 0 || w[0] != x[1] || w[1] < 1) {
      return NodeError("E-OP-003", c.node(), fmt::format("X {} and W {} do not go together in {} groups", ShapeText(x), ShapeText(w), group));
    }
    const Shape kernel(w.begin() + 2, w.end());
    if (c.node().Ints("kernel_shape", kernel) != kernel || *std::min_element(kernel.begin(), kernel.end()) < 1) {
      return NodeError("E-OP-004", c.node(), fmt::format("kernel_shape differs from W {}", ShapeText(w)));
    }
    if (c.has_input(2) && c.input_shape(2) != Shape{w[1] * group}) {
      return NodeError("E-OP-003", c.node(), fmt::format("B has shape {}, expected {}", ShapeText(c.input_shape(2)), w[1] * group));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window w, GetWindow(c));
    Shape y = {c.input_shape(0)[0], c.input_shape(1)[1] * c.node().Int("group", 1)};
    y.insert(y.end(), w.output.begin(), w.output.end());
    return std::vector<ValueType>{ValueType(c.input_type(0).element, y)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(Window w, GetWindow(c));
    w = ToThreeDimensions(std::move(w));
    Tensor y(in[0]->type(), c.output_shape());
    const Tensor* bias = in.size() > 2 ? in[2] : nullptr;
    DispatchFloat(y.type(), [&]<typename T>(Tag<T>) { Run<T>(w, c.node().Int("group", 1), *in[0], *in[1], bias, y); });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window w, GetWindow(c));
    const loops::Buffer x = l.input(0), weights = l.input(1);
    const int64_t group = c.node().Int("group", 1), inputs = x.shape()[1] / group, outputs = weights.shape()[1];
    auto value = [&](const Indices& i, const Indices& r) {
      const Expr own_group = group == 1 ? Expr(0) : loops::FloorDiv(i[1], outputs);
      const Expr channel = group == 1 ? r[0] : own_group * inputs + r[0];
      Indices at = {i[0], channel}, weight_at = {channel, group == 1 ? i[1] : loops::FloorMod(i[1], outputs)};
      Expr guard = loops::True();
      for (int d = 0; d < w.rank(); ++d) {
        const auto s = static_cast<size_t>(d);
        const Expr reach = Plus(i[2 + s], w.pads_begin[s]) - Times(r[1 + s], w.dilations[s]);
        const Expr position = w.strides[s] == 1 ? reach : loops::FloorDiv(reach, w.strides[s]);
        guard = loops::And(guard, loops::InRange(position, 0, w.input[s]));
        if (w.strides[s] != 1) guard = loops::And(guard, loops::Equal(loops::FloorMod(reach, w.strides[s]), 0));
        at.push_back(position);
        weight_at.push_back(r[1 + s]);
      }
      return loops::Select(guard, x.At(at), loops::Constant(x.type(), 0)) * weights.At(weight_at);
    };
    Shape reduce = {inputs};
    reduce.insert(reduce.end(), w.kernel.begin(), w.kernel.end());
    l.Add(loops::Reduce(l.output(), reduce, loops::Combiner::kSum, value, [&](Expr sum, const Indices& i) {
      return l.has_input(2) ? sum + l.input(2)(i[1]) : sum;
    }));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    const Shape w = c.input_shape(1);
    work.macs = c.input_type(0).elements() * (c.input_type(1).elements() / w[0]);
    work.other_ops = c.has_input(2) ? c.output_type().elements() : 0;
    return work;
  }
  double ErrorBound(const NodeContext& c, double reference) const override {
    return SumErrorBound(c.output_type().element, Terms(c), reference);
  }
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    return ProductSumBound(*in[0], LargestMagnitude(*in[1]) * static_cast<double>(Terms(c)), Terms(c));
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const int rank = static_cast<int>(b.Pick({1, 2, 2, 2, 3}));
    Window w = RandomWindow(b, rank, /*with_dilations=*/true, /*pads_below_kernel=*/true);
    for (auto& extent : w.input) extent = b.Int(3, 5);
    const ElementType type = b.Int(0, 4) == 0 ? ElementType::kFloat64 : ElementType::kFloat32;
    const int64_t group = b.Int(1, 3), inputs = b.Int(1, 3), outputs = b.Int(1, 3);
    Shape x = {b.Int(1, 2), group * inputs}, weights = {group * inputs, outputs};
    x.insert(x.end(), w.input.begin(), w.input.end());
    weights.insert(weights.end(), w.kernel.begin(), w.kernel.end());
    Attributes attributes = WindowAttributes(w);
    attributes["group"] = group;
    if (b.Coin()) {
      std::vector<int64_t> padding;
      for (int64_t stride : w.strides) padding.push_back(b.Int(0, stride - 1));
      attributes["output_padding"] = padding;
    }
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, x)), b.Either(b.RandomTensor(type, weights, -1, 1))};
    if (b.Coin()) ids.push_back(b.Either(b.RandomTensor(type, {group * outputs})));
    return b.Finish(name(), ids, attributes);
  }

 private:
  static int64_t Terms(const NodeContext& c) {
    const Shape w = c.input_shape(1);
    return w[0] / c.node().Int("group", 1) * ExtentProduct(w, 2, static_cast<int>(w.size()));
  }

  static absl::StatusOr<Window> GetWindow(const NodeContext& c) {
    const Shape x = c.input_shape(0), weights = c.input_shape(1);
    const size_t rank = x.size() - 2;
    Window w;
    w.input.assign(x.begin() + 2, x.end());
    w.kernel.assign(weights.begin() + 2, weights.end());
    w.strides = c.node().Ints("strides", std::vector<int64_t>(rank, 1));
    w.dilations = c.node().Ints("dilations", std::vector<int64_t>(rank, 1));
    std::vector<int64_t> pads = c.node().Ints("pads", std::vector<int64_t>(2 * rank, 0));
    const std::vector<int64_t> extra = c.node().Ints("output_padding", std::vector<int64_t>(rank, 0));
    std::vector<int64_t> wanted = c.node().Ints("output_shape");
    const std::string auto_pad = c.node().String("auto_pad", "NOTSET");
    if (auto_pad != "NOTSET") pads.assign(2 * rank, 0);
    if (auto_pad.starts_with("SAME") && wanted.empty()) {
      for (size_t d = 0; d < rank; ++d) wanted.push_back(w.input[d] * w.strides[d]);
    }
    for (size_t d = 0; d < rank; ++d) {
      const int64_t full = w.strides[d] * (w.input[d] - 1) + extra[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
      int64_t begin = pads[d], end = pads[rank + d];
      if (!wanted.empty()) {
        const int64_t total = std::max<int64_t>(0, full - wanted[d]);
        begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
        end = full - wanted[d] - begin;  // negative where more is wanted than there is: zeros at the end
      }
      const int64_t count = full - begin - end;
      if (count < 1) return NodeError("E-OP-003", c.node(), fmt::format("padding leaves {} of {} positions", count, full));
      w.pads_begin.push_back(begin);
      w.pads_end.push_back(end);
      w.output.push_back(count);
    }
    return w;
  }

  // Adds one input plane, spread by one kernel plane, to the sums of one output plane.
  template <typename T>
  static void SpreadPlane(const Window& w, const T* x, const T* kernel, double* sums) {
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
          const auto weight = static_cast<double>(*kernel++);
          const int64_t offsets[] = {kd * w.dilations[0] - w.pads_begin[0], kh * w.dilations[1] - w.pads_begin[1],
                                     kw * w.dilations[2] - w.pads_begin[2]};
          std::pair<int64_t, int64_t> range[3];
          for (size_t d = 0; d < 3; ++d) range[d] = ValidRange(offsets[d], w.strides[d], w.output[d], w.input[d]);
          for (int64_t d = range[0].first; d < range[0].second; ++d) {
            for (int64_t h = range[1].first; h < range[1].second; ++h) {
              const int64_t row = ((d * w.strides[0] + offsets[0]) * w.output[1] + h * w.strides[1] + offsets[1]) * w.output[2];
              const T* in = x + (d * w.input[1] + h) * w.input[2];
              for (int64_t i = range[2].first; i < range[2].second; ++i) {
                sums[row + i * w.strides[2] + offsets[2]] += weight * static_cast<double>(in[i]);
              }
            }
          }
        }
      }
    }
  }

  template <typename T>
  static void Run(const Window& w, int64_t group, const Tensor& x, const Tensor& weights, const Tensor* bias, Tensor& y) {
    const int64_t batch = x.shape()[0], inputs = x.shape()[1] / group, outputs = weights.shape()[1];
    const int64_t in_plane = ElementCount(w.input), out_plane = ElementCount(w.output), taps = w.kernel_elements();
    std::vector<double> sums(static_cast<size_t>(out_plane));
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t m = 0; m < outputs * group; ++m) {
        std::fill(sums.begin(), sums.end(), bias ? static_cast<double>(bias->as<T>()[static_cast<size_t>(m)]) : 0.0);
        for (int64_t k = 0; k < inputs; ++k) {
          const int64_t channel = m / outputs * inputs + k;
          SpreadPlane(w, x.as<T>().data() + (n * inputs * group + channel) * in_plane,
                      weights.as<T>().data() + (channel * outputs + m % outputs) * taps, sums.data());
        }
        T* out = y.as<T>().data() + (n * outputs * group + m) * out_plane;
        for (int64_t i = 0; i < out_plane; ++i) out[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
    }
  }
};

}  // namespace

void AddConvTranspose(OpList& ops) { ops.push_back(std::make_unique<ConvTranspose>()); }

}  // namespace heddle::ir
