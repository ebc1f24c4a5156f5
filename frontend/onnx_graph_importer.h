// Turns one GraphProto (and the branches of its constant Ifs) into nodes of an IR graph. Internal: includes protobuf.
#ifndef HEDDLE_FRONTEND_ONNX_GRAPH_IMPORTER_H_
#define HEDDLE_FRONTEND_ONNX_GRAPH_IMPORTER_H_

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/node_importer.h"
#include "frontend/onnx_import.h"

namespace heddle::frontend {

// The opset of each domain that the model declares; "ai.onnx" is "".
using Opsets = std::map<std::string, int64_t>;

// Names of nodes, which may be absent or shared in ONNX and are neither here: made of operator and first output where absent,
// with a number where taken, in the order of the file.
class NodeNames {
 public:
  void Add(const onnx::GraphProto& graph);  // its own nodes, not those of subgraphs
  const std::string& Of(const onnx::NodeProto& node) const { return names_.at(&node); }

 private:
  std::map<const onnx::NodeProto*, std::string> names_;
  std::map<std::string, int> given_;  // how often each
};

class GraphImporter {
 public:
  GraphImporter(const onnx::ModelProto& model, const ImportOptions& options);
  absl::StatusOr<ir::Graph> Import();

 private:
  // Names visible in a graph; a branch sees its parent's too.
  struct Scope {
    const Scope* parent = nullptr;
    std::map<std::string, ir::ValueId, std::less<>> values;
    std::map<std::string, const onnx::TensorProto*, std::less<>> initialisers;
    std::set<std::string, std::less<>> used_outputs;  // names that a living node or the graph itself reads
  };
  struct UnsupportedNode {
    std::string name, op, domain, reason;
    int64_t opset = 0;
  };

  absl::Status AddInputs(const onnx::GraphProto& proto, Scope& scope);
  absl::Status BindShapes(const onnx::GraphProto& proto, const Scope& scope);
  absl::StatusOr<ir::ValueType> InputType(const onnx::ValueInfoProto& info) const;
  absl::Status AddInitialisers(const onnx::GraphProto& proto, Scope& scope);
  absl::Status ImportNodes(const onnx::GraphProto& proto, Scope& scope, int depth);
  absl::Status ImportNode(const onnx::NodeProto& proto, Scope& scope, int depth);
  absl::Status ImportIf(const onnx::NodeProto& proto, const SourceNode& source, Scope& scope, int depth, bool& inlined);
  absl::StatusOr<SourceNode> MakeSource(const onnx::NodeProto& proto, const Scope& scope);
  absl::Status BindResults(const onnx::NodeProto& proto, const NodeImporter& node, Scope& scope);
  absl::Status AddOutputs(const onnx::GraphProto& proto, Scope& scope);
  absl::StatusOr<ir::ValueId> Lookup(Scope& scope, const std::string& name, std::string_view user);
  absl::Status ReadAttributes(const onnx::NodeProto& proto, SourceNode& source);
  void NoteUnsupported(const onnx::NodeProto& proto, const SourceNode& source, std::string_view reason);
  void NoteUnsupportedInside(const onnx::GraphProto& proto, const std::string& path);
  ir::ValueId UnknownValue(const std::string& name);
  void RemoveUnusedConstants();
  absl::Status UnsupportedError() const;
  absl::Status TypeError() const;
  int64_t OpsetOf(const std::string& domain) const;

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  Opsets opsets_;
  ir::Graph graph_;
  ImportState state_;
  std::map<std::string, int64_t> symbols_;
  std::map<std::string, const onnx::ValueInfoProto*> value_infos_;
  NodeNames node_names_;
  std::vector<UnsupportedNode> unsupported_;
  int64_t budget_bytes_;
  const onnx::GraphProto* source_graph_ = nullptr;
};

// Nodes of a graph, producers first, and which of them the outputs depend on. E-IMPORT-031 a name defined twice, 032 a cycle.
struct NodeOrder {
  std::vector<const onnx::NodeProto*> nodes;       // living ones only
  std::set<std::string, std::less<>> used_outputs;  // names read by living nodes, their subgraphs and the graph's outputs
};
absl::StatusOr<NodeOrder> OrderNodes(const onnx::GraphProto& graph);

// "" for ONNX's own domain in both of its spellings.
std::string NormalDomain(const std::string& domain);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_ONNX_GRAPH_IMPORTER_H_
