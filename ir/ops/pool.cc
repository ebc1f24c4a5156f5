// MaxPool and AveragePool in one to three spatial dimensions.
//
// MaxPool also runs on 8-bit integers, where it is a movement of elements: padding never wins, as if it were the lowest value.

#include <algorithm>
#include <limits>

#include "ir/ops/all_ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/window.h"

namespace heddle::ir {
namespace {

// Calls f(flat input offset within the plane) for every position of the window at output (od, oh, ow) that lies in the input; positions
// outside cost nothing, however large the kernel.
template <typename F>
void ForEachPosition(const Window& w, int64_t od, int64_t oh, int64_t ow, F f) {
  const int64_t output[] = {od, oh, ow};
  int64_t start[3];
  std::pair<int64_t, int64_t> range[3];
  for (size_t i = 0; i < 3; ++i) {
    start[i] = output[i] * w.strides[i] - w.pads_begin[i];
    range[i] = ValidRange(start[i], w.dilations[i], w.input[i], w.kernel[i]);
  }
  for (int64_t kd = range[0].first; kd < range[0].second; ++kd) {
    for (int64_t kh = range[1].first; kh < range[1].second; ++kh) {
      const int64_t row = (start[0] + kd * w.dilations[0]) * w.input[1] + start[1] + kh * w.dilations[1];
      const int64_t base = row * w.input[2] + start[2];
      for (int64_t kw = range[2].first; kw < range[2].second; ++kw) f(base + kw * w.dilations[2]);
    }
  }
}

class Pool : public Op {
 public:
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window w, GetWindow(c));
    Shape y = {c.input_shape(0)[0], c.input_shape(0)[1]};
    y.insert(y.end(), w.output.begin(), w.output.end());
    return std::vector<ValueType>{ValueType(c.input_type(0).element, y)};
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.other_ops = c.output_type().elements() * ElementCount(c.node().Ints("kernel_shape"));
    return work;
  }

 protected:
  static absl::Status VerifyPool(const NodeContext& c) {
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 3, 5));
    HEDDLE_RETURN_IF_ERROR(VerifyWindowAttributes(c, static_cast<int>(c.input_shape(0).size()) - 2));
    // Keeps operation counts, output elements times kernel elements, within 64 bits.
    if (CheckedElementCount(c.node().Ints("kernel_shape"), int64_t{1} << 24).ok()) return absl::OkStatus();
    return NodeError("E-OP-004", c.node(), fmt::format("a kernel of {} elements", ShapeText(c.node().Ints("kernel_shape"))));
  }

  static absl::StatusOr<Window> GetWindow(const NodeContext& c) {
    const Shape x = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(Window w, WindowOf(c, Shape(x.begin() + 2, x.end()), c.node().Ints("kernel_shape"),
                                               c.node().Int("ceil_mode", 0) != 0));
    for (int d = 0; d < w.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (w.pads_begin[i] >= (w.kernel[i] - 1) * w.dilations[i] + 1 || w.pads_end[i] >= (w.kernel[i] - 1) * w.dilations[i] + 1) {
        return NodeError("E-OP-004", c.node(), fmt::format("padding of {} and {} is not smaller than the window ({} positions)",
                                                           w.pads_begin[i], w.pads_end[i],
                                                           (w.kernel[i] - 1) * w.dilations[i] + 1));
      }
    }
    return w;
  }

  // y[n, c, o] = f(plane of x, window, od, oh, ow) for every output element.
  template <typename T, typename F>
  static void ForEachOutput(const Window& w, const Tensor& x, Tensor& y, F f) {
    const int64_t planes = x.shape()[0] * x.shape()[1], plane = ElementCount(w.input);
    T* out = y.as<T>().data();
    for (int64_t p = 0; p < planes; ++p) {
      const T* in = x.as<T>().data() + p * plane;
      for (int64_t od = 0; od < w.output[0]; ++od) {
        for (int64_t oh = 0; oh < w.output[1]; ++oh) {
          for (int64_t ow = 0; ow < w.output[2]; ++ow) *out++ = f(in, od, oh, ow);
        }
      }
    }
  }

  // x at the window's position, `outside` where that lies outside.
  static loops::Expr Read(const Window& w, const loops::Buffer& x, const loops::Indices& i, const loops::Indices& r,
                          const loops::Expr& outside) {
    loops::Indices at = {i[0], i[1]}, positions;
    for (int d = 0; d < w.rank(); ++d) {
      positions.push_back(WindowIndex(w, d, i[static_cast<size_t>(d) + 2], r[static_cast<size_t>(d)]));
    }
    at.insert(at.end(), positions.begin(), positions.end());
    const loops::Expr guard = WindowGuard(w, positions);
    return guard ? loops::Select(guard, x.At(at), outside) : x.At(at);
  }

  static RandomCase SamplePool(CaseBuilder& b, std::string_view op, ElementType type, Attributes extra) {
    const Window w = RandomWindow(b, static_cast<int>(b.Pick({1, 2, 2, 2, 3})), /*with_dilations=*/true, /*pads_below_kernel=*/true);
    Shape x = {b.Int(1, 2), b.Int(1, 3)};
    x.insert(x.end(), w.input.begin(), w.input.end());
    Attributes attributes = WindowAttributes(w);
    attributes["ceil_mode"] = b.Int(0, 1);
    attributes.merge(extra);
    return b.Finish(op, {b.Input(b.RandomTensor(type, x, -100, 100))}, attributes);
  }
};

class MaxPool : public Pool {
 public:
  std::string_view name() const override { return "MaxPool"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "X [N, C, spatial…] (1 to 3 spatial dimensions), f32, f64, i8 or u8. Attributes kernel_shape (required), strides, pads, "
           "dilations, ceil_mode. Y: the largest element in each window; padding never counts. ONNX MaxPool 12, without Indices.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"auto_pad", AttributeKind::kString}, {"kernel_shape", AttributeKind::kInts, true},
                                                     {"strides", AttributeKind::kInts}, {"pads", AttributeKind::kInts},
                                                     {"dilations", AttributeKind::kInts}, {"ceil_mode", AttributeKind::kInt},
                                                     {"storage_order", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectType(c, 0, {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt8, ElementType::kUint8}));
    return VerifyPool(c);
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(Window w, GetWindow(c));
    w = ToThreeDimensions(std::move(w));
    Tensor y(in[0]->type(), c.output_shape());
    DispatchNumber(y.type(), [&]<typename T>(Tag<T>) {
      constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
      ForEachOutput<T>(w, *in[0], y, [&](const T* plane, int64_t od, int64_t oh, int64_t ow) {
        T best = kLowest;
        ForEachPosition(w, od, oh, ow, [&](int64_t at) { best = best < plane[at] ? plane[at] : best; });
        return best;
      });
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window w, GetWindow(c));
    const loops::Buffer x = l.input(0);
    l.Add(loops::Reduce(l.output(), w.kernel, loops::Combiner::kMax, [&](const loops::Indices& i, const loops::Indices& r) {
      return Read(w, x, i, r, loops::LowestOf(x.type()));
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const auto type = b.Pick({ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt8, ElementType::kUint8});
    return SamplePool(b, name(), type, {});
  }
};

class AveragePool : public Pool {
 public:
  std::string_view name() const override { return "AveragePool"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kFloat; }
  std::string_view doc() const override {
    return "X [N, C, spatial…] (1 to 3 spatial dimensions), f32 or f64. Attributes kernel_shape (required), strides, pads, dilations, "
           "ceil_mode, count_include_pad. Y: the mean over each window of the elements inside X, or, with count_include_pad, of those "
           "and the zeros of the padding. ONNX AveragePool 19.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"auto_pad", AttributeKind::kString}, {"kernel_shape", AttributeKind::kInts, true},
                                                     {"strides", AttributeKind::kInts}, {"pads", AttributeKind::kInts},
                                                     {"dilations", AttributeKind::kInts}, {"ceil_mode", AttributeKind::kInt},
                                                     {"count_include_pad", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    return VerifyPool(c);
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(Window w, GetWindow(c));
    w = ToThreeDimensions(std::move(w));
    const bool padded = CountsPadding(c);
    Tensor y(in[0]->type(), c.output_shape());
    DispatchFloat(y.type(), [&]<typename T>(Tag<T>) {
      ForEachOutput<T>(w, *in[0], y, [&](const T* plane, int64_t od, int64_t oh, int64_t ow) {
        double sum = 0;
        ForEachPosition(w, od, oh, ow, [&](int64_t at) { sum += static_cast<double>(plane[at]); });
        const int64_t count = CoveredPositions(w, 0, od, padded) * CoveredPositions(w, 1, oh, padded) * CoveredPositions(w, 2, ow, padded);
        return static_cast<T>(sum / static_cast<double>(count));
      });
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Window w, GetWindow(c));
    const loops::Buffer x = l.input(0);
    const bool padded = CountsPadding(c);
    // The divisor is a product of one factor for each dimension: constant, or a table over the output index.
    int64_t constant = 1;
    std::vector<std::pair<int, loops::Buffer>> tables;
    for (int d = 0; d < w.rank(); ++d) {
      Tensor counts(x.type(), {w.output[static_cast<size_t>(d)]});
      bool same = true;
      for (int64_t o = 0; o < counts.elements(); ++o) {
        counts.set_int(o, CoveredPositions(w, d, o, padded));
        same = same && counts.at_int(o) == counts.at_int(0);
      }
      if (same) {
        constant *= counts.at_int(0);
      } else {
        tables.emplace_back(d, l.Table(fmt::format("counts{}", d), std::move(counts)));
      }
    }
    auto value = [&](const loops::Indices& i, const loops::Indices& r) {
      return Read(w, x, i, r, loops::Constant(x.type(), 0));
    };
    auto epilogue = [&](loops::Expr sum, const loops::Indices& i) {
      loops::Expr divisor = loops::Constant(x.type(), constant);
      for (const auto& [d, table] : tables) divisor = divisor * table(i[static_cast<size_t>(d) + 2]);
      return sum / divisor;
    };
    l.Add(loops::Reduce(l.output(), w.kernel, loops::Combiner::kSum, value, epilogue));
    return absl::OkStatus();
  }

  double ErrorBound(const NodeContext& c, double reference) const override {
    return SumErrorBound(c.output_type().element, ElementCount(c.node().Ints("kernel_shape")), reference);
  }
  // A mean of K terms: K·u·max|x|.
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const auto terms = static_cast<double>(ElementCount(c.node().Ints("kernel_shape")) + 1);
    return terms * UnitRoundoff(in[0]->type()) * LargestMagnitude(*in[0]);
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    return SamplePool(b, name(), type, {{"count_include_pad", b.Int(0, 1)}});
  }

 private:
  static bool CountsPadding(const NodeContext& c) { return c.node().Int("count_include_pad", 0) != 0; }
};

}  // namespace

void AddPool(OpList& ops) {
  ops.push_back(std::make_unique<MaxPool>());
  ops.push_back(std::make_unique<AveragePool>());
}

}  // namespace heddle::ir
