// Element-wise functions of any number of tensors: Min, Max, Sum, Mean; and Clip and Where, which take three.

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

using loops::Expr;

enum class Fold { kMin, kMax, kSum, kMean };

class Variadic : public Op {
 public:
  Variadic(std::string_view name, Fold fold, std::string_view doc) : name_(name), doc_(doc), fold_(fold) {}
  std::string_view name() const override { return name_; }
  std::string_view doc() const override { return doc_; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, -1));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    return fold_ == Fold::kMin || fold_ == Fold::kMax ? ExpectNumber(c, 0) : ExpectFloat(c, 0);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastInputs(c));
    return std::vector<ValueType>{ValueType(c.input_type(0).element, shape)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    Tensor y = BroadcastTo(*in[0], c.output_shape());
    DispatchNumber(y.type(), [&]<typename T>(Tag<T>) {
      const auto out = y.as<T>();
      using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
      std::vector<Sum> folded(out.begin(), out.end());
      for (size_t k = 1; k < in.size(); ++k) {
        const Tensor other = BroadcastTo(*in[k], c.output_shape());
        for (size_t i = 0; i < out.size(); ++i) folded[i] = Step<Sum>(folded[i], static_cast<Sum>(other.as<T>()[i]));
      }
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<T>(fold_ == Fold::kMean ? folded[i] / static_cast<Sum>(in.size()) : folded[i]);
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      Expr folded = BroadcastRead(l.input(0), i);
      for (int k = 1; k < l.num_inputs(); ++k) {
        const Expr other = BroadcastRead(l.input(k), i);
        folded = fold_ == Fold::kMin ? loops::Min(folded, other) : fold_ == Fold::kMax ? loops::Max(folded, other) : folded + other;
      }
      return fold_ == Fold::kMean && l.num_inputs() > 1 ? folded * (1.0 / l.num_inputs()) : folded;
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const bool integers = fold_ == Fold::kMin || fold_ == Fold::kMax;
    const ElementType type = integers && b.Coin() ? b.NumberType() : b.Pick({ElementType::kFloat32, ElementType::kFloat64});
    const Shape shape = b.RandomShape(0, 4);
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, b.BroadcastableTo(shape), -100, 100))};
    for (int64_t more = b.Int(0, 3); more > 0; --more) {
      ids.push_back(b.Either(b.RandomTensor(type, b.BroadcastableTo(shape), -100, 100)));
    }
    return b.Finish(name_, ids);
  }

  // A sum of a few numbers rounds each time, whatever the sum cancels to.
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    if (fold_ == Fold::kMin || fold_ == Fold::kMax) return 0;
    double total = 0;
    for (const Tensor* t : in) {
      double largest = 0;
      for (int64_t i = 0; i < t->elements(); ++i) largest = std::max(largest, std::abs(t->at_double(i)));
      total += largest;
    }
    return static_cast<double>(in.size()) * UnitRoundoff(c.output_type().element) * total;
  }

 private:
  template <typename T>
  T Step(T a, T b) const {
    if (fold_ == Fold::kMin) return std::min(a, b);
    if (fold_ == Fold::kMax) return std::max(a, b);
    return static_cast<T>(a + b);  // floats only
  }

  std::string_view name_, doc_;
  Fold fold_;
};

class Clip : public Op {
 public:
  std::string_view name() const override { return "Clip"; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }
  std::string_view doc() const override {
    return "X of any shape, numbers; optional min and max, one element of X's type. Y = min(max(X, min), max). ONNX Clip 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 3));
    HEDDLE_RETURN_IF_ERROR(ExpectNumber(c, 0));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (c.has_input(i) && ElementCount(c.input_shape(i)) != 1) {
        return NodeError("E-OP-003", c.node(), fmt::format("input {} must have one element, has shape {}", i,
                                                           ShapeText(c.input_shape(i))));
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(c.input_type(0).element, c.input_shape(0))};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext&, std::span<const Tensor* const> in) const override {
    Tensor y = *in[0];
    DispatchNumber(y.type(), [&]<typename T>(Tag<T>) {
      if (in.size() > 1 && in[1]) {
        const T low = in[1]->as<T>()[0];
        for (T& value : y.as<T>()) value = std::max(value, low);
      }
      if (in.size() > 2 && in[2]) {
        const T high = in[2]->as<T>()[0];
        for (T& value : y.as<T>()) value = std::min(value, high);
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    // A constant bound becomes part of the code.
    auto bound = [&](int input) {
      const loops::Buffer& b = l.input(input);
      if (const Tensor* t = c.constant(input)) {
        return IsFloat(t->type()) ? loops::FloatConstant(t->type(), t->at_double(0)) : loops::IntConstant(t->type(), t->at_int(0));
      }
      return b.At(loops::Indices(static_cast<size_t>(b.rank()), Expr(0)));
    };
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      Expr y = l.input(0).At(i);
      if (c.has_input(1)) y = loops::Max(y, bound(1));
      if (c.has_input(2)) y = loops::Min(y, bound(2));
      return y;
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.Coin() ? ElementType::kFloat32 : b.NumberType();
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, b.RandomShape(0, 4), -10, 10))};
    ids.push_back(b.Coin() ? kNoValue : b.Either(b.RandomTensor(type, {}, -5, 0)));
    if (b.Coin()) ids.push_back(b.Either(b.RandomTensor(type, {}, 0, 5)));
    return b.Finish(name(), ids);
  }
};

class Where : public Op {
 public:
  std::string_view name() const override { return "Where"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "condition bool, X and Y of one type; all broadcast. The element of X where the condition holds, else that of Y. "
           "ONNX Where 16.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 3, 3));
    HEDDLE_RETURN_IF_ERROR(ExpectType(c, 0, {ElementType::kBool}));
    return ExpectSameTypes(c, 1);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastInputs(c));
    return std::vector<ValueType>{ValueType(c.input_type(1).element, shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Tensor condition = BroadcastTo(*in[0], c.output_shape()), x = BroadcastTo(*in[1], c.output_shape());
    Tensor y = BroadcastTo(*in[2], c.output_shape());
    DispatchSize(y.type(), [&]<typename T>(Tag<T>) {
      for (int64_t i = 0; i < y.elements(); ++i) {
        if (condition.as<bool>()[static_cast<size_t>(i)]) RawData<T>(y)[i] = RawData<T>(x)[i];
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      return loops::Select(BroadcastRead(l.input(0), i), BroadcastRead(l.input(1), i), BroadcastRead(l.input(2), i));
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.AnyType();
    const Shape shape = b.RandomShape(0, 4);
    return b.Finish(name(), {b.Input(b.RandomTensor(ElementType::kBool, b.BroadcastableTo(shape))),
                             b.Either(b.RandomTensor(type, b.BroadcastableTo(shape))),
                             b.Either(b.RandomTensor(type, b.BroadcastableTo(shape)))});
  }
};

}  // namespace

void AddVariadic(OpList& ops) {
  ops.push_back(std::make_unique<Variadic>("Min", Fold::kMin, "One or more tensors of one number type, broadcast: the least element. ONNX Min 13."));
  ops.push_back(std::make_unique<Variadic>("Max", Fold::kMax, "One or more tensors of one number type, broadcast: the largest element. ONNX Max 13."));
  ops.push_back(std::make_unique<Variadic>("Sum", Fold::kSum, "One or more float tensors, broadcast: their sum. ONNX Sum 13."));
  ops.push_back(std::make_unique<Variadic>("Mean", Fold::kMean, "One or more float tensors, broadcast: their mean. ONNX Mean 13."));
  ops.push_back(std::make_unique<Clip>());
  ops.push_back(std::make_unique<Where>());
}

}  // namespace heddle::ir
