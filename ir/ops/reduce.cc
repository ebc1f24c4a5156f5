// Reductions over axes: ReduceSum and its kin, the global pools, ArgMax and ArgMin.
//
// The reference moves the reduced dimensions to the end and folds contiguous rows, floats in double.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/ops/all_ops.h"
#include "ir/ops/reduction.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

// Which dimensions go, and whether they stay as extents of 1.
struct Reduction {
  std::vector<bool> reduced;  // one for each dimension of the input
  bool keep = true;

  Shape OutputShape(const Shape& in) const {
    Shape out;
    for (size_t d = 0; d < in.size(); ++d) {
      if (!reduced[d]) out.push_back(in[d]);
      if (reduced[d] && keep) out.push_back(1);
    }
    return out;
  }
  Shape ReducedExtents(const Shape& in) const {
    Shape extents;
    for (size_t d = 0; d < in.size(); ++d) {
      if (reduced[d]) extents.push_back(in[d]);
    }
    return extents;
  }
  // The input index of output index i and reduction index r.
  Indices InputIndex(const Indices& i, const Indices& r) const {
    Indices at;
    size_t o = 0, k = 0;
    for (bool gone : reduced) {
      at.push_back(gone ? r[k++] : i[o]);
      if (!gone || keep) ++o;
    }
    return at;
  }
};

// [kept…, reduced…] in rows of the reduced dimensions.
Tensor RowsOf(const Tensor& x, const Reduction& reduction) {
  const std::vector<int64_t> strides = RowMajorStrides(x.shape());
  Shape shape;
  std::vector<std::vector<int64_t>> tables;
  for (bool gone : {false, true}) {
    for (size_t d = 0; d < x.shape().size(); ++d) {
      if (reduction.reduced[d] != gone) continue;
      shape.push_back(x.shape()[d]);
      std::vector<int64_t>& table = tables.emplace_back();
      if (x.elements() == 0) continue;  // nothing is copied; extents may be huge
      for (int64_t i = 0; i < x.shape()[d]; ++i) table.push_back(i * strides[d]);
    }
  }
  return CopyByTables(x, shape, tables);
}

enum class Fold { kSum, kMean, kMax, kMin, kProduct, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

bool FloatsOnly(Fold fold) {
  return fold == Fold::kMean || fold == Fold::kL2 || fold == Fold::kLogSum || fold == Fold::kLogSumExp;
}

// ln Σ e^x, the largest x subtracted first so that nothing overflows.
template <typename T>
T LogSumExp(const T* x, int64_t count) {
  double peak = -HUGE_VAL, sum = 0;
  for (int64_t i = 0; i < count; ++i) peak = std::max(peak, static_cast<double>(x[i]));
  for (int64_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(x[i]) - peak);
  return static_cast<T>(count == 0 ? -HUGE_VAL : peak + std::log(sum));
}

// A row's result; integers wrap. Min and max of nothing are the neutral elements.
template <typename T>
T FoldRow(Fold fold, const T* x, int64_t count) {
  using Sum = Accumulator<T>;
  if (fold == Fold::kMax || fold == Fold::kMin) {
    using Limits = std::numeric_limits<T>;
    const T high = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const T low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    T best = fold == Fold::kMax ? low : high;
    for (int64_t i = 0; i < count; ++i) best = fold == Fold::kMax ? std::max(best, x[i]) : std::min(best, x[i]);
    return best;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (fold == Fold::kLogSumExp) return LogSumExp(x, count);
  }
  Sum sum = fold == Fold::kProduct ? Sum{1} : Sum{0};
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<Sum>(x[i]);
    switch (fold) {
      case Fold::kProduct: sum = static_cast<Sum>(sum * value); break;
      case Fold::kL1: sum = static_cast<Sum>(x[i] < T{0} ? sum - value : sum + value); break;
      case Fold::kL2:
      case Fold::kSumSquare: sum = static_cast<Sum>(sum + value * value); break;
      default: sum = static_cast<Sum>(sum + value); break;
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (fold == Fold::kMean) sum /= static_cast<double>(count);
    if (fold == Fold::kL2) sum = std::sqrt(sum);
    if (fold == Fold::kLogSum) sum = std::log(sum);
  }
  return static_cast<T>(sum);
}

// Value and epilogue of the loop definition.
Expr LowerTerm(Fold fold, const Expr& x) {
  if (fold == Fold::kL1) return IsInteger(x.type()) && !loops::IsSigned(x.type()) ? x : loops::Abs(x);
  return fold == Fold::kL2 || fold == Fold::kSumSquare ? x * x : x;
}

loops::Combiner CombinerOf(Fold fold) {
  return fold == Fold::kMax       ? loops::Combiner::kMax
         : fold == Fold::kMin     ? loops::Combiner::kMin
         : fold == Fold::kProduct ? loops::Combiner::kProduct
                                  : loops::Combiner::kSum;
}

class ReduceBase : public Op {
 public:
  ReduceBase(std::string_view name, Fold fold, std::string doc) : name_(name), doc_(std::move(doc)), fold_(fold) {}
  std::string_view name() const override { return name_; }
  std::string_view doc() const override { return doc_; }
  OpKind kind(const NodeContext& c) const override {
    if (fold_ == Fold::kMax || fold_ == Fold::kMin) return OpKind::kInteger;  // exact, floats too
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Reduction r, ReductionOf(c));
    return std::vector<ValueType>{ValueType(c.input_type(0).element, r.OutputShape(c.input_shape(0)))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Reduction r, ReductionOf(c));
    const Tensor rows = RowsOf(*in[0], r);
    Tensor y(in[0]->type(), c.output_shape());
    const int64_t count = ElementCount(r.ReducedExtents(in[0]->shape()));
    DispatchNumber(y.type(), [&]<typename T>(Tag<T>) {
      for (int64_t o = 0; o < y.elements(); ++o) {
        y.as<T>()[static_cast<size_t>(o)] = FoldRow(fold_, rows.as<T>().data() + o * count, count);
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(c));
    const loops::Buffer x = l.input(0);
    const Shape extents = reduction.ReducedExtents(x.shape());
    const auto count = static_cast<double>(ElementCount(extents));
    auto value = [&](const Indices& i, const Indices& r) { return LowerTerm(fold_, x.At(reduction.InputIndex(i, r))); };
    if (extents.empty()) {  // nothing is reduced: the term of the only element
      l.Add(loops::Compute(l.output(), [&](const Indices& i) {
        const Expr term = value(i, {});
        return fold_ == Fold::kL2 ? loops::Sqrt(term) : fold_ == Fold::kLogSum ? loops::Log(term) : term;
      }));
      return absl::OkStatus();
    }
    if (fold_ == Fold::kLogSumExp) {
      const loops::Buffer peak = l.Temporary("peak", x.type(), l.output().shape());
      l.Add(loops::Reduce(peak, extents, loops::Combiner::kMax, value));
      l.Add(loops::Reduce(l.output(), extents, loops::Combiner::kSum,
                          [&](const Indices& i, const Indices& r) { return loops::Exp(value(i, r) - peak.At(i)); },
                          [&](Expr sum, const Indices& i) { return peak.At(i) + loops::Log(sum); }));
      return absl::OkStatus();
    }
    l.Add(loops::Reduce(l.output(), extents, CombinerOf(fold_), value, [&](Expr folded, const Indices&) {
      return fold_ == Fold::kMean     ? folded / count
             : fold_ == Fold::kL2     ? loops::Sqrt(folded)
             : fold_ == Fold::kLogSum ? loops::Log(folded)
                                      : folded;
    }));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.other_ops = c.input_type(0).elements();
    return work;
  }
  double ErrorBound(const NodeContext& c, double reference) const override {
    if (kind(c) != OpKind::kFloat) return 0;
    return SumErrorBound(c.output_type().element, Terms(c), reference);
  }
  // K·u·Σ|t|; a product's error is relative and covered by ErrorBound.
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    if (kind(c) != OpKind::kFloat || fold_ == Fold::kProduct) return 0;
    const double k = static_cast<double>(Terms(c)), u = UnitRoundoff(in[0]->type()), x = LargestMagnitude(*in[0]);
    switch (fold_) {
      case Fold::kMean: return (k + 1) * u * x;
      case Fold::kL2: return (k + 2) * u * std::sqrt(k) * x;  // half the relative error of the sum, K·x² at most
      case Fold::kSumSquare: return (k + 1) * u * k * x * x;
      case Fold::kLogSum: return k * u;  // the relative error of a sum of positive terms
      case Fold::kLogSumExp: return (k + 4 * x) * u;
      default: return k * u * k * x;
    }
  }

 protected:
  virtual absl::StatusOr<Reduction> ReductionOf(const NodeContext& c) const = 0;
  Fold fold() const { return fold_; }

 private:
  static int64_t Terms(const NodeContext& c) {
    const int64_t outputs = c.output_type().elements();
    return outputs == 0 ? 1 : std::max<int64_t>(1, c.input_type(0).elements() / outputs);
  }

  std::string_view name_;
  std::string doc_;
  Fold fold_;
};

class Reduce : public ReduceBase {
 public:
  using ReduceBase::ReduceBase;
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 2, {{"axes", AttributeKind::kInts}, {"keepdims", AttributeKind::kInt},
                                                     {"noop_with_empty_axes", AttributeKind::kInt}}));
    return FloatsOnly(fold()) ? ExpectFloat(c, 0) : ExpectNumber(c, 0);
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const bool floats = FloatsOnly(fold()) || b.Coin();
    const ElementType type = floats ? b.Pick({ElementType::kFloat32, ElementType::kFloat64}) : b.NumberType();
    const Shape shape = b.RandomShape(0, 4);
    const auto rank = static_cast<int64_t>(shape.size());
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < rank; ++d) {
      if (b.Coin()) axes.push_back(b.Coin() ? d : d - rank);
    }
    Attributes attributes;
    if (b.Coin()) attributes["keepdims"] = b.Int(0, 1);
    if (b.Coin()) attributes["noop_with_empty_axes"] = b.Int(0, 1);
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, shape, fold() == Fold::kLogSum ? 0.1 : -4))};
    if (b.Coin()) {
      ids.push_back(b.IntsConstant(axes));
    } else if (!axes.empty()) {
      attributes["axes"] = axes;
    }
    return b.Finish(name(), ids, attributes);
  }

 protected:
  absl::StatusOr<Reduction> ReductionOf(const NodeContext& c) const override {
    const size_t rank = c.input_shape(0).size();
    std::vector<int64_t> given = c.node().Ints("axes");
    if (c.has_input(1)) {
      HEDDLE_ASSIGN_OR_RETURN(given, ConstantInts(c, 1, "axes"));
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, ResolveAxes(c, given, static_cast<int>(rank)));
    Reduction r{std::vector<bool>(rank, axes.empty() && c.node().Int("noop_with_empty_axes", 0) == 0),
                c.node().Int("keepdims", 1) != 0};
    for (int axis : axes) r.reduced[static_cast<size_t>(axis)] = true;
    return r;
  }
};

class GlobalPool : public ReduceBase {
 public:
  using ReduceBase::ReduceBase;
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 3));
    return ExpectFloat(c, 0);
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    return b.Finish(name(), {b.Input(b.RandomTensor(type, b.RandomShape(3, 5, 6)))});
  }

 protected:
  absl::StatusOr<Reduction> ReductionOf(const NodeContext& c) const override {
    Reduction r{std::vector<bool>(c.input_shape(0).size(), true), true};
    r.reduced[0] = r.reduced[1] = false;
    return r;
  }
};

class ArgReduce : public Op {
 public:
  explicit ArgReduce(bool largest) : largest_(largest) {}
  std::string_view name() const override { return largest_ ? "ArgMax" : "ArgMin"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return largest_ ? "data of numbers. Attributes axis (0), keepdims (1), select_last_index (0). i64 position of the largest element "
                      "along axis, the first (or last) of equals. ONNX ArgMax 13."
                    : "As ArgMax, of the smallest element. ONNX ArgMin 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"axis", AttributeKind::kInt}, {"keepdims", AttributeKind::kInt},
                                                     {"select_last_index", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 1));
    return ExpectNumber(c, 0);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Reduction r, ReductionOf(c));
    if (ElementCount(r.ReducedExtents(c.input_shape(0))) == 0) {
      return NodeError("E-OP-003", c.node(), "an empty dimension has no largest element");
    }
    return std::vector<ValueType>{ValueType(ElementType::kInt64, r.OutputShape(c.input_shape(0)))};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Reduction r, ReductionOf(c));
    const Tensor rows = RowsOf(*in[0], r);
    Tensor y(ElementType::kInt64, c.output_shape());
    const int64_t count = ElementCount(r.ReducedExtents(in[0]->shape()));
    const bool last = SelectsLast(c);
    DispatchNumber(in[0]->type(), [&]<typename T>(Tag<T>) {
      for (int64_t o = 0; o < y.elements(); ++o) {
        const T* row = rows.as<T>().data() + o * count;
        int64_t best = 0;
        for (int64_t i = 1; i < count; ++i) {
          const bool better = largest_ ? row[best] < row[i] : row[i] < row[best];
          if (better || (last && row[i] == row[best])) best = i;
        }
        y.as<int64_t>()[static_cast<size_t>(o)] = best;
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }
  // Two stages: the extreme value, then the first (or last) position that has it.
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(c));
    const loops::Buffer x = l.input(0);
    const Shape extents = reduction.ReducedExtents(x.shape());
    const loops::Buffer extreme = l.Temporary("extreme", x.type(), l.output().shape());
    l.Add(loops::Reduce(extreme, extents, largest_ ? loops::Combiner::kMax : loops::Combiner::kMin,
                        [&](const Indices& i, const Indices& r) { return x.At(reduction.InputIndex(i, r)); }));
    const bool last = SelectsLast(c);
    auto position = [&](const Indices& i, const Indices& r) {
      const Expr found = loops::Equal(x.At(reduction.InputIndex(i, r)), extreme.At(i));
      return loops::Select(found, r[0], Expr(last ? int64_t{0} : extents[0] - 1));
    };
    l.Add(loops::Reduce(l.output(), extents, last ? loops::Combiner::kMax : loops::Combiner::kMin, position));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(1, 4);
    const auto rank = static_cast<int64_t>(shape.size());
    Attributes attributes;
    if (b.Coin()) attributes["axis"] = b.Int(-rank, rank - 1);
    if (b.Coin()) attributes["keepdims"] = b.Int(0, 1);
    if (b.Coin()) attributes["select_last_index"] = b.Int(0, 1);
    const ElementType type = b.NumberType();  // few different values: ties are common
    return b.Finish(name(), {b.Input(b.RandomTensor(type, shape, -2, 2))}, attributes);
  }

 private:
  static bool SelectsLast(const NodeContext& c) { return c.node().Int("select_last_index", 0) != 0; }
  static absl::StatusOr<Reduction> ReductionOf(const NodeContext& c) {
    const size_t rank = c.input_shape(0).size();
    HEDDLE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, c.node().Int("axis", 0), static_cast<int>(rank)));
    Reduction r{std::vector<bool>(rank, false), c.node().Int("keepdims", 1) != 0};
    r.reduced[static_cast<size_t>(axis)] = true;
    return r;
  }

  bool largest_;
};

constexpr std::string_view kAxes =
    " data of numbers; axes: optional constant i64 list (or attribute), all where absent (with noop_with_empty_axes: none). Attribute "
    "keepdims (1). ONNX, forms 13 and 18.";

std::string DocOf(std::string_view what) { return std::string(what) + std::string(kAxes); }

}  // namespace

void AddReduce(OpList& ops) {
  auto add = [&](std::string_view name, Fold fold, std::string_view doc) {
    ops.push_back(std::make_unique<Reduce>(name, fold, DocOf(doc)));
  };
  add("ReduceSum", Fold::kSum, "The sum over axes.");
  add("ReduceMean", Fold::kMean, "The mean over axes (floats).");
  add("ReduceMax", Fold::kMax, "The largest element over axes.");
  add("ReduceMin", Fold::kMin, "The smallest element over axes.");
  add("ReduceProd", Fold::kProduct, "The product over axes.");
  add("ReduceL1", Fold::kL1, "The sum of magnitudes over axes.");
  add("ReduceL2", Fold::kL2, "The square root of the sum of squares over axes (floats).");
  add("ReduceSumSquare", Fold::kSumSquare, "The sum of squares over axes.");
  add("ReduceLogSum", Fold::kLogSum, "The logarithm of the sum over axes (floats).");
  add("ReduceLogSumExp", Fold::kLogSumExp, "The logarithm of the sum of exponentials over axes (floats).");
  ops.push_back(std::make_unique<GlobalPool>("GlobalAveragePool", Fold::kMean,
                                             "X [N, C, spatial…] f32 or f64: the mean over all spatial dimensions, [N, C, 1…]. ONNX GlobalAveragePool 1."));
  ops.push_back(std::make_unique<GlobalPool>("GlobalMaxPool", Fold::kMax,
                                             "X [N, C, spatial…] f32 or f64: the largest element over all spatial dimensions, [N, C, 1…]. ONNX GlobalMaxPool 1."));
  ops.push_back(std::make_unique<ArgReduce>(true));
  ops.push_back(std::make_unique<ArgReduce>(false));
}

}  // namespace heddle::ir
