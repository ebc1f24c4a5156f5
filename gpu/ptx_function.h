// Translation of one kernel to LLVM IR for the NVPTX back end. Used by ptx_emitter.cc; LLVM's headers stay in these files.
#ifndef HEDDLE_GPU_PTX_FUNCTION_H_
#define HEDDLE_GPU_PTX_FUNCTION_H_

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/loops/stmt.h"

namespace heddle::gpu {

// One thread's program: scalar code; vectorised and unrolled loops are copied out, and NVPTX joins neighbouring accesses again.
class PtxFunction {
 public:
  PtxFunction(const ir::loops::Function& function, llvm::Module& module);
  void Emit();

 private:
  using Expr = ir::loops::Expr;
  using Stmt = ir::loops::Stmt;
  using Buffer = ir::loops::Buffer;

  // --- ptx_function.cc
  void MakeFunction();
  void EmitStmt(const Stmt& stmt);
  void EmitFor(const Stmt& stmt);
  void EmitSerial(const Stmt& stmt);
  void EmitIf(const Stmt& stmt);
  void EmitAllocate(const Stmt& stmt);
  llvm::Value* GpuIndex(ir::loops::LoopKind kind);
  llvm::Value* BaseOf(const Buffer& buffer);
  llvm::Value* Address(const Buffer& buffer, const std::vector<Expr>& indices);
  llvm::GlobalVariable* MakeTable(const Buffer& table);

  // --- ptx_expr.cc
  llvm::Value* EmitExpr(const Expr& expr);
  llvm::Value* EmitNode(const Expr& expr);
  llvm::Value* EmitBinary(const Expr& expr);
  llvm::Value* EmitIntegerBinary(const Expr& expr, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitFloatBinary(const Expr& expr, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitComparison(const Expr& expr, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitSelect(const Expr& expr);
  llvm::Value* EmitCast(const Expr& expr);
  llvm::Value* EmitCall(const Expr& expr);
  llvm::Value* CallLibrary(const std::string& name, const std::vector<llvm::Value*>& operands);
  llvm::Type* TypeOf(ir::ElementType type);        // in registers: bool is i1
  llvm::Type* MemoryTypeOf(ir::ElementType type);  // in memory: bool is i8

  const ir::loops::Function& function_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* fn_ = nullptr;
  std::unordered_map<const ir::loops::ExprNode*, llvm::Value*> vars_;
  std::unordered_map<const ir::loops::BufferNode*, llvm::Value*> bases_;
  // Values of nodes met before in the same statement and basic block.
  std::unordered_map<const ir::loops::ExprNode*, std::pair<llvm::Value*, llvm::BasicBlock*>> memo_;
};

}  // namespace heddle::gpu

#endif  // HEDDLE_GPU_PTX_FUNCTION_H_
