// Reading hostile graphs, and solvers against brute force on random graphs.
//
// HEDDLE_RANDOM_GRAPHS sets how many random graphs are tried (default 1,500; the full count is 20,000).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "ir/partition/placement/brute_force_placement.h"
#include "ir/partition/placement/evaluate_placement.h"
#include "ir/partition/placement/solve_placement.h"
#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

using Json = nlohmann::json;

// a → b → c, d beside them; two accelerators and a core.
Json Small() {
  auto node = [](int id) {
    return Json{{"id", id}, {"supportedOnFpga", 1}, {"cpuLatency", 10}, {"fpgaLatency", 1}, {"isBackwardNode", 0}, {"colorClass", id}, {"size", 2}};
  };
  auto edge = [](int from, int to, double cost) { return Json{{"sourceId", from}, {"destId", to}, {"cost", cost}}; };
  return {{"maxSizePerFPGA", 10}, {"maxFPGAs", 2}, {"maxCPUs", 1}, {"nodes", {node(1), node(2), node(3), node(4)}},
          {"edges", {edge(1, 2, 0.5), edge(2, 3, 0.25), edge(4, 3, 0.125)}}};
}

std::string CodeOf(const Json& json) { return ErrorCode(ReadPlacementGraph(json.dump()).status()); }

TEST(Read, TakesTheFieldsOfTheInstances) {
  const absl::StatusOr<PlacementGraph> graph = ReadPlacementGraph(Small().dump());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->accelerators, 2);
  EXPECT_EQ(graph->cpus, 1);
  EXPECT_EQ(graph->nodes.size(), 4u);
  EXPECT_EQ(graph->nodes[1].send_us, 0.25);
  EXPECT_EQ(graph->nodes[2].predecessors, (std::vector<int>{1, 3}));
  EXPECT_EQ(graph->colours, 4);
}

TEST(Read, RefusesHostileGraphsWithACode) {
  for (const char* text : {"", "{", "[]", "null", "{\"nodes\": [], \"edges\": []}", "{\"maxFPGAs\": 1e999}", "\xff\xfe"}) {
    EXPECT_EQ(ErrorCode(ReadPlacementGraph(text).status()), "E-PARTITION-010") << text;
  }
  for (const char* field : {"maxSizePerFPGA", "maxFPGAs", "maxCPUs", "nodes", "edges"}) {
    Json json = Small();
    json.erase(field);
    EXPECT_EQ(CodeOf(json), "E-PARTITION-010") << field;
    json[field] = "many";
    EXPECT_EQ(CodeOf(json), "E-PARTITION-010") << field;
  }
  for (const char* field : {"id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode", "size"}) {
    for (const Json& bad : {Json(), Json("x"), Json(-1.5), Json(1e300), Json::array({1}), Json::object()}) {
      Json json = Small();
      json["nodes"][1][field] = bad;
      EXPECT_EQ(CodeOf(json), "E-PARTITION-010") << field << " " << bad;
      json["nodes"][1].erase(field);
      EXPECT_EQ(CodeOf(json), "E-PARTITION-010") << field;
    }
  }
  Json nan = Small();
  std::string text = nan.dump();
  text.replace(text.find("0.5"), 3, "NaN");
  EXPECT_EQ(ErrorCode(ReadPlacementGraph(text).status()), "E-PARTITION-010");
  Json twice = Small();
  twice["nodes"][1]["id"] = 1;
  EXPECT_EQ(CodeOf(twice), "E-PARTITION-011");
  Json unknown = Small();
  unknown["edges"][0]["destId"] = 99;
  EXPECT_EQ(CodeOf(unknown), "E-PARTITION-011");
  Json loop = Small();
  loop["edges"][0]["destId"] = 1;
  EXPECT_EQ(CodeOf(loop), "E-PARTITION-011");
  Json cycle = Small();
  cycle["edges"].push_back({{"sourceId", 3}, {"destId", 1}, {"cost", 0}});
  EXPECT_EQ(CodeOf(cycle), "E-PARTITION-012");
  const std::string message(ReadPlacementGraph(cycle.dump()).status().message());
  EXPECT_NE(message.find("3 -> 1"), std::string::npos) << message;  // the path, wherever it begins
  Json uneven = Small();
  uneven["edges"].push_back({{"sourceId", 1}, {"destId", 3}, {"cost", 7}});
  EXPECT_EQ(CodeOf(uneven), "E-PARTITION-013");
  Json many = Small();
  many["maxFPGAs"] = 65;
  EXPECT_EQ(CodeOf(many), "E-PARTITION-014");
  Json deep = Small();
  std::string nested = deep.dump();
  nested.replace(nested.find("0.125"), 5, std::string(100'000, '[') + std::string(100'000, ']'));
  EXPECT_EQ(ErrorCode(ReadPlacementGraph(nested).status()), "E-PARTITION-010");
}

TEST(Solve, SaysWhenNothingFits) {
  Json json = Small();
  json["maxSizePerFPGA"] = 1;
  json["maxCPUs"] = 0;
  const absl::StatusOr<PlacementGraph> graph = ReadPlacementGraph(json.dump());
  ASSERT_TRUE(graph.ok());
  for (const PlacementObjective objective : {PlacementObjective::kThroughput, PlacementObjective::kLatency}) {
    EXPECT_EQ(ErrorCode(SolvePlacement(*graph, {.objective = objective}).status()), "E-PARTITION-004");
  }
}

// Quantities are small multiples of 1/4, so that sums are exact in any order and ties are common.
PlacementGraph RandomGraph(unsigned seed) {
  std::mt19937 random(seed);
  auto draw = [&](int low, int high) { return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)); };
  PlacementGraph graph;
  const int devices = draw(1, 4);
  graph.cpus = draw(0, std::min(2, devices));
  graph.accelerators = devices - graph.cpus;
  const int most = devices <= 2 ? 12 : devices == 3 ? 9 : 8;
  const int nodes = draw(1, most);
  const bool training = draw(0, 2) == 0;
  const bool tight = draw(0, 2) == 0;
  graph.accelerator_capacity = tight ? draw(4, 16) : 1000;
  graph.nodes.resize(static_cast<size_t>(nodes));
  std::vector<bool> used(4);
  std::vector<int> colours;
  for (int node = 0; node < nodes; ++node) {
    PlacementNode& info = graph.nodes[static_cast<size_t>(node)];
    info.id = node * 7 + 3;
    info.backward = training && node >= nodes / 2;
    info.accelerator_supported = graph.cpus == 0 || draw(0, 7) != 0;
    info.accelerator_us = draw(0, 3) == 0 ? 0 : draw(0, 16) / 4.0;
    info.cpu_us = info.accelerator_us == 0 && draw(0, 1) ? 0 : draw(0, 60) / 4.0;
    info.size = draw(0, 4);
    info.send_us = draw(0, 3) == 0 ? 0 : draw(0, 10) / 4.0;
    if (draw(0, 3) == 0) info.colour = draw(0, 3);
  }
  int density = draw(2, 5);
  for (int from = 0; from < nodes; ++from) {
    for (int to = from + 1; to < nodes; ++to) {
      if (draw(0, density) != 0) continue;
      graph.nodes[static_cast<size_t>(from)].successors.push_back(to);
      graph.nodes[static_cast<size_t>(to)].predecessors.push_back(from);
    }
  }
  graph.colours = 4;
  return graph;
}

int RandomGraphs() {
  const char* count = std::getenv("HEDDLE_RANDOM_GRAPHS");
  return count ? std::atoi(count) : 1500;
}

void ExpectBest(const PlacementGraph& graph, const PlacementOptions& options, OracleObjective oracle) {
  const std::optional<double> best = OracleBest(graph, oracle);
  const absl::StatusOr<PlacementResult> result = SolvePlacement(graph, options);
  if (!best) {
    ASSERT_FALSE(result.ok()) << "cost " << result->cost_us;
    EXPECT_EQ(ErrorCode(result.status()), "E-PARTITION-004");
    return;
  }
  ASSERT_TRUE(result.ok()) << result.status().message() << " but brute force finds " << *best;
  const std::optional<double> cost = OracleCost(graph, oracle, result->device_of);
  ASSERT_TRUE(cost) << "the plan breaks a limit";
  EXPECT_DOUBLE_EQ(*cost, result->cost_us);
  EXPECT_LE(result->lower_bound_us, *best * (1 + 1e-9) + 1e-12) << "a bound above the optimum";
  EXPECT_GE(result->cost_us, *best * (1 - 1e-9));
  EXPECT_NEAR(result->gap_percent, result->cost_us > 0 ? (1 - result->lower_bound_us / result->cost_us) * 100 : 0, 1e-9);
}

TEST(RandomGraphs, PipelineThroughputIsTheBest) {
  int proven = 0;
  for (int seed = 1; seed <= RandomGraphs() && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PlacementGraph graph = RandomGraph(static_cast<unsigned>(seed));
    ExpectBest(graph, {}, OracleObjective::kPipeline);
    const absl::StatusOr<PlacementResult> result = SolvePlacement(graph, {});
    proven += !result.ok() || result->gap_percent == 0;
  }
  printf("%d of %d proven\n", proven, RandomGraphs());
  EXPECT_GE(proven, RandomGraphs() * 99 / 100);
}

TEST(RandomGraphs, AnyThroughputIsTheBest) {
  // The annealing takes longest here: fewer graphs.
  const int graphs = std::max(1, RandomGraphs() / 5);
  int best = 0;
  for (int seed = 1; seed <= graphs && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PlacementGraph graph = RandomGraph(static_cast<unsigned>(seed));
    ExpectBest(graph, {.contiguous = false}, OracleObjective::kAny);
    const absl::StatusOr<PlacementResult> result = SolvePlacement(graph, {.contiguous = false});
    best += !result.ok() || result->cost_us == *OracleBest(graph, OracleObjective::kAny);
  }
  printf("%d of %d are the best\n", best, graphs);
  EXPECT_GE(best, graphs * 95 / 100);
}

TEST(RandomGraphs, LatencyIsTheBest) {
  int proven = 0;
  for (int seed = 1; seed <= RandomGraphs() && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PlacementGraph graph = RandomGraph(static_cast<unsigned>(seed));
    ExpectBest(graph, {.objective = PlacementObjective::kLatency}, OracleObjective::kLatency);
    const absl::StatusOr<PlacementResult> result = SolvePlacement(graph, {.objective = PlacementObjective::kLatency});
    proven += !result.ok() || result->gap_percent == 0;
  }
  printf("%d of %d proven\n", proven, RandomGraphs());
  EXPECT_GE(proven, RandomGraphs() * 9 / 10);
}

}  // namespace
}  // namespace heddle::ir::partition
