#include "ir/graph_boost.h"

#include <gtest/gtest.h>

#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/graph/topological_sort.hpp>
#include <random>
#include <set>
#include <sstream>

namespace heddle::ir {
namespace {

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<Graph>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<Graph>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<Graph>));

// a → b, a → c, b and c → d, d twice into e.
Graph Diamond() {
  Graph g("diamond");
  const ValueId x = g.AddInput("x", ValueType(ElementType::kFloat32, Shape{1}));
  const auto add = [&](const char* name, std::vector<ValueId> inputs) {
    return g.node(g.AddNode("Op", name, std::move(inputs), {std::string(name) + ".out"})).outputs[0];
  };
  const ValueId a = add("a", {x, kNoValue});
  const ValueId b = add("b", {a}), c = add("c", {kNoValue, a});
  const ValueId d = add("d", {b, c, x});
  g.MarkOutput(add("e", {d, d}));
  return g;
}

TEST(GraphBoost, CountsVerticesAndEdges) {
  const Graph g = Diamond();
  EXPECT_EQ(num_vertices(g), 5u);
  EXPECT_EQ(num_edges(g), 6u);
  EXPECT_EQ(out_degree(0, g), 2u);
  EXPECT_EQ(in_degree(0, g), 0u);
  EXPECT_EQ(in_degree(4, g), 2u);
  EXPECT_EQ(degree(3, g), 4u);
}

TEST(GraphBoost, BoostsAlgorithmsRun) {
  const Graph g = Diamond();
  std::vector<NodeId> order;
  boost::topological_sort(g, std::back_inserter(order));
  EXPECT_EQ(order.size(), 5u);
  EXPECT_EQ(order.back(), 0);
  EXPECT_EQ(order.front(), 4);

  std::vector<NodeId> dominators(5, kNoNode);
  const auto index = get(boost::vertex_index, g);
  boost::lengauer_tarjan_dominator_tree(g, 0, boost::make_iterator_property_map(dominators.begin(), index));
  EXPECT_EQ(dominators[3], 0);
  EXPECT_EQ(dominators[4], 3);

  std::ostringstream dot;
  boost::write_graphviz(dot, g);
  EXPECT_NE(dot.str().find("3->4"), std::string::npos);
}

// Random graphs with removed nodes: in-edges, out-edges and edges() are the same set, and Boost's order is one.
TEST(GraphBoost, ViewsAgreeOnRandomGraphs) {
  const uint64_t seed = 11;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    Graph g("random");
    std::vector<ValueId> values = {g.AddInput("x", {})};
    for (uint64_t i = 0, n = random() % 30; i < n; ++i) {
      std::vector<ValueId> inputs;
      for (uint64_t k = random() % 4; k > 0; --k) inputs.push_back(random() % 5 == 0 ? kNoValue : values[random() % values.size()]);
      const NodeId id = g.AddNode("Op", "n", inputs, random() % 2 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"});
      for (ValueId v : g.node(id).outputs) values.push_back(v);
    }
    for (NodeId id : g.NodeIds()) {
      bool used = false;
      for (ValueId v : g.node(id).outputs) used = used || !g.value(v).uses.empty();
      if (!used && random() % 2) g.RemoveNode(id);
    }
    std::multiset<GraphEdge> all, in, out;
    for (auto [e, end] = edges(g); e != end; ++e) all.insert(*e);
    for (auto [v, end] = vertices(g); v != end; ++v) {
      for (auto [e, last] = in_edges(*v, g); e != last; ++e) in.insert(*e);
      for (auto [e, last] = out_edges(*v, g); e != last; ++e) out.insert(*e);
    }
    EXPECT_EQ(all, in) << "seed " << seed << " round " << round;
    EXPECT_EQ(all, out) << "seed " << seed << " round " << round;
    EXPECT_EQ(all.size(), num_edges(g));
  }
}

}  // namespace
}  // namespace heddle::ir
