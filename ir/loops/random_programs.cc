// Random compute definitions and schedules.

#include "ir/loops/random_programs.h"

#include <algorithm>
#include <cmath>

#include "ir/check.h"
#include "ir/loops/interpreter.h"
#include "ir/loops/requantise_expr.h"
#include "ir/loops/tensor_expr.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

int64_t Pick(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

class Generator {
 public:
  Generator(std::mt19937_64& random, bool integers_only) : random_(random), integers_only_(integers_only) {}

  RandomProgram Make() {
    const int64_t inputs = Pick(random_, 1, 3);
    for (int64_t i = 0; i < inputs; ++i) AddInput(i);
    const int64_t stages = Pick(random_, 1, 4);
    std::vector<TensorExpr> list;
    for (int64_t s = 0; s < stages; ++s) {
      list.push_back(Pick(random_, 0, 2) == 0 ? MakeReduction(s) : MakePlain(s));
      readable_.push_back(list.back().output);
    }
    const Buffer output = list.back().output;
    if (Pick(random_, 0, 1)) list = FuseStages(list, {output});
    params_.push_back({output, ParamRole::kOutput});
    arguments_.emplace_back(output.type(), output.shape());
    auto function = LowerToFunction("program", list, params_);
    HEDDLE_CHECK(function.ok(), std::string(function.status().message()));
    return {*function, std::move(arguments_)};
  }

 private:
  ElementType RandomType() {
    static constexpr ElementType kTypes[] = {ElementType::kInt8, ElementType::kInt32, ElementType::kUint8, ElementType::kInt16,
                                             ElementType::kInt64};
    return integers_only_ ? kTypes[Pick(random_, 0, 4)] : ElementType::kFloat32;
  }

  Shape RandomShape() {
    Shape shape;
    const int64_t rank = Pick(random_, 1, 3);
    for (int64_t d = 0; d < rank; ++d) shape.push_back(Pick(random_, 1, 9));
    return shape;
  }

  void AddInput(int64_t i) {
    const ElementType type = RandomType();
    Buffer buffer(fmt::format("in{}", i), type, RandomShape());
    Tensor tensor(type, buffer.shape());
    for (int64_t e = 0; e < tensor.elements(); ++e) {
      if (IsFloat(type)) {
        tensor.set_double(e, std::uniform_real_distribution<double>(-3, 3)(random_));
      } else {
        tensor.set_int(e, WrapInteger(type, static_cast<int64_t>(random_()) >> Pick(random_, 0, 60)));
      }
    }
    readable_.push_back(buffer);
    params_.push_back({buffer, ParamRole::kInput});
    arguments_.push_back(std::move(tensor));
  }

  // A read of some buffer at indices made of the given ones: in range by clamping, by a guard, or by construction.
  Expr Read(const Indices& i) {
    const Buffer& buffer = readable_[static_cast<size_t>(Pick(random_, 0, static_cast<int64_t>(readable_.size()) - 1))];
    Indices at;
    Expr inside = True();
    const bool guard = Pick(random_, 0, 1);
    for (int64_t extent : buffer.shape()) {
      Expr index = Pick(random_, 0, 5) == 0 ? Expr(Pick(random_, 0, extent - 1)) : i[static_cast<size_t>(Pick(random_, 0, static_cast<int64_t>(i.size()) - 1))];
      if (Pick(random_, 0, 2) == 0) index = index * Pick(random_, 1, 2) + Pick(random_, -2, 2);
      if (Pick(random_, 0, 7) == 0) index = FloorDiv(index, Pick(random_, 1, 3)) + FloorMod(index, Pick(random_, 1, 4));
      if (guard) {
        inside = And(inside, InRange(index, 0, extent));
      } else {
        index = Clamp(index, Expr(0), Expr(extent - 1));
      }
      at.push_back(index);
    }
    Expr value = buffer.At(at);
    return guard ? Select(inside, value, Constant(value.type(), Pick(random_, -2, 2))) : value;
  }

  Expr Convert(ElementType type, const Expr& value) {
    if (IsFloat(value.type()) && !IsFloat(type)) return SaturatingCast(type, Rint(value));
    return Pick(random_, 0, 1) ? SaturatingCast(type, value) : Cast(type, value);
  }

  Expr Value(ElementType type, const Indices& i, int depth) {
    if (depth == 0 || Pick(random_, 0, 6) == 0) {
      return Pick(random_, 0, 4) == 0 ? Constant(type, Pick(random_, -3, 3)) : Convert(type, Read(i));
    }
    Expr a = Value(type, i, depth - 1);
    if (Pick(random_, 0, 9) == 0) return Select(Value(type, i, depth - 1) < a, a, Value(type, i, depth - 1));
    if (IsFloat(type)) {
      switch (Pick(random_, 0, 9)) {
        case 0: return Exp(Min(a, Constant(type, 3)));
        case 1: return Sqrt(Abs(a));
        case 2: return Tanh(a);
        case 3: return Neg(a);
        default: break;
      }
    } else if (Pick(random_, 0, 9) == 0) {
      const FixedPointScale scale = FixedPointScaleOf(std::uniform_real_distribution<double>(0.001, 2)(random_));
      const Rounding rounding = Pick(random_, 0, 1) ? Rounding::kHalfEven : Rounding::kDoublingHighMul;
      return Convert(type, RequantiseExpr(Convert(ElementType::kInt32, a), scale, rounding, 3, -128, 127, ElementType::kInt8));
    }
    const Expr b = Pick(random_, 0, 3) == 0 ? a : Value(type, i, depth - 1);
    switch (Pick(random_, 0, 9)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * b;
      case 3: return Min(a, b);
      case 4: return Max(a, b);
      case 5: return IsFloat(type) ? a + b : SafeDiv(a, b);
      case 6: return IsFloat(type) ? a - b : SafeMod(a, b);
      case 7: return IsFloat(type) ? a * 0.5 : Xor(a, And(b, Constant(type, 5)));
      case 8: return IsFloat(type) ? Min(a, b) : (a >> Pick(random_, 0, 3)) << Pick(random_, 0, 2);
      default: return Select(Or(Equal(a, b), a > b), a + b, b);
    }
  }

  TensorExpr MakePlain(int64_t s) {
    Buffer out(fmt::format("s{}", s), RandomType(), RandomShape());
    return Compute(out, [&](const Indices& i) { return Value(out.type(), i, 3); });
  }

  TensorExpr MakeReduction(int64_t s) {
    const ElementType type = integers_only_ || Pick(random_, 0, 1) ? ElementType::kInt32 : ElementType::kFloat32;
    Buffer out(fmt::format("s{}", s), RandomType(), RandomShape());
    Shape extents;
    for (int64_t d = Pick(random_, 1, 3); d > 0; --d) extents.push_back(Pick(random_, 1, 5));
    const Combiner combiner = Pick(random_, 0, 2) == 0 ? Combiner::kMax : Combiner::kSum;
    return Reduce(out, extents, combiner,
                  [&](const Indices& i, const Indices& r) {
                    Indices all = i;
                    all.insert(all.end(), r.begin(), r.end());
                    return Value(type, all, 1);
                  },
                  [&](Expr acc, const Indices& i) {
                    Expr result = acc + Value(type, i, 1);
                    return IsFloat(type) && !IsFloat(out.type()) ? SaturatingCast(out.type(), result) : Convert(out.type(), result);
                  });
  }

  std::mt19937_64& random_;
  bool integers_only_;
  std::vector<Buffer> readable_;
  std::vector<Param> params_;
  std::vector<Tensor> arguments_;
};

std::vector<std::string> BufferNames(const Function& function) {
  std::vector<std::string> names;
  for (const Param& param : function.params) names.push_back(param.buffer->name);
  ForEachStmt(function.body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kAllocate) names.push_back(s->buffer->name);
  });
  return names;
}

}  // namespace

RandomProgram MakeRandomProgram(std::mt19937_64& random, bool integers_only) { return Generator(random, integers_only).Make(); }

std::string ApplyRandomSchedule(Schedule& schedule, std::mt19937_64& random, int steps, bool gpu) {
  std::string log;
  for (int step = 0; step < steps; ++step) {
    const std::vector<Expr> loops = schedule.Loops();
    if (loops.empty()) break;
    auto any = [&] { return loops[random() % loops.size()]; };
    const Expr a = any(), b = any();
    absl::Status status;
    std::string text;
    const std::vector<std::string> names = BufferNames(schedule.function());
    const std::string& buffer = names[random() % names.size()];
    switch (random() % (gpu ? 12 : 11)) {
      case 0: {
        const int64_t factor = Pick(random, 1, 6);
        const Tail tail = random() % 2 ? Tail::kGuard : Tail::kPeel;
        text = fmt::format("split {} {} {}", a->name, factor, tail == Tail::kGuard ? "guard" : "peel");
        status = schedule.Split(a, factor, tail).status();
        break;
      }
      case 1:
        text = fmt::format("reorder {} {}", a->name, b->name);
        status = schedule.Reorder({a, b});
        break;
      case 2:
        text = fmt::format("fuse {} {}", a->name, b->name);
        status = schedule.Fuse(a, b).status();
        break;
      case 3:
        text = fmt::format("interleave {}", a->name);
        status = schedule.Interleave(a).status();
        break;
      case 4:
        text = fmt::format("unroll {}", a->name);
        status = schedule.Unroll(a);
        break;
      case 5:
        text = fmt::format("vectorise {}", a->name);
        status = schedule.Vectorise(a);
        break;
      case 6:
        text = fmt::format("parallelise {}", a->name);
        status = schedule.Parallelise(a);
        break;
      case 7:
        text = fmt::format("pipeline {}", a->name);
        status = schedule.Pipeline(a, 2);
        break;
      case 8:
        text = fmt::format("cache read {} at {}", buffer, a->name);
        status = schedule.CacheRead(buffer, a, MemorySpace::kPrivate).status();
        break;
      case 9:
        text = fmt::format("cache write {} at {}", buffer, a->name);
        status = schedule.CacheWrite(buffer, a, MemorySpace::kPrivate).status();
        break;
      case 10:
        text = fmt::format("compute {} at {}", buffer, a->name);
        status = schedule.ComputeAt(buffer, a);
        break;
      default: {
        const auto kind = static_cast<LoopKind>(static_cast<int>(LoopKind::kBlockX) + Pick(random, 0, 5));
        text = fmt::format("bind {} {}", a->name, LoopKindName(kind));
        status = schedule.Bind(a, kind);
        break;
      }
    }
    if (status.ok()) log += text + "\n";
  }
  return log;
}

absl::StatusOr<std::vector<Tensor>> RunInterpreter(const Function& function, const std::vector<Tensor>& arguments, bool reverse) {
  std::vector<Tensor> copies = arguments;
  std::vector<Tensor*> pointers;
  for (Tensor& tensor : copies) pointers.push_back(&tensor);
  InterpretOptions options;
  options.reverse_independent_loops = reverse;
  HEDDLE_RETURN_IF_ERROR(Interpret(function, pointers, options));
  return copies;
}

std::string Difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double tolerance) {
  for (size_t t = 0; t < a.size(); ++t) {
    for (int64_t i = 0; i < a[t].elements(); ++i) {
      if (IsFloat(a[t].type())) {
        const double x = a[t].at_double(i), y = b[t].at_double(i);
        if (std::isnan(x) && std::isnan(y)) continue;
        if (x == y || std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(x))) continue;
        return fmt::format("argument {} element {}: {} against {}", t, i, x, y);
      }
      if (a[t].at_int(i) != b[t].at_int(i)) {
        return fmt::format("argument {} element {}: {} against {}", t, i, a[t].at_int(i), b[t].at_int(i));
      }
    }
  }
  return "";
}

}  // namespace heddle::ir::loops
