// Looks up and applies the rewrite rules.

#include "frontend/onnx_rewrite.h"

#include <map>

namespace heddle::frontend {
namespace {

using Table = std::map<std::string_view, Rule>;

Table MakeTable(std::initializer_list<const std::vector<RuleEntry>*> lists) {
  Table table;
  for (const auto* list : lists) {
    for (const RuleEntry& entry : *list) table[entry.op] = entry.rule;
  }
  return table;
}

const Table& OnnxTable() {
  static const Table& table =
      *new Table(MakeTable({&ShapeRules(), &ArithmeticRules(), &WindowRules(), &QuantisationRules(), &CompositeRules()}));
  return table;
}

const Table& MicrosoftTable() {
  static const Table& table = *new Table(MakeTable({&MicrosoftRules()}));
  return table;
}

// IR ops that no ONNX operator of the same name stands for: a source model may not name them.
bool IsInternalOp(std::string_view op) {
  return op == "SignFlip" || (op.starts_with("Q") && !op.starts_with("QLinear") && op != "QuantizeLinear");
}

}  // namespace

Rule FindRule(std::string_view domain, std::string_view op) {
  if (!domain.empty() && domain != "com.microsoft") return nullptr;
  const Table& table = domain.empty() ? OnnxTable() : MicrosoftTable();
  auto it = table.find(op);
  return it == table.end() ? nullptr : it->second;
}

bool SupportedByName(std::string_view domain, std::string_view op) {
  if (FindRule(domain, op)) return true;
  return domain.empty() && ir::FindOp(op) && !IsInternalOp(op);
}

absl::Status ImportNode(NodeImporter& n) {
  n.Drop({"consumed_inputs"});  // opsets before 6: a hint on memory
  if (const Rule rule = FindRule(n.source.domain, n.source.op)) return rule(n);
  if (!SupportedByName(n.source.domain, n.source.op)) return Unsupported("the operator is not known");
  return n.EmitSame(n.source.op);
}

}  // namespace heddle::frontend
