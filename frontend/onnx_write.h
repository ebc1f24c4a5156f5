// Graphs of the IR as ONNX models: the way out that onnx_import.h is the way in.
#ifndef HEDDLE_FRONTEND_ONNX_WRITE_H_
#define HEDDLE_FRONTEND_ONNX_WRITE_H_

#include <filesystem>
#include <string>

#include "ir/graph.h"

namespace heddle::frontend {

// A ModelProto's bytes; equal graphs give equal bytes. The opset is the oldest from 13 on that has every operator of
// the graph in the form that the node uses. Names of values and nodes are the graph's. Importing the bytes gives an
// equal graph, but for operators that the importer writes in terms of others.
//   E-EXPORT-002 nodes without an ONNX form (integer ops after legalisation, subgraphs): names all of them
//   E-EXPORT-003 larger than protobuf's 2 GiB
absl::StatusOr<std::string> OnnxBytes(const ir::Graph& graph);

// The same to a file, under a temporary name, then renamed. E-EXPORT-001 where it cannot be written.
absl::Status WriteOnnxBytes(const std::string& bytes, const std::filesystem::path& path);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_ONNX_WRITE_H_
