// What an op is: everything Heddle knows of it stands in one file of ir/ops/, as one object of this interface.
//
// ir/ops/all_ops.cc is the explicit list. The verifier, shape inference, the reference interpreter, the compilers, the
// random tests and docs/ops.md all derive from it.
#ifndef HEDDLE_IR_OP_H_
#define HEDDLE_IR_OP_H_

#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

namespace loops {
class OpLowering;  // ir/loops/op_lowering.h: where an op puts its definition in tensor expressions
}

// A node as its op sees it. Reads only.
class NodeContext {
 public:
  NodeContext(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}
  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  int num_inputs() const { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int i) const { return i < num_inputs() && node_.inputs[static_cast<size_t>(i)] != kNoValue; }
  const ValueType& input_type(int i) const { return graph_.type(node_.inputs[static_cast<size_t>(i)]); }
  Shape input_shape(int i) const { return input_type(i).static_shape(); }
  const ValueType& output_type(int i = 0) const { return graph_.type(node_.outputs[static_cast<size_t>(i)]); }
  Shape output_shape(int i = 0) const { return output_type(i).static_shape(); }
  // The input's value where it is a constant, else null.
  const Tensor* constant(int i) const { return has_input(i) ? graph_.ConstantOrNull(node_.inputs[static_cast<size_t>(i)]) : nullptr; }

 private:
  const Graph& graph_;
  const Node& node_;
};

// Work of one node, for cost models.
struct OpWork {
  int64_t macs = 0;         // multiply-accumulates
  int64_t other_ops = 0;    // additions, comparisons, function evaluations
  int64_t weight_bytes = 0; // constants read
  int64_t input_bytes = 0;  // activations read (each once)
  int64_t output_bytes = 0;
};

// A random node with inputs for it: `graph` holds just that node, its inputs in order as graph inputs or constants.
struct RandomCase {
  Graph graph;
  std::vector<Tensor> inputs;  // one per graph input
};
using Random = std::mt19937_64;

enum class OpKind {
  kFloat,        // float arithmetic: devices are compared under ErrorBound
  kInteger,      // exact integer arithmetic: devices agree to the bit
  kMovement,     // moves elements of any type without changing them
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  virtual OpKind kind(const NodeContext& context) const = 0;
  // One paragraph: inputs with dimension order and types, attributes, result, source of the semantics (docs/ops.md).
  virtual std::string_view doc() const = 0;

  // Input count, types, ranks and attributes, before types of outputs are known; errors carry E-OP-… and the node's name.
  // InferTypes is called only on nodes that passed. Input shapes are static.
  virtual absl::Status Verify(const NodeContext& context) const = 0;
  // One type per output; quantisation is left empty unless the op defines it.
  virtual absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& context) const = 0;

  // Reference kernel. `inputs` has one entry per node input, null where absent; returns one tensor per output, of the
  // inferred types. Slow and plain: the definition that all devices are compared with.
  virtual absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& context,
                                                       std::span<const Tensor* const> inputs) const = 0;

  // Definition in tensor expressions, from which every device without a program of its own is compiled. The default
  // answers that the op has none (E-OP-090): it then runs by its reference kernel on the CPU.
  virtual absl::Status Lower(const NodeContext& context, loops::OpLowering& lowering) const;

  virtual OpWork Work(const NodeContext& context) const;  // default: bytes of inputs and outputs, one op per output element
  // Largest |device - reference| allowed for one output element of a float op, given the reference value.
  virtual double ErrorBound(const NodeContext& context, double reference) const;
  // What a reduction may add on top for these inputs (as for Evaluate): K terms t summed in any order with unit roundoff u err by at
  // most K·u·Σ|t|. One number that holds for every output element; 0 for ops that sum nothing. A device passes where
  // |device - reference| <= ErrorBound(context, reference) + SummationBound(context, inputs).
  virtual double SummationBound(const NodeContext& context, std::span<const Tensor* const> inputs) const;
  // A seeded random instance for tests, all attributes exercised; nullopt where the op is only tested in models.
  virtual std::optional<RandomCase> Sample(Random& random) const { (void)random; return std::nullopt; }
};

// The op called `name`, or null.
const Op* FindOp(std::string_view name);
std::vector<const Op*> AllOps();  // in the order of ir/ops/all_ops.cc

// Verifies the node and sets the types of its outputs. Keeps a quantisation that is already set.
absl::Status InferNodeTypes(Graph& graph, NodeId id);
// The same for every node in topological order.
absl::Status InferGraphTypes(Graph& graph);

// Error helper: "node 'NAME' (Conv): MESSAGE".
absl::Status NodeError(std::string_view code, const Node& node, std::string_view message, std::string_view next_step = "");

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OP_H_
