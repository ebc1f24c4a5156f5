// Reads placement instances. The files come from anywhere, so every field is checked before it is used: the JSON
// library's own conversions would throw or silently truncate.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "ir/partition/placement/placement_graph.h"
#include "ir/status.h"

namespace heddle::ir::partition {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxNodes = 100'000;
constexpr size_t kMaxEdges = 1'000'000;
constexpr double kMaxDevices = 64;
constexpr double kMaxQuantity = 1e15;

absl::Status Malformed(const std::string& message) {
  return UserError("E-PARTITION-010", message, "Correct the placement graph; docs/partitioning.md lists its fields.");
}

std::string Shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";  // may be nested without end
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

// A number in [0, most]. `where` names the object: "node 7".
absl::StatusOr<double> Quantity(const Json& object, const char* field, const std::string& where,
                                double most = kMaxQuantity) {
  const auto found = object.find(field);
  if (found == object.end()) return Malformed(fmt::format("{} has no '{}'", where, field));
  const bool is_number = found->is_number();
  const double value = is_number ? found->get<double>() : 0;
  if (!is_number || !std::isfinite(value) || value < 0 || value > most) {
    return Malformed(fmt::format("'{}' of {} is {}, expected a number from 0 to {:g}", field, where, Shown(*found), most));
  }
  return value;
}

absl::StatusOr<int> Count(const Json& object, const char* field) {
  double value = 0;
  HEDDLE_ASSIGN_OR_RETURN(value, Quantity(object, field, "the graph"));
  if (value > kMaxDevices) {
    return UserError("E-PARTITION-014", fmt::format("'{}' is {:g}, at most {:g} devices of a kind are supported", field,
                                                    value, kMaxDevices));
  }
  if (value != std::floor(value)) return Malformed(fmt::format("'{}' is {:g}, expected a whole number", field, value));
  return static_cast<int>(value);
}

absl::StatusOr<int64_t> Id(const Json& object, const char* field, const std::string& where) {
  const auto found = object.find(field);
  if (found == object.end()) return Malformed(fmt::format("{} has no '{}'", where, field));
  if (!found->is_number_integer() ||
      (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
    return Malformed(fmt::format("'{}' of {} is {}, expected a whole number", field, where, Shown(*found)));
  }
  return found->get<int64_t>();
}

// true, false, 1 or 0: the instances use both spellings.
absl::StatusOr<bool> Flag(const Json& object, const char* field, const std::string& where) {
  const auto found = object.find(field);
  if (found == object.end()) return Malformed(fmt::format("{} has no '{}'", where, field));
  if (found->is_boolean()) return found->get<bool>();
  if (found->is_number() && (found->get<double>() == 0 || found->get<double>() == 1)) return found->get<double>() == 1;
  return Malformed(fmt::format("'{}' of {} is {}, expected true or false", field, where, Shown(*found)));
}

class Reader {
 public:
  absl::StatusOr<PlacementGraph> Read(const std::string& text) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return Malformed("the placement graph is not valid JSON");
    if (!json.is_object()) return Malformed("the placement graph is not a JSON object");
    HEDDLE_ASSIGN_OR_RETURN(graph_.accelerators, Count(json, "maxFPGAs"));
    HEDDLE_ASSIGN_OR_RETURN(graph_.cpus, Count(json, "maxCPUs"));
    HEDDLE_ASSIGN_OR_RETURN(graph_.accelerator_capacity, Quantity(json, "maxSizePerFPGA", "the graph"));
    for (const char* list : {"nodes", "edges"}) {
      if (!json.contains(list) || !json[list].is_array()) return Malformed(fmt::format("'{}' is missing or no list", list));
    }
    if (json["nodes"].size() > kMaxNodes || json["edges"].size() > kMaxEdges) {
      return UserError("E-PARTITION-014", fmt::format("{} nodes and {} edges are too many: at most {} and {}",
                                                      json["nodes"].size(), json["edges"].size(), kMaxNodes, kMaxEdges));
    }
    if (json["nodes"].empty()) return Malformed("the placement graph has no nodes");
    if (graph_.accelerators + graph_.cpus == 0) return Malformed("there is no device: maxFPGAs and maxCPUs are 0");
    for (const Json& node : json["nodes"]) HEDDLE_RETURN_IF_ERROR(AddNode(node));
    for (const Json& edge : json["edges"]) HEDDLE_RETURN_IF_ERROR(AddEdge(edge));
    for (PlacementNode& node : graph_.nodes) {
      for (std::vector<int>* list : {&node.successors, &node.predecessors}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
      }
    }
    graph_.colours = static_cast<int>(colours_.size());
    HEDDLE_RETURN_IF_ERROR(CheckAcyclic());
    return std::move(graph_);
  }

 private:
  absl::Status AddNode(const Json& json) {
    if (!json.is_object()) return Malformed(fmt::format("node number {} is no JSON object", graph_.nodes.size()));
    PlacementNode node;
    HEDDLE_ASSIGN_OR_RETURN(node.id, Id(json, "id", fmt::format("node number {}", graph_.nodes.size())));
    const std::string where = fmt::format("node {}", node.id);
    if (!index_of_.emplace(node.id, static_cast<int>(graph_.nodes.size())).second) {
      return UserError("E-PARTITION-011", where + " is there twice", "Give every node an id of its own.");
    }
    HEDDLE_ASSIGN_OR_RETURN(node.accelerator_supported, Flag(json, "supportedOnFpga", where));
    HEDDLE_ASSIGN_OR_RETURN(node.backward, Flag(json, "isBackwardNode", where));
    HEDDLE_ASSIGN_OR_RETURN(node.cpu_us, Quantity(json, "cpuLatency", where));
    if (node.accelerator_supported) {
      HEDDLE_ASSIGN_OR_RETURN(node.accelerator_us, Quantity(json, "fpgaLatency", where));
    }
    HEDDLE_ASSIGN_OR_RETURN(node.size, Quantity(json, "size", where));
    if (const auto colour = json.find("colorClass"); colour != json.end() && !colour->is_null()) {
      int64_t name = 0;
      HEDDLE_ASSIGN_OR_RETURN(name, Id(json, "colorClass", where));
      node.colour = colours_.emplace(name, static_cast<int>(colours_.size())).first->second;
    }
    graph_.nodes.push_back(std::move(node));
    sends_.emplace_back();
    return absl::OkStatus();
  }

  absl::Status AddEdge(const Json& json) {
    const std::string where = fmt::format("edge number {}", edges_++);
    if (!json.is_object()) return Malformed(where + " is no JSON object");
    int ends[2];
    const char* fields[2] = {"sourceId", "destId"};
    for (int end = 0; end < 2; ++end) {
      int64_t id = 0;
      HEDDLE_ASSIGN_OR_RETURN(id, Id(json, fields[end], where));
      const auto found = index_of_.find(id);
      if (found == index_of_.end()) {
        return UserError("E-PARTITION-011", fmt::format("'{}' of {} is {}, but there is no such node", fields[end], where, id));
      }
      ends[end] = found->second;
    }
    if (ends[0] == ends[1]) {
      return UserError("E-PARTITION-011", fmt::format("{} goes from node {} to itself", where, graph_.nodes[ends[0]].id));
    }
    double cost = 0;
    HEDDLE_ASSIGN_OR_RETURN(cost, Quantity(json, "cost", where));
    std::optional<double>& known = sends_[ends[0]];
    if (known && std::abs(*known - cost) > 1e-9 * std::max(*known, cost)) {
      return UserError("E-PARTITION-013", fmt::format("edges that leave node {} cost {} and {}: a node has one result",
                                                      graph_.nodes[ends[0]].id, *known, cost));
    }
    known = known.value_or(cost);
    graph_.nodes[ends[0]].send_us = *known;
    graph_.nodes[ends[0]].successors.push_back(ends[1]);
    graph_.nodes[ends[1]].predecessors.push_back(ends[0]);
    return absl::OkStatus();
  }

  // The cycle that a node which never became ready stands on or behind, in the order of the data.
  std::vector<int> CycleBefore(int node, const std::vector<int>& waiting_for) const {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), node) == path.end()) {
      path.push_back(node);
      const std::vector<int>& before = graph_.nodes[node].predecessors;
      node = *std::find_if(before.begin(), before.end(), [&](int other) { return waiting_for[other] > 0; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), node));
    std::reverse(path.begin(), path.end());
    return path;
  }

  absl::Status CheckAcyclic() const {
    std::vector<int> waiting_for;
    std::vector<int> ready;
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      waiting_for.push_back(static_cast<int>(graph_.nodes[node].predecessors.size()));
      if (waiting_for.back() == 0) ready.push_back(static_cast<int>(node));
    }
    size_t done = 0;
    while (!ready.empty()) {
      const int node = ready.back();
      ready.pop_back();
      ++done;
      for (int next : graph_.nodes[node].successors) {
        if (--waiting_for[next] == 0) ready.push_back(next);
      }
    }
    if (done == graph_.nodes.size()) return absl::OkStatus();
    const auto stuck = std::find_if(waiting_for.begin(), waiting_for.end(), [](int n) { return n > 0; });
    const std::vector<int> cycle = CycleBefore(static_cast<int>(stuck - waiting_for.begin()), waiting_for);
    std::string path;
    for (const int node : cycle) path += fmt::format("{} -> ", graph_.nodes[node].id);
    return UserError("E-PARTITION-012", fmt::format("node {0} waits, by a cycle, for its own result: {1}{0}", graph_.nodes[cycle[0]].id, path));
  }

  PlacementGraph graph_;
  std::unordered_map<int64_t, int> index_of_;
  std::map<int64_t, int> colours_;
  std::vector<std::optional<double>> sends_;
  size_t edges_ = 0;
};

}  // namespace

absl::StatusOr<PlacementGraph> ReadPlacementGraph(const std::string& json_text) { return Reader().Read(json_text); }

bool LooksLikePlacementGraph(const std::string& json_text) {
  const size_t begin = json_text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && json_text[begin] == '{' && json_text.find("\"maxFPGAs\"") != std::string::npos;
}

}  // namespace heddle::ir::partition
