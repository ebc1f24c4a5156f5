// Orders the nodes of a GraphProto. ONNX demands producers first; models in the wild break that, so we sort, keeping the
// given order where it is free. Nodes that no output depends on are left out: exporters leave training outputs behind.

#include <algorithm>
#include <queue>

#include "frontend/onnx_graph_importer.h"

namespace heddle::frontend {
namespace {

using onnx::GraphProto;
using onnx::NodeProto;

// Names a node reads: its inputs and whatever its subgraphs read (a superset: names of the subgraph's own included).
void AddReads(const NodeProto& node, std::set<std::string, std::less<>>& reads) {
  for (const std::string& input : node.input()) {
    if (!input.empty()) reads.insert(input);
  }
  const auto add_graph = [&](const GraphProto& graph) {
    for (const NodeProto& inner : graph.node()) AddReads(inner, reads);
    for (const auto& output : graph.output()) reads.insert(output.name());
  };
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add_graph(attribute.g());
    for (const auto& graph : attribute.graphs()) add_graph(graph);
  }
}

std::string Describe(const NodeProto& node) {
  return fmt::format("node '{}' ({})", node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name(), node.op_type());
}

class Sorter {
 public:
  explicit Sorter(const GraphProto& graph) : graph_(graph), reads_(static_cast<size_t>(graph.node_size())) {}

  absl::StatusOr<NodeOrder> Run() {
    HEDDLE_RETURN_IF_ERROR(FindProducers());
    MarkLiving();
    return Sort();
  }

 private:
  absl::Status FindProducers() {
    for (int i = 0; i < graph_.node_size(); ++i) {
      for (const std::string& output : graph_.node(i).output()) {
        if (output.empty()) continue;
        if (!producer_.emplace(output, i).second) {
          return ir::UserError("E-IMPORT-031", fmt::format("{} defines '{}', which another node defines too",
                                                           Describe(graph_.node(i)), output));
        }
      }
      AddReads(graph_.node(i), reads_[static_cast<size_t>(i)]);
    }
    return absl::OkStatus();
  }

  void MarkLiving() {
    living_.assign(reads_.size(), false);
    std::vector<int> pending;
    const auto need = [&](const std::string& name) {
      order_.used_outputs.insert(name);
      auto it = producer_.find(name);
      if (it == producer_.end() || living_[static_cast<size_t>(it->second)]) return;
      living_[static_cast<size_t>(it->second)] = true;
      pending.push_back(it->second);
    };
    for (const auto& output : graph_.output()) need(output.name());
    while (!pending.empty()) {
      const int node = pending.back();
      pending.pop_back();
      for (const std::string& name : reads_[static_cast<size_t>(node)]) need(name);
    }
  }

  absl::StatusOr<NodeOrder> Sort() {
    std::vector<int> missing(reads_.size(), 0);
    std::vector<std::vector<int>> users(reads_.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    size_t living = 0;
    for (size_t i = 0; i < reads_.size(); ++i) {
      if (!living_[i]) continue;
      ++living;
      for (const std::string& name : reads_[i]) {
        auto it = producer_.find(name);
        if (it == producer_.end()) continue;
        ++missing[i];
        users[static_cast<size_t>(it->second)].push_back(static_cast<int>(i));
      }
      if (missing[i] == 0) ready.push(static_cast<int>(i));
    }
    while (!ready.empty()) {
      const int node = ready.top();
      ready.pop();
      order_.nodes.push_back(&graph_.node(node));
      for (int user : users[static_cast<size_t>(node)]) {
        if (--missing[static_cast<size_t>(user)] == 0) ready.push(user);
      }
    }
    if (order_.nodes.size() == living) return std::move(order_);
    for (size_t i = 0; i < missing.size(); ++i) {
      if (living_[i] && missing[i] > 0) {
        const std::vector<int> cycle = CycleBefore(static_cast<int>(i), missing);
        std::string path;
        for (const int node : cycle) path += NameOf(node) + " -> ";
        return ir::UserError("E-IMPORT-032", fmt::format("{} waits for its own result: {}{}", Describe(graph_.node(cycle[0])), path, NameOf(cycle[0])),
                             "export the model again");
      }
    }
    return std::move(order_);
  }

  std::string NameOf(int node) const {
    const NodeProto& proto = graph_.node(node);
    return proto.name().empty() ? fmt::format("{} of '{}'", proto.op_type(), proto.output_size() > 0 ? proto.output(0) : "") : "'" + proto.name() + "'";
  }

  // The cycle that a node which never became ready stands on or behind, in the order of the data.
  std::vector<int> CycleBefore(int node, const std::vector<int>& missing) const {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), node) == path.end()) {
      path.push_back(node);
      for (const std::string& name : reads_[static_cast<size_t>(node)]) {
        const auto it = producer_.find(name);
        if (it == producer_.end() || missing[static_cast<size_t>(it->second)] <= 0) continue;
        node = it->second;  // one that waits too: there is at least one, or this node would have become ready
        break;
      }
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), node));
    std::reverse(path.begin(), path.end());
    return path;
  }

  const GraphProto& graph_;
  std::map<std::string, int, std::less<>> producer_;
  std::vector<std::set<std::string, std::less<>>> reads_;  // of each node
  std::vector<bool> living_;
  NodeOrder order_;
};

}  // namespace

absl::StatusOr<NodeOrder> OrderNodes(const GraphProto& graph) { return Sorter(graph).Run(); }

void NodeNames::Add(const GraphProto& graph) {
  for (const NodeProto& node : graph.node()) {
    std::string name = node.name();
    if (name.empty()) name = fmt::format("{}_{}", node.op_type(), node.output_size() > 0 ? node.output(0) : "");
    const int times = given_[name]++;
    names_[&node] = times == 0 ? name : fmt::format("{}.{}", name, times);
  }
}

}  // namespace heddle::frontend
