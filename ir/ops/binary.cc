// Element-wise functions of two tensors with NumPy broadcasting: arithmetic, comparison, logic.
//
// Integers wrap modulo 2^width; division by zero gives 0, so that every device gives the same answer.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

using loops::Expr;

enum class Function {
  kAdd, kSub, kMul, kDiv, kMod, kPRelu,                                     // number × number -> same type
  kEqual, kLess, kGreater, kLessOrEqual, kGreaterOrEqual,                   // -> bool
  kAnd, kOr, kXor,                                                          // bool × bool -> bool
};

struct Row {
  std::string_view name;
  Function function;
  std::string_view doc;
};

constexpr Row kTable[] = {
    {"Add", Function::kAdd, "C = A + B; numbers of one type, broadcast. Integers wrap. ONNX Add 14."},
    {"Sub", Function::kSub, "C = A - B; numbers of one type, broadcast. Integers wrap. ONNX Sub 14."},
    {"Mul", Function::kMul, "C = A · B; numbers of one type, broadcast. Integers wrap. ONNX Mul 14."},
    {"Div", Function::kDiv, "C = A / B; numbers of one type, broadcast. Integers truncate towards zero; x / 0 = 0. ONNX Div 14."},
    {"Mod", Function::kMod,
     "C = A mod B; numbers of one type, broadcast. Attribute fmod: 0: the sign of B (integers only); 1: the sign of A (C's fmod). "
     "Integers: x mod 0 = 0. ONNX Mod 13."},
    {"PRelu", Function::kPRelu, "Y = X where X >= 0, else slope · X; slope broadcasts to X; floats. ONNX PRelu 16."},
    {"Equal", Function::kEqual, "C = (A == B) as bool; any type, broadcast. ONNX Equal 13."},
    {"Less", Function::kLess, "C = (A < B) as bool; numbers of one type, broadcast. ONNX Less 13."},
    {"Greater", Function::kGreater, "C = (A > B) as bool; numbers of one type, broadcast. ONNX Greater 13."},
    {"LessOrEqual", Function::kLessOrEqual, "C = (A <= B) as bool; numbers of one type, broadcast. ONNX LessOrEqual 16."},
    {"GreaterOrEqual", Function::kGreaterOrEqual, "C = (A >= B) as bool; numbers of one type, broadcast. ONNX GreaterOrEqual 16."},
    {"And", Function::kAnd, "C = A and B; bool, broadcast. ONNX And 7."},
    {"Or", Function::kOr, "C = A or B; bool, broadcast. ONNX Or 7."},
    {"Xor", Function::kXor, "C = A xor B; bool, broadcast. ONNX Xor 7."},
};

bool IsComparison(Function f) { return f >= Function::kEqual && f <= Function::kGreaterOrEqual; }
bool IsLogic(Function f) { return f >= Function::kAnd; }

// T's arithmetic without undefined behaviour: floats as they are, integers in at least 32 unsigned bits.
template <typename T>
T Wrapped(Function f, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return f == Function::kAdd ? a + b : f == Function::kSub ? a - b : a * b;
  } else {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(f == Function::kAdd ? x + y : f == Function::kSub ? x - y : x * y);
  }
}

template <typename T>
T Divided(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == T{0}) return T{0};
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return Wrapped(Function::kSub, T{0}, a);
    }
    return static_cast<T>(a / b);
  }
}

template <typename T>
T Remainder(T a, T b, bool sign_of_dividend) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == T{0}) return T{0};
    if constexpr (std::is_signed_v<T>) {
      if (b == T{-1}) return T{0};
    }
    const T r = static_cast<T>(a % b);
    return sign_of_dividend || r == T{0} || (r < T{0}) == (b < T{0}) ? r : static_cast<T>(r + b);
  }
}

template <typename T>
T Arithmetic(Function f, T a, T b, bool fmod) {
  switch (f) {
    case Function::kDiv: return Divided(a, b);
    case Function::kMod: return Remainder(a, b, fmod);
    case Function::kPRelu: return a < T{0} ? Wrapped(Function::kMul, a, b) : a;
    default: return Wrapped(f, a, b);
  }
}

template <typename T>
bool Compare(Function f, T a, T b) {
  switch (f) {
    case Function::kEqual: return a == b;
    case Function::kLess: return a < b;
    case Function::kGreater: return a > b;
    case Function::kLessOrEqual: return a <= b;
    default: return a >= b;
  }
}

Expr LowerMod(const Expr& a, const Expr& b, bool fmod) {
  if (IsFloat(a.type())) return loops::Call(loops::Intrinsic::kFmod, {a, b});
  const Expr r = loops::SafeMod(a, b);
  if (fmod || !loops::IsSigned(a.type())) return r;
  const Expr zero = loops::Constant(a.type(), 0);
  const Expr keep = loops::Or(loops::Equal(r, zero), loops::Equal(r < zero, b < zero));
  return loops::Select(keep, r, r + b);
}

Expr LowerFunction(Function f, const Expr& a, const Expr& b, bool fmod) {
  switch (f) {
    case Function::kAdd: return a + b;
    case Function::kSub: return a - b;
    case Function::kMul: return a * b;
    case Function::kDiv: return IsFloat(a.type()) ? a / b : loops::SafeDiv(a, b);
    case Function::kMod: return LowerMod(a, b, fmod);
    case Function::kPRelu: return loops::Select(a < loops::Constant(a.type(), 0), a * b, a);
    case Function::kEqual: return loops::Equal(a, b);
    case Function::kLess: return a < b;
    case Function::kGreater: return a > b;
    case Function::kLessOrEqual: return a <= b;
    case Function::kGreaterOrEqual: return a >= b;
    case Function::kAnd: return loops::And(a, b);
    case Function::kOr: return loops::Or(a, b);
    case Function::kXor: return loops::Xor(a, b);
  }
  CheckFailed(__FILE__, __LINE__, "f", "unknown function");
}

class BinaryOp : public Op {
 public:
  explicit BinaryOp(const Row& row) : row_(row) {}
  std::string_view name() const override { return row_.name; }
  std::string_view doc() const override { return row_.doc; }
  // Comparisons of equal operands are exact on every device.
  OpKind kind(const NodeContext& c) const override {
    const bool exact = !IsFloat(c.input_type(0).element) || IsComparison(row_.function);
    return exact ? OpKind::kInteger : OpKind::kFloat;
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(row_.function == Function::kMod ? VerifySignature(c, 2, 2, {{"fmod", AttributeKind::kInt}})
                                                           : VerifySignature(c, 2, 2));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    if (IsLogic(row_.function)) return ExpectType(c, 0, {ElementType::kBool});
    if (row_.function == Function::kEqual) return absl::OkStatus();
    if (row_.function == Function::kPRelu) return ExpectFloat(c, 0);
    if (row_.function == Function::kMod && IsFloat(c.input_type(0).element) && !Fmod(c)) {
      return NodeError("E-OP-004", c.node(), "fmod must be 1 for floats");
    }
    return ExpectNumber(c, 0);
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastInputs(c));
    if (row_.function == Function::kPRelu && shape != c.input_shape(0)) {
      return NodeError("E-OP-003", c.node(), fmt::format("slope {} does not broadcast to X {}", ShapeText(c.input_shape(1)),
                                                         ShapeText(c.input_shape(0))));
    }
    const bool boolean = IsComparison(row_.function) || IsLogic(row_.function);
    return std::vector<ValueType>{ValueType(boolean ? ElementType::kBool : c.input_type(0).element, shape)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Tensor a = BroadcastTo(*in[0], c.output_shape()), b = BroadcastTo(*in[1], c.output_shape());
    Tensor y(c.output_type().element, c.output_shape());
    const size_t count = static_cast<size_t>(y.elements());
    const Function f = row_.function;
    if (IsLogic(f)) {
      for (size_t i = 0; i < count; ++i) {
        const bool p = a.as<bool>()[i], q = b.as<bool>()[i];
        y.as<bool>()[i] = f == Function::kAnd ? p && q : f == Function::kOr ? p || q : p != q;
      }
    } else if (IsComparison(f)) {
      DispatchElement(a.type(), [&]<typename T>(Tag<T>) {
        for (size_t i = 0; i < count; ++i) y.as<bool>()[i] = Compare(f, a.as<T>()[i], b.as<T>()[i]);
      });
    } else {
      const bool fmod = Fmod(c);
      DispatchNumber(a.type(), [&]<typename T>(Tag<T>) {
        const T* p = a.as<T>().data();
        const T* q = b.as<T>().data();
        T* out = y.as<T>().data();
        for (size_t i = 0; i < count; ++i) out[i] = Arithmetic(f, p[i], q[i], fmod);
      });
    }
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const bool fmod = Fmod(c);
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      return LowerFunction(row_.function, BroadcastRead(l.input(0), i), BroadcastRead(l.input(1), i), fmod);
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    ElementType type = b.Coin() ? ElementType::kFloat32 : b.NumberType();
    if (IsLogic(row_.function)) type = ElementType::kBool;
    if (row_.function == Function::kPRelu && !IsFloat(type)) type = ElementType::kFloat64;
    const Shape shape = b.RandomShape(0, 4);
    const Shape left = row_.function == Function::kPRelu ? shape : b.BroadcastableTo(shape);
    Attributes attributes;
    if (row_.function == Function::kMod) attributes["fmod"] = IsFloat(type) ? 1 : b.Int(0, 1);
    // Wide integers, so that wrapping and division by zero occur; floats away from a zero divisor's poles.
    const bool divides = row_.function == Function::kDiv || row_.function == Function::kMod;
    const double low = IsFloat(type) && divides ? 0.5 : -100, high = IsFloat(type) ? 4 : 100;
    return b.Finish(name(), {b.Input(b.RandomTensor(type, left, -100, 100)),
                             b.Either(b.RandomTensor(type, b.BroadcastableTo(shape), divides ? low / 50 : low, divides ? high / 50 : high))},
                    attributes);
  }

 private:
  static bool Fmod(const NodeContext& c) { return c.node().Has("fmod") && c.node().Int("fmod") != 0; }
  const Row& row_;
};

// base^exponent modulo 2^64; negative exponents truncate towards zero as 1 / base^|exponent| does.
uint64_t IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : ~uint64_t{0}) : 0;
  uint64_t result = 1;
  for (auto square = static_cast<uint64_t>(base); exponent != 0; exponent >>= 1, square *= square) {
    if (exponent & 1) result *= square;
  }
  return result;
}

template <typename T>
T Saturated(double value) {
  if (std::is_floating_point_v<T>) return static_cast<T>(value);
  if (std::isnan(value)) return T{0};
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

class Power : public Op {
 public:
  std::string_view name() const override { return "Pow"; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }
  std::string_view doc() const override {
    return "Z = X^Y, of X's type; numbers, X and Y may differ in type; broadcast. Integers to integer powers wrap; to float powers "
           "they are truncated and saturate. ONNX Pow 15.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 2));
    HEDDLE_RETURN_IF_ERROR(ExpectNumber(c, 0));
    return ExpectNumber(c, 1);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastInputs(c));
    return std::vector<ValueType>{ValueType(c.input_type(0).element, shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Tensor x = BroadcastTo(*in[0], c.output_shape()), e = BroadcastTo(*in[1], c.output_shape());
    Tensor y(x.type(), c.output_shape());
    DispatchNumber(x.type(), [&]<typename T>(Tag<T>) {
      for (int64_t i = 0; i < y.elements(); ++i) {
        y.as<T>()[static_cast<size_t>(i)] = !IsFloat(x.type()) && !IsFloat(e.type())
                                                ? static_cast<T>(IntegerPower(x.at_int(i), e.at_int(i)))
                                                : Saturated<T>(std::pow(x.at_double(i), e.at_double(i)));
      }
    });
    return std::vector<Tensor>{std::move(y)};
  }
  // Floats only. Squares and square roots by a constant exponent are common (normalisations) and need no power function.
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const ElementType type = l.input(0).type();
    if (!IsFloat(type)) return Op::Lower(c, l);
    const Tensor* e = c.constant(1);
    const double constant = e && e->elements() == 1 ? e->at_double(0) : 0;
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      const Expr x = BroadcastRead(l.input(0), i);
      if (constant == 1) return x;
      if (constant == 2) return x * x;
      if (constant == 0.5) return loops::Sqrt(x);
      return loops::Pow(x, loops::Cast(type, BroadcastRead(l.input(1), i)));
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(0, 4);
    const ElementType type = b.Coin() ? ElementType::kFloat32 : b.NumberType();
    const ElementType exponent_type = b.Coin() ? type : b.NumberType();
    const Tensor x = b.RandomTensor(type, b.BroadcastableTo(shape), IsFloat(type) ? 0.1 : -9, 9);
    const ValueId exponent = b.Coin() ? b.Input(b.RandomTensor(exponent_type, b.BroadcastableTo(shape), -3, 3))
                                      : b.Constant(b.RandomTensor(exponent_type, {}, 0, 2));
    return b.Finish(name(), {b.Input(x), exponent});
  }
};

}  // namespace

void AddBinary(OpList& ops) {
  for (const Row& row : kTable) ops.push_back(std::make_unique<BinaryOp>(row));
  ops.push_back(std::make_unique<Power>());
}

}  // namespace heddle::ir
