// What the op files share: dispatch over element types, checks with coded errors, broadcasting, strided copies, and the
// builder of random cases.
//
// Codes: E-OP-001 number of inputs, E-OP-002 element types, E-OP-003 ranks and shapes, E-OP-004 attribute values,
// E-OP-005 an input that must be a constant and is none, E-OP-006 unknown attribute or one of another kind, E-OP-007 values
// found bad only when the node runs.
#ifndef HEDDLE_IR_OPS_COMMON_H_
#define HEDDLE_IR_OPS_COMMON_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/check.h"
#include "ir/loops/op_lowering.h"
#include "ir/op.h"

namespace heddle::ir {

// ---- Dispatch: f(Tag<T>{}) with the C++ type of an element type.

template <typename T>
using Tag = std::type_identity<T>;

// f may be called with every type, bool included.
template <typename F>
auto DispatchElement(ElementType type, F f) {
  switch (type) {
    case ElementType::kFloat32: return f(Tag<float>{});
    case ElementType::kFloat64: return f(Tag<double>{});
    case ElementType::kInt8: return f(Tag<int8_t>{});
    case ElementType::kUint8: return f(Tag<uint8_t>{});
    case ElementType::kInt16: return f(Tag<int16_t>{});
    case ElementType::kUint16: return f(Tag<uint16_t>{});
    case ElementType::kInt32: return f(Tag<int32_t>{});
    case ElementType::kUint32: return f(Tag<uint32_t>{});
    case ElementType::kInt64: return f(Tag<int64_t>{});
    case ElementType::kUint64: return f(Tag<uint64_t>{});
    case ElementType::kBool: return f(Tag<bool>{});
  }
  CheckFailed(__FILE__, __LINE__, "type", "unknown element type");
}

// All types but bool; CHECK-fails on bool (verifiers have run).
template <typename F>
auto DispatchNumber(ElementType type, F f) {
  HEDDLE_CHECK(type != ElementType::kBool, "arithmetic on bool");
  if (type == ElementType::kBool) type = ElementType::kUint8;
  return DispatchElement(type, [&]<typename T>(Tag<T> tag) {
    if constexpr (std::is_same_v<T, bool>) {
      return f(Tag<uint8_t>{});
    } else {
      return f(tag);
    }
  });
}

template <typename F>
auto DispatchFloat(ElementType type, F f) {
  HEDDLE_CHECK(IsFloat(type), "a float kernel on integers");
  return type == ElementType::kFloat64 ? f(Tag<double>{}) : f(Tag<float>{});
}

// Movement looks at sizes only: f(Tag<uintN_t>{}).
template <typename F>
auto DispatchSize(ElementType type, F f) {
  switch (ElementBytes(type)) {
    case 1: return f(Tag<uint8_t>{});
    case 2: return f(Tag<uint16_t>{});
    case 4: return f(Tag<uint32_t>{});
    default: return f(Tag<uint64_t>{});
  }
}

// The tensor's storage as integers of its element size.
template <typename T>
const T* RawData(const Tensor& t) { return reinterpret_cast<const T*>(t.data()); }
template <typename T>
T* RawData(Tensor& t) { return reinterpret_cast<T*>(t.data()); }

// The type to add up in: double for floats, the unsigned type of the same width for integers (wraps without undefined
// behaviour; converted back it is two's complement arithmetic).
template <typename T>
struct AccumulatorOf {
  using Type = std::make_unsigned_t<T>;
};
template <> struct AccumulatorOf<float> { using Type = double; };
template <> struct AccumulatorOf<double> { using Type = double; };
template <> struct AccumulatorOf<bool> { using Type = uint8_t; };
template <typename T>
using Accumulator = typename AccumulatorOf<T>::Type;

// ---- Checks

enum class AttributeKind { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor, kGraph };
struct AttributeSpec {
  std::string_view name;
  AttributeKind kind;
  bool required = false;
};

// Number of inputs (the first `least` present, at most `most`; -1: any number) and the kinds of attributes. Every verifier
// starts with it: Node::Int and its kin CHECK-fail on another kind. `outputs` is the largest number of outputs (-1: any).
absl::Status VerifySignature(const NodeContext& c, int least, int most, std::initializer_list<AttributeSpec> attributes = {},
                             int outputs = 1);
absl::Status ExpectFloat(const NodeContext& c, int input);
absl::Status ExpectNumber(const NodeContext& c, int input);   // any type but bool
absl::Status ExpectType(const NodeContext& c, int input, std::initializer_list<ElementType> types);
absl::Status ExpectSameTypes(const NodeContext& c, int first_input = 0);  // of all present inputs from first_input on
absl::Status ExpectRank(const NodeContext& c, int input, int least, int most = 64);
// An int list attribute, where present: `count` entries (-1: any), each within [low, high].
absl::Status ExpectInts(const NodeContext& c, const std::string& attribute, int64_t count, int64_t low, int64_t high);
absl::Status ExpectInt(const NodeContext& c, const std::string& attribute, int64_t low, int64_t high);
absl::Status ExpectString(const NodeContext& c, const std::string& attribute, std::initializer_list<std::string_view> values);

// Values from shapes, pads and the like are kept within ±2^31, so that sums and products of two stay exact.
inline constexpr int64_t kLargestIndex = int64_t{1} << 31;

// axis in [-rank, rank) brought to [0, rank). E-OP-004.
absl::StatusOr<int> ResolveAxis(const NodeContext& c, int64_t axis, int rank);
// The same for a list without repetitions, sorted.
absl::StatusOr<std::vector<int>> ResolveAxes(const NodeContext& c, const std::vector<int64_t>& axes, int rank);
// A constant integer input of rank 0 or 1 as int64. E-OP-005 where it is not a constant, E-OP-002 for another type.
absl::StatusOr<std::vector<int64_t>> ConstantInts(const NodeContext& c, int input, std::string_view role);

// ---- Broadcasting (NumPy's rules)

absl::StatusOr<Shape> BroadcastShapes(const NodeContext& c, const Shape& a, const Shape& b);
absl::StatusOr<Shape> BroadcastInputs(const NodeContext& c, int first_input = 0);  // of all present inputs
// The tensor repeated to `shape`, to which it broadcasts.
Tensor BroadcastTo(const Tensor& t, const Shape& shape);
// Reads `buffer` at the index of a result that it broadcasts to.
loops::Expr BroadcastRead(const loops::Buffer& buffer, const loops::Indices& index);

// ---- Copies: out[i0, …] = in.flat[tables[0][i0] + tables[1][i1] + …]; where an entry is kFillEntry the result stays zero
// or, where given, takes `fill` (one element).
inline constexpr int64_t kFillEntry = INT64_MIN;
Tensor CopyByTables(const Tensor& in, const Shape& shape, const std::vector<std::vector<int64_t>>& tables,
                    const std::byte* fill = nullptr);
std::vector<int64_t> RowMajorStrides(const Shape& shape);

// Products of extents [first, last).
int64_t ExtentProduct(const Shape& shape, int first, int last);
// A multi-index counting up in row-major order; false after the last.
bool NextIndex(const Shape& shape, std::vector<int64_t>& index);

// Float comparison of devices: unit roundoff of the element type.
inline double UnitRoundoff(ElementType type) { return type == ElementType::kFloat64 ? 1.2e-16 : 6.0e-8; }

// ---- Random cases

class CaseBuilder {
 public:
  explicit CaseBuilder(Random& random) : random_(random), graph_("random_case") {}
  int64_t Int(int64_t low, int64_t high);  // inclusive
  bool Coin() { return Int(0, 1) == 1; }
  double Real(double low, double high);
  template <typename T>
  T Pick(std::initializer_list<T> choices) {
    return *(choices.begin() + Int(0, static_cast<int64_t>(choices.size()) - 1));
  }
  ElementType AnyType();
  ElementType NumberType();
  Shape RandomShape(int least_rank, int most_rank, int64_t largest_extent = 5);
  // Some extents set to 1, some leading ones dropped: broadcasts to `shape`.
  Shape BroadcastableTo(const Shape& shape);
  // Floats uniform in [low, high], integers too (clipped to the type), bools either.
  Tensor RandomTensor(ElementType type, const Shape& shape, double low = -4, double high = 4);
  ValueId Input(Tensor tensor);     // a graph input with this value
  ValueId Constant(Tensor tensor);  // a constant
  // Constant or graph input, by chance.
  ValueId Either(Tensor tensor) { return Coin() ? Input(std::move(tensor)) : Constant(std::move(tensor)); }
  ValueId IntsConstant(const std::vector<int64_t>& values);
  RandomCase Finish(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}, int outputs = 1);

 private:
  Random& random_;
  Graph graph_;
  std::vector<Tensor> inputs_;
};

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_COMMON_H_
