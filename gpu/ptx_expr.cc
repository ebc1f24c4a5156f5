// Expressions as LLVM IR, with the exact meaning of ir/loops/expr.h. LLVM's integers wrap unless told otherwise, so only lazy
// operands and functions without an instruction need care.

#include <llvm/IR/Intrinsics.h>

#include "gpu/ptx_function.h"
#include "ir/check.h"
#include "ir/loops/visit.h"

namespace heddle::gpu {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using ir::ElementType;

namespace {

// True where evaluating the expression although its value is not wanted could go wrong or cost much.
bool MustBeLazy(const Expr& expr) {
  bool lazy = false;
  ForEachExpr(expr, [&](const Expr& e) {
    const bool divides = e->kind == ExprKind::kBinary && !ir::IsFloat(e.type()) &&
                         (e->binary == BinaryOp::kDiv || e->binary == BinaryOp::kMod);
    lazy = lazy || divides || e->kind == ExprKind::kLoad || e->kind == ExprKind::kCall;
  });
  return lazy;
}

}  // namespace

llvm::Type* PtxFunction::TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32: return b_.getFloatTy();
    case ElementType::kFloat64: return b_.getDoubleTy();
    case ElementType::kBool: return b_.getInt1Ty();
    default: return b_.getIntNTy(static_cast<unsigned>(ir::ElementBytes(type)) * 8);
  }
}

llvm::Type* PtxFunction::MemoryTypeOf(ElementType type) { return type == ElementType::kBool ? b_.getInt8Ty() : TypeOf(type); }

llvm::Value* PtxFunction::EmitExpr(const Expr& expr) {
  if (auto it = memo_.find(expr.get()); it != memo_.end() && it->second.second == b_.GetInsertBlock()) return it->second.first;
  llvm::Value* value = EmitNode(expr);
  memo_[expr.get()] = {value, b_.GetInsertBlock()};
  return value;
}

llvm::Value* PtxFunction::EmitNode(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kIntImm: return llvm::ConstantInt::get(TypeOf(expr->type), static_cast<uint64_t>(expr->int_value), true);
    case ExprKind::kFloatImm: return llvm::ConstantFP::get(TypeOf(expr->type), expr->float_value);
    case ExprKind::kVar: {
      auto it = vars_.find(expr.get());
      HEDDLE_CHECK(it != vars_.end(), "variable " + expr->name + " has no value");
      return it->second;
    }
    case ExprKind::kLoad: {
      llvm::Value* address = Address(expr->buffer, expr->operands);
      llvm::Value* value = b_.CreateLoad(MemoryTypeOf(expr.type()), address);
      return expr.type() == ElementType::kBool ? b_.CreateICmpNE(value, b_.getInt8(0)) : value;
    }
    case ExprKind::kBinary: return EmitBinary(expr);
    case ExprKind::kSelect: return EmitSelect(expr);
    case ExprKind::kCast: return EmitCast(expr);
    case ExprKind::kCall: return EmitCall(expr);
  }
  return nullptr;
}

llvm::Value* PtxFunction::EmitBinary(const Expr& expr) {
  llvm::Value* a = EmitExpr(expr->operands[0]);
  llvm::Value* b = EmitExpr(expr->operands[1]);
  if (IsComparison(expr->binary)) return EmitComparison(expr, a, b);
  return ir::IsFloat(expr.type()) ? EmitFloatBinary(expr, a, b) : EmitIntegerBinary(expr, a, b);
}

llvm::Value* PtxFunction::EmitComparison(const Expr& expr, llvm::Value* a, llvm::Value* b) {
  using P = llvm::CmpInst::Predicate;
  const ElementType type = expr->operands[0].type();
  const bool is_float = ir::IsFloat(type), is_signed = IsSigned(type);
  auto pick = [&](P floats, P signs, P unsigneds) { return is_float ? floats : is_signed ? signs : unsigneds; };
  P predicate = P::ICMP_EQ;
  switch (expr->binary) {
    case BinaryOp::kEqual: predicate = pick(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ); break;
    case BinaryOp::kNotEqual: predicate = pick(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE); break;
    case BinaryOp::kLess: predicate = pick(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT); break;
    case BinaryOp::kLessEqual: predicate = pick(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE); break;
    case BinaryOp::kGreater: predicate = pick(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT); break;
    default: predicate = pick(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE); break;
  }
  return b_.CreateCmp(predicate, a, b);
}

llvm::Value* PtxFunction::EmitFloatBinary(const Expr& expr, llvm::Value* a, llvm::Value* b) {
  switch (expr->binary) {
    case BinaryOp::kAdd: return b_.CreateFAdd(a, b);
    case BinaryOp::kSub: return b_.CreateFSub(a, b);
    case BinaryOp::kMul: return b_.CreateFMul(a, b);
    case BinaryOp::kDiv: return b_.CreateFDiv(a, b);
    case BinaryOp::kMod: return CallLibrary("fmod", {a, b});
    case BinaryOp::kMin: return b_.CreateSelect(b_.CreateFCmpOLT(b, a), b, a);
    case BinaryOp::kMax: return b_.CreateSelect(b_.CreateFCmpOLT(a, b), b, a);
    default: break;
  }
  ir::CheckFailed(__FILE__, __LINE__, "operator", "no float operator " + std::string(BinaryOpName(expr->binary)));
}

llvm::Value* PtxFunction::EmitIntegerBinary(const Expr& expr, llvm::Value* a, llvm::Value* b) {
  const bool is_signed = IsSigned(expr.type());
  auto less = [&](llvm::Value* x, llvm::Value* y) { return is_signed ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y); };
  switch (expr->binary) {
    case BinaryOp::kAdd: return b_.CreateAdd(a, b);
    case BinaryOp::kSub: return b_.CreateSub(a, b);
    case BinaryOp::kMul: return b_.CreateMul(a, b);
    case BinaryOp::kDiv: return is_signed ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
    case BinaryOp::kMod: return is_signed ? b_.CreateSRem(a, b) : b_.CreateURem(a, b);
    case BinaryOp::kMin: return b_.CreateSelect(less(b, a), b, a);
    case BinaryOp::kMax: return b_.CreateSelect(less(a, b), b, a);
    case BinaryOp::kShiftLeft: return b_.CreateShl(a, b);
    case BinaryOp::kShiftRight: return is_signed ? b_.CreateAShr(a, b) : b_.CreateLShr(a, b);
    case BinaryOp::kAnd: return b_.CreateAnd(a, b);
    case BinaryOp::kOr: return b_.CreateOr(a, b);
    case BinaryOp::kXor: return b_.CreateXor(a, b);
    default: break;
  }
  ir::CheckFailed(__FILE__, __LINE__, "operator", "floor division is lowered before");
}

llvm::Value* PtxFunction::EmitSelect(const Expr& expr) {
  llvm::Value* condition = EmitExpr(expr->operands[0]);
  const Expr &if_true = expr->operands[1], &if_false = expr->operands[2];
  if (!MustBeLazy(if_true) && !MustBeLazy(if_false)) return b_.CreateSelect(condition, EmitExpr(if_true), EmitExpr(if_false));
  auto* true_block = llvm::BasicBlock::Create(context_, "true", fn_);
  auto* false_block = llvm::BasicBlock::Create(context_, "false", fn_);
  auto* after = llvm::BasicBlock::Create(context_, "selected", fn_);
  b_.CreateCondBr(condition, true_block, false_block);
  b_.SetInsertPoint(true_block);
  llvm::Value* true_value = EmitExpr(if_true);
  true_block = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(false_block);
  llvm::Value* false_value = EmitExpr(if_false);
  false_block = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* value = b_.CreatePHI(TypeOf(expr.type()), 2);
  value->addIncoming(true_value, true_block);
  value->addIncoming(false_value, false_block);
  return value;
}

llvm::Value* PtxFunction::EmitCast(const Expr& expr) {
  const ElementType from = expr->operands[0].type(), to = expr.type();
  llvm::Value* value = EmitExpr(expr->operands[0]);
  llvm::Type* type = TypeOf(to);
  if (to == ElementType::kBool) {
    return ir::IsFloat(from) ? b_.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0))
                             : b_.CreateICmpNE(value, llvm::ConstantInt::get(value->getType(), 0));
  }
  if (ir::IsFloat(from) && ir::IsFloat(to)) return b_.CreateFPCast(value, type);
  if (ir::IsFloat(from)) return IsSigned(to) ? b_.CreateFPToSI(value, type) : b_.CreateFPToUI(value, type);
  if (ir::IsFloat(to)) return IsSigned(from) ? b_.CreateSIToFP(value, type) : b_.CreateUIToFP(value, type);
  return b_.CreateIntCast(value, type, IsSigned(from));
}

llvm::Value* PtxFunction::EmitCall(const Expr& expr) {
  std::vector<llvm::Value*> operands;
  for (const Expr& operand : expr->operands) operands.push_back(EmitExpr(operand));
  llvm::Value* a = operands[0];
  if (!ir::IsFloat(expr.type())) {
    llvm::Value* negative = b_.CreateNeg(a);
    if (expr->intrinsic == Intrinsic::kNeg || !IsSigned(expr.type())) return expr->intrinsic == Intrinsic::kNeg ? negative : a;
    return b_.CreateSelect(b_.CreateICmpSLT(a, llvm::ConstantInt::get(a->getType(), 0)), negative, a);
  }
  switch (expr->intrinsic) {
    case Intrinsic::kNeg: return b_.CreateFNeg(a);
    case Intrinsic::kAbs: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    case Intrinsic::kSqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Intrinsic::kFloor: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case Intrinsic::kCeil: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    case Intrinsic::kTrunc: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a);
    case Intrinsic::kRint: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, a);
    default: return CallLibrary(std::string(IntrinsicName(expr->intrinsic)), operands);
  }
}

// libdevice's __nv_expf and __nv_exp.
llvm::Value* PtxFunction::CallLibrary(const std::string& name, const std::vector<llvm::Value*>& operands) {
  llvm::Type* type = operands[0]->getType();
  const std::vector<llvm::Type*> types(operands.size(), type);
  llvm::FunctionCallee callee = module_.getOrInsertFunction("__nv_" + name + (type->isFloatTy() ? "f" : ""),
                                                            llvm::FunctionType::get(type, types, false));
  return b_.CreateCall(callee, operands);
}

}  // namespace heddle::gpu
