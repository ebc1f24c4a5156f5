// Statements and kernels as LLVM IR. Expressions are in ptx_expr.cc.

#include "gpu/ptx_function.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "gpu/kernel_schedule.h"
#include "ir/check.h"
#include "ir/loops/visit.h"

namespace heddle::gpu {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using ir::ElementType;

namespace {

// Address spaces of NVPTX.
constexpr unsigned kGlobalSpace = 1;
constexpr unsigned kSharedSpace = 3;
constexpr int64_t kLargestUnroll = 64;  // copies of one loop; more stay a loop

}  // namespace

PtxFunction::PtxFunction(const Function& function, llvm::Module& module)
    : function_(function), module_(module), context_(module.getContext()), b_(context_) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(!NeedsOf(function).exact_rounding);
  b_.setFastMathFlags(flags);
}

void PtxFunction::MakeFunction() {
  std::vector<llvm::Type*> types(function_.params.size(), b_.getPtrTy(kGlobalSpace));
  fn_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false), llvm::Function::ExternalLinkage, function_.name,
                               module_);
  HEDDLE_CHECK(fn_->getName() == function_.name, "two kernels are called " + function_.name);
  fn_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  for (size_t p = 0; p < function_.params.size(); ++p) {
    llvm::Argument* argument = fn_->getArg(static_cast<unsigned>(p));
    argument->addAttr(llvm::Attribute::NoAlias);
    argument->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(256)));  // what the driver's allocator gives
    if (function_.params[p].role != ParamRole::kOutput) argument->addAttr(llvm::Attribute::ReadOnly);
    bases_[function_.params[p].buffer.get()] = argument;
  }
  llvm::NamedMDNode* annotations = module_.getOrInsertNamedMetadata("nvvm.annotations");
  auto annotate = [&](const char* key, int64_t value) {
    annotations->addOperand(llvm::MDNode::get(context_, {llvm::ValueAsMetadata::get(fn_), llvm::MDString::get(context_, key),
                                                         llvm::ConstantAsMetadata::get(b_.getInt32(static_cast<uint32_t>(value)))}));
  };
  const Grid grid = GridOf(function_);
  annotate("kernel", 1);
  annotate("reqntidx", grid.items[0]);
  annotate("reqntidy", grid.items[1]);
  annotate("reqntidz", grid.items[2]);
}

void PtxFunction::Emit() {
  MakeFunction();
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", fn_));
  EmitStmt(function_.body);
  b_.CreateRetVoid();
}

void PtxFunction::EmitStmt(const Stmt& stmt) {
  if (!stmt) return;
  memo_.clear();
  switch (stmt->kind) {
    case StmtKind::kFor: return EmitFor(stmt);
    case StmtKind::kIf: return EmitIf(stmt);
    case StmtKind::kAllocate: return EmitAllocate(stmt);
    case StmtKind::kBlock:
      for (const Stmt& child : stmt->statements) EmitStmt(child);
      return;
    case StmtKind::kStore: {
      llvm::Value* value = EmitExpr(stmt->value);
      if (stmt->buffer.type() == ElementType::kBool) value = b_.CreateZExt(value, b_.getInt8Ty());
      b_.CreateStore(value, Address(stmt->buffer, stmt->indices));
      return;
    }
    case StmtKind::kLet:
      vars_[stmt->var.get()] = EmitExpr(stmt->value);
      return EmitStmt(stmt->body);
    case StmtKind::kBarrier: b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); return;
  }
}

llvm::Value* PtxFunction::GpuIndex(LoopKind kind) {
  llvm::Intrinsic::ID id = llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x;
  switch (kind) {
    case LoopKind::kBlockX: id = llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x; break;
    case LoopKind::kBlockY: id = llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y; break;
    case LoopKind::kBlockZ: id = llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z; break;
    case LoopKind::kThreadY: id = llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y; break;
    case LoopKind::kThreadZ: id = llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z; break;
    default: break;
  }
  return b_.CreateZExt(b_.CreateIntrinsic(id, {}, {}), b_.getInt64Ty());
}

void PtxFunction::EmitFor(const Stmt& stmt) {
  if (stmt->extent <= 0) return;
  if (IsGpuIndex(stmt->loop_kind)) {
    vars_[stmt->var.get()] = GpuIndex(stmt->loop_kind);
    return EmitStmt(stmt->body);
  }
  const bool copies = stmt->loop_kind == LoopKind::kUnrolled || stmt->loop_kind == LoopKind::kVectorised;
  if (stmt->extent > 1 && (!copies || stmt->extent > kLargestUnroll)) return EmitSerial(stmt);
  for (int64_t i = 0; i < stmt->extent; ++i) {
    vars_[stmt->var.get()] = b_.getInt64(static_cast<uint64_t>(i));
    EmitStmt(stmt->body);
  }
}

void PtxFunction::EmitSerial(const Stmt& stmt) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* body = llvm::BasicBlock::Create(context_, stmt->var->name, fn_);
  auto* after = llvm::BasicBlock::Create(context_, stmt->var->name + "_end", fn_);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* index = b_.CreatePHI(b_.getInt64Ty(), 2);
  index->addIncoming(b_.getInt64(0), before);
  vars_[stmt->var.get()] = index;
  EmitStmt(stmt->body);
  llvm::Value* next = b_.CreateAdd(index, b_.getInt64(1), "", true, true);
  index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(static_cast<uint64_t>(stmt->extent))), body, after);
  b_.SetInsertPoint(after);
}

void PtxFunction::EmitIf(const Stmt& stmt) {
  auto* then_block = llvm::BasicBlock::Create(context_, "then", fn_);
  auto* else_block = stmt->else_body ? llvm::BasicBlock::Create(context_, "else", fn_) : nullptr;
  auto* after = llvm::BasicBlock::Create(context_, "endif", fn_);
  b_.CreateCondBr(EmitExpr(stmt->value), then_block, else_block != nullptr ? else_block : after);
  b_.SetInsertPoint(then_block);
  EmitStmt(stmt->body);
  b_.CreateBr(after);
  if (else_block != nullptr) {
    b_.SetInsertPoint(else_block);
    EmitStmt(stmt->else_body);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void PtxFunction::EmitAllocate(const Stmt& stmt) {
  const Buffer& buffer = stmt->buffer;
  HEDDLE_CHECK(buffer->space == MemorySpace::kPrivate || buffer->space == MemorySpace::kShared,
               "buffer " + buffer->name + " in global memory inside a kernel");
  auto* type = llvm::ArrayType::get(MemoryTypeOf(buffer.type()), static_cast<uint64_t>(std::max<int64_t>(buffer->elements(), 1)));
  if (buffer->space == MemorySpace::kShared) {
    bases_[buffer.get()] = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                                    llvm::PoisonValue::get(type), buffer->name, nullptr,
                                                    llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  } else {
    llvm::IRBuilder<> entry(&fn_->getEntryBlock(), fn_->getEntryBlock().begin());
    bases_[buffer.get()] = entry.CreateAlloca(type, nullptr, buffer->name);
  }
  EmitStmt(stmt->body);
}

llvm::GlobalVariable* PtxFunction::MakeTable(const Buffer& table) {
  const ir::Tensor& contents = *table->contents;
  llvm::Type* element = MemoryTypeOf(contents.type());
  std::vector<llvm::Constant*> values;
  for (int64_t i = 0; i < contents.elements(); ++i) {
    values.push_back(ir::IsFloat(contents.type())
                         ? llvm::ConstantFP::get(element, contents.at_double(i))
                         : llvm::ConstantInt::get(element, static_cast<uint64_t>(contents.at_int(i)), true));
  }
  if (values.empty()) values.push_back(llvm::Constant::getNullValue(element));
  auto* type = llvm::ArrayType::get(element, values.size());
  return new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::InternalLinkage, llvm::ConstantArray::get(type, values),
                                  function_.name + "_" + table->name, nullptr, llvm::GlobalValue::NotThreadLocal, kGlobalSpace);
}

llvm::Value* PtxFunction::BaseOf(const Buffer& buffer) {
  auto [it, is_new] = bases_.try_emplace(buffer.get(), nullptr);
  if (is_new) {
    HEDDLE_CHECK(buffer->contents != nullptr, "buffer " + buffer->name + " is neither parameter, table nor allocated");
    it->second = MakeTable(buffer);
  }
  return it->second;
}

llvm::Value* PtxFunction::Address(const Buffer& buffer, const std::vector<Expr>& indices) {
  llvm::Value* index = EmitExpr(FlatIndex(buffer, indices));
  return b_.CreateInBoundsGEP(MemoryTypeOf(buffer.type()), BaseOf(buffer), index);
}

}  // namespace heddle::gpu
