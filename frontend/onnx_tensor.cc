// Tensors of a model file, which may come from a stranger: the size that the dimensions claim is compared with the data that
// is there before memory is taken, and external data is read only from files inside the model's folder.

#include "frontend/onnx_tensor.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <utility>

#include "frontend/onnx_codes.h"

namespace heddle::frontend {
namespace {

using ir::ElementType;
using ir::Tensor;
using onnx::TensorProto;

absl::Status Malformed(const TensorProto& proto, std::string_view what) {
  return ir::UserError("E-IMPORT-020", fmt::format("tensor '{}': {}", proto.name(), what), "export the model again");
}

absl::Status External(const TensorProto& proto, std::string_view what) {
  return ir::UserError("E-IMPORT-021", fmt::format("external data of tensor '{}': {}", proto.name(), what),
                       "keep the data file beside the model");
}

template <typename T, typename Field>
absl::Status CopyField(const TensorProto& proto, const Field& field, Tensor& tensor) {
  auto out = tensor.as<T>();
  for (int i = 0; i < field.size(); ++i) {
    const auto value = field.Get(i);
    if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) return Malformed(proto, fmt::format("value {} does not fit its type", value));
    }
    out[static_cast<size_t>(i)] = static_cast<T>(value);
  }
  return absl::OkStatus();
}

absl::Status CopyBools(const TensorProto& proto, Tensor& tensor) {
  auto out = tensor.as<bool>();
  for (int i = 0; i < proto.int32_data_size(); ++i) out[static_cast<size_t>(i)] = proto.int32_data(i) != 0;
  return absl::OkStatus();
}

int64_t FieldSize(const TensorProto& proto, ElementType type) {
  switch (type) {
    case ElementType::kFloat32: return proto.float_data_size();
    case ElementType::kFloat64: return proto.double_data_size();
    case ElementType::kInt64: return proto.int64_data_size();
    case ElementType::kUint32:
    case ElementType::kUint64: return proto.uint64_data_size();
    default: return proto.int32_data_size();
  }
}

absl::Status CopyTyped(const TensorProto& proto, Tensor& tensor) {
  switch (tensor.type()) {
    case ElementType::kFloat32: return CopyField<float>(proto, proto.float_data(), tensor);
    case ElementType::kFloat64: return CopyField<double>(proto, proto.double_data(), tensor);
    case ElementType::kInt64: return CopyField<int64_t>(proto, proto.int64_data(), tensor);
    case ElementType::kUint32: return CopyField<uint32_t>(proto, proto.uint64_data(), tensor);
    case ElementType::kUint64: return CopyField<uint64_t>(proto, proto.uint64_data(), tensor);
    case ElementType::kInt8: return CopyField<int8_t>(proto, proto.int32_data(), tensor);
    case ElementType::kUint8: return CopyField<uint8_t>(proto, proto.int32_data(), tensor);
    case ElementType::kInt16: return CopyField<int16_t>(proto, proto.int32_data(), tensor);
    case ElementType::kUint16: return CopyField<uint16_t>(proto, proto.int32_data(), tensor);
    case ElementType::kInt32: return CopyField<int32_t>(proto, proto.int32_data(), tensor);
    case ElementType::kBool: return CopyBools(proto, tensor);
  }
  return Malformed(proto, "unknown element type");
}

// A byte of a bool other than 0 and 1 would be undefined behaviour when read as bool.
void NormaliseBools(Tensor& tensor) {
  if (tensor.type() != ElementType::kBool) return;
  for (int64_t i = 0; i < tensor.bytes(); ++i) {
    if (tensor.data()[i] != std::byte{0}) tensor.data()[i] = std::byte{1};
  }
}

struct ExternalPlace {
  std::filesystem::path file;
  int64_t offset = 0;
  int64_t length = -1;
};

absl::StatusOr<ExternalPlace> FindExternal(const TensorProto& proto, const std::filesystem::path& folder) {
  ExternalPlace place;
  std::string location;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t value = 0;
      const std::string& text = entry.value();
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || value < 0) {
        return External(proto, fmt::format("{} '{}' is not a size", entry.key(), text));
      }
      (entry.key() == "offset" ? place.offset : place.length) = value;
    }
  }
  if (folder.empty()) return External(proto, "the model was not read from a folder");
  if (location.empty() || location.find('\0') != std::string::npos) return External(proto, "no location is given");
  std::error_code error;
  const auto inside = std::filesystem::canonical(folder, error);
  if (error) return External(proto, "the model's folder cannot be read");
  place.file = std::filesystem::canonical(inside / location, error);
  if (error) return External(proto, fmt::format("file '{}' cannot be read", location));
  const auto relative = place.file.lexically_relative(inside);
  if (std::filesystem::path(location).is_absolute() || relative.empty() || *relative.begin() == "..") {
    return External(proto, fmt::format("file '{}' lies outside the model's folder", location));
  }
  if (!std::filesystem::is_regular_file(place.file, error)) return External(proto, fmt::format("'{}' is not a file", location));
  return place;
}

absl::Status ReadExternal(const TensorProto& proto, const std::filesystem::path& folder, int64_t bytes, std::string& data) {
  HEDDLE_ASSIGN_OR_RETURN(const ExternalPlace place, FindExternal(proto, folder));
  std::error_code error;
  const auto size = std::filesystem::file_size(place.file, error);
  if (error || size > static_cast<uintmax_t>(std::numeric_limits<int64_t>::max())) return External(proto, "the file cannot be read");
  if (place.length >= 0 && place.length != bytes) {
    return External(proto, fmt::format("length {} where the tensor has {} bytes", place.length, bytes));
  }
  if (bytes > static_cast<int64_t>(size) || place.offset > static_cast<int64_t>(size) - bytes) {
    return External(proto, fmt::format("the file ends before byte {} + {}", place.offset, bytes));
  }
  std::ifstream in(place.file, std::ios::binary);
  data.resize(static_cast<size_t>(bytes));
  if (!in.seekg(place.offset) || !in.read(data.data(), bytes)) return External(proto, "the file cannot be read");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> TensorFromProto(const TensorProto& proto, const std::filesystem::path& folder, int64_t& budget_bytes) {
  const auto type = ElementOfCode(proto.data_type());
  if (!type) {
    return ir::UserError("E-IMPORT-003", fmt::format("tensor '{}' holds {}", proto.name(), DataTypeText(proto.data_type())),
                         "convert the model to float32 or integers of 8 to 64 bits");
  }
  if (proto.has_segment()) return Malformed(proto, "is stored in segments");
  const ir::Shape shape(proto.dims().begin(), proto.dims().end());
  if (shape.size() > 64) return Malformed(proto, "has more than 64 dimensions");
  auto count = ir::CheckedElementCount(shape);
  if (!count.ok()) return Malformed(proto, std::string(count.status().message()));
  const int64_t bytes = *count * ir::ElementBytes(*type);
  if (bytes > budget_bytes) {
    return ir::UserError("E-IMPORT-050", fmt::format("tensor '{}' of {} bytes exceeds what is left for constants, {} bytes",
                                                     proto.name(), bytes, budget_bytes));
  }
  std::string external;
  const bool is_external = proto.data_location() == TensorProto::EXTERNAL;
  if (is_external) HEDDLE_RETURN_IF_ERROR(ReadExternal(proto, folder, bytes, external));
  if (is_external || proto.has_raw_data()) {
    const std::string& raw = is_external ? external : proto.raw_data();
    if (static_cast<int64_t>(raw.size()) != bytes) {
      return Malformed(proto, fmt::format("{} bytes of raw data where {} of {} need {}", raw.size(), ir::ShapeText(shape),
                                          DataTypeText(proto.data_type()), bytes));
    }
    budget_bytes -= bytes;
    Tensor tensor(*type, shape);
    std::copy_n(reinterpret_cast<const std::byte*>(raw.data()), raw.size(), tensor.data());
    NormaliseBools(tensor);
    return tensor;
  }
  if (FieldSize(proto, *type) != *count) {
    return Malformed(proto, fmt::format("{} values where the shape {} needs {}", FieldSize(proto, *type), ir::ShapeText(shape), *count));
  }
  budget_bytes -= bytes;
  Tensor tensor(*type, shape);
  HEDDLE_RETURN_IF_ERROR(CopyTyped(proto, tensor));
  return tensor;
}

}  // namespace heddle::frontend
