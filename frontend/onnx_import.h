// ONNX models as graphs of the IR.
//
// Models of opset 1 to 28 are rewritten to the opset-13 forms that ir/ops/ knows (ir/ops/README.md), some operators of
// com.microsoft are expanded, shape arithmetic is folded, and the types of all values are inferred. Every node keeps the
// name of the source node it came from.
#ifndef HEDDLE_FRONTEND_ONNX_IMPORT_H_
#define HEDDLE_FRONTEND_ONNX_IMPORT_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace heddle::frontend {

struct ImportOptions {
  // --shape NAME=1,3,224,224: the shape of a graph input. Symbols of its dimensions are bound for the other inputs too.
  std::map<std::string, ir::Shape> shapes;
  // Named dimensions, such as "batch" → 1.
  std::map<std::string, int64_t> symbols;
  // Keeps unbound symbols, for looking at a model: values behind them then have the type of the model's own value_info
  // or f32[?unknown], and the graph does not verify.
  bool keep_symbolic = false;
  // Where external data may lie (set by ImportOnnx to the model's folder); empty: external data is refused.
  std::filesystem::path data_folder;

  int64_t max_file_bytes = int64_t{2} << 30;      // protobuf's own limit
  int64_t max_constant_bytes = int64_t{8} << 30;  // all constants together
  int64_t max_nodes = 200000;                     // source nodes, subgraphs included
};

// Error codes:
//   E-IMPORT-001 the file cannot be read or is too large    E-IMPORT-002 it is not an ONNX model
//   E-IMPORT-003 its version or a feature is not supported  E-IMPORT-004 dimensions are not bound (shows what to pass)
//   E-IMPORT-005 a shape or symbol given does not fit       E-IMPORT-010 unsupported operators, all of the model at once
//   E-IMPORT-020 a tensor is malformed                      E-IMPORT-021 external data is outside the folder or missing
//   E-IMPORT-030 a value is used but not defined            E-IMPORT-031 a value is defined twice
//   E-IMPORT-032 the graph has a cycle                      E-IMPORT-040 a node is malformed
//   E-IMPORT-041 a quantisation scale is not finite and positive
//   E-IMPORT-050 a limit of ImportOptions is exceeded       E-IMPORT-060 types do not fit (names every such node)
absl::StatusOr<ir::Graph> ImportOnnx(const std::filesystem::path& path, ImportOptions options = {});
absl::StatusOr<ir::Graph> ImportOnnxBytes(std::string_view bytes, const ImportOptions& options = {});

// A TensorProto file (input_0.pb of the ONNX test data).
absl::StatusOr<ir::Tensor> ReadTensorProto(std::string_view bytes);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_ONNX_IMPORT_H_
