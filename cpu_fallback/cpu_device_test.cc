// The CPU device on random single-op graphs and on fused groups, against the reference interpreter.

#include "cpu_fallback/cpu_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cpu_fallback/program.h"
#include "ir/interpreter.h"
#include "ir/op.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

using ir::Graph;
using ir::Tensor;

const nlohmann::json kHost = {{"name", "cpu"}, {"kind", "cpu"}, {"timing", "measured"}, {"threads", 2}};

// "" where every output agrees: integers to the bit, floats within the op's bound.
std::string Compare(const ir::Op& op, const Graph& graph, const std::vector<Tensor>& expected, const std::vector<Tensor>& actual) {
  const ir::Node& node = graph.node(graph.NodeIds().back());
  const ir::NodeContext context(graph, node);
  for (size_t t = 0; t < expected.size(); ++t) {
    if (!IsFloat(expected[t].type())) {
      if (!(expected[t] == actual[t])) return "an integer output differs";
      continue;
    }
    for (int64_t i = 0; i < expected[t].elements(); ++i) {
      const double x = expected[t].at_double(i), y = actual[t].at_double(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double bound = std::max(op.ErrorBound(context, x), 1e-5 * std::max(1.0, std::fabs(x)));
      if (!(std::fabs(x - y) <= bound)) return fmt::format("element {}: {} against {}, bound {}", i, y, x, bound);
    }
  }
  return "";
}

TEST(CpuDevice, EveryOpAgreesWithItsReferenceKernel) {
  auto device = MakeCpuDevice(kHost);
  ASSERT_TRUE(device.ok()) << device.status();
  int compiled = 0;
  for (const ir::Op* op : ir::AllOps()) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      ir::Random random(seed * 7919 + 17);
      std::optional<ir::RandomCase> sample = op->Sample(random);
      if (!sample) break;
      ASSERT_TRUE(InferGraphTypes(sample->graph).ok()) << op->name() << " seed " << seed;
      auto graph = std::make_shared<const Graph>(std::move(sample->graph));
      auto expected = ir::Interpret(*graph, sample->inputs);
      ASSERT_TRUE(expected.ok()) << op->name() << " seed " << seed << " " << expected.status();
      auto region = (*device)->Compile(graph, {});
      ASSERT_TRUE(region.ok()) << op->name() << " seed " << seed << " " << region.status();
      auto result = (*region)->Run(sample->inputs);
      ASSERT_TRUE(result.ok()) << op->name() << " seed " << seed << " " << result.status();
      EXPECT_EQ(Compare(*op, *graph, *expected, result->outputs), "") << op->name() << " seed " << seed;
      ++compiled;
    }
  }
  EXPECT_GT(compiled, 40);
}

Graph ReluChain() {
  Graph graph("chain");
  ir::ValueId x = graph.AddInput("x", ir::ValueType(ir::ElementType::kFloat32, ir::Shape{3, 5, 7}));
  for (int i = 0; i < 4; ++i) {
    const ir::NodeId node = graph.AddNode("Relu", fmt::format("relu{}", i), {x}, {fmt::format("y{}", i)});
    graph.node(node).fusion_group = i / 2;
    x = graph.node(node).outputs[0];
  }
  graph.MarkOutput(x);
  EXPECT_TRUE(InferGraphTypes(graph).ok());
  return graph;
}

TEST(CpuDevice, EqualGroupsShareOneFunction) {
  const Graph graph = ReluChain();
  auto program = CompileProgram(graph);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->stats().groups, 2);
  EXPECT_EQ((*program)->stats().functions, 1);
  Tensor x(ir::ElementType::kFloat32, {3, 5, 7});
  for (int64_t i = 0; i < x.elements(); ++i) x.set_double(i, static_cast<double>(i) - 50);
  std::vector<GroupTime> times;
  auto outputs = (*program)->Run({x}, nullptr, &times);
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0].at_double(10), 0);
  EXPECT_EQ((*outputs)[0].at_double(60), 10);
  EXPECT_EQ(times.size(), 2u);
  EXPECT_EQ(ir::ErrorCode((*program)->Run({}, nullptr, nullptr).status()), "E-RUN-001");
}

TEST(CpuDevice, ReportsCostsWithTheirOrigin) {
  const Graph graph = ReluChain();
  auto measured = MakeCpuDevice(kHost);
  auto cost = (*measured)->EstimateCost(graph, graph.NodeIds());
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->provenance, ir::Provenance::kMeasured);
  EXPECT_GT(cost->time_us, 0);
  nlohmann::json model = {{"name", "a53"}, {"kind", "cpu"}, {"timing", "modelled"}, {"float_gmacs_per_s", 1.0},
                          {"int8_gmacs_per_s", 2.0}, {"other_gops_per_s", 1.0}, {"memory_gb_per_s", 1.0}};
  auto modelled = MakeCpuDevice(model);
  ASSERT_TRUE(modelled.ok()) << modelled.status();
  EXPECT_EQ((*modelled)->EstimateCost(graph, graph.NodeIds())->provenance, ir::Provenance::kModelled);
}

TEST(CpuDevice, RefusesWrongSections) {
  for (const auto& [patch, code] : std::vector<std::pair<nlohmann::json, std::string>>{{{{"colour", 1}}, "E-TARGET-003"},
                                                                                       {{{"threads", 0}}, "E-TARGET-004"},
                                                                                       {{{"timing", "guessed"}}, "E-TARGET-004"},
                                                                                       {{{"timing", "modelled"}}, "E-TARGET-003"}}) {
    nlohmann::json section = kHost;
    section.update(patch);
    EXPECT_EQ(ir::ErrorCode(MakeCpuDevice(section).status()), code) << section;
  }
}

}  // namespace
}  // namespace heddle::cpu
