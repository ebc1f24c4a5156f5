// Expressions as OpenCL C: scalar, and as vectors over the lanes of one vectorised loop. Used by opencl_printer.cc.
#ifndef HEDDLE_GPU_OPENCL_EXPR_H_
#define HEDDLE_GPU_OPENCL_EXPR_H_

#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/loops/names.h"
#include "ir/loops/simplify.h"
#include "ir/loops/stmt.h"

namespace heddle::gpu {

std::string OpenClType(ir::ElementType type);     // "float", "char", "bool"
std::string OpenClStorage(ir::ElementType type);  // in memory: "uchar" for bool

// Text with C's precedence of its outermost operator (0 binds tightest), so that brackets stand only where needed.
struct Code {
  std::string text;
  int level = 0;
  std::string Within(int loosest) const { return level > loosest ? "(" + text + ")" : text; }
};

// What is known at one place of a kernel, and how expressions print there.
class ExprPrinter {
 public:
  ExprPrinter();

  // Names and ranges of variables; a variable of type i64 is printed as int where its range allows.
  std::string Name(const ir::loops::Expr& var) { return names_.Of(var.get(), var->name); }
  std::string Name(const ir::loops::Buffer& buffer) { return names_.Of(buffer.get(), buffer->name); }
  std::string UniqueName(const void* key, const std::string& wanted) { return names_.Of(key, wanted); }
  void SetInterval(const ir::loops::Expr& var, ir::loops::Interval interval) { intervals_[var.get()] = interval; }
  ir::loops::Interval Bounds(const ir::loops::Expr& expr) const { return ir::loops::BoundsOf(expr, intervals_); }
  // An i64 expression that never leaves the range of int, nor does any part of it.
  bool IsNarrow(const ir::loops::Expr& expr);
  std::string TypeOf(const ir::loops::Expr& expr);  // the C type that Scalar's text has

  Code Scalar(const ir::loops::Expr& expr);
  // "buffer[index]" with the flat index.
  std::string Element(const ir::loops::Buffer& buffer, const std::vector<ir::loops::Expr>& indices);

  // ---- Vectors. Within BeginLanes … EndLanes `lane` runs over `lanes` elements at once.
  void BeginLanes(const ir::loops::Expr& lane, int lanes);
  void EndLanes();
  bool UsesLane(const ir::loops::Expr& expr) const;
  std::string VectorType(ir::ElementType type) const;  // "float16"
  // The value in every lane; a primary or bracketed expression.
  std::string Vector(const ir::loops::Expr& expr);
  // `var` is a vector variable from here on.
  void AddVectorVar(const ir::loops::Expr& var) { vector_vars_.insert(var.get()); }
  // A private array declared as an array of vectors: its last dimension is the lanes.
  void AddVectorBuffer(const ir::loops::Buffer& buffer) { vector_buffers_.insert(buffer.get()); }
  bool IsVectorBuffer(const ir::loops::Buffer& buffer) const { return vector_buffers_.contains(buffer.get()); }
  std::string VectorElement(const ir::loops::Buffer& buffer, const std::vector<ir::loops::Expr>& indices);
  // Flat index of the first lane where lanes are neighbours in memory, else empty.
  std::string ContiguousBase(const ir::loops::Buffer& buffer, const std::vector<ir::loops::Expr>& indices);
  ir::loops::Expr AtLane(const ir::loops::Expr& expr, int lane);

  // Definitions of the helper functions that the printed text calls.
  const std::set<std::string>& helpers() const { return helpers_; }

 private:
  bool MayWrap(const ir::loops::Expr& expr) const;
  Code Binary(const ir::loops::Expr& expr);
  Code IntegerBinary(const ir::loops::Expr& expr);
  Code MinMax(const ir::loops::Expr& expr);
  Code CastCode(const ir::loops::Expr& expr);
  Code CallCode(const ir::loops::Expr& expr);
  Code Immediate(const ir::loops::Expr& expr);
  std::string Wide(const ir::loops::Expr& expr);  // Scalar as long where it is narrow
  std::string Helper(const std::string& name, const std::string& type);

  bool IsVectorLoad(const ir::loops::Expr& expr);
  std::string PerLane(const ir::loops::Expr& expr);
  std::string VectorBinary(const ir::loops::Expr& expr);
  std::string VectorSelect(const ir::loops::Expr& expr);
  std::string VectorLoad(const ir::loops::Expr& expr);

  ir::loops::UniqueNames names_;
  ir::loops::VarIntervals intervals_;
  std::unordered_map<const ir::loops::ExprNode*, std::pair<ir::loops::Expr, bool>> narrow_;  // keeps its keys alive
  std::set<std::string> helpers_;  // definitions
  ir::loops::Expr lane_;
  int lanes_ = 1;
  std::unordered_map<std::string, ir::loops::Expr> lane_parts_;  // "t0.s3" as a variable
  std::unordered_map<const ir::loops::ExprNode*, std::string> lane_part_names_;
  std::set<const ir::loops::ExprNode*> vector_vars_;
  std::set<const ir::loops::BufferNode*> vector_buffers_;
};

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_OPENCL_EXPR_H_
