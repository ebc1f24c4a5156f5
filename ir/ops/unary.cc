// Element-wise functions of one tensor, driven by one table: a row is all there is to know of such an op.
//
// Float references are computed in double and rounded once.

#include <cmath>
#include <iterator>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

using loops::Expr;

// How a function treats integers, where it takes them.
enum class OnIntegers { kRefused, kAbs, kNeg, kRelu, kSign };

struct Parameter {
  const char* name = nullptr;  // a float attribute; or "approximate", a string: 1 for "tanh", 0 for "none"
  double fallback = 0;
};

struct Unary {
  std::string_view name;
  std::string_view doc;
  // The function of x and the parameters a and b, and the same as a loop expression of x's type.
  double (*evaluate)(double x, double a, double b);
  Expr (*lower)(Expr x, double a, double b);
  OnIntegers on_integers = OnIntegers::kRefused;
  double low = -4, high = 4;  // range of samples
  Parameter a = {}, b = {};
};

Expr One(const Expr& x) { return loops::Constant(x.type(), 1); }
Expr Zero(const Expr& x) { return loops::Constant(x.type(), 0); }
Expr Real(const Expr& x, double value) { return loops::FloatConstant(x.type(), value); }

double SoftplusOf(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
Expr LowerSoftplus(Expr x) { return loops::Max(x, Zero(x)) + loops::Log(One(x) + loops::Exp(loops::Neg(loops::Abs(x)))); }

// The largest x for which exp cannot overflow in the branch that is taken: exp of min(x, 0).
Expr ExpMinusOne(Expr x) { return loops::Exp(loops::Min(x, Zero(x))) - One(x); }

double GeluOf(double x, double tanh_form, double) {
  if (tanh_form == 0) return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
  return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
Expr LowerGelu(Expr x, double tanh_form, double) {
  const Expr inner = tanh_form == 0 ? loops::Erf(x * 0.70710678118654752440)
                                    : loops::Tanh((x + x * x * x * 0.044715) * 0.79788456080286535588);
  return x * 0.5 * (inner + 1);
}

#define HEDDLE_SAME(function, intrinsic)                        \
  [](double x, double, double) -> double { return function(x); }, \
      [](Expr x, double, double) -> Expr { return loops::Call(loops::Intrinsic::intrinsic, {x}); }

const Unary kTable[] = {
    {"Relu", "Y = max(X, 0). Any number type. ONNX Relu 14.", [](double x, double, double) { return x < 0 ? 0 : x; },
     [](Expr x, double, double) { return loops::Max(x, Zero(x)); }, OnIntegers::kRelu},
    {"Abs", "Y = |X|. Any number type. ONNX Abs 13.", HEDDLE_SAME(std::fabs, kAbs), OnIntegers::kAbs},
    {"Neg", "Y = -X. Floats and signed integers. ONNX Neg 13.", HEDDLE_SAME(-, kNeg), OnIntegers::kNeg},
    {"Sign", "Y = -1, 0 or 1. Any number type. ONNX Sign 13.",
     [](double x, double, double) -> double { return x > 0 ? 1 : x < 0 ? -1 : 0; },
     [](Expr x, double, double) {
       const Expr negative = IsFloat(x.type()) || loops::IsSigned(x.type())
                                 ? loops::Select(x < Zero(x), loops::Constant(x.type(), -1), Zero(x))
                                 : Zero(x);
       return loops::Select(x > Zero(x), One(x), negative);
     },
     OnIntegers::kSign},
    {"Exp", "Y = e^X. ONNX Exp 13.", HEDDLE_SAME(std::exp, kExp)},
    {"Log", "Y = ln X. ONNX Log 13.", HEDDLE_SAME(std::log, kLog), OnIntegers::kRefused, 0.01, 9},
    {"Sqrt", "Y = the square root of X. ONNX Sqrt 13.", HEDDLE_SAME(std::sqrt, kSqrt), OnIntegers::kRefused, 0, 9},
    {"Reciprocal", "Y = 1 / X. ONNX Reciprocal 13.", [](double x, double, double) { return 1 / x; },
     [](Expr x, double, double) { return One(x) / x; }, OnIntegers::kRefused, 0.1, 9},
    {"Floor", "Y = the largest whole number <= X. ONNX Floor 13.", HEDDLE_SAME(std::floor, kFloor)},
    {"Ceil", "Y = the smallest whole number >= X. ONNX Ceil 13.", HEDDLE_SAME(std::ceil, kCeil)},
    {"Round", "Y = the nearest whole number, ties to even. ONNX Round 11.", HEDDLE_SAME(std::nearbyint, kRint)},
    {"Sin", "Y = sin X (radians). ONNX Sin 7.", HEDDLE_SAME(std::sin, kSin)},
    {"Cos", "Y = cos X (radians). ONNX Cos 7.", HEDDLE_SAME(std::cos, kCos)},
    {"Tan", "Y = tan X (radians). ONNX Tan 7.", HEDDLE_SAME(std::tan, kTan), OnIntegers::kRefused, -1.4, 1.4},
    {"Asin", "Y = arcsin X. ONNX Asin 7.", HEDDLE_SAME(std::asin, kAsin), OnIntegers::kRefused, -1, 1},
    {"Acos", "Y = arccos X. ONNX Acos 7.", HEDDLE_SAME(std::acos, kAcos), OnIntegers::kRefused, -1, 1},
    {"Atan", "Y = arctan X. ONNX Atan 7.", HEDDLE_SAME(std::atan, kAtan)},
    {"Sinh", "Y = sinh X. ONNX Sinh 9.", HEDDLE_SAME(std::sinh, kSinh)},
    {"Cosh", "Y = cosh X. ONNX Cosh 9.", HEDDLE_SAME(std::cosh, kCosh)},
    {"Asinh", "Y = arsinh X. ONNX Asinh 9.", HEDDLE_SAME(std::asinh, kAsinh)},
    {"Acosh", "Y = arcosh X. ONNX Acosh 9.", HEDDLE_SAME(std::acosh, kAcosh), OnIntegers::kRefused, 1.01, 4},
    {"Atanh", "Y = artanh X. ONNX Atanh 9.", HEDDLE_SAME(std::atanh, kAtanh), OnIntegers::kRefused, -0.95, 0.95},
    {"Tanh", "Y = tanh X. ONNX Tanh 13.", HEDDLE_SAME(std::tanh, kTanh)},
    {"Erf", "Y = the error function of X. ONNX Erf 13.", HEDDLE_SAME(std::erf, kErf)},
    {"Sigmoid", "Y = 1 / (1 + e^-X). ONNX Sigmoid 13.", [](double x, double, double) { return 1 / (1 + std::exp(-x)); },
     [](Expr x, double, double) { return loops::Sigmoid(x); }},
    {"Softplus", "Y = ln(1 + e^X). ONNX Softplus 1.", [](double x, double, double) { return SoftplusOf(x); },
     [](Expr x, double, double) { return LowerSoftplus(x); }},
    {"Softsign", "Y = X / (1 + |X|). ONNX Softsign 1.", [](double x, double, double) { return x / (1 + std::fabs(x)); },
     [](Expr x, double, double) { return x / (One(x) + loops::Abs(x)); }},
    {"Mish", "Y = X · tanh(ln(1 + e^X)). ONNX Mish 18.", [](double x, double, double) { return x * std::tanh(SoftplusOf(x)); },
     [](Expr x, double, double) { return x * loops::Tanh(LowerSoftplus(x)); }},
    {"HardSwish", "Y = X · max(0, min(1, X / 6 + 1/2)). ONNX HardSwish 14.",
     [](double x, double, double) { return x * std::fmax(0, std::fmin(1, x / 6 + 0.5)); },
     [](Expr x, double, double) { return x * loops::Clamp(x * (1.0 / 6) + 0.5, Zero(x), One(x)); }},
    {"LeakyRelu", "Y = X where X >= 0, else alpha · X. Attribute alpha (0.01). ONNX LeakyRelu 16.",
     [](double x, double a, double) { return x < 0 ? a * x : x; },
     [](Expr x, double a, double) { return loops::Select(x < Zero(x), x * a, x); }, OnIntegers::kRefused, -4, 4, {"alpha", 0.01}},
    {"Elu", "Y = X where X >= 0, else alpha · (e^X - 1). Attribute alpha (1). ONNX Elu 6.",
     [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; },
     [](Expr x, double a, double) { return loops::Select(x < Zero(x), ExpMinusOne(x) * a, x); }, OnIntegers::kRefused, -4, 4,
     {"alpha", 1}},
    {"Celu", "Y = max(0, X) + min(0, alpha · (e^(X / alpha) - 1)). Attribute alpha (1). ONNX Celu 12.",
     [](double x, double a, double) { return std::fmax(0, x) + std::fmin(0, a * std::expm1(x / a)); },
     [](Expr x, double a, double) {
       return loops::Max(x, Zero(x)) + loops::Min((loops::Exp(loops::Min(x / a, Real(x, 80))) - One(x)) * a, Zero(x));
     },
     OnIntegers::kRefused, -4, 4, {"alpha", 1}},
    {"Selu", "Y = gamma · (X where X > 0, else alpha · (e^X - 1)). Attributes alpha, gamma. ONNX Selu 6.",
     [](double x, double a, double g) { return g * (x > 0 ? x : a * std::expm1(x)); },
     [](Expr x, double a, double g) { return loops::Select(x > Zero(x), x, ExpMinusOne(x) * a) * g; }, OnIntegers::kRefused, -4, 4,
     {"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}},
    {"HardSigmoid", "Y = max(0, min(1, alpha · X + beta)). Attributes alpha (0.2), beta (0.5). ONNX HardSigmoid 6.",
     [](double x, double a, double b) { return std::fmax(0, std::fmin(1, a * x + b)); },
     [](Expr x, double a, double b) { return loops::Clamp(x * a + b, Zero(x), One(x)); }, OnIntegers::kRefused, -4, 4,
     {"alpha", 0.2}, {"beta", 0.5}},
    {"ThresholdedRelu", "Y = X where X > alpha, else 0. Attribute alpha (1). ONNX ThresholdedRelu 10.",
     [](double x, double a, double) { return x > a ? x : 0; },
     [](Expr x, double a, double) { return loops::Select(x > Real(x, a), x, Zero(x)); }, OnIntegers::kRefused, -4, 4, {"alpha", 1}},
    {"Gelu", "Y = X · Φ(X); attribute approximate: \"none\" (erf) or \"tanh\". ONNX Gelu 20.", GeluOf, LowerGelu,
     OnIntegers::kRefused, -4, 4, {"approximate", 0}},
};
#undef HEDDLE_SAME

template <typename T>
T OnInteger(OnIntegers how, T x) {
  using U = std::make_unsigned_t<T>;
  switch (how) {
    case OnIntegers::kAbs: return x < T{0} ? static_cast<T>(U{0} - static_cast<U>(x)) : x;
    case OnIntegers::kNeg: return static_cast<T>(U{0} - static_cast<U>(x));
    case OnIntegers::kSign: return static_cast<T>((x > T{0}) - (x < T{0}));
    default: return x < T{0} ? T{0} : x;
  }
}

bool IsUnsigned(ElementType type) { return IsInteger(type) && !loops::IsSigned(type); }

class UnaryOp : public Op {
 public:
  explicit UnaryOp(const Unary& row) : row_(row) {}
  std::string_view name() const override { return row_.name; }
  std::string_view doc() const override { return row_.doc; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }

  absl::Status Verify(const NodeContext& c) const override {
    const AttributeSpec a = SpecOf(row_.a), b = SpecOf(row_.b);
    HEDDLE_RETURN_IF_ERROR(!row_.a.name   ? VerifySignature(c, 1, 1)
                           : !row_.b.name ? VerifySignature(c, 1, 1, {a})
                                          : VerifySignature(c, 1, 1, {a, b}));
    HEDDLE_RETURN_IF_ERROR(ExpectString(c, "approximate", {"none", "tanh"}));
    if (row_.on_integers == OnIntegers::kRefused) return ExpectFloat(c, 0);
    if (row_.on_integers == OnIntegers::kNeg && IsUnsigned(c.input_type(0).element)) {
      return NodeError("E-OP-002", c.node(), "unsigned numbers have no negative");
    }
    return ExpectNumber(c, 0);
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(c.input_type(0).element, c.input_shape(0))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    Tensor y(in[0]->type(), in[0]->shape());
    const double a = ParameterOf(c, row_.a), b = ParameterOf(c, row_.b);
    DispatchNumber(y.type(), [&]<typename T>(Tag<T>) {
      const auto x = in[0]->as<T>();
      const auto out = y.as<T>();
      for (size_t i = 0; i < out.size(); ++i) {
        if constexpr (std::is_floating_point_v<T>) {
          out[i] = static_cast<T>(row_.evaluate(static_cast<double>(x[i]), a, b));
        } else {
          out[i] = OnInteger(row_.on_integers, x[i]);
        }
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const double a = ParameterOf(c, row_.a), b = ParameterOf(c, row_.b);
    const bool identity = IsUnsigned(l.input(0).type()) && row_.on_integers != OnIntegers::kSign;
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      const Expr x = l.input(0).At(i);
      return identity ? x : row_.lower(x, a, b);
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    ElementType type = b.Pick({ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat64});
    if (row_.on_integers != OnIntegers::kRefused && b.Coin()) type = b.NumberType();
    if (row_.on_integers == OnIntegers::kNeg && IsUnsigned(type)) type = ElementType::kInt8;
    Attributes attributes;
    for (const Parameter& p : {row_.a, row_.b}) {
      if (!p.name || b.Coin()) continue;
      if (IsText(p)) {
        attributes[p.name] = std::string(b.Coin() ? "tanh" : "none");
      } else {
        attributes[p.name] = b.Real(0.1, 1.5);
      }
    }
    return b.Finish(name(), {b.Input(b.RandomTensor(type, b.RandomShape(0, 4), row_.low, row_.high))}, attributes);
  }

 private:
  static bool IsText(const Parameter& p) { return std::string_view(p.name) == "approximate"; }
  static AttributeSpec SpecOf(const Parameter& p) {
    if (!p.name) return {};
    return {p.name, IsText(p) ? AttributeKind::kString : AttributeKind::kFloat};
  }
  static double ParameterOf(const NodeContext& c, const Parameter& p) {
    if (!p.name) return 0;
    return IsText(p) ? (c.node().String(p.name, "none") == "tanh" ? 1 : 0) : c.node().Float(p.name, p.fallback);
  }

  const Unary& row_;
};

class Not : public Op {
 public:
  std::string_view name() const override { return "Not"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override { return "X bool, any shape. Y = not X. ONNX Not 1."; }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1));
    return ExpectType(c, 0, {ElementType::kBool});
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(ElementType::kBool, c.input_shape(0))};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext&, std::span<const Tensor* const> in) const override {
    Tensor y = *in[0];
    for (bool& value : y.as<bool>()) value = !value;
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) { return loops::Not(l.input(0).At(i)); }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    return b.Finish(name(), {b.Input(b.RandomTensor(ElementType::kBool, b.RandomShape(0, 4)))});
  }
};

}  // namespace

void AddUnary(OpList& ops) {
  for (const Unary& row : kTable) ops.push_back(std::make_unique<UnaryOp>(row));
  ops.push_back(std::make_unique<Not>());
}

}  // namespace heddle::ir
