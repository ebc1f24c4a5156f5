// partitioned.onnx: the model as it came, with a note on every node of what the compiler made of it, for model viewers.
#ifndef HEDDLE_FRONTEND_ONNX_EXPORT_H_
#define HEDDLE_FRONTEND_ONNX_EXPORT_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ir/status.h"

namespace heddle::frontend {

// By the source node's name, as ir::Node::source_names has it: keys such as "heddle.device" and their values.
using NodeNotes = std::map<std::string, std::map<std::string, std::string>>;

// The model's bytes with the notes added to its nodes: as metadata_props (ONNX IR version 10, which older readers skip), and as
// a line "key=value, …" at the front of doc_string, which every viewer shows. Nothing else changes. Nodes without a name
// get the name that the importer makes of them where a note names it. E-IMPORT-002 where the bytes are no model.
absl::StatusOr<std::string> AnnotateOnnx(std::string_view model, const NodeNotes& notes);

// Reads `model`, writes `to` (under a temporary name, then renamed). E-EXPORT-001 where it cannot be written.
absl::Status WritePartitionedOnnx(const std::filesystem::path& model, const std::filesystem::path& to, const NodeNotes& notes);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_ONNX_EXPORT_H_
