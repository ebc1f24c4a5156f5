// Normalisations: BatchNormalization (inference), InstanceNormalization, LayerNormalization, LRN.
//
// Error bounds: (x - mean)·scale/σ cancels where x is near the mean, so the absolute error scales with the inputs' magnitude divided by the
// smallest σ met; SummationBound computes exactly that from the inputs.

#include <algorithm>
#include <cmath>

#include "ir/ops/all_ops.h"
#include "ir/ops/reduction.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

double Epsilon(const NodeContext& c) { return c.node().Float("epsilon", 1e-5); }

absl::Status ExpectVectors(const NodeContext& c, int first, int last, const Shape& shape) {
  for (int i = first; i <= last; ++i) {
    if (c.has_input(i) && c.input_shape(i) != shape) {
      return NodeError("E-OP-003", c.node(), fmt::format("input {} has shape {}, expected {}", i, ShapeText(c.input_shape(i)),
                                                         ShapeText(shape)));
    }
  }
  return absl::OkStatus();
}

struct Moments {
  double mean = 0, variance = 0;
};

template <typename T>
Moments MomentsOf(const T* row, int64_t count) {
  Moments m;
  for (int64_t i = 0; i < count; ++i) m.mean += static_cast<double>(row[i]);
  m.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(row[i]) - m.mean;
    m.variance += d * d;
  }
  m.variance /= static_cast<double>(count);
  return m;
}

class Normalisation : public Op {
 public:
  OpKind kind(const NodeContext&) const override { return OpKind::kFloat; }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(c.input_type(0).element, c.input_shape(0))};
  }
  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.other_ops = 4 * c.output_type().elements();
    return work;
  }
};

class BatchNormalization : public Normalisation {
 public:
  std::string_view name() const override { return "BatchNormalization"; }
  std::string_view doc() const override {
    return "X [N, C, …], scale, B, mean, var [C]; f32 or f64. Attributes epsilon (1e-5), momentum (not used), training_mode (must be 0). "
           "Y = (X - mean)·scale / sqrt(var + epsilon) + B for each channel. ONNX BatchNormalization 15.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 5, 5, {{"epsilon", AttributeKind::kFloat}, {"momentum", AttributeKind::kFloat},
                                                     {"training_mode", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectInt(c, "training_mode", 0, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 1));
    return ExpectVectors(c, 1, 4, {Channels(c.input_shape(0))});
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    Tensor y(in[0]->type(), in[0]->shape());
    const int64_t channels = Channels(y.shape());
    const int64_t plane = ExtentProduct(y.shape(), 2, std::max(2, y.rank()));
    const int64_t planes = plane == 0 ? 0 : y.elements() / plane;
    DispatchFloat(y.type(), [&]<typename T>(Tag<T>) {
      for (int64_t p = 0; p < planes; ++p) {
        const int64_t channel = p % channels;
        const double factor = in[1]->at_double(channel) / std::sqrt(in[4]->at_double(channel) + Epsilon(c));
        const double mean = in[3]->at_double(channel), offset = in[2]->at_double(channel);
        const T* x = in[0]->as<T>().data() + p * plane;
        T* out = y.as<T>().data() + p * plane;
        for (int64_t i = 0; i < plane; ++i) out[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * factor + offset);
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const double epsilon = Epsilon(c);
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      const Expr ch = i.size() > 1 ? i[1] : Expr(0);
      const Expr factor = l.input(1)(ch) / loops::Sqrt(l.input(4)(ch) + epsilon);
      return (l.input(0).At(i) - l.input(3)(ch)) * factor + l.input(2)(ch);
    }));
    return absl::OkStatus();
  }
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    double bound = 0;
    const double x = LargestMagnitude(*in[0]);
    for (int64_t i = 0; i < in[1]->elements(); ++i) {
      const double factor = std::abs(in[1]->at_double(i)) / std::sqrt(std::max(in[4]->at_double(i) + Epsilon(c), 1e-30));
      bound = std::max(bound, 6 * (x + std::abs(in[3]->at_double(i))) * factor + 2 * std::abs(in[2]->at_double(i)));
    }
    return bound * UnitRoundoff(in[0]->type());
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    const Shape shape = b.RandomShape(1, 5), vector = {Channels(shape)};
    Attributes attributes = {{"momentum", 0.9}};
    if (b.Coin()) attributes["epsilon"] = b.Real(1e-5, 1e-2);
    return b.Finish(name(), {b.Input(b.RandomTensor(type, shape)), b.Either(b.RandomTensor(type, vector)),
                             b.Either(b.RandomTensor(type, vector)), b.Either(b.RandomTensor(type, vector)),
                             b.Either(b.RandomTensor(type, vector, 0.1, 2))}, attributes);
  }

 private:
  static int64_t Channels(const Shape& x) { return x.size() > 1 ? x[1] : 1; }
};

// Rows of contiguous elements, each brought to mean 0 and variance 1, then scaled and shifted.
class RowNormalisation : public Normalisation {
 public:
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const int64_t count = RowLength(c), rows = count == 0 ? 0 : in[0]->elements() / count;
    double smallest = HUGE_VAL;
    DispatchFloat(in[0]->type(), [&]<typename T>(Tag<T>) {
      for (int64_t r = 0; r < rows; ++r) {
        smallest = std::min(smallest, MomentsOf(in[0]->as<T>().data() + r * count, count).variance);
      }
    });
    const double sigma = std::sqrt(std::max(smallest + Epsilon(c), 1e-30)), u = UnitRoundoff(in[0]->type());
    const double x = LargestMagnitude(*in[0]), terms = static_cast<double>(count) + 8;
    // (x - mean) errs by K·u·max|x|; through 1/σ it errs once more, relatively, by the error of the variance.
    return terms * u * (2 * x / sigma) * (1 + x / sigma) * LargestMagnitude(*in[1]) +
           (in.size() > 2 && in[2] ? 2 * u * LargestMagnitude(*in[2]) : 0);
  }

 protected:
  virtual int64_t RowLength(const NodeContext& c) const = 0;

  // y[i] = (x[i] - mean) / sqrt(variance + epsilon) · scale(row, place) + offset(row, place) over rows of `count`.
  template <typename Affine>
  static Tensor NormaliseRows(const Tensor& x, int64_t count, double epsilon, Affine affine) {
    Tensor y(x.type(), x.shape());
    const int64_t rows = count == 0 ? 0 : x.elements() / count;
    DispatchFloat(x.type(), [&]<typename T>(Tag<T>) {
      for (int64_t r = 0; r < rows; ++r) {
        const T* in = x.as<T>().data() + r * count;
        T* out = y.as<T>().data() + r * count;
        const Moments m = MomentsOf(in, count);
        const double inverse = 1 / std::sqrt(m.variance + epsilon);
        for (int64_t i = 0; i < count; ++i) {
          out[i] = static_cast<T>(affine(r, i, (static_cast<double>(in[i]) - m.mean) * inverse));
        }
      }
    });
    return y;
  }

  // Stages for the mean and the inverse deviation over the dimensions from `axis` on; returns the normalised element at i.
  static std::function<Expr(const Indices&)> LowerRows(loops::OpLowering& l, int axis, double epsilon) {
    const loops::Buffer x = l.input(0);
    const Shape outer(x.shape().begin(), x.shape().begin() + axis), inner(x.shape().begin() + axis, x.shape().end());
    const auto count = static_cast<double>(ElementCount(inner));
    const loops::Buffer mean = l.Temporary("mean", x.type(), outer), inverse = l.Temporary("inverse_deviation", x.type(), outer);
    auto joined = [](Indices i, const Indices& r) {
      i.insert(i.end(), r.begin(), r.end());
      return i;
    };
    l.Add(loops::Reduce(mean, inner, loops::Combiner::kSum,
                        [&](const Indices& i, const Indices& r) { return x.At(joined(i, r)); },
                        [&](Expr sum, const Indices&) { return sum / count; }));
    l.Add(loops::Reduce(inverse, inner, loops::Combiner::kSum,
                        [&](const Indices& i, const Indices& r) {
                          const Expr d = x.At(joined(i, r)) - mean.At(i);
                          return d * d;
                        },
                        [&](Expr sum, const Indices&) {
                          return loops::Constant(x.type(), 1) / loops::Sqrt(sum / count + epsilon);
                        }));
    return [x, mean, inverse, axis](const Indices& i) {
      const Indices row(i.begin(), i.begin() + axis);
      return (x.At(i) - mean.At(row)) * inverse.At(row);
    };
  }
};

class InstanceNormalization : public RowNormalisation {
 public:
  std::string_view name() const override { return "InstanceNormalization"; }
  std::string_view doc() const override {
    return "input [N, C, spatial…], scale and B [C]; f32 or f64. Attribute epsilon (1e-5). Each plane is brought to mean 0 and variance "
           "1, then Y = scale·plane + B. ONNX InstanceNormalization 6.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 3, 3, {{"epsilon", AttributeKind::kFloat}}));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 3));
    return ExpectVectors(c, 1, 2, {c.input_shape(0)[1]});
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const int64_t channels = in[0]->shape()[1];
    return std::vector<Tensor>{NormaliseRows(*in[0], RowLength(c), Epsilon(c), [&](int64_t row, int64_t, double value) {
      return value * in[1]->at_double(row % channels) + in[2]->at_double(row % channels);
    })};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const auto normalised = LowerRows(l, 2, Epsilon(c));
    l.Add(loops::Compute(l.output(), [&](const Indices& i) { return normalised(i) * l.input(1)(i[1]) + l.input(2)(i[1]); }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    const Shape shape = b.RandomShape(3, 5);
    return b.Finish(name(), {b.Input(b.RandomTensor(type, shape)), b.Either(b.RandomTensor(type, {shape[1]})),
                             b.Either(b.RandomTensor(type, {shape[1]}))}, {{"epsilon", b.Real(1e-5, 1e-1)}});
  }

 protected:
  int64_t RowLength(const NodeContext& c) const override {
    return ExtentProduct(c.input_shape(0), 2, static_cast<int>(c.input_shape(0).size()));
  }
};

class LayerNormalization : public RowNormalisation {
 public:
  std::string_view name() const override { return "LayerNormalization"; }
  std::string_view doc() const override {
    return "X f32 or f64; Scale and optional B broadcast to the dimensions from attribute axis (-1) on. Attributes epsilon (1e-5), "
           "stash_type (not used: the reference computes in double). Over those dimensions brought to mean 0 and variance 1, then "
           "Y = Scale·… + B. ONNX LayerNormalization 17, first output.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 3, {{"axis", AttributeKind::kInt}, {"epsilon", AttributeKind::kFloat},
                                                     {"stash_type", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    const Shape x = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, c.node().Int("axis", -1), static_cast<int>(x.size())));
    const Shape inner(x.begin() + axis, x.end());
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (!c.has_input(i)) continue;
      HEDDLE_ASSIGN_OR_RETURN(const Shape joined, BroadcastShapes(c, inner, c.input_shape(i)));
      if (joined != inner) {
        return NodeError("E-OP-003", c.node(), fmt::format("input {} of shape {} does not broadcast to {}", i,
                                                           ShapeText(c.input_shape(i)), ShapeText(inner)));
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Shape inner(in[0]->shape().begin() + Axis(c), in[0]->shape().end());
    const Tensor scale = BroadcastTo(*in[1], inner);
    const bool shifted = in.size() > 2 && in[2];
    const Tensor offset = shifted ? BroadcastTo(*in[2], inner) : Tensor(scale.type(), inner);
    return std::vector<Tensor>{NormaliseRows(*in[0], RowLength(c), Epsilon(c), [&](int64_t, int64_t i, double value) {
      return value * scale.at_double(i) + offset.at_double(i);
    })};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const int axis = Axis(c);
    const auto normalised = LowerRows(l, axis, Epsilon(c));
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      const Indices place(i.begin() + axis, i.end());
      const Expr y = normalised(i) * BroadcastRead(l.input(1), place);
      return l.has_input(2) ? y + BroadcastRead(l.input(2), place) : y;
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    const Shape shape = b.RandomShape(1, 4);
    const auto rank = static_cast<int64_t>(shape.size()), axis = b.Int(0, rank - 1);
    const Shape inner(shape.begin() + axis, shape.end());
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, shape)), b.Either(b.RandomTensor(type, b.BroadcastableTo(inner)))};
    if (b.Coin()) ids.push_back(b.Either(b.RandomTensor(type, b.BroadcastableTo(inner))));
    return b.Finish(name(), ids, {{"axis", b.Coin() ? axis : axis - rank}, {"epsilon", b.Real(1e-5, 1e-1)}});
  }

 protected:
  int64_t RowLength(const NodeContext& c) const override {
    return ExtentProduct(c.input_shape(0), Axis(c), static_cast<int>(c.input_shape(0).size()));
  }

 private:
  static int Axis(const NodeContext& c) {
    const auto rank = static_cast<int64_t>(c.input_shape(0).size()), axis = c.node().Int("axis", -1);
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
};

class Lrn : public Normalisation {
 public:
  std::string_view name() const override { return "LRN"; }
  std::string_view doc() const override {
    return "X [N, C, …] f32 or f64. Attributes size (required), alpha (1e-4), beta (0.75), bias (1). Y = X / (bias + alpha/size · Σ X²)^beta, "
           "the sum over the size channels around each (those that exist). ONNX LRN 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"size", AttributeKind::kInt, true}, {"alpha", AttributeKind::kFloat},
                                                     {"beta", AttributeKind::kFloat}, {"bias", AttributeKind::kFloat}}));
    HEDDLE_RETURN_IF_ERROR(ExpectInt(c, "size", 1, 1 << 20));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    return ExpectRank(c, 0, 2);
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Coefficients k(c);
    Tensor y(in[0]->type(), in[0]->shape());
    const int64_t batch = y.shape()[0], channels = y.shape()[1], plane = ExtentProduct(y.shape(), 2, y.rank());
    DispatchFloat(y.type(), [&]<typename T>(Tag<T>) {
      std::vector<double> sums(static_cast<size_t>(plane));
      for (int64_t n = 0; n < batch; ++n) {
        const T* x = in[0]->as<T>().data() + n * channels * plane;
        T* out = y.as<T>().data() + n * channels * plane;
        for (int64_t ch = 0; ch < channels; ++ch) {
          std::fill(sums.begin(), sums.end(), 0.0);
          for (int64_t j = std::max<int64_t>(0, ch - k.before); j <= std::min(channels - 1, ch + k.size - 1 - k.before); ++j) {
            for (int64_t i = 0; i < plane; ++i) {
              const auto value = static_cast<double>(x[j * plane + i]);
              sums[static_cast<size_t>(i)] += value * value;
            }
          }
          for (int64_t i = 0; i < plane; ++i) {
            const double divisor = std::pow(k.bias + k.alpha / static_cast<double>(k.size) * sums[static_cast<size_t>(i)], k.beta);
            out[ch * plane + i] = static_cast<T>(static_cast<double>(x[ch * plane + i]) / divisor);
          }
        }
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const Coefficients k(c);
    const loops::Buffer x = l.input(0);
    const loops::Buffer squares = l.Temporary("squares", x.type(), x.shape());
    l.Add(loops::Reduce(squares, {k.size}, loops::Combiner::kSum, [&](const Indices& i, const Indices& r) {
      Indices at = i;
      at[1] = i[1] + r[0] - k.before;
      return loops::Select(loops::InRange(at[1], 0, x.shape()[1]), x.At(at) * x.At(at), loops::Constant(x.type(), 0));
    }));
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      const Expr base = squares.At(i) * (k.alpha / static_cast<double>(k.size)) + k.bias;
      return x.At(i) / loops::Pow(base, loops::Constant(x.type(), k.beta));
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    Attributes attributes = {{"size", b.Int(1, 5)}};
    if (b.Coin()) attributes["alpha"] = b.Real(1e-4, 0.1);
    if (b.Coin()) attributes["beta"] = b.Real(0.5, 1);
    if (b.Coin()) attributes["bias"] = b.Real(0.5, 2);
    return b.Finish(name(), {b.Input(b.RandomTensor(type, b.RandomShape(2, 4, 6)))}, attributes);
  }

 private:
  struct Coefficients {
    explicit Coefficients(const NodeContext& c)
        : size(c.node().Int("size")), before((size - 1) / 2), alpha(c.node().Float("alpha", 1e-4)),
          beta(c.node().Float("beta", 0.75)), bias(c.node().Float("bias", 1)) {}
    int64_t size, before;
    double alpha, beta, bias;
  };
};

}  // namespace

void AddNormalise(OpList& ops) {
  ops.push_back(std::make_unique<BatchNormalization>());
  ops.push_back(std::make_unique<InstanceNormalization>());
  ops.push_back(std::make_unique<LayerNormalization>());
  ops.push_back(std::make_unique<Lrn>());
}

}  // namespace heddle::ir
