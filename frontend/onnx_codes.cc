// The table of ONNX's element types (onnx.proto, TensorProto.DataType).

#include "frontend/onnx_codes.h"

#include <fmt/format.h>

#include <string_view>

namespace heddle::frontend {
namespace {

using ir::ElementType;

struct Code {
  std::string_view name;
  std::optional<ElementType> element;
};

const Code kCodes[] = {
    {"UNDEFINED", {}},
    {"FLOAT", ElementType::kFloat32},
    {"UINT8", ElementType::kUint8},
    {"INT8", ElementType::kInt8},
    {"UINT16", ElementType::kUint16},
    {"INT16", ElementType::kInt16},
    {"INT32", ElementType::kInt32},
    {"INT64", ElementType::kInt64},
    {"STRING", {}},
    {"BOOL", ElementType::kBool},
    {"FLOAT16", {}},
    {"DOUBLE", ElementType::kFloat64},
    {"UINT32", ElementType::kUint32},
    {"UINT64", ElementType::kUint64},
    {"COMPLEX64", {}},
    {"COMPLEX128", {}},
    {"BFLOAT16", {}},
    {"FLOAT8E4M3FN", {}},
    {"FLOAT8E4M3FNUZ", {}},
    {"FLOAT8E5M2", {}},
    {"FLOAT8E5M2FNUZ", {}},
    {"UINT4", {}},
    {"INT4", {}},
    {"FLOAT4E2M1", {}},
    {"FLOAT8E8M0", {}},
    {"UINT2", {}},
    {"INT2", {}},
};
constexpr int64_t kCount = static_cast<int64_t>(sizeof(kCodes) / sizeof(kCodes[0]));

}  // namespace

std::optional<ElementType> ElementOfCode(int64_t code) {
  if (code < 0 || code >= kCount) return std::nullopt;
  return kCodes[code].element;
}

int64_t CodeOfElement(ElementType type) {
  for (int64_t code = 0; code < kCount; ++code) {
    if (kCodes[code].element == type) return code;
  }
  return 0;
}

int64_t DataTypeCode(const std::string& name) {
  for (int64_t code = 0; code < kCount; ++code) {
    if (kCodes[code].name == name) return code;
  }
  return 0;
}

std::string DataTypeText(int64_t code) {
  if (code < 0 || code >= kCount) return fmt::format("type number {}", code);
  if (const auto type = kCodes[code].element) return std::string(ir::ElementTypeName(*type));
  return std::string(kCodes[code].name);
}

}  // namespace heddle::frontend
