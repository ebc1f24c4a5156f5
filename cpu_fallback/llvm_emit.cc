// Statements of the loop IR as LLVM IR: loops with a counter, unrolled copies, vector loops as straight-line vector code, and
// parallel loops as functions of their own that get what they use through a context record.

#include "cpu_fallback/llvm_emit.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "cpu_fallback/llvm_emitter.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

using ir::loops::LoopKind;
using ir::loops::MemorySpace;
using ir::loops::StmtKind;

constexpr int64_t kLargestOnStack = 32 << 10;  // bytes of one temporary
constexpr int64_t kLargestUnroll = 64;         // copies of one loop; more stay a loop
constexpr int64_t kLargestLanes = 256;
constexpr uint64_t kAlignment = 64;

}  // namespace

Emitter::Emitter(const ir::loops::Function& function, llvm::Module& module)
    : function_(function), module_(module), context_(module.getContext()), b_(context_) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  b_.setFastMathFlags(flags);
}

void Emitter::Fail(const std::string& message) {
  if (status_.ok()) status_ = ir::UserError("E-CPU-001", fmt::format("{}: {}", function_.name, message));
}

// One alias scope for each buffer; an access of one is declared not to alias the others.
void Emitter::PrepareScopes() {
  std::vector<Buffer> buffers;
  for (const auto& param : function_.params) buffers.push_back(param.buffer);
  ForEachStmt(function_.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kAllocate) buffers.push_back(s->buffer);
  });
  llvm::MDBuilder builder(context_);
  llvm::MDNode* domain = builder.createAnonymousAliasScopeDomain(function_.name);
  std::vector<llvm::MDNode*> scopes;
  for (const Buffer& buffer : buffers) scopes.push_back(builder.createAnonymousAliasScope(domain, buffer->name));
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::vector<llvm::Metadata*> others;
    for (size_t j = 0; j < buffers.size(); ++j) {
      if (!(buffers[i] == buffers[j])) others.push_back(scopes[j]);
    }
    scopes_[buffers[i].get()] = {llvm::MDNode::get(context_, {scopes[i]}), llvm::MDNode::get(context_, others)};
  }
}

void Emitter::Annotate(llvm::Value* access, const Buffer& buffer) {
  auto* instruction = llvm::dyn_cast<llvm::Instruction>(access);
  auto it = scopes_.find(buffer.get());
  if (instruction == nullptr || it == scopes_.end()) return;
  instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, it->second.first);
  instruction->setMetadata(llvm::LLVMContext::MD_noalias, it->second.second);
}

absl::StatusOr<int64_t> Emitter::Emit() {
  llvm::Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, pointer}, false);
  fn_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, function_.name, module_);
  if (fn_->getName() != function_.name) Fail("two functions have that name");
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", fn_));
  workspace_ = fn_->getArg(1);
  runtime_ = fn_->getArg(2);
  PrepareScopes();
  for (size_t i = 0; i < function_.params.size(); ++i) {
    llvm::Value* slot = b_.CreateConstInBoundsGEP1_64(pointer, fn_->getArg(0), i);
    bases_[function_.params[i].buffer.get()] = b_.CreateLoad(pointer, slot, function_.params[i].buffer->name);
  }
  EmitStmt(function_.body);
  b_.CreateRetVoid();
  if (!status_.ok()) return status_;
  return workspace_high_;
}

void Emitter::EmitStmt(const Stmt& stmt) {
  if (!stmt || !status_.ok()) return;
  memo_.clear();
  switch (stmt->kind) {
    case StmtKind::kFor: return EmitFor(stmt);
    case StmtKind::kStore: return EmitStore(stmt);
    case StmtKind::kIf: return EmitIf(stmt);
    case StmtKind::kBlock:
      for (const Stmt& child : stmt->statements) EmitStmt(child);
      return;
    case StmtKind::kAllocate: return EmitAllocate(stmt);
    case StmtKind::kLet: {
      // Decided before the variable exists: it varies where its value does.
      const bool varies = Varies(stmt->value);
      vars_[stmt->var.get()] = EmitExpr(stmt->value);
      varies_[stmt->var.get()] = varies;
      EmitStmt(stmt->body);
      return;
    }
    case StmtKind::kBarrier: return Fail("a barrier has no meaning without GPU threads");
  }
}

void Emitter::EmitFor(const Stmt& stmt) {
  if (stmt->extent <= 0) return;
  if (stmt->extent == 1) {
    vars_[stmt->var.get()] = b_.getInt64(0);
    return EmitStmt(stmt->body);
  }
  switch (stmt->loop_kind) {
    case LoopKind::kUnrolled: return stmt->extent <= kLargestUnroll ? EmitUnrolled(stmt) : EmitSerial(stmt);
    case LoopKind::kVectorised: return stmt->extent <= kLargestLanes && lanes_ == 0 ? EmitVectorised(stmt) : EmitSerial(stmt);
    case LoopKind::kParallel: return in_parallel_ || lanes_ != 0 ? EmitSerial(stmt) : EmitParallel(stmt);
    default: return EmitSerial(stmt);
  }
}

void Emitter::EmitSerial(const Stmt& stmt) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, stmt->var->name, fn_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", fn_);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2, stmt->var->name);
  counter->addIncoming(b_.getInt64(0), before);
  vars_[stmt->var.get()] = counter;
  EmitStmt(stmt->body);
  llvm::Value* next = b_.CreateAdd(counter, b_.getInt64(1), "next", true, true);
  counter->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt64(static_cast<uint64_t>(stmt->extent))), body, after);
  b_.SetInsertPoint(after);
}

void Emitter::EmitUnrolled(const Stmt& stmt) {
  for (int64_t i = 0; i < stmt->extent; ++i) {
    vars_[stmt->var.get()] = b_.getInt64(static_cast<uint64_t>(i));
    EmitStmt(stmt->body);
  }
}

void Emitter::EmitVectorised(const Stmt& stmt) {
  lanes_ = static_cast<unsigned>(stmt->extent);
  lane_var_ = stmt->var.get();
  varies_.clear();
  std::vector<llvm::Constant*> numbers;
  for (unsigned i = 0; i < lanes_; ++i) numbers.push_back(b_.getInt64(i));
  vars_[lane_var_] = llvm::ConstantVector::get(numbers);
  EmitStmt(stmt->body);
  lanes_ = 0;
  lane_var_ = nullptr;
  varies_.clear();
}

// The body becomes a function (context, begin, end). The context holds, in order, the values that it may use from outside.
void Emitter::EmitParallel(const Stmt& stmt) {
  std::vector<const ir::loops::ExprNode*> vars;
  std::vector<const ir::loops::BufferNode*> buffers;
  ForEachRootExpr(stmt->body, [&](const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (e->kind == ir::loops::ExprKind::kVar && vars_.contains(e.get()) && e.get() != stmt->var.get()) vars.push_back(e.get());
      if (e->kind == ir::loops::ExprKind::kLoad && bases_.contains(e->buffer.get())) buffers.push_back(e->buffer.get());
    });
  });
  ForEachStmt(stmt->body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore && bases_.contains(s->buffer.get())) buffers.push_back(s->buffer.get());
  });
  auto unique = [](auto& list) {  // in order of first use: the same code in every run
    auto end = list.begin();
    for (auto it = list.begin(); it != list.end(); ++it) {
      if (std::find(list.begin(), end, *it) == end) *end++ = *it;
    }
    list.erase(end, list.end());
  };
  unique(vars);
  unique(buffers);
  std::vector<llvm::Value*> outer;
  for (const auto* var : vars) outer.push_back(vars_.at(var));
  for (const auto* buffer : buffers) outer.push_back(bases_.at(buffer));
  std::vector<llvm::Type*> types;
  for (llvm::Value* value : outer) types.push_back(value->getType());
  auto* record = llvm::StructType::get(context_, types);
  llvm::Value* context = AllocaInEntry(record, "context");
  for (unsigned i = 0; i < outer.size(); ++i) b_.CreateStore(outer[i], b_.CreateStructGEP(record, context, i));

  llvm::Type* pointer = b_.getPtrTy();
  auto* body_type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, b_.getInt64Ty(), b_.getInt64Ty()}, false);
  auto* body = llvm::Function::Create(body_type, llvm::Function::InternalLinkage,
                                      fmt::format("{}.parallel{}", function_.name, num_bodies_++), module_);
  const auto saved_vars = vars_;
  const auto saved_bases = bases_;
  llvm::Function* const saved_fn = fn_;
  llvm::BasicBlock* const saved_block = b_.GetInsertBlock();
  fn_ = body;
  in_parallel_ = true;
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", fn_));
  for (unsigned i = 0; i < outer.size(); ++i) {
    llvm::Value* value = b_.CreateLoad(types[i], b_.CreateStructGEP(record, body->getArg(0), i));
    if (i < vars.size()) {
      vars_[vars[i]] = value;
    } else {
      bases_[buffers[i - vars.size()]] = value;
    }
  }
  llvm::BasicBlock* entry = b_.GetInsertBlock();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(context_, stmt->var->name, fn_);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(context_, "done", fn_);
  b_.CreateCondBr(b_.CreateICmpSLT(body->getArg(1), body->getArg(2)), loop, done);
  b_.SetInsertPoint(loop);
  llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2, stmt->var->name);
  counter->addIncoming(body->getArg(1), entry);
  vars_[stmt->var.get()] = counter;
  EmitStmt(stmt->body);
  llvm::Value* next = b_.CreateAdd(counter, b_.getInt64(1), "next", true, true);
  counter->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, body->getArg(2)), loop, done);
  b_.SetInsertPoint(done);
  b_.CreateRetVoid();

  fn_ = saved_fn;
  in_parallel_ = false;
  vars_ = saved_vars;
  bases_ = saved_bases;
  b_.SetInsertPoint(saved_block);
  llvm::Value* extent = b_.getInt64(static_cast<uint64_t>(stmt->extent));
  llvm::BasicBlock* threaded = llvm::BasicBlock::Create(context_, "threaded", fn_);
  llvm::BasicBlock* serial = llvm::BasicBlock::Create(context_, "serial", fn_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", fn_);
  b_.CreateCondBr(b_.CreateIsNull(runtime_), serial, threaded);
  b_.SetInsertPoint(threaded);
  llvm::Value* parallel_for = b_.CreateLoad(pointer, runtime_);  // Runtime's first member
  auto* for_type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, pointer, b_.getInt64Ty()}, false);
  b_.CreateCall(for_type, parallel_for, {runtime_, body, context, extent});
  b_.CreateBr(after);
  b_.SetInsertPoint(serial);
  b_.CreateCall(body_type, body, {context, b_.getInt64(0), extent});
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void Emitter::EmitStore(const Stmt& stmt) {
  const Buffer& buffer = stmt->buffer;
  llvm::Value* value = EmitExpr(stmt->value);
  if (!status_.ok()) return;
  const llvm::Align align(static_cast<uint64_t>(ir::ElementBytes(buffer.type())));
  std::vector<Expr> indices = stmt->indices;
  int64_t stride = 0;
  if (lanes_ == 0) {
    Annotate(b_.CreateAlignedStore(ToMemory(buffer.type(), value), EmitAddress(buffer, stmt->indices), align), buffer);
    return;
  }
  value = ToMemory(buffer.type(), Splat(value));
  if (LaneStride(buffer, indices, &stride) && stride == 1) {
    llvm::Value* address = EmitAddress(buffer, indices);
    Annotate(mask_ ? static_cast<llvm::Value*>(b_.CreateMaskedStore(value, address, align, mask_))
                   : b_.CreateAlignedStore(value, address, align),
             buffer);
    return;
  }
  const std::vector<llvm::Value*> addresses = EmitLaneAddresses(buffer, indices);
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    llvm::BasicBlock* after = nullptr;
    if (mask_) {
      llvm::BasicBlock* store = llvm::BasicBlock::Create(context_, "lane", fn_);
      after = llvm::BasicBlock::Create(context_, "after", fn_);
      b_.CreateCondBr(b_.CreateExtractElement(mask_, lane), store, after);
      b_.SetInsertPoint(store);
    }
    Annotate(b_.CreateAlignedStore(b_.CreateExtractElement(value, lane), addresses[lane], align), buffer);
    if (after) {
      b_.CreateBr(after);
      b_.SetInsertPoint(after);
    }
  }
}

void Emitter::EmitIf(const Stmt& stmt) {
  llvm::Value* condition = EmitExpr(stmt->value);
  if (!status_.ok()) return;
  if (condition->getType()->isVectorTy()) {
    llvm::Value* const outer = mask_;
    mask_ = outer ? b_.CreateAnd(outer, condition) : condition;
    EmitStmt(stmt->body);
    if (stmt->else_body) {
      llvm::Value* inverse = b_.CreateNot(condition);
      mask_ = outer ? b_.CreateAnd(outer, inverse) : inverse;
      EmitStmt(stmt->else_body);
    }
    mask_ = outer;
    return;
  }
  llvm::BasicBlock* yes = llvm::BasicBlock::Create(context_, "then", fn_);
  llvm::BasicBlock* no = stmt->else_body ? llvm::BasicBlock::Create(context_, "else", fn_) : nullptr;
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", fn_);
  b_.CreateCondBr(condition, yes, no ? no : after);
  b_.SetInsertPoint(yes);
  EmitStmt(stmt->body);
  b_.CreateBr(after);
  if (no) {
    b_.SetInsertPoint(no);
    EmitStmt(stmt->else_body);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

llvm::Value* Emitter::AllocaInEntry(llvm::Type* type, const std::string& name) {
  llvm::IRBuilder<> entry(&fn_->getEntryBlock(), fn_->getEntryBlock().begin());
  llvm::AllocaInst* slot = entry.CreateAlloca(type, nullptr, name);
  slot->setAlignment(llvm::Align(kAlignment));
  return slot;
}

void Emitter::EmitAllocate(const Stmt& stmt) {
  const Buffer& buffer = stmt->buffer;
  const int64_t bytes = std::max<int64_t>(buffer->bytes(), 1);
  const bool on_stack = bytes <= kLargestOnStack && (buffer->space != MemorySpace::kGlobal || in_parallel_);
  if (on_stack) {
    auto* type = llvm::ArrayType::get(MemoryTypeOf(buffer.type()), static_cast<uint64_t>(std::max<int64_t>(buffer->elements(), 1)));
    bases_[buffer.get()] = AllocaInEntry(type, buffer->name);
    return EmitStmt(stmt->body);
  }
  if (!in_parallel_) {
    // Temporaries that live one after the other share memory.
    const int64_t offset = workspace_bytes_;
    workspace_bytes_ += (bytes + static_cast<int64_t>(kAlignment) - 1) / static_cast<int64_t>(kAlignment) * static_cast<int64_t>(kAlignment);
    workspace_high_ = std::max(workspace_high_, workspace_bytes_);
    bases_[buffer.get()] = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), workspace_, static_cast<uint64_t>(offset), buffer->name);
    EmitStmt(stmt->body);
    workspace_bytes_ = offset;
    return;
  }
  // Large and private to an iteration that may run on any thread: the heap.
  llvm::Type* pointer = b_.getPtrTy();
  auto allocate = module_.getOrInsertFunction("aligned_alloc", llvm::FunctionType::get(pointer, {b_.getInt64Ty(), b_.getInt64Ty()}, false));
  auto release = module_.getOrInsertFunction("free", llvm::FunctionType::get(b_.getVoidTy(), {pointer}, false));
  const uint64_t rounded = (static_cast<uint64_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  llvm::Value* memory = b_.CreateCall(allocate, {b_.getInt64(kAlignment), b_.getInt64(rounded)});
  bases_[buffer.get()] = memory;
  EmitStmt(stmt->body);
  b_.CreateCall(release, {memory});
}

llvm::Value* Emitter::BaseOf(const Buffer& buffer) {
  auto it = bases_.find(buffer.get());
  if (it != bases_.end()) return it->second;
  if (auto table = tables_.find(buffer.get()); table != tables_.end()) return table->second;
  if (!buffer->contents) {
    Fail(buffer->name + " is neither a parameter nor allocated here");
    return llvm::PoisonValue::get(b_.getPtrTy());
  }
  const ir::Tensor& contents = *buffer->contents;
  llvm::Constant* data = llvm::ConstantDataArray::getRaw(
      llvm::StringRef(reinterpret_cast<const char*>(contents.data()), static_cast<size_t>(contents.bytes())),
      static_cast<uint64_t>(contents.elements()), MemoryTypeOf(buffer.type()));
  auto* global = new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, buffer->name);
  global->setAlignment(llvm::Align(kAlignment));
  tables_[buffer.get()] = global;
  return global;
}

absl::StatusOr<int64_t> EmitFunction(const ir::loops::Function& function, llvm::Module& module) {
  const ir::loops::Function lowered = LowerFloorDivision(function);
  return Emitter(lowered, module).Emit();
}

}  // namespace heddle::cpu
