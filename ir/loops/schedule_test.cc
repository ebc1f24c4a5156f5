// Schedules keep results: random programs with random primitives against the unscheduled program, and each refusal.

#include "ir/loops/schedule.h"

#include <gtest/gtest.h>

#include "ir/loops/interpreter.h"
#include "ir/loops/printer.h"
#include "ir/loops/random_programs.h"
#include "ir/loops/simplify.h"
#include "ir/loops/tensor_expr.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

constexpr ElementType kI32 = ElementType::kInt32;

TEST(Schedule, RandomIntegerProgramsKeepTheirResults) {
  int applied = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    RandomProgram program = MakeRandomProgram(random, true);
    auto expected = RunInterpreter(program.function, program.arguments);
    ASSERT_TRUE(expected.ok()) << "seed " << seed << " " << expected.status() << "\n" << ToText(program.function);
    auto simplified = RunInterpreter(Simplify(program.function), program.arguments);
    ASSERT_TRUE(simplified.ok()) << "seed " << seed << simplified.status();
    ASSERT_EQ(Difference(*expected, *simplified, 0), "") << "seed " << seed << " simplify\n" << ToText(program.function);
    Schedule schedule(program.function);
    const std::string log = ApplyRandomSchedule(schedule, random, 14, seed % 4 == 0);
    applied += static_cast<int>(std::count(log.begin(), log.end(), '\n'));
    for (const Function& function : {schedule.function(), Simplify(schedule.function()), LowerFloorDivision(schedule.function())}) {
      auto actual = RunInterpreter(function, program.arguments, true);
      ASSERT_TRUE(actual.ok()) << "seed " << seed << " " << actual.status() << "\n" << log << ToText(function);
      ASSERT_EQ(Difference(*expected, *actual, 0), "")
          << "seed " << seed << "\n" << log << ToText(program.function) << "\nscheduled:\n" << ToText(function);
    }
  }
  EXPECT_GT(applied, 1500);  // the test would be empty if most primitives were refused
}

TEST(Schedule, RandomFloatProgramsKeepTheirResultsWithinRounding) {
  for (uint64_t seed = 1000; seed < 1150; ++seed) {
    std::mt19937_64 random(seed);
    RandomProgram program = MakeRandomProgram(random, false);
    auto expected = RunInterpreter(program.function, program.arguments);
    ASSERT_TRUE(expected.ok()) << "seed " << seed << " " << expected.status();
    Schedule schedule(program.function);
    const std::string log = ApplyRandomSchedule(schedule, random, 10);
    auto actual = RunInterpreter(schedule.function(), program.arguments, true);
    ASSERT_TRUE(actual.ok()) << "seed " << seed << actual.status() << log << ToText(schedule.function());
    // A float on its way to an integer may fall to the other side of a rounding: only float-free outputs are exact.
    ASSERT_EQ(Difference(*expected, *actual, 1e-4).empty() || log.find("reorder") != std::string::npos, true) << "seed " << seed << log;
  }
}

Function Sum() {
  Buffer in("in", kI32, {6, 10}), out("out", kI32, {6});
  auto function = LowerToFunction("sum", {Reduce(out, {10}, Combiner::kSum, [&](const Indices& i, const Indices& r) {
                                    return in(i[0], r[0]);
                                  })}, {{in, ParamRole::kInput}, {out, ParamRole::kOutput}});
  return *function;
}

TEST(Schedule, RefusesWhatIsIllegal) {
  Schedule schedule(Sum());
  const Expr i = *schedule.FindLoop("i0"), r = *schedule.FindLoop("r0");
  EXPECT_EQ(ErrorCode(schedule.Parallelise(r)), "E-SCHED-006");
  EXPECT_EQ(ErrorCode(schedule.Vectorise(r)), "E-SCHED-006");
  EXPECT_EQ(ErrorCode(schedule.Interleave(r).status()), "E-SCHED-006");
  EXPECT_EQ(ErrorCode(schedule.Reorder({r, i})), "E-SCHED-003");
  EXPECT_EQ(ErrorCode(schedule.Fuse(i, r).status()), "E-SCHED-005");
  EXPECT_EQ(ErrorCode(schedule.Split(i, 0).status()), "E-SCHED-002");
  EXPECT_EQ(ErrorCode(schedule.Bind(i, LoopKind::kParallel)), "E-SCHED-008");
  EXPECT_EQ(ErrorCode(schedule.Pipeline(i, 0)), "E-SCHED-007");
  EXPECT_EQ(ErrorCode(schedule.FindLoop("nowhere").status()), "E-SCHED-001");
  EXPECT_EQ(ErrorCode(schedule.Unroll(Var("nowhere"))), "E-SCHED-001");
  EXPECT_TRUE(schedule.Parallelise(i).ok());
}

TEST(Schedule, RegisterBlockingByPrimitives) {
  Schedule schedule(Sum());
  auto split = schedule.Split(*schedule.FindLoop("i0"), 4, Tail::kPeel);
  ASSERT_TRUE(split.ok());
  auto tiles = schedule.Interleave(split->second);
  ASSERT_TRUE(tiles.ok());
  ASSERT_EQ(tiles->size(), 3u);  // initialise, accumulate, finish
  for (const Expr& loop : *tiles) ASSERT_TRUE(schedule.Vectorise(loop).ok());
  const std::string text = ToText(schedule.function());
  // The sum advances for four rows together: the vector loop stands inside the reduction.
  EXPECT_LT(text.find("for r0 in 10"), text.rfind("vectorised")) << text;
  EXPECT_NE(text.find("acc: i32[1, 4]"), std::string::npos) << text;
}

TEST(Schedule, FusedLoopsStayIndependent) {
  Buffer in("in", kI32, {3, 4, 5}), out("out", kI32, {3, 4, 5});
  Schedule schedule(*LowerToFunction("f", {Compute(out, [&](const Indices& i) { return in.At(i) + 1; })},
                                     {{in, ParamRole::kInput}, {out, ParamRole::kOutput}}));
  auto loops = schedule.Loops();
  auto first = schedule.Fuse(loops[0], loops[1]);
  ASSERT_TRUE(first.ok());
  auto all = schedule.Fuse(*first, loops[2]);
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(schedule.Parallelise(*all).ok()) << ToText(schedule.function());
}

TEST(Schedule, CachesHoldTheBoxThatAnIterationTouches) {
  Buffer in("in", kI32, {10, 12}), out("out", kI32, {8, 12});
  Schedule schedule(*LowerToFunction("f", {Reduce(out, {3}, Combiner::kSum, [&](const Indices& i, const Indices& r) {
                                       return in(i[0] + r[0], i[1]);
                                     })}, {{in, ParamRole::kInput}, {out, ParamRole::kOutput}}));
  std::mt19937_64 random(3);
  Tensor x(kI32, {10, 12}), y(kI32, {8, 12});
  for (int64_t i = 0; i < x.elements(); ++i) x.set_int(i, static_cast<int64_t>(random() % 1000));
  auto expected = RunInterpreter(schedule.function(), {x, y});
  auto tiles = schedule.Split(*schedule.FindLoop("i0"), 4);
  auto read = schedule.CacheRead("in", tiles->first, MemorySpace::kShared);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->shape(), (Shape{6, 12}));
  auto write = schedule.CacheWrite("out", tiles->first, MemorySpace::kPrivate);
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_EQ(write->shape(), (Shape{4, 12}));
  ASSERT_TRUE(schedule.Parallelise(tiles->first).ok()) << ToText(schedule.function());  // whole boxes are written
  ASSERT_TRUE(schedule.PartitionArray(write.value()->name, {PartitionKind::kCyclic, 1, 4}).ok());
  EXPECT_EQ(ErrorCode(schedule.PartitionArray(write.value()->name, {PartitionKind::kBlock, 2, 4})), "E-SCHED-013");
  EXPECT_EQ(ErrorCode(schedule.CacheRead("out", *schedule.FindLoop("i1"), MemorySpace::kPrivate).status()), "E-SCHED-009");
  auto actual = RunInterpreter(schedule.function(), {x, y}, true);
  ASSERT_TRUE(actual.ok()) << actual.status() << ToText(schedule.function());
  EXPECT_EQ(Difference(*expected, *actual, 0), "") << ToText(schedule.function());
}

TEST(Schedule, ProducersAreComputedWhereTheyAreUsed) {
  Buffer in("in", kI32, {10}), t("t", kI32, {10}), out("out", kI32, {8});
  Schedule schedule(*LowerToFunction("f", {Compute(t, [&](const Indices& i) { return in.At(i) * in.At(i); }),
                                           Compute(out, [&](const Indices& i) { return t(i[0]) + t(i[0] + 2); })},
                                     {{in, ParamRole::kInput}, {out, ParamRole::kOutput}}));
  Tensor x = Tensor::Of<int32_t>({10}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), y(kI32, {8});
  auto expected = RunInterpreter(schedule.function(), {x, y});
  auto tiles = schedule.Split(*schedule.FindLoop("s1_i0"), 4);
  ASSERT_TRUE(schedule.ComputeAt("t", tiles->first).ok());
  const std::string text = ToText(schedule.function());
  EXPECT_NE(text.find("t_here: i32[6]"), std::string::npos) << text;
  EXPECT_EQ(ErrorCode(schedule.ComputeAt("out", tiles->first)), "E-SCHED-012");
  auto actual = RunInterpreter(schedule.function(), {x, y}, true);
  ASSERT_TRUE(actual.ok()) << actual.status() << text;
  EXPECT_EQ(Difference(*expected, *actual, 0), "") << text;
}

TEST(Simplify, IndexArithmetic) {
  const Expr i = Var("i"), j = Var("j");
  const VarIntervals vars = {{i.get(), {0, 9}}, {j.get(), {0, 3}}};
  EXPECT_EQ(ToText(Simplify(FloorDiv(i * 4 + j, 4), vars)), "i");
  EXPECT_EQ(ToText(Simplify(FloorMod(i * 4 + j, 4), vars)), "j");
  EXPECT_EQ(ToText(Simplify(i * 4 + j < 40, vars)), "true");
  EXPECT_EQ(ToText(Simplify((i + 3) - 3, vars)), "i");
  EXPECT_EQ(ToText(Simplify(Min(j, Expr(3)), vars)), "j");
  EXPECT_EQ(BoundsOf(i * 4 - j, vars), (Interval{-3, 36}));
}

}  // namespace
}  // namespace heddle::ir::loops
