// Scheduled groups against their plain definitions: convolutions, products, pooling and reductions of random sizes, for
// processors of several vector widths, in the interpreter and compiled.

#include "cpu_fallback/schedule_cpu.h"

#include <gtest/gtest.h>

#include "cpu_fallback/jit.h"
#include "ir/loops/interpreter.h"
#include "ir/loops/printer.h"
#include "ir/loops/random_programs.h"
#include "ir/loops/requantise_expr.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

using namespace ir::loops;  // NOLINT: the whole test is about it
using ir::ElementType;
using ir::Shape;
using ir::Tensor;

constexpr ElementType kF32 = ElementType::kFloat32;
constexpr ElementType kI32 = ElementType::kInt32;

struct Case {
  std::vector<TensorExpr> stages;
  std::vector<Param> params;
};

int64_t Pick(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// y = epilogue(conv(x, w)); integers: zero points and a requantisation; groups, strides, dilations, padding at random.
Case RandomConvolution(std::mt19937_64& random, bool integers) {
  const int64_t batch = Pick(random, 1, 2), group = Pick(random, 0, 2) ? 1 : Pick(random, 1, 4);
  const bool depthwise = Pick(random, 0, 3) == 0;
  const int64_t ic = depthwise ? 1 : Pick(random, 1, 9), oc = depthwise ? 1 : Pick(random, 1, 19);
  const int64_t groups = depthwise ? Pick(random, 2, 9) : group;
  const int64_t kh = Pick(random, 1, 4), kw = Pick(random, 1, 4), sh = Pick(random, 1, 3), sw = Pick(random, 1, 3);
  const int64_t dh = Pick(random, 1, 2), dw = Pick(random, 1, 2), ph = Pick(random, 0, 2), pw = Pick(random, 0, 2);
  const int64_t oh = Pick(random, 1, 9), ow = Pick(random, 1, 40);
  const int64_t h = std::max<int64_t>(1, (oh - 1) * sh + (kh - 1) * dh + 1 - 2 * ph), w = std::max<int64_t>(1, (ow - 1) * sw + (kw - 1) * dw + 1 - 2 * pw);
  const ElementType type = integers ? ElementType::kInt8 : kF32, sum = integers ? kI32 : kF32;
  Buffer x("x", type, {batch, groups * ic, h, w}), weights("w", type, {groups * oc, ic, kh, kw}), bias("b", sum, {groups * oc});
  Buffer y("y", type, {batch, groups * oc, oh, ow});
  const int64_t zero = integers ? Pick(random, -9, 9) : 0;
  auto value = [&](const Indices& i, const Indices& r) {
    Expr p = i[2] * sh + r[1] * dh - ph, q = i[3] * sw + r[2] * dw - pw;
    Expr channel = groups == 1 ? r[0] : depthwise ? i[1] : FloorDiv(i[1], oc) * ic + r[0];
    Expr element = Cast(sum, x(i[0], channel, p, q));
    if (integers) element = element - zero;
    if (ph || pw || h < (oh - 1) * sh + (kh - 1) * dh + 1 || w < (ow - 1) * sw + (kw - 1) * dw + 1) {
      element = Select(And(InRange(p, 0, h), InRange(q, 0, w)), element, Constant(sum, 0));
    }
    return element * Cast(sum, weights(i[1], r[0], r[1], r[2]));
  };
  auto epilogue = [&](Expr acc, const Indices& i) {
    Expr biased = acc + bias(i[1]);
    if (!integers) return Max(biased, Constant(kF32, 0));
    return RequantiseExpr(biased, ir::FixedPointScaleOf(0.01), ir::Rounding::kHalfEven, 3, -128, 127, ElementType::kInt8);
  };
  return {{Reduce(y, {ic, kh, kw}, Combiner::kSum, value, epilogue)},
          {{x, ParamRole::kInput}, {weights, ParamRole::kConstant}, {bias, ParamRole::kConstant}, {y, ParamRole::kOutput}}};
}

Case RandomProduct(std::mt19937_64& random, bool integers) {
  const int64_t batch = Pick(random, 1, 3), m = Pick(random, 1, 20), k = Pick(random, 1, 40), n = Pick(random, 1, 90);
  const bool transposed = Pick(random, 0, 1), constant = Pick(random, 0, 1);
  const ElementType type = integers ? ElementType::kInt8 : kF32, sum = integers ? kI32 : kF32;
  Buffer a("a", type, {batch, m, k}), b("b", type, transposed ? Shape{n, k} : Shape{k, n}), y("y", sum, {batch, m, n});
  return {{Reduce(y, {k}, Combiner::kSum,
                  [&](const Indices& i, const Indices& r) {
                    return Cast(sum, a(i[0], i[1], r[0])) * Cast(sum, transposed ? b(i[2], r[0]) : b(r[0], i[2]));
                  })},
          {{a, ParamRole::kInput}, {b, constant ? ParamRole::kConstant : ParamRole::kInput}, {y, ParamRole::kOutput}}};
}

Case RandomReduction(std::mt19937_64& random, bool integers) {
  const ElementType type = integers ? kI32 : kF32;
  const int64_t n = Pick(random, 1, 7), c = Pick(random, 1, 70), h = Pick(random, 1, 70);
  Buffer x("x", type, {n, c, h}), t("t", type, {n, c, h}), y("y", type, {n, c});
  const int64_t which = Pick(random, 0, 3);
  std::vector<TensorExpr> stages;
  const Combiner combiner = Pick(random, 0, 1) ? Combiner::kSum : Combiner::kMax;
  Buffer in = x;
  if (Pick(random, 0, 1)) {
    stages.push_back(Compute(t, [&](const Indices& i) { return x.At(i) * x.At(i) + x(i[0], i[1], h - 1 - i[2]); }));
    in = t;
  }
  if (which == 0) {
    stages.push_back(Reduce(y, {h}, combiner, [&](const Indices& i, const Indices& r) { return in(i[0], i[1], r[0]); },
                            [](Expr acc, const Indices&) { return acc + acc; }));
  } else if (which == 1) {  // along the middle axis
    y = Buffer("y", type, {n, h});
    stages.push_back(Reduce(y, {c}, combiner, [&](const Indices& i, const Indices& r) { return in(i[0], r[0], i[1]); }));
  } else if (which == 2) {  // everything
    y = Buffer("y", type, {});
    stages.push_back(Reduce(y, {n, c, h}, combiner, [&](const Indices&, const Indices& r) { return in.At(r); }));
  } else {  // pooling over windows of the last axis, as a guarded maximum
    y = Buffer("y", type, {n, c, (h + 1) / 2});
    stages.push_back(Reduce(y, {3}, Combiner::kMax, [&](const Indices& i, const Indices& r) {
      Expr p = i[2] * 2 + r[0] - 1;
      return Select(InRange(p, 0, h), in(i[0], i[1], p), LowestOf(type));
    }));
  }
  return {stages, {{x, ParamRole::kInput}, {y, ParamRole::kOutput}}};
}

std::vector<Tensor> RandomArguments(const std::vector<Param>& params, std::mt19937_64& random) {
  std::vector<Tensor> arguments;
  for (const Param& param : params) {
    Tensor tensor(param.buffer.type(), param.buffer.shape());
    for (int64_t i = 0; param.role != ParamRole::kOutput && i < tensor.elements(); ++i) {
      if (IsFloat(tensor.type())) {
        tensor.set_double(i, std::uniform_real_distribution<double>(-1, 1)(random));
      } else {
        tensor.set_int(i, Pick(random, -100, 100));
      }
    }
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

// Packs and runs a scheduled group; `run` executes one function on tensors.
void RunGroup(const ScheduledGroup& group, std::vector<Tensor>& arguments,
              const std::function<void(int pack, const std::vector<Tensor*>&)>& run) {
  std::vector<Tensor> packed;
  for (const PackStep& pack : group.packs) packed.emplace_back(pack.pack.params.back().buffer.type(), pack.pack.params.back().buffer.shape());
  for (size_t p = 0; p < group.packs.size(); ++p) {
    std::vector<Tensor*> tensors;
    for (int source : group.packs[p].sources) tensors.push_back(&arguments[static_cast<size_t>(source)]);
    tensors.push_back(&packed[p]);
    run(static_cast<int>(p), tensors);
  }
  std::vector<Tensor*> tensors;
  for (int source : group.param_sources) {
    tensors.push_back(source >= 0 ? &arguments[static_cast<size_t>(source)] : &packed[static_cast<size_t>(-1 - source)]);
  }
  run(-1, tensors);
}

void CheckCases(const std::function<Case(std::mt19937_64&)>& make, uint64_t first_seed, int count, double tolerance) {
  const CpuTarget targets[] = {HostCpu(), {"wide", 64, 32, 32 << 10, 1 << 20}, {"small", 16, 16, 4 << 10, 8 << 10}};
  Module module;
  std::vector<ScheduledGroup> groups;
  std::vector<Case> cases;
  std::vector<std::vector<Tensor>> arguments, expected;
  std::vector<std::pair<int, int>> first_function;  // of each case: main, packs
  for (int n = 0; n < count; ++n) {
    std::mt19937_64 random(first_seed + static_cast<uint64_t>(n));
    cases.push_back(make(random));
    const Case& c = cases.back();
    arguments.push_back(RandomArguments(c.params, random));
    auto plain = LowerToFunction("plain", c.stages, c.params);
    ASSERT_TRUE(plain.ok()) << plain.status();
    auto result = RunInterpreter(*plain, arguments.back());
    ASSERT_TRUE(result.ok()) << result.status() << ToText(*plain);
    expected.push_back(*result);
    const CpuTarget& target = targets[n % 3];
    auto group = ScheduleForCpu("group", c.stages, c.params, target);
    ASSERT_TRUE(group.ok()) << group.status();
    std::vector<Tensor> actual = arguments.back();
    RunGroup(*group, actual, [&](int pack, const std::vector<Tensor*>& tensors) {
      const Function& f = pack < 0 ? group->function : group->packs[static_cast<size_t>(pack)].pack;
      const absl::Status status = Interpret(f, tensors, {true});
      ASSERT_TRUE(status.ok()) << "seed " << first_seed + static_cast<uint64_t>(n) << " " << status << "\n" << ToText(*plain) << ToText(f);
    });
    ASSERT_EQ(Difference(expected.back(), actual, tolerance), "")
        << "interpreted, seed " << first_seed + static_cast<uint64_t>(n) << " " << target.name << "\n" << ToText(*plain) << ToText(group->function);
    const int base = static_cast<int>(module.functions.size());
    Function main = group->function;
    main.name = "main" + std::to_string(n);
    module.functions.push_back(main);
    for (size_t p = 0; p < group->packs.size(); ++p) {
      Function pack = group->packs[p].pack;
      pack.name = "pack" + std::to_string(n) + "_" + std::to_string(p);
      module.functions.push_back(pack);
    }
    first_function.emplace_back(base, base + 1);
    groups.push_back(std::move(*group));
  }
  auto compiled = Compile(module);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ThreadPool pool(2);
  for (int n = 0; n < count; ++n) {
    const auto s = static_cast<size_t>(n);
    std::vector<Tensor> actual = arguments[s];
    RunGroup(groups[s], actual, [&](int pack, const std::vector<Tensor*>& tensors) {
      std::vector<void*> pointers;
      for (Tensor* tensor : tensors) pointers.push_back(tensor->data());
      compiled->Run(pack < 0 ? first_function[s].first : first_function[s].second + pack, pointers, &pool);
    });
    ASSERT_EQ(Difference(expected[s], actual, tolerance), "")
        << "compiled, seed " << first_seed + static_cast<uint64_t>(n) << "\n" << ToText(groups[s].function);
  }
}

TEST(ScheduleCpu, FloatConvolutions) {
  CheckCases([](std::mt19937_64& r) { return RandomConvolution(r, false); }, 1, 18, 1e-4);
}
TEST(ScheduleCpu, IntegerConvolutionsAreExact) {
  CheckCases([](std::mt19937_64& r) { return RandomConvolution(r, true); }, 100, 18, 0);
}
TEST(ScheduleCpu, FloatProducts) {
  CheckCases([](std::mt19937_64& r) { return RandomProduct(r, false); }, 200, 15, 1e-4);
}
TEST(ScheduleCpu, IntegerProductsAreExact) {
  CheckCases([](std::mt19937_64& r) { return RandomProduct(r, true); }, 300, 15, 0);
}
TEST(ScheduleCpu, Reductions) {
  CheckCases([](std::mt19937_64& r) { return RandomReduction(r, false); }, 400, 18, 1e-4);
  CheckCases([](std::mt19937_64& r) { return RandomReduction(r, true); }, 500, 18, 0);
}

TEST(Contraction, OrdinaryConvolutionIsRecognised) {
  Buffer x("x", kF32, {1, 8, 16, 16}), w("w", kF32, {24, 8, 3, 3}), y("y", kF32, {1, 24, 8, 8});
  const TensorExpr stage = Reduce(y, {8, 3, 3}, Combiner::kSum, [&](const Indices& i, const Indices& r) {
    Expr p = i[2] * 2 + r[1] - 1, q = i[3] * 2 + r[2] - 1;
    return Select(And(InRange(p, 0, 16), InRange(q, 0, 16)), x(i[0], r[0], p, q), Constant(kF32, 0)) * w(i[1], r[0], r[1], r[2]);
  });
  const auto c = MatchContraction(stage);
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->row.extent, 24);
  ASSERT_EQ(c->columns.size(), 2u);
  EXPECT_EQ(c->columns[0].stride, 2);
  EXPECT_EQ(c->columns[1].tap.extent, 3);
  EXPECT_EQ(c->columns[1].stored_extent(), 9);
  EXPECT_EQ(c->depth.size(), 1u);
  EXPECT_EQ(c->terms(), 72);
  EXPECT_TRUE(c->outer.empty());
}

}  // namespace
}  // namespace heddle::cpu
