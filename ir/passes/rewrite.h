// Steps that passes are made of.
#ifndef HEDDLE_IR_PASSES_REWRITE_H_
#define HEDDLE_IR_PASSES_REWRITE_H_

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"

namespace heddle::ir {

// True where `value` has one use and is no graph output: its reader may absorb its producer.
bool HasSingleUse(const Graph& graph, ValueId value);
// The only reader of a single-use value, else kNoNode.
NodeId SoleUser(const Graph& graph, ValueId value);

// Adds a node with one output and infers its type; where the op refuses the node it is taken back and the error returned.
absl::StatusOr<ValueId> AddTypedNode(Graph& graph, const std::string& op, const std::string& name,
                                     const std::vector<ValueId>& inputs, const std::string& output_name,
                                     Attributes attributes = {});

// Makes `replacement` serve every use of `old`. Where `old` is a graph output, `replacement` takes its name, and nothing is
// done (false) where that cannot be: it is a graph input, a constant or another output. `keep_name` moves the name of `old`
// to `replacement` in any case, so that tools find the tensor again.
bool ReplaceValue(Graph& graph, ValueId old, ValueId replacement, bool keep_name = false);

// Removes the node if nothing reads it, then its producers likewise, then constants that are left over.
void RemoveIfDead(Graph& graph, NodeId node);
// All nodes and constants from which no graph output is reached.
void RemoveDeadCode(Graph& graph);

// Records on `into` that it stands for the source nodes of `from` too.
void MergeSources(Graph& graph, NodeId into, const std::vector<NodeId>& from);

// An attribute of another type counts as absent, here only: passes look at nodes before their verifier has.
int64_t IntOr(const Node& node, const std::string& key, int64_t fallback);
std::vector<int64_t> IntsOr(const Node& node, const std::string& key, std::vector<int64_t> fallback);
std::string StringOr(const Node& node, const std::string& key, const std::string& fallback);

// The constant's elements as int64, or nullopt where the value is no integer constant.
std::optional<std::vector<int64_t>> ConstantInts(const Graph& graph, ValueId value);
// The value of a one-element constant, or nullopt.
std::optional<double> ConstantScalar(const Graph& graph, ValueId value);

// Evaluates the node by its reference kernel where all inputs are constants (or only its input's shape matters) and the
// results have at most `max_bytes`; its outputs become constants. False where it is left alone.
bool FoldNode(Graph& graph, NodeId node, int64_t max_bytes);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_PASSES_REWRITE_H_
