// Annotates a ModelProto. NodeProto.metadata_props (field 9) is younger than the packaged protobuf classes, so it is added as an
// unknown field of the same bytes: readers that know it see it, others pass it on.

#include "frontend/onnx_export.h"

#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <iterator>

#include "frontend/onnx_graph_importer.h"
#include "frontend/onnx_write.h"

namespace heddle::frontend {
namespace {

constexpr int kNodeMetadataField = 9;

void AddMetadata(onnx::NodeProto& node, const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto entry;
  entry.set_key(key);
  entry.set_value(value);
  node.GetReflection()->MutableUnknownFields(&node)->AddLengthDelimited(kNodeMetadataField, entry.SerializeAsString());
}

}  // namespace

absl::StatusOr<std::string> AnnotateOnnx(std::string_view bytes, const NodeNotes& notes) {
  onnx::ModelProto model;
  if (bytes.size() > INT32_MAX || !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph()) {
    return ir::UserError("E-IMPORT-002", "the bytes are not an ONNX model");
  }
  NodeNames names;
  names.Add(model.graph());
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    const auto found = notes.find(names.Of(node));
    if (found == notes.end() || found->second.empty()) continue;
    if (node.name().empty()) node.set_name(found->first);
    std::string line;
    for (const auto& [key, value] : found->second) {
      AddMetadata(node, key, value);
      line += fmt::format("{}{}={}", line.empty() ? "" : ", ", key, value);
    }
    node.set_doc_string(node.doc_string().empty() ? line : line + "\n" + node.doc_string());
  }
  return model.SerializeAsString();
}

absl::Status WritePartitionedOnnx(const std::filesystem::path& from, const std::filesystem::path& to, const NodeNotes& notes) {
  std::ifstream in(from, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  HEDDLE_ASSIGN_OR_RETURN(const std::string annotated, AnnotateOnnx(bytes, notes));
  return WriteOnnxBytes(annotated, to);
}

}  // namespace heddle::frontend
