// The readable dump. One class prints both the dump and the canonical key, which differ only in the names they use.

#include "ir/loops/printer.h"

#include <unordered_map>

#include "ir/loops/names.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

uint64_t HashBytes(const Tensor& tensor) {
  uint64_t hash = 1469598103934665603ull;  // FNV-1a
  for (int64_t i = 0; i < tensor.bytes(); ++i) {
    hash = (hash ^ static_cast<uint64_t>(tensor.data()[i])) * 1099511628211ull;
  }
  return hash;
}

class Printer {
 public:
  explicit Printer(bool canonical) : canonical_(canonical) {}

  std::string Text(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kIntImm:
        if (e.type() == ElementType::kBool) return e->int_value ? "true" : "false";
        return e.type() == ElementType::kInt64 ? fmt::format("{}", e->int_value)
                                               : fmt::format("{}:{}", e->int_value, ElementTypeName(e.type()));
      case ExprKind::kFloatImm: return fmt::format("{}:{}", FloatText(e->float_value), ElementTypeName(e.type()));
      case ExprKind::kVar: return Name(e.get(), e->name, "v");
      case ExprKind::kLoad: return Access(e->buffer, e->operands);
      case ExprKind::kSelect:
        return fmt::format("select({}, {}, {})", Text(e->operands[0]), Text(e->operands[1]), Text(e->operands[2]));
      case ExprKind::kCast: return fmt::format("{}({})", ElementTypeName(e.type()), Text(e->operands[0]));
      case ExprKind::kCall: {
        std::string text = fmt::format("{}({}", IntrinsicName(e->intrinsic), Text(e->operands[0]));
        for (size_t i = 1; i < e->operands.size(); ++i) text += ", " + Text(e->operands[i]);
        return text + ")";
      }
      case ExprKind::kBinary: {
        const std::string a = Text(e->operands[0]), b = Text(e->operands[1]);
        const std::string_view symbol = BinaryOpSymbol(e->binary);
        return symbol.empty() ? fmt::format("{}({}, {})", BinaryOpName(e->binary), a, b)
                              : fmt::format("({} {} {})", a, symbol, b);
      }
    }
    return "";
  }

  void Print(const Stmt& s, int indent) {
    const std::string margin(static_cast<size_t>(indent) * 2, ' ');
    if (!s) return;
    switch (s->kind) {
      case StmtKind::kFor:
        out_ += fmt::format("{}for {} in {}{}{}:\n", margin, Text(s->var), s->extent, KindText(*s),
                            s->annotation.empty() ? "" : " [" + s->annotation + "]");
        return Print(s->body, indent + 1);
      case StmtKind::kStore:
        out_ += fmt::format("{}{} = {}\n", margin, Access(s->buffer, s->indices), Text(s->value));
        return;
      case StmtKind::kIf:
        out_ += fmt::format("{}if {}:\n", margin, Text(s->value));
        Print(s->body, indent + 1);
        if (s->else_body) {
          out_ += margin + "else:\n";
          Print(s->else_body, indent + 1);
        }
        return;
      case StmtKind::kBlock:
        if (s->statements.empty()) out_ += margin + "pass\n";
        for (const Stmt& child : s->statements) Print(child, indent);
        return;
      case StmtKind::kAllocate:
        out_ += fmt::format("{}allocate {}{}\n", margin, Declaration(s->buffer), PartitionText(*s));
        return Print(s->body, indent);
      case StmtKind::kLet:
        out_ += fmt::format("{}let {}: {} = {}\n", margin, Text(s->var), ElementTypeName(s->var.type()), Text(s->value));
        return Print(s->body, indent);
      case StmtKind::kBarrier: out_ += margin + "barrier\n"; return;
    }
  }

  void Print(const Function& f) {
    out_ += fmt::format("function {}(", canonical_ ? "f" : f.name);
    static constexpr std::string_view kRoles[] = {"in", "const", "out"};
    for (size_t i = 0; i < f.params.size(); ++i) {
      out_ += fmt::format("{}{} {}", i ? ", " : "", kRoles[static_cast<size_t>(f.params[i].role)],
                          Declaration(f.params[i].buffer));
    }
    out_ += ")\n";
    for (const Buffer& table : TablesOf(f)) {
      out_ += fmt::format("  table {} hash {:016x}\n", Declaration(table), HashBytes(*table->contents));
    }
    Print(f.body, 1);
  }

  std::string Take() { return std::move(out_); }

 private:
  static std::string FloatText(double value) { return fmt::format("{}", value); }

  std::string Name(const void* node, const std::string& wanted, const char* letter) {
    return names_.Of(node, canonical_ ? std::string(letter) : wanted);
  }

  std::string Access(const Buffer& buffer, const std::vector<Expr>& indices) {
    std::string text = Name(buffer.get(), buffer->name, "b") + "[";
    for (size_t d = 0; d < indices.size(); ++d) text += (d ? ", " : "") + Text(indices[d]);
    return text + "]";
  }

  std::string Declaration(const Buffer& buffer) {
    static constexpr std::string_view kSpaces[] = {"", " constant", " shared", " private"};
    return fmt::format("{}: {}[{}]{}", Name(buffer.get(), buffer->name, "b"), ElementTypeName(buffer.type()),
                       fmt::join(buffer.shape(), ", "), kSpaces[static_cast<size_t>(buffer->space)]);
  }

  static std::string KindText(const StmtNode& s) {
    if (s.loop_kind == LoopKind::kSerial) return "";
    if (s.loop_kind == LoopKind::kPipelined) return fmt::format(" pipelined({})", s.initiation_interval);
    return fmt::format(" {}", LoopKindName(s.loop_kind));
  }

  static std::string PartitionText(const StmtNode& s) {
    static constexpr std::string_view kKinds[] = {"none", "complete", "cyclic", "block"};
    std::string text;
    for (const ArrayPartition& p : s.partitions) {
      text += fmt::format(" partition({}, dim {}, factor {})", kKinds[static_cast<size_t>(p.kind)], p.dimension, p.factor);
    }
    return text;
  }

  bool canonical_;
  UniqueNames names_;
  std::string out_;
};

}  // namespace

std::string ToText(const Expr& expr) { return Printer(false).Text(expr); }

std::string ToText(const Stmt& stmt, int indent) {
  Printer printer(false);
  printer.Print(stmt, indent);
  return printer.Take();
}

std::string ToText(const Function& function) {
  Printer printer(false);
  printer.Print(function);
  return printer.Take();
}

std::string ToText(const Module& module) {
  std::string text;
  for (const Function& function : module.functions) text += ToText(function) + "\n";
  return text;
}

std::string CanonicalKey(const Function& function) {
  Printer printer(true);
  printer.Print(function);
  return printer.Take();
}

}  // namespace heddle::ir::loops
