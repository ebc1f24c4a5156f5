// Scalar expressions of the loop IR: immutable, typed, shared trees (in fact acyclic graphs: a node may have several users).
//
// Exact meaning, the same for the interpreter and every printer:
//  - Operands of arithmetic and comparisons have one type; conversions are explicit (Cast). Nothing promotes: i8 + i8 is i8.
//  - Integers wrap modulo 2^width, two's complement. kDiv and kMod truncate towards zero like C; a zero divisor or
//    min / -1 is undefined, so use SafeDiv where the divisor is data. kFloorDiv and kFloorMod round towards minus infinity
//    and need a positive divisor. kShiftRight is arithmetic for signed types, logical for unsigned; 0 <= amount < width.
//  - kMin is std::min: (b < a) ? b : a, and kMax is std::max: (a < b) ? b : a, which settles what a NaN does.
//  - Comparisons give bool; kAnd, kOr and kXor work on integers and bool. Floating-point comparisons are ordered (false for a
//    NaN) except kNotEqual.
//  - Select evaluates only the operand that it returns: the other one's loads do not happen. (So it can guard a load.)
//  - Cast between integers wraps; float to integer truncates and is undefined out of range (use SaturatingCast); a cast to
//    bool is `!= 0`.
//  - A float multiply and an add may be contracted to a fused multiply-add by a device; nothing else is reassociated.
#ifndef HEDDLE_IR_LOOPS_EXPR_H_
#define HEDDLE_IR_LOOPS_EXPR_H_

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/types.h"

namespace heddle::ir::loops {

struct ExprNode;
struct BufferNode;

enum class ExprKind : uint8_t {
  kIntImm,    // int_value, as the type's bits sign- or zero-extended; bool is 0 or 1
  kFloatImm,  // float_value
  kVar,       // name; identity is the node
  kLoad,      // buffer[operands...]: one i64 index per dimension
  kBinary,    // binary(operands[0], operands[1])
  kSelect,    // operands[0] ? operands[1] : operands[2]
  kCast,      // operands[0] converted to type
  kCall,      // intrinsic(operands...)
};

enum class BinaryOp : uint8_t {
  kAdd, kSub, kMul, kDiv, kMod, kFloorDiv, kFloorMod, kMin, kMax, kShiftLeft, kShiftRight, kAnd, kOr, kXor,
  kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual,
};

// Of one float operand, except kAbs and kNeg (any number) and kPow, kFmod and kAtan2 (two operands). kRint rounds half to even.
enum class Intrinsic : uint8_t {
  kExp, kLog, kTanh, kErf, kSqrt, kFloor, kCeil, kTrunc, kRint, kAbs, kNeg, kPow, kFmod, kSin, kCos, kTan, kAsin, kAcos, kAtan,
  kSinh, kCosh, kAsinh, kAcosh, kAtanh, kAtan2,
};

std::string_view BinaryOpName(BinaryOp op);      // "add", "floor_div", …
std::string_view BinaryOpSymbol(BinaryOp op);    // C's operator ("+"); "" for kFloorDiv, kFloorMod, kMin, kMax
bool IsComparison(BinaryOp op);
std::string_view IntrinsicName(Intrinsic intrinsic);  // C's name without a type suffix ("exp", "fabs" is "abs", …)

// A handle to an immutable node. Empty (false) when default constructed.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  // An i64 constant: indices may be written as plain numbers.
  template <std::integral T>
  Expr(T value) : Expr(Index(static_cast<int64_t>(value))) {}  // NOLINT

  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* get() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }
  ElementType type() const;

 private:
  static Expr Index(int64_t value);
  std::shared_ptr<const ExprNode> node_;
};

enum class MemorySpace : uint8_t {
  kGlobal,    // parameters and large temporaries
  kConstant,  // a table with fixed contents
  kShared,    // OpenCL local, CUDA shared: one per block of threads
  kPrivate,   // registers or stack of one thread
};

struct BufferNode {
  std::string name;
  ElementType type = ElementType::kFloat32;
  Shape shape;  // constant extents, outermost first; row-major and dense. {} is one element.
  MemorySpace space = MemorySpace::kGlobal;
  std::shared_ptr<const Tensor> contents;  // of kConstant buffers only
  int64_t elements() const { return ElementCount(shape); }
  int64_t bytes() const { return elements() * ElementBytes(type); }
};

// A handle to a buffer; identity is the node. `buffer(n, c, h, w)` is the expression that loads that element.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::string name, ElementType type, Shape shape, MemorySpace space = MemorySpace::kGlobal);
  // A table of fixed contents.
  static Buffer Table(std::string name, Tensor contents);

  template <typename... Index>
  Expr operator()(Index... indices) const {
    return At({Expr(indices)...});
  }
  Expr At(std::vector<Expr> indices) const;

  const BufferNode* operator->() const { return node_.get(); }
  const BufferNode* get() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const Buffer& other) const { return node_ == other.node_; }
  ElementType type() const { return node_->type; }
  const Shape& shape() const { return node_->shape; }
  int rank() const { return static_cast<int>(node_->shape.size()); }

 private:
  std::shared_ptr<const BufferNode> node_;
};

struct ExprNode {
  ExprKind kind = ExprKind::kIntImm;
  ElementType type = ElementType::kInt64;
  BinaryOp binary = BinaryOp::kAdd;
  Intrinsic intrinsic = Intrinsic::kExp;
  int64_t int_value = 0;
  double float_value = 0;
  std::string name;
  Buffer buffer;
  std::vector<Expr> operands;
};

// ---- Construction. Operand types are checked (HEDDLE_CHECK: a mismatch is our bug).

// A new variable; loop variables and indices are i64.
Expr Var(std::string name, ElementType type = ElementType::kInt64);
// A constant of the type, wrapped (integers) or rounded (floats) to it.
Expr IntConstant(ElementType type, int64_t value);
Expr FloatConstant(ElementType type, double value);
Expr Constant(ElementType type, double value);  // of any type; bool is value != 0
inline Expr Constant(ElementType type, std::integral auto value) {
  return IsFloat(type) ? FloatConstant(type, static_cast<double>(value)) : IntConstant(type, static_cast<int64_t>(value));
}
Expr True();
Expr False();

Expr Binary(BinaryOp op, Expr a, Expr b);
Expr Call(Intrinsic intrinsic, std::vector<Expr> operands);
Expr Cast(ElementType type, Expr value);  // the value itself where it has the type already
Expr Select(Expr condition, Expr if_true, Expr if_false);
Expr Load(Buffer buffer, std::vector<Expr> indices);
// The same node with other operands.
Expr WithOperands(const Expr& expr, std::vector<Expr> operands);

inline Expr FloorDiv(Expr a, Expr b) { return Binary(BinaryOp::kFloorDiv, a, b); }
inline Expr FloorMod(Expr a, Expr b) { return Binary(BinaryOp::kFloorMod, a, b); }
inline Expr Min(Expr a, Expr b) { return Binary(BinaryOp::kMin, a, b); }
inline Expr Max(Expr a, Expr b) { return Binary(BinaryOp::kMax, a, b); }
// Of bool or integers: bit by bit. Both sides are evaluated.
inline Expr And(Expr a, Expr b) { return Binary(BinaryOp::kAnd, a, b); }
inline Expr Or(Expr a, Expr b) { return Binary(BinaryOp::kOr, a, b); }
inline Expr Xor(Expr a, Expr b) { return Binary(BinaryOp::kXor, a, b); }
Expr Not(Expr a);  // bool: logical; integers: bitwise
inline Expr Equal(Expr a, Expr b) { return Binary(BinaryOp::kEqual, a, b); }
inline Expr NotEqual(Expr a, Expr b) { return Binary(BinaryOp::kNotEqual, a, b); }
inline Expr Exp(Expr a) { return Call(Intrinsic::kExp, {a}); }
inline Expr Log(Expr a) { return Call(Intrinsic::kLog, {a}); }
inline Expr Tanh(Expr a) { return Call(Intrinsic::kTanh, {a}); }
inline Expr Erf(Expr a) { return Call(Intrinsic::kErf, {a}); }
inline Expr Sqrt(Expr a) { return Call(Intrinsic::kSqrt, {a}); }
inline Expr Floor(Expr a) { return Call(Intrinsic::kFloor, {a}); }
inline Expr Ceil(Expr a) { return Call(Intrinsic::kCeil, {a}); }
inline Expr Rint(Expr a) { return Call(Intrinsic::kRint, {a}); }
inline Expr Abs(Expr a) { return Call(Intrinsic::kAbs, {a}); }
inline Expr Neg(Expr a) { return Call(Intrinsic::kNeg, {a}); }
inline Expr Pow(Expr a, Expr b) { return Call(Intrinsic::kPow, {a, b}); }

// ---- Composed helpers, so that printers need no more than the above.

inline Expr Clamp(Expr value, Expr low, Expr high) { return Min(Max(value, low), high); }
// 1 / (1 + exp(-x)) for floats, without overflow to NaN.
Expr Sigmoid(Expr a);
// Converts to `type`, saturating at its range; a NaN gives 0; floats are truncated (round first with Rint).
Expr SaturatingCast(ElementType type, Expr value);
// a / b and a % b truncating (or, for floats, plain division); 0 where b is 0, and min where min / -1.
Expr SafeDiv(Expr a, Expr b);
Expr SafeMod(Expr a, Expr b);
// low <= index < high, as bool.
Expr InRange(Expr index, int64_t low, int64_t high);
// The lowest and the highest value of a type (infinite for floats).
Expr LowestOf(ElementType type);
Expr HighestOf(ElementType type);

// ---- Queries.

bool IsConstant(const Expr& expr);                     // an integer or float immediate
bool IsIntConstant(const Expr& expr, int64_t value);   // that very integer
// Structural equality: same operators, constants, and the same variables and buffers.
bool SameExpr(const Expr& a, const Expr& b);
// `value` reduced to the type's width, sign- or zero-extended back to 64 bits.
int64_t WrapInteger(ElementType type, int64_t value);
bool IsSigned(ElementType type);

// ---- Operators. A plain number takes the type of the other operand.

#define HEDDLE_LOOPS_OPERATOR(symbol, op)                                                                            \
  inline Expr operator symbol(const Expr& a, const Expr& b) { return Binary(BinaryOp::op, a, b); }                   \
  template <typename T>                                                                                              \
    requires std::is_arithmetic_v<T>                                                                                 \
  Expr operator symbol(const Expr& a, T b) { return Binary(BinaryOp::op, a, Constant(a.type(), b)); }               \
  template <typename T>                                                                                              \
    requires std::is_arithmetic_v<T>                                                                                 \
  Expr operator symbol(T a, const Expr& b) { return Binary(BinaryOp::op, Constant(b.type(), a), b); }

HEDDLE_LOOPS_OPERATOR(+, kAdd)
HEDDLE_LOOPS_OPERATOR(-, kSub)
HEDDLE_LOOPS_OPERATOR(*, kMul)
HEDDLE_LOOPS_OPERATOR(/, kDiv)  // integers truncate
HEDDLE_LOOPS_OPERATOR(%, kMod)
HEDDLE_LOOPS_OPERATOR(<<, kShiftLeft)
HEDDLE_LOOPS_OPERATOR(>>, kShiftRight)
HEDDLE_LOOPS_OPERATOR(<, kLess)
HEDDLE_LOOPS_OPERATOR(<=, kLessEqual)
HEDDLE_LOOPS_OPERATOR(>, kGreater)
HEDDLE_LOOPS_OPERATOR(>=, kGreaterEqual)
HEDDLE_LOOPS_OPERATOR(&, kAnd)
HEDDLE_LOOPS_OPERATOR(|, kOr)
HEDDLE_LOOPS_OPERATOR(^, kXor)
#undef HEDDLE_LOOPS_OPERATOR

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_EXPR_H_
