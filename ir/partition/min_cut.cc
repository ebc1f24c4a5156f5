// Placement on two devices as a minimum s-t cut (H. S. Stone, "Multiprocessor Scheduling with the Aid of Network Flow
// Algorithms", 1977), with Boost's Boykov-Kolmogorov
// maximum flow.
//
// A cluster on the source's side runs on device a, on the sink's side on b; the arc that is cut carries its cost there.
// A tensor is paid once per destination, not once per reader, so each direction has one auxiliary vertex: for a → b
// the arcs producer → auxiliary (the transfer's time) and auxiliary → reader (infinite) are cut exactly when the
// producer is on a and at least one reader on b.
// Capacities are integers (costs scaled by a power of two), so that saturation is exact and the flow ends.
#include "ir/partition/min_cut.h"

// GCC 12 takes the optional members of Boost's edge iterators for uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <cmath>
#include <cstdint>

#include "ir/partition/evaluate.h"

namespace heddle::ir::partition {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct ArcProperty {
  int64_t capacity = 0;
  int64_t residual = 0;
  Traits::edge_descriptor reverse;
};
struct VertexProperty {
  boost::default_color_type color = boost::white_color;
  int64_t distance = 0;
  Traits::edge_descriptor predecessor;
};
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, VertexProperty, ArcProperty>;

class CutBuilder {
 public:
  CutBuilder(const Problem& problem, const Clusters& clusters, int a, int b)
      : problem_(problem), clusters_(clusters), a_(a), b_(b), graph_(clusters.nodes.size() + 2) {
    source_ = clusters.nodes.size();
    sink_ = source_ + 1;
    ChooseScale();
  }

  std::optional<Cut> Solve() {
    for (size_t cluster = 0; cluster < clusters_.nodes.size(); ++cluster) {
      const std::optional<double> on_a = clusters_.CostUs(problem_, cluster, a_);
      const std::optional<double> on_b = clusters_.CostUs(problem_, cluster, b_);
      if (!on_a && !on_b) return std::nullopt;
      AddArc(cluster, sink_, on_a ? Scaled(*on_a) : infinite_);
      AddArc(source_, cluster, on_b ? Scaled(*on_b) : infinite_);
    }
    for (const Tensor& tensor : problem_.tensors) AddTensor(tensor);
    boost::boykov_kolmogorov_max_flow(
        graph_, boost::get(&ArcProperty::capacity, graph_), boost::get(&ArcProperty::residual, graph_),
        boost::get(&ArcProperty::reverse, graph_), boost::get(&VertexProperty::predecessor, graph_),
        boost::get(&VertexProperty::color, graph_), boost::get(&VertexProperty::distance, graph_),
        boost::get(boost::vertex_index, graph_), source_, sink_);
    return Extract();
  }

 private:
  void ChooseScale() {
    double total = 1;
    for (const Node& node : problem_.nodes) total += node.on[a_].cost_us.value_or(0) + node.on[b_].cost_us.value_or(0);
    for (const Tensor& tensor : problem_.tensors) {
      for (int from : {a_, b_, problem_.host}) {
        for (int to : {a_, b_, problem_.host}) {
          if (from != to) total += problem_.links[from][to].TransferUs(tensor.bytes);
        }
      }
    }
    scale_ = std::exp2(std::floor(56 - std::log2(total)));
    infinite_ = static_cast<int64_t>(1) << 58;
  }
  int64_t Scaled(double us) const { return std::llround(us * scale_); }

  void AddArc(size_t from, size_t to, int64_t capacity) {
    const auto arc = boost::add_edge(from, to, graph_).first;
    const auto reverse = boost::add_edge(to, from, graph_).first;
    graph_[arc].capacity = capacity;
    graph_[arc].reverse = reverse;
    graph_[reverse].reverse = arc;
  }

  // The vertex of an end that does not move: the terminal of the host, if it is one of the two devices.
  std::optional<size_t> HostVertex() const {
    if (problem_.host == a_) return source_;
    if (problem_.host == b_) return sink_;
    return std::nullopt;
  }

  void AddTensor(const Tensor& tensor) {
    std::vector<size_t> readers;
    for (int consumer : tensor.consumers) readers.push_back(clusters_.cluster_of[consumer]);
    const std::optional<size_t> host = HostVertex();
    if (tensor.to_host && host) readers.push_back(*host);
    if (tensor.producer < 0 && !host) {
      // Comes from a third device: paid once for each side that has a reader.
      AddSide(readers, sink_, problem_.links[problem_.host][a_].TransferUs(tensor.bytes), false);
      AddSide(readers, source_, problem_.links[problem_.host][b_].TransferUs(tensor.bytes), true);
      return;
    }
    const size_t producer = tensor.producer < 0 ? *host : clusters_.cluster_of[tensor.producer];
    AddSide(readers, producer, problem_.links[a_][b_].TransferUs(tensor.bytes), true);
    AddSide(readers, producer, problem_.links[b_][a_].TransferUs(tensor.bytes), false);
    if (tensor.to_host && !host && tensor.producer >= 0) {
      AddArc(producer, sink_, Scaled(problem_.links[a_][problem_.host].TransferUs(tensor.bytes)));
      AddArc(source_, producer, Scaled(problem_.links[b_][problem_.host].TransferUs(tensor.bytes)));
    }
  }

  // to_sink_side: pays `us` when the producer is on the source's side and a reader on the sink's; else the mirror.
  void AddSide(const std::vector<size_t>& readers, size_t producer, double us, bool to_sink_side) {
    const size_t auxiliary = boost::add_vertex(graph_);
    if (to_sink_side) {
      AddArc(producer, auxiliary, Scaled(us));
    } else {
      AddArc(auxiliary, producer, Scaled(us));
    }
    for (size_t reader : readers) {
      if (reader == producer) continue;
      if (to_sink_side) {
        AddArc(auxiliary, reader, infinite_);
      } else {
        AddArc(reader, auxiliary, infinite_);
      }
    }
  }

  std::optional<Cut> Extract() {
    // The smallest source side: what residual capacity reaches from the source.
    std::vector<bool> reached(boost::num_vertices(graph_));
    std::vector<size_t> stack = {source_};
    reached[source_] = true;
    while (!stack.empty()) {
      const size_t vertex = stack.back();
      stack.pop_back();
      for (auto [arc, end] = boost::out_edges(vertex, graph_); arc != end; ++arc) {
        const size_t next = boost::target(*arc, graph_);
        if (graph_[*arc].residual <= 0 || reached[next]) continue;
        reached[next] = true;
        stack.push_back(next);
      }
    }
    Cut cut;
    for (size_t node = 0; node < problem_.nodes.size(); ++node) {
      cut.device_of.push_back(reached[clusters_.cluster_of[node]] ? a_ : b_);
      const std::optional<double>& cost_us = problem_.nodes[node].on[cut.device_of.back()].cost_us;
      if (!cost_us) return std::nullopt;
      cut.value_us += *cost_us;
    }
    for (size_t tensor = 0; tensor < problem_.tensors.size(); ++tensor) {
      cut.value_us += TransferUs(problem_, static_cast<int>(tensor), cut.device_of);
    }
    return cut;
  }

  const Problem& problem_;
  const Clusters& clusters_;
  int a_;
  int b_;
  FlowGraph graph_;
  size_t source_;
  size_t sink_;
  double scale_ = 1;
  int64_t infinite_ = 0;
};

}  // namespace

std::optional<Cut> MinimumCut(const Problem& problem, const Clusters& clusters, int a, int b) {
  return CutBuilder(problem, clusters, a, b).Solve();
}

}  // namespace heddle::ir::partition
