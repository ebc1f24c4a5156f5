// MatMul and Gemm: matrix products, the one with broadcast batch dimensions, the other with transposition and a scaled addend.
//
// Float references add up in double (see conv.cc); integers wrap.

#include <algorithm>
#include <cmath>

#include "ir/ops/all_ops.h"
#include "ir/ops/reduction.h"

namespace heddle::ir {
namespace {

// sums[n] = Σ_k row[k]·b[k, n], b row-major [k, n].
template <typename T>
void MultiplyRow(const T* row, const T* b, int64_t k, int64_t n, Accumulator<T>* sums) {
  using Sum = Accumulator<T>;
  std::fill_n(sums, n, Sum{0});
  for (int64_t i = 0; i < k; ++i) {
    const auto factor = static_cast<Sum>(row[i]);
    const T* b_row = b + i * n;
    for (int64_t j = 0; j < n; ++j) sums[j] += factor * static_cast<Sum>(b_row[j]);
  }
}

Tensor Transposed(const Tensor& t) {
  const Shape shape = {t.shape()[1], t.shape()[0]};
  std::vector<std::vector<int64_t>> tables(2);
  for (int64_t i = 0; i < shape[0]; ++i) tables[0].push_back(i);
  for (int64_t i = 0; i < shape[1]; ++i) tables[1].push_back(i * shape[0]);
  return CopyByTables(t, shape, tables);
}

class MatMul : public Op {
 public:
  std::string_view name() const override { return "MatMul"; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }
  std::string_view doc() const override {
    return "A […, M, K], B […, K, N] of f32, f64, i32, u32, i64 or u64; leading dimensions broadcast; a one-dimensional A is a row, "
           "a one-dimensional B a column, and that dimension is dropped from the result. Y […, M, N]. ONNX MatMul 13 (NumPy matmul).";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 2));
    HEDDLE_RETURN_IF_ERROR(ExpectType(c, 0, {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt32,
                                             ElementType::kUint32, ElementType::kInt64, ElementType::kUint64}));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 1));
    return ExpectRank(c, 1, 1);
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Extents e, ExtentsOf(c));
    Shape y = e.batch;
    if (c.input_shape(0).size() > 1) y.push_back(e.m);
    if (c.input_shape(1).size() > 1) y.push_back(e.n);
    return std::vector<ValueType>{ValueType(c.input_type(0).element, y)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Extents e, ExtentsOf(c));
    const Tensor a = BroadcastTo(in[0]->Reshaped(e.a), Joined(e.batch, e.m, e.k));
    const Tensor b = BroadcastTo(in[1]->Reshaped(e.b), Joined(e.batch, e.k, e.n));
    Tensor y(a.type(), c.output_shape());
    DispatchNumber(a.type(), [&]<typename T>(Tag<T>) {
      std::vector<Accumulator<T>> sums(static_cast<size_t>(e.n));
      T* out = y.as<T>().data();
      for (int64_t batch = 0; batch < ElementCount(e.batch); ++batch) {
        const T* b_data = b.as<T>().data() + batch * e.k * e.n;
        for (int64_t m = 0; m < e.m; ++m) {
          MultiplyRow(a.as<T>().data() + (batch * e.m + m) * e.k, b_data, e.k, e.n, sums.data());
          for (auto sum : sums) *out++ = static_cast<T>(sum);
        }
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Extents e, ExtentsOf(c));
    const bool row = l.input(0).rank() > 1, column = l.input(1).rank() > 1;
    auto value = [&](const loops::Indices& i, const loops::Indices& r) {
      const size_t batch = e.batch.size();
      loops::Indices a(i.begin(), i.begin() + static_cast<int64_t>(batch)), b = a;
      if (row) a.push_back(i[batch]);
      a.push_back(r[0]);
      b.push_back(r[0]);
      if (column) b.push_back(i.back());
      return BroadcastRead(l.input(0), a) * BroadcastRead(l.input(1), b);
    };
    l.Add(loops::Reduce(l.output(), {e.k}, loops::Combiner::kSum, value));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * c.input_shape(0).back();
    work.other_ops = 0;
    return work;
  }
  double ErrorBound(const NodeContext& c, double reference) const override {
    if (kind(c) != OpKind::kFloat) return 0;
    return SumErrorBound(c.output_type().element, c.input_shape(0).back(), reference);
  }
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    if (kind(c) != OpKind::kFloat) return 0;
    const int64_t k = in[0]->shape().back();
    return ProductSumBound(*in[0], LargestMagnitude(*in[1]) * static_cast<double>(k), k);
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt32,
                                     ElementType::kUint32, ElementType::kInt64, ElementType::kUint64});
    const Shape batch = b.RandomShape(0, 2, 3);
    const int64_t m = b.Int(1, 7), k = b.Int(1, 9), n = b.Int(1, 7);
    Shape a = b.BroadcastableTo(batch), w = b.BroadcastableTo(batch);
    if (a.empty() && b.Coin()) a = {k}; else a = Joined(a, m, k);
    if (w.empty() && b.Coin()) w = {k}; else w = Joined(w, k, n);
    return b.Finish(name(), {b.Input(b.RandomTensor(type, a)), b.Either(b.RandomTensor(type, w))});
  }

 private:
  struct Extents {
    Shape a, b;  // with the dimension of a vector added
    Shape batch;
    int64_t m = 1, k = 1, n = 1;
  };

  static Shape Joined(Shape batch, int64_t rows, int64_t columns) {
    batch.push_back(rows);
    batch.push_back(columns);
    return batch;
  }

  static absl::StatusOr<Extents> ExtentsOf(const NodeContext& c) {
    Extents e;
    e.a = c.input_shape(0);
    e.b = c.input_shape(1);
    if (e.a.size() == 1) e.a.insert(e.a.begin(), 1);
    if (e.b.size() == 1) e.b.push_back(1);
    e.m = e.a[e.a.size() - 2];
    e.k = e.a.back();
    e.n = e.b.back();
    if (e.b[e.b.size() - 2] != e.k) {
      return NodeError("E-OP-003", c.node(), fmt::format("inner extents differ: A {}, B {}", ShapeText(c.input_shape(0)),
                                                         ShapeText(c.input_shape(1))));
    }
    HEDDLE_ASSIGN_OR_RETURN(e.batch, BroadcastShapes(c, Shape(e.a.begin(), e.a.end() - 2), Shape(e.b.begin(), e.b.end() - 2)));
    return e;
  }
};

class Gemm : public Op {
 public:
  std::string_view name() const override { return "Gemm"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kFloat; }
  std::string_view doc() const override {
    return "A [M, K] (transA: [K, M]), B [K, N] (transB: [N, K]), optional C that broadcasts to [M, N]; f32 or f64. Attributes alpha, "
           "beta (default 1), transA, transB. Y [M, N] = alpha·A·B + beta·C. ONNX Gemm 13.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 3, {{"alpha", AttributeKind::kFloat}, {"beta", AttributeKind::kFloat},
                                                     {"transA", AttributeKind::kInt}, {"transB", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectFloat(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 2, 2));
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 1, 2, 2));
    const Shape a = c.input_shape(0), b = c.input_shape(1);
    if (a[TransA(c) ? 0 : 1] != b[TransB(c) ? 1 : 0]) {
      return NodeError("E-OP-003", c.node(), fmt::format("inner extents differ: A {}, B {}", ShapeText(a), ShapeText(b)));
    }
    if (!c.has_input(2)) return absl::OkStatus();
    HEDDLE_ASSIGN_OR_RETURN(const Shape joined, BroadcastShapes(c, OutputShape(c), c.input_shape(2)));
    if (joined != OutputShape(c)) return NodeError("E-OP-003", c.node(), "C does not broadcast to [M, N]");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(c.input_type(0).element, OutputShape(c))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Tensor a = TransA(c) ? Transposed(*in[0]) : *in[0];
    const Tensor b = TransB(c) ? Transposed(*in[1]) : *in[1];
    const int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
    const double alpha = c.node().Float("alpha", 1), beta = c.node().Float("beta", 1);
    Tensor y(a.type(), {m, n});
    const bool add = in.size() > 2 && in[2];
    const Tensor addend = add ? BroadcastTo(*in[2], y.shape()) : y;
    DispatchFloat(a.type(), [&]<typename T>(Tag<T>) {
      std::vector<double> sums(static_cast<size_t>(n));
      for (int64_t row = 0; row < m; ++row) {
        MultiplyRow(a.as<T>().data() + row * k, b.as<T>().data(), k, n, sums.data());
        const T* added = addend.as<T>().data() + row * n;
        T* out = y.as<T>().data() + row * n;
        for (int64_t j = 0; j < n; ++j) {
          const double product = alpha * sums[static_cast<size_t>(j)];
          out[j] = static_cast<T>(add ? product + beta * static_cast<double>(added[j]) : product);
        }
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const loops::Buffer a = l.input(0), b = l.input(1);
    const double alpha = c.node().Float("alpha", 1), beta = c.node().Float("beta", 1);
    const bool trans_a = TransA(c), trans_b = TransB(c);
    auto value = [&](const loops::Indices& i, const loops::Indices& r) {
      return (trans_a ? a(r[0], i[0]) : a(i[0], r[0])) * (trans_b ? b(i[1], r[0]) : b(r[0], i[1]));
    };
    auto epilogue = [&](loops::Expr sum, const loops::Indices& i) {
      if (alpha != 1) sum = sum * alpha;
      if (!l.has_input(2)) return sum;
      const loops::Expr addend = BroadcastRead(l.input(2), i);
      return sum + (beta == 1 ? addend : addend * beta);
    };
    l.Add(loops::Reduce(l.output(), {Inner(c)}, loops::Combiner::kSum, value, epilogue));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.macs = c.output_type().elements() * Inner(c);
    work.other_ops = c.has_input(2) ? c.output_type().elements() : 0;
    return work;
  }
  double ErrorBound(const NodeContext& c, double reference) const override {
    return SumErrorBound(c.output_type().element, Inner(c), reference);
  }
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const double product = ProductSumBound(*in[0], LargestMagnitude(*in[1]) * static_cast<double>(Inner(c)), Inner(c));
    const double addend = in.size() > 2 && in[2] ? 4 * UnitRoundoff(in[2]->type()) * LargestMagnitude(*in[2]) : 0;
    return std::abs(c.node().Float("alpha", 1)) * product + std::abs(c.node().Float("beta", 1)) * addend;
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Int(0, 4) == 0 ? ElementType::kFloat64 : ElementType::kFloat32;
    const int64_t m = b.Int(1, 7), k = b.Int(1, 17), n = b.Int(1, 9);
    const int64_t trans_a = b.Int(0, 1), trans_b = b.Int(0, 1);
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, trans_a ? Shape{k, m} : Shape{m, k})),
                                b.Either(b.RandomTensor(type, trans_b ? Shape{n, k} : Shape{k, n}))};
    if (b.Coin()) ids.push_back(b.Either(b.RandomTensor(type, b.BroadcastableTo({m, n}))));
    Attributes attributes = {{"transA", trans_a}, {"transB", trans_b}};
    if (b.Coin()) attributes["alpha"] = b.Real(-2, 2);
    if (b.Coin()) attributes["beta"] = b.Real(-2, 2);
    return b.Finish(name(), ids, attributes);
  }

 private:
  static bool TransA(const NodeContext& c) { return c.node().Int("transA", 0) != 0; }
  static bool TransB(const NodeContext& c) { return c.node().Int("transB", 0) != 0; }
  static int64_t Inner(const NodeContext& c) { return c.input_shape(0)[TransA(c) ? 0 : 1]; }
  static Shape OutputShape(const NodeContext& c) {
    return {c.input_shape(0)[TransA(c) ? 1 : 0], c.input_shape(1)[TransB(c) ? 0 : 1]};
  }
};

}  // namespace

void AddMatMul(OpList& ops) {
  ops.push_back(std::make_unique<MatMul>());
  ops.push_back(std::make_unique<Gemm>());
}

}  // namespace heddle::ir
