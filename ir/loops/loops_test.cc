// Expressions, compute definitions, fusion and the interpreter: results against plain C++ written out here.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/loops/interpreter.h"
#include "ir/loops/printer.h"
#include "ir/loops/requantise_expr.h"
#include "ir/loops/tensor_expr.h"
#include "ir/requantise.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

constexpr ElementType kF32 = ElementType::kFloat32;
constexpr ElementType kI8 = ElementType::kInt8;
constexpr ElementType kI32 = ElementType::kInt32;
constexpr ElementType kI64 = ElementType::kInt64;

Tensor RandomFloats(Shape shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  Tensor tensor(kF32, std::move(shape));
  for (float& v : tensor.as<float>()) v = values(random);
  return tensor;
}

// Evaluates an expression of one i64 or i32 input element for many inputs.
template <typename In, typename Out>
std::vector<Out> Map(const std::vector<In>& inputs, const std::function<Expr(Expr)>& body) {
  const int64_t n = static_cast<int64_t>(inputs.size());
  Buffer in("in", ElementTypeOf<In>(), {n}), out("out", ElementTypeOf<Out>(), {n});
  auto function = LowerToFunction("map", {Compute(out, [&](const Indices& i) { return body(in.At(i)); })},
                                  {{in, ParamRole::kInput}, {out, ParamRole::kOutput}});
  EXPECT_TRUE(function.ok()) << function.status();
  Tensor x = Tensor::Of<In>({n}, inputs), y(ElementTypeOf<Out>(), {n});
  const absl::Status status = Interpret(*function, {&x, &y});
  EXPECT_TRUE(status.ok()) << status << ToText(*function);
  auto result = y.as<Out>();
  return {result.begin(), result.end()};
}

TEST(LoopExpr, RequantisationEqualsTheDefinition) {
  std::mt19937_64 random(7);
  std::vector<FixedPointScale> scales = {{1 << 30, 31}, {1 << 30, 30}, {INT32_MAX, 62}, {1, 0}, {0, 0}, {1 << 30, 20},
                                         {1 << 30, 33}, {INT32_MAX, 31}, {1 << 30, 35}, {1518500250, 38}, {3, 1}};
  for (int i = 0; i < 20; ++i) scales.push_back({static_cast<int32_t>(random() >> 33), static_cast<int32_t>(random() % 63)});
  std::vector<int32_t> values = {INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX, INT32_MAX - 1};
  for (int i = -40; i <= 40; ++i) values.push_back(i);
  for (int i = 0; i < 300; ++i) values.push_back(static_cast<int32_t>(random()) >> (random() % 31));
  for (Rounding rounding : {Rounding::kHalfEven, Rounding::kDoublingHighMul}) {
    for (const FixedPointScale& scale : scales) {
      auto scaled = Map<int32_t, int64_t>(values, [&](Expr x) { return ScaleValueExpr(x, scale, rounding); });
      auto bytes = Map<int32_t, int8_t>(values, [&](Expr x) { return RequantiseExpr(x, scale, rounding, 3, -128, 127, kI8); });
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(scaled[i], ScaleValue(values[i], scale, rounding)) << values[i] << " " << scale.multiplier << " " << scale.shift;
        ASSERT_EQ(bytes[i], Requantise(values[i], scale, rounding, 3, -128, 127));
      }
    }
  }
  std::vector<int64_t> wide;
  for (int i = 0; i < 300; ++i) wide.push_back((static_cast<int64_t>(random()) >> 31) >> (random() % 32));
  for (const FixedPointScale& scale : scales) {
    auto scaled = Map<int64_t, int64_t>(wide, [&](Expr x) { return ScaleValueExpr(x, scale, Rounding::kHalfEven); });
    for (size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(scaled[i], ScaleValue(wide[i], scale, Rounding::kHalfEven));
  }
}

TEST(LoopExpr, PerChannelRequantisation) {
  const std::vector<FixedPointScale> scales = {{1 << 30, 31}, {1500000000, 0}, {1700000001, 40}, {1 << 30, 25}};
  std::mt19937 random(11);
  for (Rounding rounding : {Rounding::kHalfEven, Rounding::kDoublingHighMul}) {
    Buffer in("in", kI32, {64, 4}), out("out", ElementType::kUint8, {64, 4});
    auto function = LowerToFunction("f", {Compute(out, [&](const Indices& i) {
                                      return RequantiseExpr(in.At(i), scales, i[1], rounding, 100, 0, 255, ElementType::kUint8);
                                    })},
                                    {{in, ParamRole::kInput}, {out, ParamRole::kOutput}});
    ASSERT_TRUE(function.ok());
    Tensor x(kI32, {64, 4}), y(ElementType::kUint8, {64, 4});
    for (int32_t& v : x.as<int32_t>()) v = static_cast<int32_t>(random()) >> (random() % 31);
    ASSERT_TRUE(Interpret(*function, {&x, &y}).ok());
    for (int64_t i = 0; i < y.elements(); ++i) {
      ASSERT_EQ(y.at_int(i), Requantise(x.at_int(i), scales[static_cast<size_t>(i % 4)], rounding, 100, 0, 255));
    }
  }
}

TEST(LoopExpr, ConversionsAndDivisionAtTheEnds) {
  const float inf = INFINITY;
  EXPECT_EQ((Map<float, int32_t>({NAN, inf, -inf, 3e9f, -3e9f, 1.9f, -1.9f, 2147483520.f},
                                 [](Expr x) { return SaturatingCast(kI32, x); })),
            (std::vector<int32_t>{0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 1, -1, 2147483520}));
  EXPECT_EQ((Map<float, uint8_t>({-0.5f, 255.5f, 256.f, -7.f}, [](Expr x) { return SaturatingCast(ElementType::kUint8, x); })),
            (std::vector<uint8_t>{0, 255, 255, 0}));
  EXPECT_EQ((Map<int32_t, int8_t>({-129, 128, 5}, [](Expr x) { return SaturatingCast(kI8, x); })),
            (std::vector<int8_t>{-128, 127, 5}));
  EXPECT_EQ((Map<int32_t, uint8_t>({-129, 300, 5}, [](Expr x) { return SaturatingCast(ElementType::kUint8, x); })),
            (std::vector<uint8_t>{0, 255, 5}));
  EXPECT_EQ((Map<int32_t, int32_t>({INT32_MIN, 7, -7}, [](Expr x) { return SafeDiv(x, IntConstant(kI32, -1)); })),
            (std::vector<int32_t>{INT32_MIN, -7, 7}));
  EXPECT_EQ((Map<int32_t, int32_t>({5, 0}, [](Expr x) { return SafeDiv(IntConstant(kI32, 9), x); })), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ((Map<int64_t, int64_t>({-7, 7}, [](Expr x) { return FloorDiv(x, 2) * 100 + FloorMod(x, 4); })),
            (std::vector<int64_t>{-399, 303}));
  EXPECT_EQ((Map<int8_t, int8_t>({100, -100}, [](Expr x) { return x + x; })), (std::vector<int8_t>{-56, 56}));
}

// conv + bias + relu as one function, against loops in C++; the padding is a guarded read.
TEST(TensorExpr, ConvolutionBiasReluFusesToOneStage) {
  const int64_t channels = 3, size = 5, filters = 4;
  Buffer x("x", kF32, {1, channels, size, size}), w("w", kF32, {filters, channels, 3, 3}), b("b", kF32, {filters});
  const Shape shape = {1, filters, size, size};
  Buffer conv("conv", kF32, shape), biased("biased", kF32, shape), y("y", kF32, shape);
  std::vector<TensorExpr> stages = {
      Reduce(conv, {channels, 3, 3}, Combiner::kSum,
             [&](const Indices& i, const Indices& r) {
               Expr h = i[2] + r[1] - 1, v = i[3] + r[2] - 1;
               Expr inside = And(InRange(h, 0, size), InRange(v, 0, size));
               return Select(inside, x(i[0], r[0], h, v), Constant(kF32, 0)) * w(i[1], r[0], r[1], r[2]);
             }),
      Compute(biased, [&](const Indices& i) { return conv.At(i) + b(i[1]); }),
      Compute(y, [&](const Indices& i) { return Max(biased.At(i), Constant(kF32, 0)); })};
  stages = FuseStages(stages, {y});
  ASSERT_EQ(stages.size(), 1u);
  auto function = LowerToFunction(
      "conv", stages, {{x, ParamRole::kInput}, {w, ParamRole::kConstant}, {b, ParamRole::kConstant}, {y, ParamRole::kOutput}});
  ASSERT_TRUE(function.ok()) << function.status();
  Tensor tx = RandomFloats(x.shape(), 1), tw = RandomFloats(w.shape(), 2), tb = RandomFloats(b.shape(), 3), ty(kF32, shape);
  ASSERT_TRUE(Interpret(*function, {&tx, &tw, &tb, &ty}).ok());
  for (int64_t f = 0; f < filters; ++f) {
    for (int64_t oh = 0; oh < size; ++oh) {
      for (int64_t ow = 0; ow < size; ++ow) {
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t k = 0; k < 9; ++k) {
            const int64_t h = oh + k / 3 - 1, v = ow + k % 3 - 1;
            if (h < 0 || h >= size || v < 0 || v >= size) continue;
            sum += tx.at_double((c * size + h) * size + v) * tw.at_double((f * channels + c) * 9 + k);
          }
        }
        EXPECT_NEAR(ty.at_double((f * size + oh) * size + ow), std::max(0.0, sum + tb.at_double(f)), 1e-5);
      }
    }
  }
}

TEST(TensorExpr, SoftmaxKeepsTheStagesThatNeedMemory) {
  const int64_t rows = 3, n = 7;
  Buffer in("in", kF32, {rows, n}), peak("peak", kF32, {rows}), e("e", kF32, {rows, n}), total("total", kF32, {rows}),
      out("out", kF32, {rows, n});
  std::vector<TensorExpr> stages = {
      Reduce(peak, {n}, Combiner::kMax, [&](const Indices& i, const Indices& r) { return in(i[0], r[0]); }),
      Compute(e, [&](const Indices& i) { return Exp(in.At(i) - peak(i[0])); }),
      Reduce(total, {n}, Combiner::kSum, [&](const Indices& i, const Indices& r) { return e(i[0], r[0]); }),
      Compute(out, [&](const Indices& i) { return e.At(i) / total(i[0]); })};
  stages = FuseStages(stages, {out});
  EXPECT_EQ(stages.size(), 4u);  // an exponential is too dear to compute twice
  auto function = LowerToFunction("softmax", stages, {{in, ParamRole::kInput}, {out, ParamRole::kOutput}});
  ASSERT_TRUE(function.ok());
  Tensor x = RandomFloats({rows, n}, 5), y(kF32, {rows, n});
  ASSERT_TRUE(Interpret(*function, {&x, &y}).ok());
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < n; ++c) sum += std::exp(x.at_double(r * n + c));
    for (int64_t c = 0; c < n; ++c) EXPECT_NEAR(y.at_double(r * n + c), std::exp(x.at_double(r * n + c)) / sum, 1e-6);
  }
}

TEST(TensorExpr, CheapProducersAreInlinedAndUnreadOnesDropped) {
  Buffer in("in", kF32, {4, 8}), t("t", kF32, {8, 4}), unread("unread", kF32, {8, 4}), out("out", kF32, {8, 4});
  std::vector<TensorExpr> stages = {Compute(t, [&](const Indices& i) { return in(i[1], i[0]); }),
                                    Compute(unread, [&](const Indices& i) { return t.At(i) + 1; }),
                                    Compute(out, [&](const Indices& i) { return t.At(i) * t.At(i); })};
  stages = FuseStages(stages, {out});
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(ToText(stages[0].value), "(in[i1, i0] * in[i1, i0])");
}

TEST(LoopFunction, ValuesUsedTwiceAreBoundOnceAndGuardsStayGuards) {
  Buffer in("in", kF32, {4}), out("out", kF32, {8});
  auto function = LowerToFunction("f", {Compute(out, [&](const Indices& i) {
                                    Expr once = Exp(in(Min(i[0], Expr(3))));
                                    Expr guarded = in.At(i) * in.At(i);  // may only be read where i < 4
                                    return once + once + Select(InRange(i[0], 0, 4), guarded + guarded, once);
                                  })},
                                  {{in, ParamRole::kInput}, {out, ParamRole::kOutput}});
  ASSERT_TRUE(function.ok());
  Tensor x = Tensor::Of<float>({4}, {0, 1, 2, 3}), y(kF32, {8});
  const absl::Status status = Interpret(*function, {&x, &y});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FLOAT_EQ(y.as<float>()[2], static_cast<float>(2 * std::exp(2.0) + 8));
  EXPECT_FLOAT_EQ(y.as<float>()[7], static_cast<float>(3 * std::exp(3.0)));
  EXPECT_EQ(ToText(*function).find("exp"), ToText(*function).rfind("exp")) << ToText(*function);
}

TEST(LoopInterpreter, ReportsAccessesOutOfBounds) {
  Buffer in("in", kF32, {4}), out("out", kF32, {5});
  auto function = LowerToFunction("f", {Compute(out, [&](const Indices& i) { return in.At(i); })},
                                  {{in, ParamRole::kInput}, {out, ParamRole::kOutput}});
  Tensor x(kF32, {4}), y(kF32, {5});
  EXPECT_EQ(ErrorCode(Interpret(*function, {&x, &y})), "E-LOOPS-011");
  EXPECT_EQ(ErrorCode(Interpret(*function, {&x})), "E-LOOPS-010");
}

TEST(LoopInterpreter, BarriersSeparatePhases) {
  // Each thread writes its number to shared memory and after the barrier reads its neighbour's.
  Buffer shared("shared", kI64, {8}, MemorySpace::kShared), out("out", kI64, {8});
  Stmt threads = For("t", 8, [&](Expr t) {
    return Block({Store(shared, {t}, t), Barrier(), Store(out, {t}, shared((t + 1) % 8))});
  }, LoopKind::kThreadX);
  Function function{"f", {{out, ParamRole::kOutput}}, Allocate(shared, threads)};
  Tensor y(kI64, {8});
  ASSERT_TRUE(Interpret(function, {&y}).ok());
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(y.at_int(i), (i + 1) % 8);
}

TEST(LoopPrinter, CanonicalKeyForgetsNamesOnly) {
  auto make = [](const char* name, float factor) {
    Buffer in(std::string(name) + "_in", kF32, {4}), out(std::string(name) + "_out", kF32, {4});
    return *LowerToFunction(name, {Compute(out, [&](const Indices& i) { return in.At(i) * factor; })},
                            {{in, ParamRole::kInput}, {out, ParamRole::kOutput}});
  };
  EXPECT_EQ(CanonicalKey(make("a", 2)), CanonicalKey(make("b", 2)));
  EXPECT_NE(CanonicalKey(make("a", 2)), CanonicalKey(make("a", 3)));
}

}  // namespace
}  // namespace heddle::ir::loops
