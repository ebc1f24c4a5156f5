// Counts work and parameters of an imported graph.

#include "frontend/model_facts.h"

#include <algorithm>
#include <fstream>

#include "ir/op.h"
#include "ir/sha256.h"

namespace heddle::frontend {
namespace {

// Whether input `input` of an op tells how to quantise, rather than holding what is computed with.
bool IsQuantisationInput(const std::string& op, int input) {
  if (op == "QuantizeLinear" || op == "DequantizeLinear") return input >= 1;
  if (op == "QLinearConv" || op == "QLinearMatMul") return input != 0 && input != 3 && input != 8;
  return false;
}

bool IsParameter(const ir::Graph& graph, const ir::Value& value) {
  if (!value.constant || value.type.element == ir::ElementType::kInt64 || value.type.element == ir::ElementType::kBool) return false;
  return std::any_of(value.uses.begin(), value.uses.end(),
                     [&](const ir::Use& use) { return !IsQuantisationInput(graph.node(use.node).op, use.input); });
}

}  // namespace

ModelFacts FactsOf(const ir::Graph& graph) {
  ModelFacts facts;
  for (ir::NodeId id : graph.NodeIds()) {
    const ir::Node& node = graph.node(id);
    const ir::Op* op = ir::FindOp(node.op);
    if (op) facts.macs += op->Work(ir::NodeContext(graph, node)).macs;
    ++facts.nodes;
  }
  for (ir::ValueId id : graph.ValueIds()) {
    if (IsParameter(graph, graph.value(id))) facts.parameters += graph.value(id).constant->elements();
  }
  return facts;
}

absl::StatusOr<std::string> FileSha256(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  ir::Sha256 hash;
  std::string buffer(1 << 20, '\0');
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.Update(std::string_view(buffer.data(), static_cast<size_t>(in.gcount())));
  }
  if (!in.eof()) return ir::UserError("E-IMPORT-001", fmt::format("'{}' cannot be read", path.string()), "check its path and permissions");
  return hash.HexDigest();
}

}  // namespace heddle::frontend
