// The state of one function's translation, shared by llvm_emit.cc (statements) and llvm_emit_expr.cc (expressions).
#ifndef HEDDLE_CPU_FALLBACK_LLVM_EMITTER_H_
#define HEDDLE_CPU_FALLBACK_LLVM_EMITTER_H_

#include <absl/status/status.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/loops/stmt.h"

namespace heddle::cpu {

// Inside a vectorised loop of N iterations an expression is a vector <N x T> where it varies with the loop's variable and
// a scalar where it does not; `mask` (a vector of i1, null: all) says which lanes are at work under an If or a lazy Select.
class Emitter {
 public:
  Emitter(const ir::loops::Function& function, llvm::Module& module);
  absl::StatusOr<int64_t> Emit();

 private:
  using Expr = ir::loops::Expr;
  using Stmt = ir::loops::Stmt;
  using Buffer = ir::loops::Buffer;
  using ElementType = ir::ElementType;

  // --- statements (llvm_emit.cc)
  void EmitStmt(const Stmt& stmt);
  void EmitFor(const Stmt& stmt);
  void EmitSerial(const Stmt& stmt);
  void EmitUnrolled(const Stmt& stmt);
  void EmitVectorised(const Stmt& stmt);
  void EmitParallel(const Stmt& stmt);
  void EmitStore(const Stmt& stmt);
  void EmitIf(const Stmt& stmt);
  void EmitAllocate(const Stmt& stmt);
  llvm::Value* AllocaInEntry(llvm::Type* type, const std::string& name);
  llvm::Value* BaseOf(const Buffer& buffer);
  void PrepareScopes();

  // --- expressions (llvm_emit_expr.cc)
  llvm::Value* EmitExpr(const Expr& expr);
  llvm::Value* EmitNode(const Expr& expr);
  llvm::Value* EmitBinary(const Expr& expr);
  llvm::Value* EmitDivision(const Expr& expr, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitCast(const Expr& expr);
  llvm::Value* EmitCall(const Expr& expr);
  llvm::Value* EmitLibraryCall(const std::string& name, const std::vector<llvm::Value*>& operands);
  llvm::Value* EmitExpF32(llvm::Value* x);
  llvm::Value* EmitSelect(const Expr& expr);
  llvm::Value* EmitMaskedSelect(const Expr& expr, llvm::Value* condition);
  llvm::Value* EmitLoad(const Expr& expr);
  llvm::Value* EmitUniformLoad(const Buffer& buffer, const std::vector<Expr>& indices);
  llvm::Value* EmitStridedLoad(llvm::Value* base, ElementType type, int64_t stride);
  // The address of an element, the lane variable taken as 0.
  llvm::Value* EmitAddress(const Buffer& buffer, const std::vector<Expr>& indices);
  llvm::Value* ElementAddress(llvm::Type* type, llvm::Value* base, llvm::Value* index);
  // Element addresses of all lanes.
  std::vector<llvm::Value*> EmitLaneAddresses(const Buffer& buffer, std::vector<Expr> indices);
  // Change of the flat index from one lane to the next; false where it is not constant. May rewrite the indices so that it is.
  bool LaneStride(const Buffer& buffer, std::vector<Expr>& indices, int64_t* stride);
  bool LaneCoefficient(const Expr& expr, int64_t* coefficient);
  bool Varies(const Expr& expr);  // with the lane variable
  llvm::Value* EmitAsScalar(const Expr& expr);  // with the lane variable taken as 0

  llvm::Value* Splat(llvm::Value* value);  // to the lanes of the current vector loop, where it is a scalar
  std::pair<llvm::Value*, llvm::Value*> Match(llvm::Value* a, llvm::Value* b);
  llvm::Type* TypeOf(ElementType type);        // in registers: bool is i1
  llvm::Type* MemoryTypeOf(ElementType type);  // in memory: bool is i8
  llvm::Value* FromMemory(ElementType type, llvm::Value* value);
  llvm::Value* ToMemory(ElementType type, llvm::Value* value);
  // Marks an access of `buffer` as not aliasing those of other buffers.
  void Annotate(llvm::Value* access, const Buffer& buffer);
  void Fail(const std::string& message);

  const ir::loops::Function& function_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* fn_ = nullptr;  // the one being filled: the function itself or the body of a parallel loop
  absl::Status status_;
  int64_t workspace_bytes_ = 0;  // in use at this point
  int64_t workspace_high_ = 0;   // most at any point
  int num_bodies_ = 0;
  bool in_parallel_ = false;

  llvm::Value* workspace_ = nullptr;
  llvm::Value* runtime_ = nullptr;
  std::unordered_map<const ir::loops::ExprNode*, llvm::Value*> vars_;
  std::unordered_map<const ir::loops::BufferNode*, llvm::Value*> bases_;
  std::unordered_map<const ir::loops::BufferNode*, llvm::Value*> tables_;  // global constants, the same in every body
  std::unordered_map<const ir::loops::BufferNode*, std::pair<llvm::MDNode*, llvm::MDNode*>> scopes_;

  const ir::loops::ExprNode* lane_var_ = nullptr;
  unsigned lanes_ = 0;
  llvm::Value* mask_ = nullptr;
  std::unordered_map<const ir::loops::ExprNode*, bool> varies_;
  std::vector<Expr> made_here_;  // kept alive: varies_ and memo_ know nodes by address
  // Values of nodes met before in the same statement and basic block.
  std::unordered_map<const ir::loops::ExprNode*, std::pair<llvm::Value*, llvm::BasicBlock*>> memo_;
};

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_LLVM_EMITTER_H_
