// Softmax and LogSoftmax along one axis, as of opset 13.
//
// The largest element is subtracted first, so that no exponential overflows.

#include <algorithm>
#include <cmath>

#include "ir/ops/all_ops.h"
#include "ir/ops/reduction.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

class SoftmaxOp : public Op {
 public:
  explicit SoftmaxOp(bool logarithm) : logarithm_(logarithm) {}
  std::string_view name() const override { return logarithm_ ? "LogSoftmax" : "Softmax"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kFloat; }
  std::string_view doc() const override {
    return logarithm_ ? "X f32 or f64. Attribute axis (-1). Y = X - max - ln Σ e^(X - max) along axis. ONNX LogSoftmax 13."
                      : "X f32 or f64. Attribute axis (-1). Y = e^(X - max) / Σ e^(X - max) along axis. ONNX Softmax 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"axis", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 1));
    return ExpectFloat(c, 0);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, c.node().Int("axis", -1), static_cast<int>(c.input_shape(0).size())));
    (void)axis;
    return std::vector<ValueType>{ValueType(c.input_type(0).element, c.input_shape(0))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Shape shape = in[0]->shape();
    const int axis = Axis(c);
    const int64_t outer = ExtentProduct(shape, 0, axis), extent = shape[static_cast<size_t>(axis)],
                  inner = ExtentProduct(shape, axis + 1, static_cast<int>(shape.size()));
    Tensor y(in[0]->type(), shape);
    DispatchFloat(y.type(), [&]<typename T>(Tag<T>) {
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const int64_t start = o * extent * inner + i;
          Row(in[0]->as<T>().data() + start, y.as<T>().data() + start, extent, inner);
        }
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const auto axis = static_cast<size_t>(Axis(c));
    const loops::Buffer x = l.input(0);
    Shape rest = x.shape();
    const int64_t extent = rest[axis];
    rest.erase(rest.begin() + static_cast<int64_t>(axis));
    const loops::Buffer peak = l.Temporary("peak", x.type(), rest), total = l.Temporary("total", x.type(), rest);
    // The index with `own` along the axis put in, or with the axis taken out.
    auto with = [&](Indices i, const Expr& own) {
      i.insert(i.begin() + static_cast<int64_t>(axis), own);
      return i;
    };
    auto without = [&](Indices i) {
      i.erase(i.begin() + static_cast<int64_t>(axis));
      return i;
    };
    l.Add(loops::Reduce(peak, {extent}, loops::Combiner::kMax,
                        [&](const Indices& i, const Indices& r) { return x.At(with(i, r[0])); }));
    if (logarithm_) {
      l.Add(loops::Reduce(total, {extent}, loops::Combiner::kSum, [&](const Indices& i, const Indices& r) {
        return loops::Exp(x.At(with(i, r[0])) - peak.At(i));
      }));
      l.Add(loops::Compute(l.output(), [&](const Indices& i) {
        return x.At(i) - peak.At(without(i)) - loops::Log(total.At(without(i)));
      }));
      return absl::OkStatus();
    }
    const loops::Buffer e = l.Temporary("exponential", x.type(), x.shape());
    l.Add(loops::Compute(e, [&](const Indices& i) { return loops::Exp(x.At(i) - peak.At(without(i))); }));
    l.Add(loops::Reduce(total, {extent}, loops::Combiner::kSum,
                        [&](const Indices& i, const Indices& r) { return e.At(with(i, r[0])); }));
    l.Add(loops::Compute(l.output(), [&](const Indices& i) { return e.At(i) / total.At(without(i)); }));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.other_ops = 4 * c.output_type().elements();
    return work;
  }
  // Subtracting the maximum rounds at the scale of the input: |x|·u, which the exponential turns into a relative error of the result.
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const auto terms = static_cast<double>(in[0]->shape()[static_cast<size_t>(Axis(c))]);
    return (4 * LargestMagnitude(*in[0]) + (logarithm_ ? terms : 0)) * UnitRoundoff(in[0]->type());
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    const Shape shape = b.RandomShape(1, 4);
    const auto rank = static_cast<int64_t>(shape.size());
    Attributes attributes;
    if (b.Coin()) attributes["axis"] = b.Int(-rank, rank - 1);
    return b.Finish(name(), {b.Input(b.RandomTensor(type, shape, -30, 30))}, attributes);
  }

 private:
  static int Axis(const NodeContext& c) {
    const auto rank = static_cast<int64_t>(c.input_shape(0).size()), axis = c.node().Int("axis", -1);
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }

  template <typename T>
  void Row(const T* x, T* y, int64_t count, int64_t stride) const {
    double peak = -HUGE_VAL, total = 0;
    for (int64_t i = 0; i < count; ++i) peak = std::max(peak, static_cast<double>(x[i * stride]));
    for (int64_t i = 0; i < count; ++i) total += std::exp(static_cast<double>(x[i * stride]) - peak);
    for (int64_t i = 0; i < count; ++i) {
      const double shifted = static_cast<double>(x[i * stride]) - peak;
      y[i * stride] = static_cast<T>(logarithm_ ? shifted - std::log(total) : std::exp(shifted) / total);
    }
  }

  bool logarithm_;
};

}  // namespace

void AddSoftmax(OpList& ops) {
  ops.push_back(std::make_unique<SoftmaxOp>(false));
  ops.push_back(std::make_unique<SoftmaxOp>(true));
}

}  // namespace heddle::ir
