// Compiled code against the loop interpreter: integers to the bit, floats within rounding; threads, objects, refusals.

#include "cpu_fallback/jit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu_fallback/cpu_target.h"
#include "ir/loops/printer.h"
#include "ir/loops/random_programs.h"
#include "ir/loops/simplify.h"
#include "ir/loops/tensor_expr.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

using namespace ir::loops;  // NOLINT: the whole test is about it
using ir::ElementType;
using ir::Tensor;

std::vector<Tensor> RunCompiled(const CompiledModule& module, int function, const std::vector<Tensor>& arguments,
                                ThreadPool* pool = nullptr) {
  std::vector<Tensor> copies = arguments;
  std::vector<void*> pointers;
  for (Tensor& tensor : copies) pointers.push_back(tensor.data());
  module.Run(function, pointers, pool);
  return copies;
}

// Many programs in one module: LLVM's fixed costs are paid once.
void CompareRandomPrograms(uint64_t first_seed, int count, bool integers_only, double tolerance) {
  Module module;
  std::vector<RandomProgram> programs;
  std::vector<std::string> logs;
  for (int n = 0; n < count; ++n) {
    std::mt19937_64 random(first_seed + static_cast<uint64_t>(n));
    programs.push_back(MakeRandomProgram(random, integers_only));
    Schedule schedule(programs.back().function);
    logs.push_back(ApplyRandomSchedule(schedule, random, n % 4 == 0 ? 0 : 12, n % 8 == 1));
    Function function = Simplify(schedule.function());
    function.name = "program" + std::to_string(n);
    module.functions.push_back(std::move(function));
  }
  auto compiled = Compile(module);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ThreadPool pool(3);
  for (int n = 0; n < count; ++n) {
    const auto& program = programs[static_cast<size_t>(n)];
    auto expected = RunInterpreter(module.functions[static_cast<size_t>(n)], program.arguments);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
      const std::vector<Tensor> actual = RunCompiled(*compiled, n, program.arguments, threads);
      ASSERT_EQ(Difference(*expected, actual, tolerance), "")
          << "seed " << first_seed + static_cast<uint64_t>(n) << "\n" << logs[static_cast<size_t>(n)]
          << ToText(module.functions[static_cast<size_t>(n)]);
    }
  }
}

TEST(Jit, RandomIntegerProgramsAreExact) { CompareRandomPrograms(0, 60, true, 0); }

TEST(Jit, RandomFloatProgramsAgreeWithinRounding) { CompareRandomPrograms(5000, 40, false, 2e-3); }

TEST(Jit, ExpOfFloatsWithinTwoUlp) {
  const int64_t n = 1 << 16;
  Buffer in("in", ElementType::kFloat32, {n}), out("out", ElementType::kFloat32, {n});
  Schedule schedule(*LowerToFunction("e", {Compute(out, [&](const Indices& i) { return Exp(in.At(i)); })},
                                     {{in, ParamRole::kInput}, {out, ParamRole::kOutput}}));
  auto split = schedule.Split(schedule.Loops()[0], 16);
  ASSERT_TRUE(schedule.Vectorise(split->second).ok());
  auto compiled = Compile({{schedule.function()}});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Tensor x(ElementType::kFloat32, {n}), y(ElementType::kFloat32, {n});
  for (int64_t i = 0; i < n; ++i) x.set_double(i, -105.0 + 195.0 * static_cast<double>(i) / n);
  x.set_double(0, NAN);
  x.set_double(1, INFINITY);
  x.set_double(2, -INFINITY);
  const std::vector<Tensor> result = RunCompiled(*compiled, 0, {x, y});
  EXPECT_TRUE(std::isnan(result[1].at_double(0)));
  EXPECT_EQ(result[1].at_double(1), INFINITY);
  EXPECT_EQ(result[1].at_double(2), 0);
  for (int64_t i = 3; i < n; ++i) {
    const double exact = std::exp(x.at_double(i)), actual = result[1].at_double(i);
    if (exact > 3.4028236e38) {
      EXPECT_EQ(actual, INFINITY) << x.at_double(i);
      continue;
    }
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact) - 23, -149));
    ASSERT_LE(std::fabs(actual - exact), 2 * ulp) << x.at_double(i);
  }
}

Function Scale() {
  Buffer in("in", ElementType::kFloat32, {64, 33}), t("t", ElementType::kFloat32, {64, 33}), out("out", ElementType::kFloat32, {64, 33});
  Schedule schedule(*LowerToFunction("scale", {Compute(t, [&](const Indices& i) { return in.At(i) * 3.0; }),
                                               Compute(out, [&](const Indices& i) { return t.At(i) + in(63 - i[0], i[1]); })},
                                     {{in, ParamRole::kInput}, {out, ParamRole::kOutput}}));
  for (const Expr& loop : schedule.Loops()) {
    if (loop->name.ends_with("i0")) {
      EXPECT_TRUE(schedule.Parallelise(loop).ok());
    }
  }
  return schedule.function();
}

TEST(Jit, TheNumberOfThreadsChangesNothing) {
  auto compiled = Compile({{Scale()}});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_GE(compiled->WorkspaceBytes(0), 64 * 33 * 4);
  Tensor x(ElementType::kFloat32, {64, 33}), y(ElementType::kFloat32, {64, 33});
  for (int64_t i = 0; i < x.elements(); ++i) x.set_double(i, static_cast<double>(i % 97));
  const std::vector<Tensor> serial = RunCompiled(*compiled, 0, {x, y});
  EXPECT_EQ(serial[1].at_double(0), 3 * x.at_double(0) + x.at_double(63 * 33));
  for (int threads = 1; threads <= 5; ++threads) {
    ThreadPool pool(threads);
    for (int repeat = 0; repeat < 20; ++repeat) EXPECT_EQ(RunCompiled(*compiled, 0, {x, y}, &pool)[1], serial[1]);
  }
}

TEST(Jit, ObjectsForOtherProcessors) {
  auto object = CompileToObject({{Scale()}}, "");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->substr(1, 3), "ELF");
  EXPECT_NE(object->find("scale"), std::string::npos);
}

TEST(Jit, RefusesBarriers) {
  Buffer out("out", ElementType::kInt64, {4});
  Function function{"f", {{out, ParamRole::kOutput}}, For("t", 4, [&](Expr t) { return Block({Store(out, {t}, t), Barrier()}); })};
  EXPECT_EQ(ir::ErrorCode(Compile({{function}}).status()), "E-CPU-001");
}

TEST(Jit, HostIsDescribed) {
  EXPECT_FALSE(HostCpu().name.empty());
  EXPECT_GE(HostCpu().vector_bytes, 16);
}

}  // namespace
}  // namespace heddle::cpu
