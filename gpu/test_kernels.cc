// Hand-made stages for tests of printers and runtimes.

#include "gpu/test_kernels.h"

#include <algorithm>

#include "ir/loops/requantise_expr.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::gpu {
namespace {

using namespace ir::loops;  // NOLINT: this file is about that namespace's types
using enum ir::ElementType;
using ir::ElementType;

struct ConvShape {
  int64_t channels = 3, rows = 9, columns = 11, outputs = 8, kernel = 3, stride = 1, pad = 1;
};

TensorExpr FloatConv(const ConvShape& s) {
  const int64_t oh = (s.rows + 2 * s.pad - s.kernel) / s.stride + 1, ow = (s.columns + 2 * s.pad - s.kernel) / s.stride + 1;
  Buffer x("x", kFloat32, {2, s.channels, s.rows, s.columns}), w("w", kFloat32, {s.outputs, s.channels, s.kernel, s.kernel});
  Buffer bias("bias", kFloat32, {s.outputs}), y("y", kFloat32, {2, s.outputs, oh, ow});
  return Reduce(y, {s.channels, s.kernel, s.kernel}, Combiner::kSum,
                [&](const Indices& i, const Indices& r) {
                  const Expr row = i[2] * s.stride + r[1] - s.pad, column = i[3] * s.stride + r[2] - s.pad;
                  const Expr inside = And(InRange(row, 0, s.rows), InRange(column, 0, s.columns));
                  const Expr value = s.pad == 0 ? x(i[0], r[0], row, column)
                                                : Select(inside, x(i[0], r[0], row, column), FloatConstant(kFloat32, 0));
                  return value * w(i[1], r[0], r[1], r[2]);
                },
                [&](Expr sum, const Indices& i) { return Max(sum + bias(i[1]), FloatConstant(kFloat32, 0)); });
}

TensorExpr IntegerConv(const ConvShape& s, ir::Rounding rounding) {
  const int64_t oh = (s.rows + 2 * s.pad - s.kernel) / s.stride + 1, ow = (s.columns + 2 * s.pad - s.kernel) / s.stride + 1;
  Buffer x("x", kInt8, {1, s.channels, s.rows, s.columns}), w("w", kInt8, {s.outputs, s.channels, s.kernel, s.kernel});
  Buffer bias("bias", kInt32, {s.outputs}), y("y", kInt8, {1, s.outputs, oh, ow});
  std::vector<ir::FixedPointScale> scales;
  for (int64_t c = 0; c < s.outputs; ++c) scales.push_back(ir::FixedPointScaleOf(0.0004 * static_cast<double>(c + 1)));
  return Reduce(y, {s.channels, s.kernel, s.kernel}, Combiner::kSum,
                [&](const Indices& i, const Indices& r) {
                  const Expr row = i[2] * s.stride + r[1] - s.pad, column = i[3] * s.stride + r[2] - s.pad;
                  const Expr inside = And(InRange(row, 0, s.rows), InRange(column, 0, s.columns));
                  const Expr zero = IntConstant(kInt32, 0);
                  return Select(inside, Cast(kInt32, x(i[0], r[0], row, column)) + 5, zero) * Cast(kInt32, w(i[1], r[0], r[1], r[2]));
                },
                [&](Expr sum, const Indices& i) {
                  return RequantiseExpr(sum + Cast(kInt32, bias(i[1]) >> 16), scales, i[1], rounding, -3, -128, 127, kInt8);
                });
}

TensorExpr MatMul(ElementType type, int64_t m, int64_t n, int64_t k, bool transposed) {
  Buffer a("a", type, {m, k}), b("b", type, transposed ? ir::Shape{n, k} : ir::Shape{k, n}), y("y", type, {m, n});
  return Reduce(y, {k}, Combiner::kSum, [&](const Indices& i, const Indices& r) {
    return a(i[0], r[0]) * (transposed ? b(i[1], r[0]) : b(r[0], i[1]));
  });
}

TensorExpr MaxPoolStage(ElementType type) {
  Buffer x("x", type, {1, 4, 12, 12}), y("y", type, {1, 4, 6, 6});
  return Reduce(y, {3, 3}, Combiner::kMax, [&](const Indices& i, const Indices& r) {
    const Expr row = i[2] * 2 + r[0] - 1, column = i[3] * 2 + r[1] - 1;
    return Select(And(InRange(row, 0, 12), InRange(column, 0, 12)), x(i[0], i[1], row, column), LowestOf(type));
  });
}

// Every integer operator on one type, with values that wrap.
TensorExpr Arithmetic(ElementType type) {
  Buffer a("a", type, {7, 13}), b("b", type, {7, 13}), y("y", type, {7, 13});
  const int width = static_cast<int>(ir::ElementBytes(type)) * 8;
  return Compute(y, [&](const Indices& i) {
    const Expr p = a(i[0], i[1]), q = b(i[0], i[1]);
    const Expr amount = Clamp(q, IntConstant(type, 0), IntConstant(type, width - 1));
    Expr value = (p + q) * (p - q) ^ (p << amount) ^ (q >> amount);
    value = value + SafeDiv(p, q) + SafeMod(p, q) + Min(p, q) * Max(p, IntConstant(type, 3));
    value = value ^ (p & q) ^ (p | q) ^ Not(p);
    if (IsSigned(type)) value = value + Neg(q) + Call(Intrinsic::kAbs, {Max(q, IntConstant(type, -100))});
    return Select(p < q, value, value + 1);
  });
}

TensorExpr QuantizeStage() {
  Buffer x("x", kFloat32, {5, 40}), scale("scale", kFloat32, {40}), y("y", kInt8, {5, 40});
  return Compute(y, [&](const Indices& i) {
    return SaturatingCast(kInt8, Rint(x(i[0], i[1]) / (Abs(scale(i[1])) + 0.03)) + 3.0);
  });
}

TensorExpr GatherStage() {
  Buffer x("x", kFloat32, {20, 6}), index("index", kInt64, {9}), y("y", kFloat32, {9, 6});
  return Compute(y, [&](const Indices& i) { return x(Clamp(index(i[0]), Expr(0), Expr(19)), i[1]); });
}

TensorExpr TransposeStage() {
  Buffer x("x", kBool, {3, 4, 5, 6}), y("y", kBool, {6, 3, 5, 4});
  return Compute(y, [&](const Indices& i) { return Not(x(i[1], i[3], i[2], i[0])); });
}

TensorExpr ReshapeStage() {  // floor division of indices, which may be negative
  Buffer x("x", kInt32, {6, 10}), y("y", kInt32, {4, 15});
  return Compute(y, [&](const Indices& i) {
    const Expr flat = i[0] * 15 + i[1];
    return x(FloorDiv(flat, Expr(10)), FloorMod(flat, Expr(10))) + Cast(kInt32, FloorDiv(i[0] - 3, Expr(2)) * 100 + FloorMod(i[1] - 7, Expr(4)));
  });
}

TensorExpr Transcendental() {
  Buffer x("x", kFloat32, {4, 33}), y("y", kFloat32, {4, 33});
  return Compute(y, [&](const Indices& i) {
    const Expr v = x(i[0], i[1]);
    return Exp(v * 0.5) + Tanh(v) + Erf(v) + Sqrt(Abs(v)) + Log(Abs(v) + 1.0) + Sigmoid(v) + Pow(Abs(v) + 0.5, FloatConstant(kFloat32, 1.5));
  });
}

// Running sums along a row: statements, with a temporary.
TensorExpr ScanStage() {
  Buffer x("x", kInt32, {5, 9}), y("y", kInt32, {5, 9}), sum("sum", kInt32, {1}, MemorySpace::kPrivate);
  const Stmt body = For("r", 5, [&](Expr r) {
    return Allocate(sum, Block({Store(sum, {Expr(0)}, IntConstant(kInt32, 0)), For("c", 9, [&](Expr c) {
                                  return Block({Store(sum, {Expr(0)}, sum(Expr(0)) + x(r, c)), Store(y, {r, c}, sum(Expr(0)))});
                                })}));
  });
  return Imperative({y}, body);
}

TensorExpr ArgMaxStage() {
  Buffer x("x", kInt8, {6, 50}), y("y", kInt64, {6});
  return ReduceCustom(
      y, {50}, IntConstant(kInt64, -1000),
      [](Expr best, Expr term) { return Select(FloorDiv(term, IntConstant(kInt64, 64)) > FloorDiv(best, IntConstant(kInt64, 64)), term, best); },
      [&](const Indices& i, const Indices& r) { return Cast(kInt64, x(i[0], r[0])) * 64 + (63 - r[0]); },
      [](Expr best, const Indices&) { return 63 - FloorMod(best, IntConstant(kInt64, 64)); });
}

// All conversions from one type, in one kernel: x[i] to each type.
TestKernel Conversions(ElementType from) {
  constexpr int64_t kCount = 64;
  const Buffer x("x", from, {kCount});
  TestKernel test{.name = "convert_" + std::string(ir::ElementTypeName(from))};
  std::vector<TensorExpr> stages;
  std::vector<Param> params = {{x, ParamRole::kInput}};
  for (ElementType to : {kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat32, kFloat64, kBool}) {
    const Buffer y("to_" + std::string(ir::ElementTypeName(to)), to, {kCount});
    stages.push_back(Compute(y, [&](const Indices& i) { return SaturatingCast(to, x(i[0])); }));
    params.push_back({y, ParamRole::kOutput});
  }
  test.plain = LowerToFunction(test.name, stages, params).value();
  test.kernel.function = {test.name, params, For("item", kCount, [&](Expr item) {
    std::vector<Stmt> stores;
    for (const TensorExpr& stage : stages) {
      stores.push_back(StoreWithLets(stage.output, {item}, Substitute(stage.value, {{stage.axes[0].var.get(), item}})));
    }
    return Block(stores);
  }, LoopKind::kThreadX)};
  for (const Param& param : params) test.kernel.arguments.push_back(param.buffer);
  return test;
}

// A table indexed by a scaled sum: a vector of i64 in the range of int, whose lanes are used one by one.
TensorExpr TableOfSum() {
  Buffer a("a", kInt8, {6, 10}), b("b", kInt8, {10, 20}), table("table", kInt8, {256}), y("y", kInt8, {6, 20});
  return Reduce(y, {10}, Combiner::kSum,
                [&](const Indices& i, const Indices& r) { return Cast(kInt32, a(i[0], r[0])) * Cast(kInt32, b(r[0], i[1])); },
                [&](Expr sum, const Indices&) {
                  const Expr scaled = (Cast(kInt64, sum) * 1796139567 + 1073741824) >> 31;
                  const Expr rounded = (scaled + 4 - Cast(kInt64, scaled < 0)) >> 3;
                  return table(Clamp(rounded - 29, IntConstant(kInt64, -29), IntConstant(kInt64, 127)) + 128);
                });
}

struct TestStage {
  std::string name;
  TensorExpr stage;
  bool is_exact = true;
};

std::vector<TestStage> TestStages() {
  std::vector<TestStage> stages;
  auto add = [&](std::string name, TensorExpr stage, bool is_exact = true) { stages.push_back({std::move(name), std::move(stage), is_exact}); };
  add("conv_3x3", FloatConv({}), false);
  add("conv_stride_2", FloatConv({.channels = 5, .rows = 15, .columns = 15, .outputs = 13, .stride = 2}), false);
  add("conv_1x1", FloatConv({.channels = 6, .rows = 7, .columns = 7, .outputs = 12, .kernel = 1, .pad = 0}), false);
  add("conv_wide", FloatConv({.channels = 2, .rows = 5, .columns = 40, .outputs = 9, .kernel = 5, .pad = 2}), false);
  add("qconv_half_even", IntegerConv({}, ir::Rounding::kHalfEven));
  add("qconv_doubling", IntegerConv({.channels = 4, .columns = 20, .outputs = 6, .stride = 2}, ir::Rounding::kDoublingHighMul));
  add("matmul", MatMul(kFloat32, 17, 40, 23, false), false);
  add("matmul_transposed", MatMul(kFloat32, 9, 21, 30, true), false);
  add("matmul_f64", MatMul(kFloat64, 5, 16, 8, false), false);
  for (ElementType type : {kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64}) {
    const std::string name(ir::ElementTypeName(type));
    add("matmul_" + name, MatMul(type, 6, 18, 10, false));
    add("arithmetic_" + name, Arithmetic(type));
    add("max_pool_" + name, MaxPoolStage(type));
  }
  add("max_pool_f32", MaxPoolStage(kFloat32));
  add("quantize", QuantizeStage());
  add("gather", GatherStage());
  add("table_of_sum", TableOfSum());
  add("transpose", TransposeStage());
  add("reshape", ReshapeStage());
  add("transcendental", Transcendental(), false);
  add("scan", ScanStage());
  add("arg_max", ArgMaxStage());
  return stages;
}

}  // namespace

std::vector<TestKernel> TestKernels(const ScheduleOptions& options, bool only_reductions) {
  std::vector<TestKernel> kernels;
  for (const TestStage& test : TestStages()) {
    if (only_reductions && !test.stage.is_reduction) continue;
    TestKernel kernel{.name = test.name, .kernel = ScheduleStage(test.stage, test.name, options), .is_exact = test.is_exact};
    std::vector<Param> params;
    for (size_t p = 0; p < kernel.kernel.arguments.size(); ++p) {
      params.push_back({kernel.kernel.arguments[p], kernel.kernel.function.params[p].role});
    }
    kernel.plain = LowerToFunction("plain", {test.stage}, params).value();
    kernels.push_back(std::move(kernel));
  }
  if (only_reductions) return kernels;
  for (ElementType from : {kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat32, kFloat64, kBool}) {
    kernels.push_back(Conversions(from));
  }
  return kernels;
}

std::vector<ir::Tensor> RandomArguments(const TestKernel& test, std::mt19937_64& random) {
  const Kernel& kernel = test.kernel;
  std::vector<ir::Tensor> tensors;
  for (size_t p = 0; p < kernel.arguments.size(); ++p) {
    const Buffer& buffer = kernel.arguments[p];
    if (buffer->contents) {
      tensors.push_back(*buffer->contents);
      continue;
    }
    ir::Tensor tensor(buffer.type(), buffer.shape());
    const bool is_output = kernel.function.params[p].role == ParamRole::kOutput;
    for (int64_t i = 0; i < tensor.elements() && !is_output; ++i) {
      if (ir::IsFloat(buffer.type())) {
        tensor.set_double(i, std::normal_distribution<double>(0, test.is_exact && random() % 16 == 0 ? 1e5 : 2)(random));
      } else if (buffer.type() == kBool) {
        tensor.set_int(i, static_cast<int64_t>(random() & 1));
      } else {
        const int64_t small = static_cast<int64_t>(random() % 33) - 16;
        tensor.set_int(i, random() % 2 == 0 ? WrapInteger(buffer.type(), static_cast<int64_t>(random())) : WrapInteger(buffer.type(), small));
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace heddle::gpu
