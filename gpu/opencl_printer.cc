// Statements and kernels as OpenCL C. Expressions are in opencl_expr.cc and opencl_vector.cc.

#include "gpu/opencl_printer.h"

#include <algorithm>
#include <set>

#include "gpu/kernel_schedule.h"
#include "gpu/opencl_expr.h"
#include "ir/check.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::gpu {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using ir::ElementType;

namespace {

bool IsVectorLength(int64_t extent) { return extent == 2 || extent == 4 || extent == 8 || extent == 16; }

class KernelPrinter {
 public:
  KernelPrinter(const Function& function, ExprPrinter& exprs, std::string& tables)
      : function_(LowerFloorDivision(function)), exprs_(exprs), tables_(tables) {}

  std::string Run() {
    PrintTables();
    std::string params;
    for (const Param& param : function_.params) {
      const std::string access = param.role == ParamRole::kOutput ? "" : "const ";
      params += fmt::format("{}__global {}{}* restrict {}", params.empty() ? "" : ", ", access, OpenClStorage(param.buffer.type()),
                            exprs_.Name(param.buffer));
    }
    const Grid grid = GridOf(function_);
    std::string head = fmt::format("__kernel __attribute__((reqd_work_group_size({}, {}, {})))\nvoid {}({}) {{\n", grid.items[0],
                                   grid.items[1], grid.items[2], function_.name, params);
    if (NeedsOf(function_).exact_rounding) head += "#pragma OPENCL FP_CONTRACT OFF\n";
    FindVectorBuffers();
    indent_ = 1;
    Print(function_.body);
    return head + text_ + "}\n";
  }

 private:
  void Line(const std::string& line) { text_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + line + "\n"; }

  void PrintTables() {
    for (const Buffer& table : TablesOf(function_)) {
      const ir::Tensor& contents = *table->contents;
      const std::string name = exprs_.UniqueName(table.get(), function_.name + "_" + table->name);
      std::string values;
      for (int64_t i = 0; i < contents.elements(); ++i) {
        const Expr value = ir::IsFloat(contents.type()) ? FloatConstant(contents.type(), contents.at_double(i))
                                                        : IntConstant(contents.type(), contents.at_int(i));
        values += (i == 0 ? "" : i % 16 == 0 ? ",\n    " : ", ") + exprs_.Scalar(value).text;
      }
      tables_ += fmt::format("__constant {} {}[{}] = {{\n    {}}};\n", OpenClStorage(contents.type()), name,
                             std::max<int64_t>(contents.elements(), 1), values.empty() ? "0" : values);
    }
  }

  // Private arrays that are only accessed by whole vectors, their last index being the lane.
  void FindVectorBuffers() {
    std::vector<Stmt> vector_loops;
    std::set<const BufferNode*> candidates, refused;
    std::function<void(const Stmt&, const Expr&, int64_t)> scan = [&](const Stmt& stmt, const Expr& lane, int64_t lanes) {
      if (!stmt) return;
      auto check = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
        if (buffer->space != MemorySpace::kPrivate) return;
        const bool fits = lane && buffer.rank() > 0 && buffer.shape().back() == lanes && indices.back().get() == lane.get() &&
                          std::none_of(indices.begin(), indices.end() - 1, [&](const Expr& i) { return UsesVar(i, lane); });
        (fits ? candidates : refused).insert(buffer.get());
      };
      auto check_expr = [&](const Expr& root) {
        if (!root) return;
        ForEachExpr(root, [&](const Expr& e) {
          if (e->kind == ExprKind::kLoad) check(e->buffer, e->operands);
        });
      };
      if (stmt->kind == StmtKind::kStore) check(stmt->buffer, stmt->indices);
      for (const Expr& index : stmt->indices) check_expr(index);
      check_expr(stmt->value);
      const bool begins = IsVectorLoop(*stmt);
      scan(stmt->body, begins ? stmt->var : lane, begins ? stmt->extent : lanes);
      scan(stmt->else_body, lane, lanes);
      for (const Stmt& child : stmt->statements) scan(child, lane, lanes);
    };
    scan(function_.body, Expr(), 0);
    ForEachStmt(function_.body, [&](const Stmt& s) {
      if (s->kind == StmtKind::kAllocate && candidates.contains(s->buffer.get()) && !refused.contains(s->buffer.get()) &&
          s->buffer.type() != ElementType::kBool) {
        exprs_.AddVectorBuffer(s->buffer);
      }
    });
  }

  // A vectorised loop that can be printed with vectors: straight-line code in which no condition depends on the lane.
  bool IsVectorLoop(const StmtNode& stmt) const {
    if (stmt.kind != StmtKind::kFor || stmt.loop_kind != LoopKind::kVectorised || !IsVectorLength(stmt.extent)) return false;
    bool vectorisable = true;
    ForEachStmt(stmt.body, [&](const Stmt& s) {
      vectorisable = vectorisable && (s->kind == StmtKind::kStore || s->kind == StmtKind::kLet || s->kind == StmtKind::kBlock);
    });
    return vectorisable;
  }

  void PrintBraced(const Stmt& stmt) {
    ++indent_;
    Print(stmt);
    --indent_;
  }

  void Print(const Stmt& stmt) {
    if (!stmt) return;
    switch (stmt->kind) {
      case StmtKind::kFor: return PrintFor(*stmt);
      case StmtKind::kStore: return PrintStore(*stmt);
      case StmtKind::kIf:
        Line("if (" + exprs_.Scalar(stmt->value).text + ") {");
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
        exprs_.SetInterval(stmt->var, exprs_.Bounds(stmt->value));
        Line("const " + LetType(*stmt) + " " + exprs_.Name(stmt->var) + " = " + exprs_.Scalar(stmt->value).text + ";");
        return Print(stmt->body);
      case StmtKind::kBarrier: return Line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
    }
  }

  // The variable must be as narrow as its uses believe: its own bounds decide for them, its value's parts for the text.
  std::string LetType(const StmtNode& let) { return exprs_.TypeOf(let.var); }

  void PrintFor(const StmtNode& loop) {
    exprs_.SetInterval(loop.var, {0, std::max<int64_t>(loop.extent - 1, 0)});
    const std::string var = exprs_.Name(loop.var), type = exprs_.TypeOf(loop.var);
    if (IsGpuIndex(loop.loop_kind)) {
      const bool is_block = loop.loop_kind <= LoopKind::kBlockZ;
      const int dimension = static_cast<int>(loop.loop_kind) - static_cast<int>(is_block ? LoopKind::kBlockX : LoopKind::kThreadX);
      Line(fmt::format("const {0} {1} = ({0}){2}({3});", type, var, is_block ? "get_group_id" : "get_local_id", dimension));
      return Print(loop.body);
    }
    if (IsVectorLoop(loop)) {
      exprs_.BeginLanes(loop.var, static_cast<int>(loop.extent));
      PrintVector(loop.body);
      exprs_.EndLanes();
      return;
    }
    if (loop.loop_kind == LoopKind::kUnrolled || loop.loop_kind == LoopKind::kVectorised) Line("#pragma unroll");
    Line(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", type, var, loop.extent));
    PrintBraced(loop.body);
    Line("}");
  }

  void PrintStore(const StmtNode& store) {
    std::string value = exprs_.Scalar(store.value).text;
    if (store.buffer.type() == ElementType::kBool) value = "(uchar)(" + value + ")";
    Line(exprs_.Element(store.buffer, store.indices) + " = " + value + ";");
  }

  void PrintAllocate(const StmtNode& allocate) {
    const Buffer& buffer = allocate.buffer;
    HEDDLE_CHECK(buffer->space == MemorySpace::kPrivate || buffer->space == MemorySpace::kShared,
                 "buffer " + buffer->name + " in global memory inside a kernel");
    const std::string space = buffer->space == MemorySpace::kShared ? "__local " : "";
    std::string type = OpenClStorage(buffer.type());
    int64_t elements = std::max<int64_t>(buffer->elements(), 1);
    if (exprs_.IsVectorBuffer(buffer)) {
      type += std::to_string(buffer.shape().back());
      elements /= buffer.shape().back();
    }
    Line(fmt::format("{}{} {}[{}];", space, type, exprs_.Name(buffer), elements));
    Print(allocate.body);
  }

  // ---- Within a vectorised loop.

  void PrintVector(const Stmt& stmt) {
    if (!stmt) return;
    if (stmt->kind == StmtKind::kBlock) {
      for (const Stmt& child : stmt->statements) PrintVector(child);
    } else if (stmt->kind == StmtKind::kLet) {
      PrintVectorLet(*stmt);
    } else {
      PrintVectorStore(*stmt);
    }
  }

  void PrintVectorLet(const StmtNode& let) {
    exprs_.SetInterval(let.var, exprs_.Bounds(let.value));
    if (!exprs_.UsesLane(let.value)) {
      Line("const " + LetType(let) + " " + exprs_.Name(let.var) + " = " + exprs_.Scalar(let.value).text + ";");
      return PrintVector(let.body);
    }
    bool reads = false;
    ForEachExpr(let.value, [&](const Expr& e) { reads = reads || e->kind == ExprKind::kLoad || IsData(e); });
    if (let.var.type() == ElementType::kBool || (let.var.type() == ElementType::kInt64 && !reads)) {
      return PrintVector(Substitute(let.body, {{let.var.get(), let.value}}));  // conditions and indices stay what they are
    }
    Line(fmt::format("const {} {} = {};", exprs_.VectorType(let.var.type()), exprs_.Name(let.var), exprs_.Vector(let.value)));
    exprs_.AddVectorVar(let.var);
    data_vars_.insert(let.var.get());
    PrintVector(let.body);
  }

  bool IsData(const Expr& var) const { return data_vars_.contains(var.get()); }

  void PrintVectorStore(const StmtNode& store) {
    const std::string value = exprs_.Vector(store.value);
    if (exprs_.IsVectorBuffer(store.buffer)) {
      return Line(exprs_.VectorElement(store.buffer, store.indices) + " = " + value + ";");
    }
    const std::string base = exprs_.ContiguousBase(store.buffer, store.indices);
    const int lanes = std::stoi(exprs_.VectorType(ElementType::kFloat32).substr(5));
    if (!base.empty()) {
      return Line(fmt::format("vstore{}({}, 0, {} + {});", lanes, value, exprs_.Name(store.buffer),
                              base.find(' ') == std::string::npos ? base : "(" + base + ")"));
    }
    const std::string whole = exprs_.UniqueName(&store, "v");
    Line(fmt::format("const {} {} = {};", exprs_.VectorType(store.buffer.type()), whole, value));
    for (int lane = 0; lane < lanes; ++lane) {
      std::vector<Expr> indices;
      for (const Expr& index : store.indices) indices.push_back(exprs_.AtLane(index, lane));
      Line(fmt::format("{} = {}.s{:x};", exprs_.Element(store.buffer, indices), whole, lane));
    }
  }

  Function function_;
  ExprPrinter& exprs_;
  std::string& tables_;
  std::string text_;
  int indent_ = 0;
  std::set<const ExprNode*> data_vars_;
};

}  // namespace

std::string PrintOpenCl(const std::vector<Function>& kernels) {
  std::string tables, helpers, bodies;
  std::set<std::string> known_helpers;
  bool fp64 = false;
  for (size_t k = 0; k < kernels.size(); ++k) {
    fp64 = fp64 || NeedsOf(kernels[k]).fp64;
    ExprPrinter exprs;
    std::string own_tables;
    bodies += "\n" + KernelPrinter(kernels[k], exprs, own_tables).Run();
    tables += own_tables;
    for (const std::string& helper : exprs.helpers()) {
      if (known_helpers.insert(helper).second) helpers += helper;
    }
  }
  std::string head = fp64 ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "";
  return head + helpers + tables + bodies;
}

}  // namespace heddle::gpu
