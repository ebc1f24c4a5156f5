// Entry points of the ONNX importer: reads and bounds the file, checks what the model declares of itself, and hands its graph to
// GraphImporter. Protobuf stays inside frontend/'s .cc files.

#include "frontend/onnx_import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <fstream>

#include "frontend/onnx_graph_importer.h"
#include "frontend/onnx_tensor.h"
#include "ir/op.h"

namespace heddle::frontend {
namespace {

using ir::UserError;

constexpr int64_t kLatestOpset = 28;
constexpr int kMaxProtobufDepth = 64;

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, int64_t max_bytes) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  if (error || !regular) {
    return UserError("E-IMPORT-001", fmt::format("'{}' {}", path.string(), std::filesystem::exists(path, error) ? "is not a file" : "does not exist"),
                     "give the path of an ONNX model");
  }
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > static_cast<uintmax_t>(max_bytes)) {
    return UserError("E-IMPORT-001", fmt::format("'{}' has {} bytes, more than {}", path.string(), size, max_bytes),
                     "keep large weights as external data");
  }
  std::string bytes(error ? 0 : size, '\0');
  std::ifstream in(path, std::ios::binary);
  if (error || !in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return UserError("E-IMPORT-001", fmt::format("'{}' cannot be read", path.string()), "check its permissions");
  }
  return bytes;
}

template <typename Message>
bool Parse(std::string_view bytes, Message& message) {
  if (bytes.size() > INT32_MAX) return false;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(kMaxProtobufDepth);
  return message.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
}

int64_t CountNodes(const onnx::GraphProto& graph) {
  int64_t count = graph.node_size();
  for (const auto& node : graph.node()) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) count += CountNodes(attribute.g());
      for (const auto& inner : attribute.graphs()) count += CountNodes(inner);
    }
  }
  return count;
}

absl::Status CheckModel(const onnx::ModelProto& model, const ImportOptions& options) {
  if (!model.has_graph()) return UserError("E-IMPORT-002", "the file holds no graph: it is not an ONNX model", "give the path of an ONNX model");
  for (const auto& opset : model.opset_import()) {
    if (!NormalDomain(opset.domain()).empty()) continue;
    if (opset.version() < 1 || opset.version() > kLatestOpset) {
      return UserError("E-IMPORT-003", fmt::format("the model is of opset {}; 1 to {} are supported", opset.version(), kLatestOpset),
                       "convert it with onnx.version_converter");
    }
  }
  const int64_t nodes = CountNodes(model.graph());
  if (nodes > options.max_nodes) {
    return UserError("E-IMPORT-050", fmt::format("the model has {} nodes, more than {}", nodes, options.max_nodes));
  }
  for (const auto& [symbol, extent] : options.symbols) {
    if (extent < 0) return UserError("E-IMPORT-005", fmt::format("dimension '{}' cannot be {}", symbol, extent));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ir::Graph> ImportOnnxBytes(std::string_view bytes, const ImportOptions& options) {
  if (static_cast<int64_t>(bytes.size()) > options.max_file_bytes) {
    return UserError("E-IMPORT-001", fmt::format("the model has {} bytes, more than {}", bytes.size(), options.max_file_bytes));
  }
  onnx::ModelProto model;
  if (!Parse(bytes, model)) {
    return UserError("E-IMPORT-002", fmt::format("{} bytes that are not an ONNX model (protobuf cannot read them)", bytes.size()),
                     "check that the file is whole and of the format its name says");
  }
  HEDDLE_RETURN_IF_ERROR(CheckModel(model, options));
  return GraphImporter(model, options).Import();
}

absl::StatusOr<ir::Graph> ImportOnnx(const std::filesystem::path& path, ImportOptions options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, options.max_file_bytes));
  options.data_folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  return ImportOnnxBytes(bytes, options);
}

absl::StatusOr<ir::Tensor> ReadTensorProto(std::string_view bytes) {
  onnx::TensorProto proto;
  if (!Parse(bytes, proto)) return UserError("E-IMPORT-002", "the bytes are not a TensorProto");
  int64_t budget = int64_t{8} << 30;
  return TensorFromProto(proto, {}, budget);
}

}  // namespace heddle::frontend
