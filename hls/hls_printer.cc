// Statements and expressions of the loop IR as C++.

#include "hls/hls_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/check.h"
#include "ir/loops/names.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"

namespace heddle::hls {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using ir::ElementType;

namespace {

std::string_view UnsignedType(ElementType type) {
  switch (ir::ElementBytes(type)) {
    case 1: return "uint8_t";
    case 2: return "uint16_t";
    case 4: return "uint32_t";
    default: return "uint64_t";
  }
}

Interval RangeOf(ElementType type) {
  const int bits = static_cast<int>(8 * ir::ElementBytes(type));
  if (type == ElementType::kBool) return {0, 1};
  if (IsSigned(type)) {
    return bits == 64 ? Interval{} : Interval{-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
  }
  return bits == 64 ? Interval{0, std::numeric_limits<int64_t>::max()} : Interval{0, (int64_t{1} << bits) - 1};
}

class FunctionPrinter {
 public:
  FunctionPrinter(const Function& function, const AcceleratorParams& params)
      : function_(LowerFloorDivision(Simplify(function))),
        params_(params),
        names_({"int", "char", "short", "long", "float", "double", "bool", "for", "if", "else", "return", "static", "const", "void",
                "inline", "switch", "case", "default", "do", "while", "new", "delete", "this", "class", "struct", "union", "enum",
                "signed", "unsigned", "and", "or", "not", "xor", "register", "auto", "template", "operator", "std", "main"}) {}

  std::string Run() {
    std::string tables, head;
    for (const Buffer& table : TablesOf(function_)) tables += TableText(table);
    for (const Param& param : function_.params) {
      const std::string access = param.role == ParamRole::kOutput ? "" : "const ";
      head += fmt::format("{}{}{}* {}", head.empty() ? "" : ", ", access, CppType(param.buffer.type()), Name(param.buffer));
    }
    indent_ = 1;
    Print(function_.body);
    return fmt::format("{}static void {}({}) {{\n{}}}\n", tables, function_.name, head, text_);
  }

 private:
  // ---- Names and tables.

  std::string Name(const Buffer& buffer) { return names_.Of(buffer.get(), ToIdentifier(buffer->name)); }
  std::string Name(const Expr& var) { return names_.Of(var.get(), ToIdentifier(var->name)); }

  std::string TableText(const Buffer& table) {
    const ir::Tensor& contents = *table->contents;
    std::string values;
    for (int64_t i = 0; i < std::max<int64_t>(contents.elements(), 1); ++i) {
      const bool there = i < contents.elements();
      const Expr value = ir::IsFloat(contents.type()) ? FloatConstant(contents.type(), there ? contents.at_double(i) : 0)
                                                      : IntConstant(contents.type(), there ? contents.at_int(i) : 0);
      values += (i == 0 ? "" : i % 16 == 0 ? ",\n    " : ", ") + Immediate(value);
    }
    const std::string name = names_.Of(table.get(), function_.name + "_" + ToIdentifier(table->name));
    return fmt::format("static const {} {}[{}] = {{\n    {}}};\n", CppType(contents.type()), name, std::max<int64_t>(contents.elements(), 1), values);
  }

  // ---- Statements.

  void Line(const std::string& line) { text_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + line + "\n"; }
  void Pragma(const std::string& text) { text_ += "#pragma HLS " + text + "\n"; }

  void PrintBraced(const Stmt& stmt) {
    ++indent_;
    Print(stmt);
    --indent_;
  }

  void Print(const Stmt& stmt) {
    if (!stmt) return;
    switch (stmt->kind) {
      case StmtKind::kFor: return PrintFor(*stmt);
      case StmtKind::kStore:
        return Line(fmt::format("{} = {};", Element(stmt->buffer, stmt->indices), Value(stmt->value)));
      case StmtKind::kIf:
        Line("if (" + Value(stmt->value) + ") {");
        PrintBraced(stmt->body);
        if (stmt->else_body) {
          Line("} else {");
          PrintBraced(stmt->else_body);
        }
        return Line("}");
      case StmtKind::kBlock:
        for (const Stmt& child : stmt->statements) Print(child);
        return;
      case StmtKind::kAllocate: return PrintAllocate(*stmt);
      case StmtKind::kLet:
        intervals_[stmt->var.get()] = BoundsOf(stmt->value, intervals_);
        Line(fmt::format("const {} {} = {};", CppType(stmt->var.type()), Name(stmt->var), Value(stmt->value)));
        return Print(stmt->body);
      case StmtKind::kBarrier: HEDDLE_CHECK(false, "a barrier in HLS C++");
    }
  }

  static bool HasLoop(const Stmt& stmt) {
    bool found = false;
    ForEachStmt(stmt, [&](const Stmt& s) { found = found || s->kind == StmtKind::kFor; });
    return found;
  }

  // An innermost loop: R iterations at once, a new group every cycle. The loop just around a nest of such loops: C at once,
  // where its extent allows.
  void PrintFor(const StmtNode& loop) {
    intervals_[loop.var.get()] = {0, std::max<int64_t>(loop.extent - 1, 0)};
    const std::string var = Name(loop.var);
    Line(fmt::format("for (int64_t {0} = 0; {0} < {1}; ++{0}) {{", var, loop.extent));
    if (loop.loop_kind == LoopKind::kUnrolled) {
      Pragma("unroll");
    } else if (loop.loop_kind == LoopKind::kPipelined) {
      Pragma(fmt::format("pipeline II={}", loop.initiation_interval));
    } else if (!HasLoop(loop.body)) {
      Pragma("pipeline II=1");
      if (loop.extent > 1) Pragma(fmt::format("unroll factor={}", std::min<int64_t>(loop.extent, params_.contraction_lanes)));
    } else if (depth_ == 1 && loop.extent > 1) {
      Pragma(fmt::format("unroll factor={}", std::min<int64_t>(loop.extent, params_.output_lanes)));
    }
    ++depth_;
    PrintBraced(loop.body);
    --depth_;
    Line("}");
  }

  void PrintAllocate(const StmtNode& allocate) {
    const Buffer& buffer = allocate.buffer;
    const int64_t elements = std::max<int64_t>(buffer->elements(), 1);
    const std::string name = Name(buffer);
    // Large arrays become block RAM; a stack would not hold them in the C simulation.
    Line(fmt::format("{}{} {}[{}];", elements > 64 ? "static " : "", CppType(buffer.type()), name, elements));
    if (!allocate.partitions.empty()) {
      for (const ArrayPartition& partition : allocate.partitions) {
        if (partition.kind == PartitionKind::kNone) continue;
        const bool complete = partition.kind == PartitionKind::kComplete;
        Pragma(fmt::format("array_partition variable={} {}{}", name, complete ? "complete" : partition.kind == PartitionKind::kCyclic ? "cyclic" : "block",
                           complete ? "" : fmt::format(" factor={}", partition.factor)));
      }
    } else if (elements > 1 && elements <= 64) {
      Pragma(fmt::format("array_partition variable={} complete", name));
    } else if (elements > 64) {
      Pragma(fmt::format("array_partition variable={} cyclic factor={}", name, std::min<int64_t>(elements, params_.contraction_lanes)));
    }
    Print(allocate.body);
  }

  // ---- Expressions. Every text is an operand that needs no further parentheses, except Value's.

  std::string Element(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer.rank() == 0) return Name(buffer) + "[0]";
    return fmt::format("{}[{}]", Name(buffer), Value(Simplify(FlatIndex(buffer, indices), intervals_)));
  }

  // Without the parentheses around the whole.
  std::string Value(const Expr& e) {
    const std::string text = Operand(e);
    if (text.size() < 2 || text.front() != '(') return text;
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth == 0) return i + 1 == text.size() ? text.substr(1, text.size() - 2) : text;
    }
    return text;
  }

  std::string Immediate(const Expr& e) {
    if (e->kind == ExprKind::kFloatImm) {
      const bool single = e->type == ElementType::kFloat32;
      if (std::isnan(e->float_value)) return single ? "NAN" : "(double)NAN";
      if (std::isinf(e->float_value)) return fmt::format("({}{})", e->float_value < 0 ? "-" : "", single ? "INFINITY" : "(double)INFINITY");
      std::string text = single ? fmt::format("{}", static_cast<float>(e->float_value)) : fmt::format("{}", e->float_value);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return (e->float_value < 0 || std::signbit(e->float_value) ? "(" + text : text) + (single ? "f" : "") +
             (e->float_value < 0 || std::signbit(e->float_value) ? ")" : "");
    }
    if (e->type == ElementType::kBool) return e->int_value ? "true" : "false";
    if (e->type == ElementType::kUint64) return fmt::format("UINT64_C({})", static_cast<uint64_t>(e->int_value));
    if (e->int_value == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
    if (e->int_value == std::numeric_limits<int32_t>::min()) return e->type == ElementType::kInt64 ? "(int64_t)INT32_MIN" : "INT32_MIN";
    const bool wide = e->int_value > std::numeric_limits<int32_t>::max() || e->int_value < std::numeric_limits<int32_t>::min();
    std::string text = wide ? fmt::format("INT64_C({})", e->int_value) : fmt::format("{}", e->int_value);
    if (e->type == ElementType::kUint32) text = fmt::format("{}u", e->int_value);
    return e->int_value < 0 ? "(" + text + ")" : text;
  }

  std::string Operand(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm: return Immediate(e);
      case ExprKind::kVar: return Name(e);
      case ExprKind::kLoad: return Element(e->buffer, e->operands);
      case ExprKind::kBinary: return BinaryText(e);
      case ExprKind::kSelect:
        return fmt::format("({} ? {} : {})", Operand(e->operands[0]), Typed(e->operands[1]), Typed(e->operands[2]));
      case ExprKind::kCast: return CastText(e);
      case ExprKind::kCall: return CallText(e);
    }
    return "";
  }

  // Of exactly the expression's type also where it is a constant.
  std::string Typed(const Expr& e) {
    const bool plain = ir::IsFloat(e.type()) || e.type() == ElementType::kBool || e.type() == ElementType::kInt32;
    return IsConstant(e) && !plain ? fmt::format("({}){}", CppType(e.type()), Operand(e)) : Operand(e);
  }

  std::string CastText(const Expr& e) {
    const Expr& from = e->operands[0];
    if (e->type == ElementType::kBool) return fmt::format("({} != 0)", Operand(from));
    if (!ir::IsFloat(e->type) && IsSigned(e->type) && from.type() != ElementType::kBool && !ir::IsFloat(from.type())) {
      const Interval bounds = BoundsOf(from, intervals_), range = RangeOf(e->type);
      // Out of range it wraps: C++17 leaves that to the compiler, all of which wrap; unsigned first says so.
      if (bounds.low < range.low || bounds.high > range.high) return fmt::format("({})({})({})", CppType(e->type), UnsignedType(e->type), Value(from));
    }
    return fmt::format("({})({})", CppType(e->type), Value(from));
  }

  bool StaysInType(const Expr& e) {
    const ElementType type = e.type();
    if (!IsSigned(type)) return true;  // unsigned wraps by itself; narrow ones are cast below
    // Bounds of the mathematical value: of the same expression one type wider would be exact; use the operands' intervals.
    const Interval a = BoundsOf(e->operands[0], intervals_), b = BoundsOf(e->operands[1], intervals_);
    const Interval range = RangeOf(type);
    const auto wide = [](int64_t v) { return static_cast<__int128>(v); };
    __int128 low = 0, high = 0;
    switch (e->binary) {
      case BinaryOp::kAdd: low = wide(a.low) + b.low, high = wide(a.high) + b.high; break;
      case BinaryOp::kSub: low = wide(a.low) - b.high, high = wide(a.high) - b.low; break;
      case BinaryOp::kMul: {
        const __int128 products[] = {wide(a.low) * b.low, wide(a.low) * b.high, wide(a.high) * b.low, wide(a.high) * b.high};
        low = *std::min_element(products, products + 4), high = *std::max_element(products, products + 4);
        break;
      }
      default: return false;
    }
    return low >= range.low && high <= range.high;
  }

  std::string BinaryText(const Expr& e) {
    const std::string a = Operand(e->operands[0]), b = Operand(e->operands[1]);
    const ElementType type = e->operands[0].type();
    const std::string_view cpp = CppType(type);
    const BinaryOp op = e->binary;
    if (op == BinaryOp::kMin || op == BinaryOp::kMax) {
      return fmt::format("{}({}, {})", op == BinaryOp::kMin ? "std::min" : "std::max", Typed2(e->operands[0]), Typed2(e->operands[1]));
    }
    const std::string symbol(BinaryOpSymbol(op));
    HEDDLE_CHECK(!symbol.empty(), "a floor division in HLS C++");
    const std::string plain = fmt::format("({} {} {})", a, symbol, b);
    if (IsComparison(op) || ir::IsFloat(type) || type == ElementType::kBool) return plain;
    if (op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor || op == BinaryOp::kDiv || op == BinaryOp::kMod ||
        op == BinaryOp::kShiftRight) {
      return ir::ElementBytes(type) < 4 ? fmt::format("({}){}", cpp, plain) : plain;
    }
    if (op == BinaryOp::kShiftLeft) return fmt::format("({0})(({1}){2} << {3})", cpp, UnsignedType(type), a, b);
    if (StaysInType(e)) {
      // C++ computes at least in int, and in 64 bits only where an operand is one.
      if (ir::ElementBytes(type) < 4) return fmt::format("({}){}", cpp, plain);
      if (ir::ElementBytes(type) == 8 && IsConstant(e->operands[0]) && IsConstant(e->operands[1])) {
        return fmt::format("(({}){} {} {})", cpp, a, symbol, b);
      }
      return plain;
    }
    const std::string_view through = ir::ElementBytes(type) < 4 ? "uint32_t" : UnsignedType(type);
    return fmt::format("({0})(({1}){2} {3} ({1}){4})", cpp, through, a, symbol, b);
  }

  // std::min and std::max want both operands of one type.
  std::string Typed2(const Expr& e) {
    const bool exact = e->kind == ExprKind::kVar || e->kind == ExprKind::kLoad || e->kind == ExprKind::kCast || ir::IsFloat(e.type()) ||
                       (e.type() == ElementType::kInt32 && IsConstant(e));
    return exact ? Value(e) : fmt::format("({})({})", CppType(e.type()), Value(e));
  }

  std::string CallText(const Expr& e) {
    std::string arguments;
    for (const Expr& operand : e->operands) arguments += (arguments.empty() ? "" : ", ") + Value(operand);
    if (e->intrinsic == Intrinsic::kNeg && !ir::IsFloat(e->type)) {
      return fmt::format("({0})(0u - ({1})({2}))", CppType(e->type), UnsignedType(e->type), arguments);
    }
    if (e->intrinsic == Intrinsic::kNeg) return fmt::format("(-({}))", arguments);
    if (e->intrinsic == Intrinsic::kAbs && !ir::IsFloat(e->type)) return fmt::format("({})AbsoluteValue({})", CppType(e->type), arguments);
    const std::string name(IntrinsicName(e->intrinsic));
    return fmt::format("std::{}({})", name, arguments);
  }

  Function function_;
  const AcceleratorParams& params_;
  UniqueNames names_;
  VarIntervals intervals_;
  std::string text_;
  int indent_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string_view CppType(ElementType type) {
  switch (type) {
    case ElementType::kFloat32: return "float";
    case ElementType::kFloat64: return "double";
    case ElementType::kInt8: return "int8_t";
    case ElementType::kUint8: return "uint8_t";
    case ElementType::kInt16: return "int16_t";
    case ElementType::kUint16: return "uint16_t";
    case ElementType::kInt32: return "int32_t";
    case ElementType::kUint32: return "uint32_t";
    case ElementType::kInt64: return "int64_t";
    case ElementType::kUint64: return "uint64_t";
    case ElementType::kBool: return "bool";
  }
  return "void";
}

std::string HlsPrelude() {
  return "#include <algorithm>\n"
         "#include <cmath>\n"
         "#include <cstdint>\n"
         "\n"
         "template <typename T>\n"
         "inline uint64_t AbsoluteValue(T x) {\n"
         "  return x < 0 ? UINT64_C(0) - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);\n"
         "}\n";
}

std::string PrintHlsFunction(const Function& function, const AcceleratorParams& params) { return FunctionPrinter(function, params).Run(); }

}  // namespace heddle::hls
