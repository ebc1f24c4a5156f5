// How each node of a float graph takes part in quantisation. Internal to ir/quantise.
#ifndef HEDDLE_IR_QUANTISE_ROLES_H_
#define HEDDLE_IR_QUANTISE_ROLES_H_

#include <set>
#include <vector>

#include "ir/quantise/plan.h"

namespace heddle::ir::quantise {

enum class Role {
  kFloat,     // computes on floats
  kLayer,     // Conv, Gemm, MatMul: always quantised
  kPool,      // AveragePool, GlobalAveragePool: always
  kJoin,      // Add, Sub, Mul of two tensors, ReduceMean: where an operand is quantised anyway
  kSoftmax,   // where its input is quantised anyway
  kFunction,  // an element-wise function of one tensor
  kMovement,  // moves elements
};

bool IsActivation(const Graph& graph, ValueId value);     // float32, not constant, not empty
bool IsFloatConstant(const Graph& graph, ValueId value);  // float32
// Inputs of the node that are activations.
std::vector<ValueId> Activations(const Graph& graph, const Node& node);

// Nodes of normalisations written out: x - mean(x), its squares' mean, the square root of that, and what divides by it.
std::set<NodeId> NormalisationNodes(const Graph& graph);

// The role by NodeId. `source_of`: by ValueId, the tensor that a chain of element-wise functions ending here starts
// from, the value itself where no such chain ends; values of `rounded` start a new chain.
std::vector<Role> RolesOf(const Graph& graph, const std::set<NodeId>& keep_float,
                          const std::vector<ValueId>& source_of);
std::vector<ValueId> SourcesOf(const Graph& graph, const std::vector<NodeId>& order, const std::set<NodeId>& keep_float,
                               const std::set<ValueId>& rounded);

// The weights' axis of output channels and where the bias is, for a node of role kLayer with constant weights.
std::optional<WeightedLayer> WeightedLayerOf(const Graph& graph, const Node& node);

// The tensor that stands for the result of a node with role kLayer, kPool or kJoin: behind a bias addition and clamps
// that are its only readers.
ValueId ResultOf(const Graph& graph, const Node& node, const std::set<NodeId>& keep_float);

}  // namespace heddle::ir::quantise

#endif  // HEDDLE_IR_QUANTISE_ROLES_H_
