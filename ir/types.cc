// Element types, shapes and tensors.

#include "ir/types.h"

#include <array>

#include "ir/check.h"
#include "ir/status.h"

namespace heddle::ir {
namespace {

struct TypeInfo {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<TypeInfo, 11> kTypes = {{{"f32", 4}, {"f64", 8}, {"i8", 1}, {"u8", 1}, {"i16", 2}, {"u16", 2},
                                              {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8}, {"bool", 1}}};

// Calls f with a null pointer of the C++ type that stands for `type`.
template <typename F>
auto Dispatch(ElementType type, F f) {
  switch (type) {
    case ElementType::kFloat32: return f(static_cast<float*>(nullptr));
    case ElementType::kFloat64: return f(static_cast<double*>(nullptr));
    case ElementType::kInt8: return f(static_cast<int8_t*>(nullptr));
    case ElementType::kUint8: return f(static_cast<uint8_t*>(nullptr));
    case ElementType::kInt16: return f(static_cast<int16_t*>(nullptr));
    case ElementType::kUint16: return f(static_cast<uint16_t*>(nullptr));
    case ElementType::kInt32: return f(static_cast<int32_t*>(nullptr));
    case ElementType::kUint32: return f(static_cast<uint32_t*>(nullptr));
    case ElementType::kInt64: return f(static_cast<int64_t*>(nullptr));
    case ElementType::kUint64: return f(static_cast<uint64_t*>(nullptr));
    case ElementType::kBool: return f(static_cast<bool*>(nullptr));
  }
  CheckFailed(__FILE__, __LINE__, "type", "unknown element type");
}

}  // namespace

std::string_view ElementTypeName(ElementType type) { return kTypes[static_cast<size_t>(type)].name; }

std::optional<ElementType> ParseElementType(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

int64_t ElementBytes(ElementType type) { return kTypes[static_cast<size_t>(type)].bytes; }

bool IsFloat(ElementType type) { return type == ElementType::kFloat32 || type == ElementType::kFloat64; }

bool IsInteger(ElementType type) { return !IsFloat(type) && type != ElementType::kBool; }

absl::StatusOr<int64_t> CheckedElementCount(const Shape& shape, int64_t limit) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return UserError("E-TYPE-001", fmt::format("negative extent {} in a shape", extent));
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(count, extent, &count)) count = limit + 1;
    if (count > limit) {
      return UserError("E-TYPE-002", fmt::format("a tensor of shape {} has more than {} elements", ShapeText(shape), limit));
    }
  }
  return empty ? 0 : count;
}

int64_t ElementCount(const Shape& shape) {
  auto count = CheckedElementCount(shape, int64_t{1} << 60);
  HEDDLE_CHECK(count.ok(), std::string(count.status().message()));
  return *count;
}

std::string ShapeText(const Shape& shape) {
  if (shape.empty()) return "scalar";
  return fmt::format("{}", fmt::join(shape, "x"));
}

Tensor::Tensor(ElementType type, Shape shape) : type_(type), shape_(std::move(shape)), elements_(ElementCount(shape_)) {
  data_.resize(static_cast<size_t>(elements_ * ElementBytes(type_)));
}

void Tensor::CheckType(ElementType type) const {
  HEDDLE_CHECK(type == type_, fmt::format("a tensor of {} was read as {}", ElementTypeName(type_), ElementTypeName(type)));
}

double Tensor::at_double(int64_t index) const {
  return Dispatch(type_, [&](auto* null) -> double {
    return static_cast<double>(as<std::remove_pointer_t<decltype(null)>>()[static_cast<size_t>(index)]);
  });
}

int64_t Tensor::at_int(int64_t index) const {
  return Dispatch(type_, [&](auto* null) -> int64_t {
    return static_cast<int64_t>(as<std::remove_pointer_t<decltype(null)>>()[static_cast<size_t>(index)]);
  });
}

void Tensor::set_double(int64_t index, double value) {
  Dispatch(type_, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    as<T>()[static_cast<size_t>(index)] = static_cast<T>(value);
  });
}

void Tensor::set_int(int64_t index, int64_t value) {
  Dispatch(type_, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    as<T>()[static_cast<size_t>(index)] = static_cast<T>(value);
  });
}

Tensor Tensor::Reshaped(Shape shape) const {
  HEDDLE_CHECK(ElementCount(shape) == elements_, "reshape changes the number of elements");
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

bool Tensor::operator==(const Tensor& other) const {
  return type_ == other.type_ && shape_ == other.shape_ && data_ == other.data_;
}

}  // namespace heddle::ir
