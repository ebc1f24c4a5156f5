// ir::Graph as a Boost.Graph: vertices are living nodes, and one edge runs from producer to user for every use of a value.
//
// Models VertexListGraph, BidirectionalGraph and EdgeListGraph, so that topological sort, dominators, transitive reduction,
// Graphviz and the like are Boost's. Vertices are NodeIds: after RemoveNode ids have gaps, so call Compact() first where an
// algorithm wants indices 0 … n-1 (get(boost::vertex_index, graph) is the id; use num_node_slots() for property maps).
#ifndef HEDDLE_IR_GRAPH_BOOST_H_
#define HEDDLE_IR_GRAPH_BOOST_H_

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/iterator_facade.hpp>
#include <boost/property_map/property_map.hpp>
#include <utility>

#include "ir/graph.h"

namespace heddle::ir {

// The use of one value: from its producer to input `input` of `target`.
struct GraphEdge {
  NodeId source = kNoNode;
  NodeId target = kNoNode;
  int input = 0;
  auto operator<=>(const GraphEdge&) const = default;
};

// Living nodes in the order of their ids.
class GraphVertexIterator : public boost::iterator_facade<GraphVertexIterator, NodeId, boost::forward_traversal_tag, NodeId> {
 public:
  GraphVertexIterator() = default;
  GraphVertexIterator(const Graph* graph, NodeId id) : graph_(graph), id_(id) { Settle(); }

 private:
  friend class boost::iterator_core_access;
  void Settle() {
    while (id_ < graph_->num_node_slots() && !graph_->alive(id_)) ++id_;
  }
  void increment() {
    ++id_;
    Settle();
  }
  bool equal(const GraphVertexIterator& other) const { return id_ == other.id_; }
  NodeId dereference() const { return id_; }

  const Graph* graph_ = nullptr;
  NodeId id_ = 0;
};

// Uses of all outputs of a node.
class GraphOutEdgeIterator : public boost::iterator_facade<GraphOutEdgeIterator, GraphEdge, boost::forward_traversal_tag, GraphEdge> {
 public:
  GraphOutEdgeIterator() = default;
  GraphOutEdgeIterator(const Graph* graph, NodeId node, size_t output) : graph_(graph), node_(node), output_(output) { Settle(); }

 private:
  friend class boost::iterator_core_access;
  const std::vector<ValueId>& outputs() const { return graph_->node(node_).outputs; }
  void Settle() {
    while (output_ < outputs().size() && use_ >= graph_->value(outputs()[output_]).uses.size()) {
      ++output_;
      use_ = 0;
    }
  }
  void increment() {
    ++use_;
    Settle();
  }
  bool equal(const GraphOutEdgeIterator& other) const { return output_ == other.output_ && use_ == other.use_; }
  GraphEdge dereference() const {
    const Use& use = graph_->value(outputs()[output_]).uses[use_];
    return {node_, use.node, use.input};
  }

  const Graph* graph_ = nullptr;
  NodeId node_ = kNoNode;
  size_t output_ = 0;
  size_t use_ = 0;
};

// Inputs of a node that a node produces.
class GraphInEdgeIterator : public boost::iterator_facade<GraphInEdgeIterator, GraphEdge, boost::forward_traversal_tag, GraphEdge> {
 public:
  GraphInEdgeIterator() = default;
  GraphInEdgeIterator(const Graph* graph, NodeId node, size_t input) : graph_(graph), node_(node), input_(input) { Settle(); }

 private:
  friend class boost::iterator_core_access;
  const std::vector<ValueId>& inputs() const { return graph_->node(node_).inputs; }
  void Settle() {
    while (input_ < inputs().size() && graph_->ProducerOf(inputs()[input_]) == kNoNode) ++input_;
  }
  void increment() {
    ++input_;
    Settle();
  }
  bool equal(const GraphInEdgeIterator& other) const { return input_ == other.input_; }
  GraphEdge dereference() const { return {graph_->ProducerOf(inputs()[input_]), node_, static_cast<int>(input_)}; }

  const Graph* graph_ = nullptr;
  NodeId node_ = kNoNode;
  size_t input_ = 0;
};

// All edges: the in-edges of one node after the other.
class GraphEdgeIterator : public boost::iterator_facade<GraphEdgeIterator, GraphEdge, boost::forward_traversal_tag, GraphEdge> {
 public:
  GraphEdgeIterator() = default;
  GraphEdgeIterator(const Graph* graph, NodeId node) : graph_(graph), node_(graph, node) { Settle(); }

 private:
  friend class boost::iterator_core_access;
  bool AtEnd() const { return *node_ >= graph_->num_node_slots(); }
  size_t num_inputs() const { return graph_->node(*node_).inputs.size(); }
  void Settle() {
    while (!AtEnd()) {
      while (input_ < num_inputs() && graph_->ProducerOf(graph_->node(*node_).inputs[input_]) == kNoNode) ++input_;
      if (input_ < num_inputs()) return;
      ++node_;
      input_ = 0;
    }
  }
  void increment() {
    ++input_;
    Settle();
  }
  bool equal(const GraphEdgeIterator& other) const { return node_ == other.node_ && input_ == other.input_; }
  GraphEdge dereference() const {
    return {graph_->ProducerOf(graph_->node(*node_).inputs[input_]), *node_, static_cast<int>(input_)};
  }

  const Graph* graph_ = nullptr;
  GraphVertexIterator node_;
  size_t input_ = 0;
};

struct GraphCategory : virtual boost::bidirectional_graph_tag, virtual boost::vertex_list_graph_tag, virtual boost::edge_list_graph_tag {};

}  // namespace heddle::ir

namespace boost {

template <>
struct graph_traits<heddle::ir::Graph> {
  using vertex_descriptor = heddle::ir::NodeId;
  using edge_descriptor = heddle::ir::GraphEdge;
  using vertex_iterator = heddle::ir::GraphVertexIterator;
  using out_edge_iterator = heddle::ir::GraphOutEdgeIterator;
  using in_edge_iterator = heddle::ir::GraphInEdgeIterator;
  using edge_iterator = heddle::ir::GraphEdgeIterator;
  using directed_category = bidirectional_tag;
  using edge_parallel_category = allow_parallel_edge_tag;
  using traversal_category = heddle::ir::GraphCategory;
  using vertices_size_type = size_t;
  using edges_size_type = size_t;
  using degree_size_type = size_t;
  static vertex_descriptor null_vertex() { return heddle::ir::kNoNode; }
};
template <>
struct graph_traits<const heddle::ir::Graph> : graph_traits<heddle::ir::Graph> {};

// The id of a node is its index.
template <>
struct property_map<heddle::ir::Graph, vertex_index_t> {
  using type = typed_identity_property_map<heddle::ir::NodeId>;
  using const_type = type;
};

}  // namespace boost

namespace heddle::ir {

inline std::pair<GraphVertexIterator, GraphVertexIterator> vertices(const Graph& g) {  // names are Boost's
  return {{&g, 0}, {&g, g.num_node_slots()}};
}
inline size_t num_vertices(const Graph& g) { return g.NodeIds().size(); }
inline std::pair<GraphOutEdgeIterator, GraphOutEdgeIterator> out_edges(NodeId node, const Graph& g) {
  return {{&g, node, 0}, {&g, node, g.node(node).outputs.size()}};
}
inline std::pair<GraphInEdgeIterator, GraphInEdgeIterator> in_edges(NodeId node, const Graph& g) {
  return {{&g, node, 0}, {&g, node, g.node(node).inputs.size()}};
}
inline std::pair<GraphEdgeIterator, GraphEdgeIterator> edges(const Graph& g) { return {{&g, 0}, {&g, g.num_node_slots()}}; }
inline NodeId source(const GraphEdge& edge, const Graph&) { return edge.source; }
inline NodeId target(const GraphEdge& edge, const Graph&) { return edge.target; }
inline size_t out_degree(NodeId node, const Graph& g) {
  const auto [begin, end] = out_edges(node, g);
  return static_cast<size_t>(std::distance(begin, end));
}
inline size_t in_degree(NodeId node, const Graph& g) {
  const auto [begin, end] = in_edges(node, g);
  return static_cast<size_t>(std::distance(begin, end));
}
inline size_t degree(NodeId node, const Graph& g) { return in_degree(node, g) + out_degree(node, g); }
inline size_t num_edges(const Graph& g) {
  const auto [begin, end] = edges(g);
  return static_cast<size_t>(std::distance(begin, end));
}
inline boost::typed_identity_property_map<NodeId> get(boost::vertex_index_t, const Graph&) { return {}; }

}  // namespace heddle::ir

#endif  // HEDDLE_IR_GRAPH_BOOST_H_
