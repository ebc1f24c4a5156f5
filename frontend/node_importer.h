// One source node on its way into the graph: what the rewrite rules of onnx_rewrite.cc see. Free of protobuf.
#ifndef HEDDLE_FRONTEND_NODE_IMPORTER_H_
#define HEDDLE_FRONTEND_NODE_IMPORTER_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"

namespace heddle::frontend {

// A node of the source model. `outputs` has its outputs that anything uses, up to the last such; unused ones before that
// are there too. Every output has a name.
struct SourceNode {
  std::string op;
  std::string domain;  // "" for ONNX itself
  std::string name;    // as in the model, or made of op and output where it has none
  int64_t opset = 0;   // of the node's domain
  std::vector<std::string> outputs;
  size_t all_outputs = 0;  // number of outputs in the source model, unused ones included
  ir::Attributes attributes;
};

// State shared by all nodes of one import.
struct ImportState {
  ir::Graph* graph = nullptr;
  bool keep_symbolic = false;
  std::set<ir::ValueId> unknown;  // values whose types could not be inferred
  std::vector<std::string> type_errors;  // one line a node
};

// What a rule answers beyond coded errors: this form is not supported (collected, the import goes on), and shapes are needed
// that are not known (the node is kept as it is under keep_symbolic).
absl::Status Unsupported(std::string_view reason);
absl::Status NeedsShape();

class NodeImporter {
 public:
  NodeImporter(ImportState& state, const SourceNode& source, std::vector<ir::ValueId> inputs);

  const SourceNode& source;
  ir::Graph& graph;
  std::vector<ir::ValueId> inputs;  // trailing absent ones are dropped
  ir::Attributes attributes;        // the source's, for rules to change
  std::vector<ir::ValueId> results; // one for each of source.outputs; kNoValue until set

  int64_t opset() const { return source.opset; }
  size_t num_outputs() const { return source.outputs.size(); }
  bool Has(size_t input) const { return input < inputs.size() && inputs[input] != ir::kNoValue; }
  ir::ValueId Input(size_t input) const { return input < inputs.size() ? inputs[input] : ir::kNoValue; }
  const ir::Tensor* Constant(size_t input) const { return graph.ConstantOrNull(Input(input)); }
  bool Known(ir::ValueId value) const;  // type inferred and static
  // A malformed node: E-IMPORT-040.
  absl::Status Malformed(std::string_view what) const;
  absl::Status Require(size_t least_inputs) const;

  // Attributes of the right kind, or E-IMPORT-040. Take* removes it.
  absl::StatusOr<int64_t> TakeInt(const std::string& key, int64_t fallback);
  absl::StatusOr<double> TakeFloat(const std::string& key, double fallback);
  absl::StatusOr<std::string> TakeString(const std::string& key, const std::string& fallback);
  absl::StatusOr<std::vector<int64_t>> TakeInts(const std::string& key);  // empty where absent
  void Drop(std::initializer_list<const char*> keys);

  absl::StatusOr<ir::Shape> ShapeOf(ir::ValueId value) const;  // NeedsShape() where not known
  absl::StatusOr<std::vector<int64_t>> ConstantInts(size_t input, std::string_view role) const;

  ir::ValueId AddConstant(std::string_view role, ir::Tensor tensor);
  ir::ValueId AddInts(std::string_view role, const std::vector<int64_t>& values);  // i64, rank 1
  // Rank 0, of the element type of `like`.
  absl::StatusOr<ir::ValueId> AddScalar(std::string_view role, ir::ValueId like, double value);
  void SetInput(size_t index, ir::ValueId value);

  // Adds a node, infers its types and folds it where all inputs are small constants. First output, or all.
  absl::StatusOr<ir::ValueId> Emit(const std::string& op, std::vector<ir::ValueId> inputs, ir::Attributes attributes = {});
  absl::StatusOr<std::vector<ir::ValueId>> EmitMany(const std::string& op, std::vector<ir::ValueId> inputs,
                                                    ir::Attributes attributes, size_t outputs);
  absl::StatusOr<ir::ValueId> Reshape(ir::ValueId value, const ir::Shape& shape);
  // The node as it stands under `op`, with the current inputs and attributes, as the results.
  absl::Status EmitSame(const std::string& op);
  // The node as the source has it, without a look at its types: for graphs that are only shown.
  void KeepAsItIs();
  // One result.
  absl::Status Finish(absl::StatusOr<ir::ValueId> value);

 private:
  template <typename T>
  absl::StatusOr<T> Take(const std::string& key, T fallback, std::string_view kind);
  absl::Status Infer(ir::NodeId id);
  void FoldIfConstant(ir::NodeId id, std::vector<ir::ValueId>& outputs);

  ImportState& state_;
};

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_NODE_IMPORTER_H_
