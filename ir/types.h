// Element types, shapes and tensors: the values that every part of Heddle exchanges.
#ifndef HEDDLE_IR_TYPES_H_
#define HEDDLE_IR_TYPES_H_

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::ir {

enum class ElementType : uint8_t { kFloat32, kFloat64, kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kBool };

// "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool": the spelling of the textual IR.
std::string_view ElementTypeName(ElementType type);
std::optional<ElementType> ParseElementType(std::string_view name);
int64_t ElementBytes(ElementType type);
bool IsFloat(ElementType type);
// True for the signed and unsigned integer types; false for bool.
bool IsInteger(ElementType type);

template <typename T>
constexpr ElementType ElementTypeOf();

// One dimension: a constant extent (symbol empty) or a named unknown such as "batch".
struct Dim {
  int64_t extent = 0;  // valid where symbol is empty; >= 0
  std::string symbol;
  Dim() = default;
  Dim(int64_t e) : extent(e) {}  // NOLINT: shapes are written as {1, 3, 224, 224}
  explicit Dim(std::string s) : symbol(std::move(s)) {}
  bool is_constant() const { return symbol.empty(); }
  bool operator==(const Dim&) const = default;
};

using Shape = std::vector<int64_t>;       // all dimensions known, outermost first
using SymbolicShape = std::vector<Dim>;   // as Shape, with named unknowns

// Product of the extents (1 for a scalar). CHECK-fails on overflow: importers bound shapes with CheckedElementCount.
int64_t ElementCount(const Shape& shape);
// As ElementCount, for shapes from outside: an error for negative extents or a product above `limit`.
absl::StatusOr<int64_t> CheckedElementCount(const Shape& shape, int64_t limit = int64_t{1} << 40);
std::string ShapeText(const Shape& shape);  // "1x3x224x224"; "scalar" for rank 0

// How integers stand for real numbers: real = scale[i] * (q - zero_point[i]), i = index along `axis`.
// Per tensor where scale has one element (axis is then -1).
struct Quantisation {
  std::vector<float> scale;
  std::vector<int64_t> zero_point;  // same length as scale
  int axis = -1;
  bool operator==(const Quantisation&) const = default;
};

// A dense, row-major (outermost dimension first) tensor that owns its bytes; the alignment is that of operator new.
class Tensor {
 public:
  Tensor() = default;
  Tensor(ElementType type, Shape shape);  // zero filled
  template <typename T>
  static Tensor Of(Shape shape, std::vector<T> values);

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t elements() const { return elements_; }
  int64_t bytes() const { return static_cast<int64_t>(data_.size()); }
  std::byte* data() { return data_.data(); }
  const std::byte* data() const { return data_.data(); }

  // Typed view; CHECK-fails where T is not the element type.
  template <typename T>
  std::span<T> as();
  template <typename T>
  std::span<const T> as() const;

  // The element at a flat index, converted; for code where speed does not matter.
  double at_double(int64_t index) const;
  int64_t at_int(int64_t index) const;
  void set_double(int64_t index, double value);
  void set_int(int64_t index, int64_t value);

  // The same bytes under another shape of equal element count.
  Tensor Reshaped(Shape shape) const;
  // Bit for bit, type and shape included.
  bool operator==(const Tensor& other) const;

 private:
  void CheckType(ElementType type) const;

  ElementType type_ = ElementType::kFloat32;
  Shape shape_;
  int64_t elements_ = 0;
  std::vector<std::byte> data_;
};

template <> constexpr ElementType ElementTypeOf<float>() { return ElementType::kFloat32; }
template <> constexpr ElementType ElementTypeOf<double>() { return ElementType::kFloat64; }
template <> constexpr ElementType ElementTypeOf<int8_t>() { return ElementType::kInt8; }
template <> constexpr ElementType ElementTypeOf<uint8_t>() { return ElementType::kUint8; }
template <> constexpr ElementType ElementTypeOf<int16_t>() { return ElementType::kInt16; }
template <> constexpr ElementType ElementTypeOf<uint16_t>() { return ElementType::kUint16; }
template <> constexpr ElementType ElementTypeOf<int32_t>() { return ElementType::kInt32; }
template <> constexpr ElementType ElementTypeOf<uint32_t>() { return ElementType::kUint32; }
template <> constexpr ElementType ElementTypeOf<int64_t>() { return ElementType::kInt64; }
template <> constexpr ElementType ElementTypeOf<uint64_t>() { return ElementType::kUint64; }
template <> constexpr ElementType ElementTypeOf<bool>() { return ElementType::kBool; }

template <typename T>
std::span<T> Tensor::as() {
  CheckType(ElementTypeOf<T>());
  return {reinterpret_cast<T*>(data_.data()), static_cast<size_t>(elements_)};
}

template <typename T>
std::span<const T> Tensor::as() const {
  CheckType(ElementTypeOf<T>());
  return {reinterpret_cast<const T*>(data_.data()), static_cast<size_t>(elements_)};
}

template <typename T>
Tensor Tensor::Of(Shape shape, std::vector<T> values) {
  Tensor tensor(ElementTypeOf<T>(), std::move(shape));
  auto out = tensor.as<T>();
  for (size_t i = 0; i < values.size() && i < out.size(); ++i) out[i] = values[i];
  return tensor;
}

}  // namespace heddle::ir

#endif  // HEDDLE_IR_TYPES_H_
