// fuse-vertical: chains that run as one kernel. A group starts at a node that does work (convolution, matrix product,
// pooling) or at an element-wise node, and takes the element-wise node that alone reads its last output, as long as the
// shape stays. A chain of single readers is convex: a path leaves it only at its end.
//
// Integer and float nodes do not share a group, nor do the quantisers between them join integer groups: a group is placed
// as a whole, and an accelerator for integers would refuse it for one float node.

#include <algorithm>
#include <set>

#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

using OpSet = std::set<std::string, std::less<>>;

bool IsIntegerAnchor(const Node& node) {
  static const OpSet kOps = {"QConv", "QMatMul", "QAveragePool"};
  return kOps.contains(node.op);
}

bool IsIntegerElementwise(const Node& node) {
  static const OpSet kOps = {"QAdd", "QMul", "QLut"};
  return kOps.contains(node.op);
}

bool IsFloatAnchor(const Graph& graph, const Node& node) {
  static const OpSet kOps = {"Conv", "ConvTranspose", "Gemm", "MatMul", "AveragePool", "GlobalAveragePool", "ReduceMean"};
  return kOps.contains(node.op) && IsFloat(graph.type(node.outputs[0]).element);
}

bool IsFloatElementwise(const Graph& graph, const Node& node) {
  static const OpSet kOps = {
      "Abs",  "Acos",      "Acosh",    "Add",   "Asin",     "Asinh",   "Atan",       "Atanh",    "Ceil", "Celu",     "Clip",
      "Cos",  "Cosh",      "Div",      "Elu",   "Erf",      "Exp",     "Floor",      "Gelu",     "Max",  "HardSigmoid",
      "HardSwish", "LeakyRelu", "Log", "Min",   "Mish",     "Mul",     "Neg",        "PRelu",    "Pow",  "Reciprocal",
      "Relu", "Round",     "Selu",     "Shrink", "Sigmoid", "Sign",    "Sin",        "Sinh",     "Softplus", "Softsign",
      "Sqrt", "Sub",       "Tan",      "Tanh",  "ThresholdedRelu"};
  return kOps.contains(node.op) && node.outputs.size() == 1 && IsFloat(graph.type(node.outputs[0]).element);
}

// The node that continues the chain after `last`, or kNoNode.
NodeId Successor(const Graph& graph, NodeId last, bool integer) {
  const Node& node = graph.node(last);
  if (node.outputs.size() != 1) return kNoNode;
  const NodeId next = SoleUser(graph, node.outputs[0]);
  if (next == kNoNode) return kNoNode;
  const Node& user = graph.node(next);
  if (user.fusion_group >= 0 || user.outputs.size() != 1) return kNoNode;
  if (graph.type(user.outputs[0]).shape != graph.type(node.outputs[0]).shape) return kNoNode;
  if (integer) return IsIntegerElementwise(user) ? next : kNoNode;
  const bool quantises = user.op == "QuantizeLinear" && user.inputs[0] == node.outputs[0];
  return IsFloatElementwise(graph, user) || quantises ? next : kNoNode;
}

class Fuser {
 public:
  Fuser(Graph& graph, int64_t longest) : graph_(graph), longest_(longest) {}

  void StartAt(NodeId first, bool integer) {
    if (graph_.node(first).fusion_group >= 0) return;
    std::vector<NodeId> chain = {first};
    while (static_cast<int64_t>(chain.size()) < longest_) {
      const NodeId next = Successor(graph_, chain.back(), integer);
      if (next == kNoNode) break;
      chain.push_back(next);
      if (graph_.node(next).op == "QuantizeLinear") break;
    }
    if (chain.size() < 2) return;
    for (NodeId id : chain) graph_.node(id).fusion_group = next_group_;
    ++next_group_;
  }

 private:
  Graph& graph_;
  int64_t longest_;
  int next_group_ = 0;
};

absl::Status Run(Graph& graph, const PassOptionValues& options) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) graph.node(id).fusion_group = -1;
  Fuser fuser(graph, std::max<int64_t>(options.at("longest"), 1));
  // Late anchors first: of two convolutions that meet in an addition, the one computed last takes it, since the other's
  // result is there by then.
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = graph.node(*it);
    if (IsIntegerAnchor(node)) fuser.StartAt(*it, true);
    if (IsFloatAnchor(graph, node)) fuser.StartAt(*it, false);
  }
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (IsIntegerElementwise(node)) fuser.StartAt(id, true);
    if (IsFloatElementwise(graph, node) || node.op == "DequantizeLinear") fuser.StartAt(id, false);
  }
  return absl::OkStatus();
}

}  // namespace

Pass FuseVerticalPass() {
  return {"fuse-vertical", "groups chains of a convolution, matrix product or pooling and the element-wise nodes behind it",
          {{"longest", "largest number of nodes in a group; 1 fuses nothing", 16}}, Run};
}

}  // namespace heddle::ir
