// Expressions of the loop IR as LLVM IR, scalar or vector. A lazy Select becomes a branch where its condition is the same
// for all lanes, and a mask otherwise, under which loads touch only the memory of active lanes.

#include <llvm/IR/Intrinsics.h>

#include "cpu_fallback/llvm_emitter.h"
#include "ir/check.h"
#include "ir/loops/simplify.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::cpu {

using ir::IsFloat;
using ir::loops::BinaryOp;
using ir::loops::ExprKind;
using ir::loops::Intrinsic;
using ir::loops::IsSigned;

namespace {

// May be evaluated for nothing: no memory access and no integer division.
bool IsTotal(const ir::loops::Expr& expr) {
  bool total = true;
  ForEachExpr(expr, [&](const ir::loops::Expr& e) {
    const bool divides = e->kind == ExprKind::kBinary && !IsFloat(e.type()) &&
                         (e->binary == BinaryOp::kDiv || e->binary == BinaryOp::kMod);
    const bool calls = e->kind == ExprKind::kCall && e->intrinsic != Intrinsic::kAbs && e->intrinsic != Intrinsic::kNeg;
    total = total && e->kind != ExprKind::kLoad && !divides && !calls;
  });
  return total;
}

}  // namespace

llvm::Type* Emitter::TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32: return b_.getFloatTy();
    case ElementType::kFloat64: return b_.getDoubleTy();
    case ElementType::kBool: return b_.getInt1Ty();
    default: return b_.getIntNTy(static_cast<unsigned>(ir::ElementBytes(type) * 8));
  }
}

llvm::Type* Emitter::MemoryTypeOf(ElementType type) { return type == ElementType::kBool ? b_.getInt8Ty() : TypeOf(type); }

llvm::Value* Emitter::FromMemory(ElementType type, llvm::Value* value) {
  return type == ElementType::kBool ? b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType())) : value;
}

llvm::Value* Emitter::ToMemory(ElementType type, llvm::Value* value) {
  if (type != ElementType::kBool) return value;
  llvm::Type* target = b_.getInt8Ty();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType())) {
    target = llvm::FixedVectorType::get(target, vector->getNumElements());
  }
  return b_.CreateZExt(value, target);
}

llvm::Value* Emitter::Splat(llvm::Value* value) {
  return lanes_ == 0 || value->getType()->isVectorTy() ? value : b_.CreateVectorSplat(lanes_, value);
}

std::pair<llvm::Value*, llvm::Value*> Emitter::Match(llvm::Value* a, llvm::Value* b) {
  if (a->getType()->isVectorTy() != b->getType()->isVectorTy()) return {Splat(a), Splat(b)};
  return {a, b};
}

bool Emitter::Varies(const Expr& expr) {
  if (lanes_ == 0) return false;
  if (expr.get() == lane_var_) return true;
  if (auto it = varies_.find(expr.get()); it != varies_.end()) return it->second;
  bool varies = false;
  for (const Expr& operand : expr->operands) varies = varies || Varies(operand);
  varies_[expr.get()] = varies;
  return varies;
}

bool Emitter::LaneCoefficient(const Expr& expr, int64_t* coefficient) {
  *coefficient = 0;
  if (!Varies(expr)) return true;
  if (expr.get() == lane_var_) {
    *coefficient = 1;
    return true;
  }
  if (expr->kind != ExprKind::kBinary) return false;
  int64_t a = 0, b = 0;
  if (expr->binary == BinaryOp::kAdd || expr->binary == BinaryOp::kSub) {
    if (!LaneCoefficient(expr->operands[0], &a) || !LaneCoefficient(expr->operands[1], &b)) return false;
    *coefficient = expr->binary == BinaryOp::kAdd ? a + b : a - b;
    return true;
  }
  if (expr->binary != BinaryOp::kMul) return false;
  for (int side = 0; side < 2; ++side) {
    const Expr &factor = expr->operands[static_cast<size_t>(side)], &other = expr->operands[static_cast<size_t>(1 - side)];
    if (factor->kind == ExprKind::kIntImm && LaneCoefficient(other, &a)) {
      *coefficient = a * factor->int_value;
      return true;
    }
  }
  return false;
}

bool Emitter::LaneStride(const Buffer& buffer, std::vector<Expr>& indices, int64_t* stride) {
  const std::vector<int64_t> strides = ir::loops::RowMajorStrides(buffer.shape());
  *stride = 0;
  bool affine = true;
  for (size_t d = 0; d < indices.size() && affine; ++d) {
    int64_t coefficient = 0;
    affine = LaneCoefficient(indices[d], &coefficient);
    *stride += coefficient * strides[d];
  }
  if (affine) return true;
  // Quotients and remainders of a fused loop may still lie side by side in memory. One flat index, the others 0.
  const Expr flat = ir::loops::JoinQuotients(ir::loops::FlatIndex(buffer, indices));
  made_here_.push_back(flat);
  if (!LaneCoefficient(flat, stride)) return false;
  indices.assign(indices.size(), Expr(0));
  indices.back() = flat;
  return true;
}

llvm::Value* Emitter::EmitAsScalar(const Expr& expr) {
  if (!Varies(expr)) return EmitExpr(expr);
  auto outer_memo = std::exchange(memo_, {});
  const unsigned outer_lanes = std::exchange(lanes_, 0);
  llvm::Value* const outer_var = std::exchange(vars_[lane_var_], b_.getInt64(0));
  llvm::Value* value = EmitExpr(expr);
  vars_[lane_var_] = outer_var;
  lanes_ = outer_lanes;
  memo_ = std::move(outer_memo);
  return value;
}

llvm::Value* Emitter::EmitAddress(const Buffer& buffer, const std::vector<Expr>& indices) {
  const std::vector<int64_t> strides = ir::loops::RowMajorStrides(buffer.shape());
  llvm::Value* flat = b_.getInt64(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    llvm::Value* index = EmitAsScalar(indices[d]);
    if (strides[d] != 1) index = b_.CreateMul(index, b_.getInt64(static_cast<uint64_t>(strides[d])), "", false, true);
    flat = b_.CreateAdd(flat, index, "", false, true);
  }
  return ElementAddress(MemoryTypeOf(buffer.type()), BaseOf(buffer), flat);
}

// Under a mask the first lane's address, from which the others are counted, may lie outside the buffer.
llvm::Value* Emitter::ElementAddress(llvm::Type* type, llvm::Value* base, llvm::Value* index) {
  return mask_ ? b_.CreateGEP(type, base, index) : b_.CreateInBoundsGEP(type, base, index);
}

std::vector<llvm::Value*> Emitter::EmitLaneAddresses(const Buffer& buffer, std::vector<Expr> indices) {
  std::vector<llvm::Value*> addresses;
  llvm::Type* type = MemoryTypeOf(buffer.type());
  int64_t stride = 0;
  if (LaneStride(buffer, indices, &stride)) {
    llvm::Value* base = EmitAddress(buffer, indices);
    for (unsigned lane = 0; lane < lanes_; ++lane) {
      addresses.push_back(ElementAddress(type, base, b_.getInt64(static_cast<uint64_t>(stride * lane))));
    }
    return addresses;
  }
  // A copy of its own: indices that load in turn add to made_here_ while this one is read.
  const Expr flat_index = ir::loops::FlatIndex(buffer, indices);
  made_here_.push_back(flat_index);
  llvm::Value* flat = EmitExpr(flat_index);
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    addresses.push_back(ElementAddress(type, BaseOf(buffer), b_.CreateExtractElement(flat, lane)));
  }
  return addresses;
}

llvm::Value* Emitter::EmitExpr(const Expr& expr) {
  if (!status_.ok()) return llvm::PoisonValue::get(TypeOf(expr.type()));
  if (expr->operands.empty() && expr->kind != ExprKind::kLoad) return EmitNode(expr);
  auto it = memo_.find(expr.get());
  if (it != memo_.end() && it->second.second == b_.GetInsertBlock()) return it->second.first;
  llvm::Value* value = EmitNode(expr);
  memo_[expr.get()] = {value, b_.GetInsertBlock()};
  return value;
}

llvm::Value* Emitter::EmitNode(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kIntImm: return llvm::ConstantInt::get(TypeOf(expr.type()), static_cast<uint64_t>(expr->int_value));
    case ExprKind::kFloatImm: return llvm::ConstantFP::get(TypeOf(expr.type()), expr->float_value);
    case ExprKind::kVar: {
      auto it = vars_.find(expr.get());
      if (it != vars_.end()) return it->second;
      Fail("variable " + expr->name + " is not bound");
      return llvm::PoisonValue::get(TypeOf(expr.type()));
    }
    case ExprKind::kLoad: return EmitLoad(expr);
    case ExprKind::kBinary: return EmitBinary(expr);
    case ExprKind::kSelect: return EmitSelect(expr);
    case ExprKind::kCast: return EmitCast(expr);
    case ExprKind::kCall: return EmitCall(expr);
  }
  return nullptr;
}

llvm::Value* Emitter::EmitDivision(const Expr& expr, llvm::Value* a, llvm::Value* b) {
  // Lanes that are not at work may hold a zero divisor.
  if (mask_ && !llvm::isa<llvm::Constant>(b)) {
    llvm::Value* active = b->getType()->isVectorTy() ? mask_ : b_.CreateOrReduce(mask_);
    b = b_.CreateSelect(active, b, llvm::ConstantInt::get(b->getType(), 1));
  }
  const bool is_signed = IsSigned(expr.type());
  if (expr->binary == BinaryOp::kDiv) return is_signed ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
  return is_signed ? b_.CreateSRem(a, b) : b_.CreateURem(a, b);
}

llvm::Value* Emitter::EmitBinary(const Expr& expr) {
  const ElementType type = expr->operands[0].type();
  llvm::Value* left = EmitExpr(expr->operands[0]);
  llvm::Value* right = EmitExpr(expr->operands[1]);
  auto [a, b] = Match(left, right);
  const bool real = IsFloat(type), is_signed = IsSigned(type);
  switch (expr->binary) {
    case BinaryOp::kAdd: return real ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case BinaryOp::kSub: return real ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case BinaryOp::kMul: return real ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case BinaryOp::kDiv:
    case BinaryOp::kMod: return real ? b_.CreateFDiv(a, b) : EmitDivision(expr, a, b);
    case BinaryOp::kMin:
      if (real) return b_.CreateSelect(b_.CreateFCmpOLT(b, a), b, a);
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case BinaryOp::kMax:
      if (real) return b_.CreateSelect(b_.CreateFCmpOLT(a, b), b, a);
      return b_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case BinaryOp::kShiftLeft: return b_.CreateShl(a, b);
    case BinaryOp::kShiftRight: return is_signed ? b_.CreateAShr(a, b) : b_.CreateLShr(a, b);
    case BinaryOp::kAnd: return b_.CreateAnd(a, b);
    case BinaryOp::kOr: return b_.CreateOr(a, b);
    case BinaryOp::kXor: return b_.CreateXor(a, b);
    case BinaryOp::kEqual: return real ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
    case BinaryOp::kNotEqual: return real ? b_.CreateFCmpUNE(a, b) : b_.CreateICmpNE(a, b);
    case BinaryOp::kLess: return real ? b_.CreateFCmpOLT(a, b) : is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case BinaryOp::kLessEqual: return real ? b_.CreateFCmpOLE(a, b) : is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case BinaryOp::kGreater: return real ? b_.CreateFCmpOGT(a, b) : is_signed ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b);
    case BinaryOp::kGreaterEqual: return real ? b_.CreateFCmpOGE(a, b) : is_signed ? b_.CreateICmpSGE(a, b) : b_.CreateICmpUGE(a, b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: break;  // lowered before
  }
  Fail("a floor division was not lowered");
  return llvm::PoisonValue::get(a->getType());
}

llvm::Value* Emitter::EmitCast(const Expr& expr) {
  const ElementType from = expr->operands[0].type(), to = expr.type();
  llvm::Value* value = EmitExpr(expr->operands[0]);
  llvm::Type* target = TypeOf(to);
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType())) {
    target = llvm::FixedVectorType::get(target, vector->getNumElements());
  }
  llvm::Constant* zero = llvm::Constant::getNullValue(value->getType());
  if (to == ElementType::kBool) return IsFloat(from) ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  if (IsFloat(from) && IsFloat(to)) return b_.CreateFPCast(value, target);
  if (IsFloat(from)) return IsSigned(to) ? b_.CreateFPToSI(value, target) : b_.CreateFPToUI(value, target);
  if (IsFloat(to)) return IsSigned(from) ? b_.CreateSIToFP(value, target) : b_.CreateUIToFP(value, target);
  return b_.CreateIntCast(value, target, IsSigned(from));
}

llvm::Value* Emitter::EmitLibraryCall(const std::string& name, const std::vector<llvm::Value*>& operands) {
  llvm::Type* type = operands[0]->getType();
  llvm::Type* scalar = type->getScalarType();
  std::vector<llvm::Type*> parameters(operands.size(), scalar);
  auto callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(scalar, parameters, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
  }
  if (!type->isVectorTy()) return b_.CreateCall(callee, operands);
  llvm::Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    std::vector<llvm::Value*> elements;
    for (llvm::Value* operand : operands) elements.push_back(b_.CreateExtractElement(operand, lane));
    result = b_.CreateInsertElement(result, b_.CreateCall(callee, elements), lane);
  }
  return result;
}

// exp(x) = 2^n * exp(r), n = rint(x / ln 2), |r| <= ln 2 / 2; exp(r) by its Taylor polynomial to r^7, whose remainder is below
// 1e-8 there. 2^n in two factors, so that results near the ends of the range are neither lost nor infinite too early.
llvm::Value* Emitter::EmitExpF32(llvm::Value* x) {
  llvm::Type* type = x->getType();
  llvm::Type* int_type = type->isVectorTy() ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(b_.getInt32Ty(), lanes_)) : b_.getInt32Ty();
  auto constant = [&](double value) { return llvm::ConstantFP::get(type, value); };
  auto integer = [&](int64_t value) { return llvm::ConstantInt::get(int_type, static_cast<uint64_t>(value), true); };
  // Outside this range the result is 0 or infinite anyway. A NaN passes both comparisons unchanged.
  llvm::Value* low = b_.CreateSelect(b_.CreateFCmpOLT(x, constant(-104.5)), constant(-104.5), x);
  llvm::Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(low, constant(89.0)), constant(89.0), low);
  llvm::Value* n = b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, b_.CreateFMul(clamped, constant(1.44269504088896341)));
  auto fma = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) { return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c}); };
  llvm::Value* r = fma(n, constant(-0.693359375), clamped);  // ln 2 in two parts; the first has few bits
  r = fma(n, constant(2.12194440054690583e-4), r);
  llvm::Value* p = constant(1.0 / 5040);
  for (double factor : {1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0}) p = fma(p, r, constant(factor));
  llvm::Value* is_number = b_.CreateFCmpORD(x, x);
  llvm::Value* whole = b_.CreateFPToSI(b_.CreateSelect(is_number, n, constant(0)), int_type);
  llvm::Value* half = b_.CreateAShr(whole, integer(1));
  auto power = [&](llvm::Value* exponent) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(exponent, integer(127)), integer(23)), type);
  };
  llvm::Value* result = b_.CreateFMul(b_.CreateFMul(p, power(half)), power(b_.CreateSub(whole, half)));
  return b_.CreateSelect(is_number, result, x);
}

llvm::Value* Emitter::EmitCall(const Expr& expr) {
  const ElementType type = expr.type();
  std::vector<llvm::Value*> operands;
  for (const Expr& operand : expr->operands) operands.push_back(EmitExpr(operand));
  if (operands.size() == 2) std::tie(operands[0], operands[1]) = Match(operands[0], operands[1]);
  llvm::Value* x = operands[0];
  if (!IsFloat(type)) {
    llvm::Value* negative = b_.CreateNeg(x);
    if (expr->intrinsic == Intrinsic::kNeg) return negative;
    return IsSigned(type) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, negative) : x;
  }
  auto unary = [&](llvm::Intrinsic::ID id) { return b_.CreateUnaryIntrinsic(id, x); };
  switch (expr->intrinsic) {
    case Intrinsic::kSqrt: return unary(llvm::Intrinsic::sqrt);
    case Intrinsic::kFloor: return unary(llvm::Intrinsic::floor);
    case Intrinsic::kCeil: return unary(llvm::Intrinsic::ceil);
    case Intrinsic::kTrunc: return unary(llvm::Intrinsic::trunc);
    case Intrinsic::kRint: return unary(llvm::Intrinsic::rint);
    case Intrinsic::kAbs: return unary(llvm::Intrinsic::fabs);
    case Intrinsic::kNeg: return b_.CreateFNeg(x);
    case Intrinsic::kExp:
      if (type == ElementType::kFloat32) return EmitExpF32(x);
      break;
    default: break;
  }
  return EmitLibraryCall(std::string(IntrinsicName(expr->intrinsic)) + (type == ElementType::kFloat32 ? "f" : ""), operands);
}

llvm::Value* Emitter::EmitMaskedSelect(const Expr& expr, llvm::Value* condition) {
  llvm::Value* const outer = mask_;
  condition = Splat(condition);
  mask_ = outer ? b_.CreateAnd(outer, condition) : condition;
  llvm::Value* yes = EmitExpr(expr->operands[1]);
  llvm::Value* inverse = b_.CreateNot(condition);
  mask_ = outer ? b_.CreateAnd(outer, inverse) : inverse;
  memo_.clear();  // what was loaded under the one mask must not serve the other
  llvm::Value* no = EmitExpr(expr->operands[2]);
  mask_ = outer;
  memo_.clear();
  return b_.CreateSelect(condition, Splat(yes), Splat(no));
}

llvm::Value* Emitter::EmitSelect(const Expr& expr) {
  const Expr &if_true = expr->operands[1], &if_false = expr->operands[2];
  llvm::Value* condition = EmitExpr(expr->operands[0]);
  if (!status_.ok()) return llvm::PoisonValue::get(TypeOf(expr.type()));
  if (IsTotal(if_true) && IsTotal(if_false)) {
    llvm::Value* left = EmitExpr(if_true);
    llvm::Value* right = EmitExpr(if_false);
    auto [yes, no] = Match(left, right);
    if (condition->getType()->isVectorTy()) return b_.CreateSelect(condition, Splat(yes), Splat(no));
    return b_.CreateSelect(condition, yes, no);
  }
  if (condition->getType()->isVectorTy()) return EmitMaskedSelect(expr, condition);
  const bool wide = Varies(if_true) || Varies(if_false);
  llvm::BasicBlock* blocks[2];
  llvm::Value* values[2];
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "selected", fn_);
  for (auto& block : blocks) block = llvm::BasicBlock::Create(context_, "select", fn_);
  b_.CreateCondBr(condition, blocks[0], blocks[1]);
  for (int i = 0; i < 2; ++i) {
    b_.SetInsertPoint(blocks[i]);
    values[i] = EmitExpr(i == 0 ? if_true : if_false);
    // A mask makes a uniform load a vector's business, but never its result's type.
    if (wide) values[i] = Splat(values[i]);
    blocks[i] = b_.GetInsertBlock();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
  llvm::PHINode* phi = b_.CreatePHI(values[0]->getType(), 2);
  for (int i = 0; i < 2; ++i) phi->addIncoming(values[i], blocks[i]);
  return phi;
}

// A load whose address is the same for all lanes. Under a mask it happens only where some lane is at work.
llvm::Value* Emitter::EmitUniformLoad(const Buffer& buffer, const std::vector<Expr>& indices) {
  llvm::Type* type = MemoryTypeOf(buffer.type());
  const llvm::Align align(static_cast<uint64_t>(ir::ElementBytes(buffer.type())));
  if (!mask_) {
    llvm::Value* load = b_.CreateAlignedLoad(type, EmitAddress(buffer, indices), align);
    Annotate(load, buffer);
    return FromMemory(buffer.type(), load);
  }
  llvm::Value* any = b_.CreateOrReduce(mask_);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* block = llvm::BasicBlock::Create(context_, "load", fn_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "loaded", fn_);
  b_.CreateCondBr(any, block, after);
  b_.SetInsertPoint(block);
  llvm::Value* load = b_.CreateAlignedLoad(type, EmitAddress(buffer, indices), align);
  Annotate(load, buffer);
  block = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* phi = b_.CreatePHI(type, 2);
  phi->addIncoming(llvm::Constant::getNullValue(type), before);
  phi->addIncoming(load, block);
  return FromMemory(buffer.type(), phi);
}

// Every second element from two overlapping loads that stay inside what the lanes touch.
llvm::Value* Emitter::EmitStridedLoad(llvm::Value* base, ElementType type, int64_t stride) {
  HEDDLE_CHECK(stride == 2 && lanes_ % 2 == 0, "only stride 2 has a pattern");
  llvm::Type* element = MemoryTypeOf(type);
  auto* vector = llvm::FixedVectorType::get(element, lanes_);
  const llvm::Align align(static_cast<uint64_t>(ir::ElementBytes(type)));
  llvm::Value* low = b_.CreateAlignedLoad(vector, base, align);
  llvm::Value* high = b_.CreateAlignedLoad(vector, b_.CreateConstInBoundsGEP1_64(element, base, lanes_ - 1), align);
  std::vector<int> pick;
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    const unsigned offset = 2 * lane;  // from base; `high` starts at lanes - 1
    pick.push_back(static_cast<int>(offset < lanes_ ? offset : lanes_ + offset - (lanes_ - 1)));
  }
  return b_.CreateShuffleVector(low, high, pick);
}

llvm::Value* Emitter::EmitLoad(const Expr& expr) {
  const Buffer& buffer = expr->buffer;
  std::vector<Expr> indices = expr->operands;
  const ElementType type = buffer.type();
  if (!Varies(expr)) return EmitUniformLoad(buffer, indices);
  int64_t stride = 0;
  const bool affine = LaneStride(buffer, indices, &stride);
  auto* vector = llvm::FixedVectorType::get(MemoryTypeOf(type), lanes_);
  const llvm::Align align(static_cast<uint64_t>(ir::ElementBytes(type)));
  if (affine && stride == 1) {
    llvm::Value* address = EmitAddress(buffer, indices);
    llvm::Value* load = mask_ ? static_cast<llvm::Value*>(b_.CreateMaskedLoad(vector, address, align, mask_,
                                                                              llvm::Constant::getNullValue(vector)))
                              : b_.CreateAlignedLoad(vector, address, align);
    Annotate(load, buffer);
    return FromMemory(type, load);
  }
  if (affine && stride == 2 && lanes_ % 2 == 0 && !mask_) {
    return FromMemory(type, EmitStridedLoad(EmitAddress(buffer, indices), type, stride));
  }
  const std::vector<llvm::Value*> addresses = EmitLaneAddresses(buffer, indices);
  llvm::Value* result = llvm::Constant::getNullValue(vector);
  if (mask_) {
    llvm::Value* pointers = llvm::PoisonValue::get(llvm::FixedVectorType::get(b_.getPtrTy(), lanes_));
    for (unsigned lane = 0; lane < lanes_; ++lane) pointers = b_.CreateInsertElement(pointers, addresses[lane], lane);
    return FromMemory(type, b_.CreateMaskedGather(vector, pointers, align, Splat(mask_), result));
  }
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    llvm::Value* load = b_.CreateAlignedLoad(MemoryTypeOf(type), addresses[lane], align);
    Annotate(load, buffer);
    result = b_.CreateInsertElement(result, load, lane);
  }
  return FromMemory(type, result);
}

}  // namespace heddle::cpu
