// The CPU device: compiles regions with the JIT of this process. Costs are timed here, or come from the target file's roofline.

#include "cpu_fallback/cpu_device.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cpu_fallback/cpu_target.h"
#include "cpu_fallback/program.h"
#include "cpu_fallback/thread_pool.h"
#include "ir/op.h"
#include "ir/region.h"
#include "ir/roofline.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

constexpr int kMostThreads = 256;
constexpr int kTimingRuns = 5;

struct Config {
  std::string name = "cpu";
  bool measured = true;
  int threads = 1;
  ir::Roofline roofline;
};

absl::StatusOr<Config> ParseConfig(const nlohmann::json& section) {
  Config config;
  if (!section.is_object()) return ir::UserError("E-TARGET-003", "a device is an object");
  const std::map<std::string, double*> rates = {{"float_gmacs_per_s", &config.roofline.float_gmacs_per_s},
                                                {"int8_gmacs_per_s", &config.roofline.int8_gmacs_per_s},
                                                {"other_gops_per_s", &config.roofline.other_gops_per_s},
                                                {"memory_gb_per_s", &config.roofline.memory_gb_per_s},
                                                {"node_overhead_us", &config.roofline.node_overhead_us}};
  std::set<std::string> given;
  for (const auto& [key, value] : section.items()) {
    given.insert(key);
    if (auto rate = rates.find(key); rate != rates.end()) {
      const bool overhead = key == "node_overhead_us";
      if (!value.is_number() || !(value.get<double>() > 0 || (overhead && value.get<double>() == 0))) {
        return ir::UserError("E-TARGET-004", fmt::format("{} of a CPU: expected a positive number, found {}", key, value.dump()));
      }
      *rate->second = value.get<double>();
    } else if (key == "threads") {
      if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > kMostThreads) {
        return ir::UserError("E-TARGET-004", fmt::format("threads of a CPU: expected 1 to {}, found {}", kMostThreads, value.dump()));
      }
      config.threads = value.get<int>();
    } else if (key == "timing") {
      if (value != "measured" && value != "modelled") {
        return ir::UserError("E-TARGET-004", fmt::format("timing of a CPU: expected measured or modelled, found {}", value.dump()));
      }
      config.measured = value == "measured";
    } else if (key == "name" && value.is_string()) {
      config.name = value.get<std::string>();
    } else if (key != "kind") {
      return ir::UserError("E-TARGET-003", fmt::format("a CPU has no key '{}'", key), "docs/targets.md lists the keys");
    }
  }
  for (const auto& [key, rate] : rates) {
    if (!config.measured && key != "node_overhead_us" && !given.contains(key)) {
      return ir::UserError("E-TARGET-003", fmt::format("a CPU with modelled timing needs '{}'", key));
    }
  }
  return config;
}

// Written under a temporary name first: a file that is there is whole.
absl::Status WriteFile(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary);
    file << content;
    if (!file.flush()) return ir::UserError("E-OUTPUT-001", fmt::format("cannot write {}", temporary.string()));
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) return ir::UserError("E-OUTPUT-001", fmt::format("cannot write {}: {}", path.string(), error.message()));
  return absl::OkStatus();
}

std::vector<ir::NodeId> AllNodes(const ir::Graph& graph) { return graph.NodeIds(); }

class CpuRegion : public ir::CompiledRegion {
 public:
  CpuRegion(std::shared_ptr<const ir::Graph> graph, std::unique_ptr<Program> program, std::shared_ptr<ThreadPool> pool,
            const Config& config)
      : graph_(std::move(graph)), program_(std::move(program)), pool_(std::move(pool)), config_(config) {}

  absl::StatusOr<ir::RunResult> Run(const std::vector<ir::Tensor>& inputs) override {
    ir::RunResult result;
    std::vector<GroupTime> times;
    HEDDLE_ASSIGN_OR_RETURN(result.outputs, program_->Run(inputs, pool_.get(), &times));
    const double measured_us = times.empty() ? 0 : times.back().end_us;
    result.time_us = measured_us;
    result.provenance = ir::Provenance::kMeasured;
    double scale = 1;
    if (!config_.measured) {
      result.time_us = RooflineCost(*graph_, AllNodes(*graph_), config_.roofline).time_us;
      result.provenance = ir::Provenance::kModelled;
      scale = measured_us > 0 ? result.time_us / measured_us : 0;
    }
    for (const GroupTime& time : times) result.events.push_back({config_.name, time.name, time.start_us * scale, time.end_us * scale});
    return result;
  }

 private:
  std::shared_ptr<const ir::Graph> graph_;
  std::unique_ptr<Program> program_;
  std::shared_ptr<ThreadPool> pool_;
  Config config_;
};

class CpuDevice : public ir::Device {
 public:
  explicit CpuDevice(Config config) : config_(std::move(config)), pool_(std::make_shared<ThreadPool>(config_.threads)) {}

  std::string name() const override { return config_.name; }
  std::string kind() const override { return "cpu"; }

  ir::Support Supports(const ir::Graph& graph, const ir::Node& node) const override {
    if (ir::FindOp(node.op) == nullptr) return ir::Support::No("E-CPU-010", "no op is called " + node.op);
    for (ir::ValueId id : node.outputs) {
      if (id != ir::kNoValue && !graph.type(id).is_static()) {
        return ir::Support::No("E-CPU-011", "shapes must be known when the code is made; this node's are not");
      }
    }
    return ir::Support::Yes();
  }

  absl::StatusOr<ir::Cost> EstimateCost(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) const override {
    if (!config_.measured) return RooflineCost(graph, nodes, config_.roofline);
    auto region = std::make_shared<const ir::Graph>(ExtractRegion(graph, nodes));
    const ir::OpWork work = TotalWork(graph, nodes);
    ir::Cost cost;
    cost.provenance = ir::Provenance::kMeasured;
    cost.source = fmt::format("fastest of {} runs on {}, {} thread(s)", kTimingRuns, HostCpu().name, config_.threads);
    cost.bytes_moved = work.weight_bytes + work.input_bytes + work.output_bytes;
    HEDDLE_ASSIGN_OR_RETURN(cost.time_us, Time(*region));
    return cost;
  }

  absl::StatusOr<std::unique_ptr<ir::CompiledRegion>> Compile(std::shared_ptr<const ir::Graph> region,
                                                              const ir::CompileRequest& request) override {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, CompileProgram(*region, request.progress));
    if (!request.directory.empty()) {
      std::error_code error;
      std::filesystem::create_directories(request.directory, error);
      if (error) return ir::UserError("E-OUTPUT-001", fmt::format("cannot make {}: {}", request.directory.string(), error.message()));
      const std::string stem = request.name.empty() ? "region" : request.name;
      HEDDLE_RETURN_IF_ERROR(WriteFile(request.directory / (stem + ".loops"), program->LoopText()));
      HEDDLE_RETURN_IF_ERROR(WriteFile(request.directory / (stem + ".o"), program->object()));
    }
    return std::make_unique<CpuRegion>(std::move(region), std::move(program), pool_, config_);
  }

 private:
  // Of equal regions only the first is timed.
  absl::StatusOr<double> Time(const ir::Graph& region) const {
    const std::string key = KeyOf(region);
    if (auto it = times_.find(key); it != times_.end()) return it->second;
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, CompileProgram(region));
    std::vector<ir::Tensor> inputs;
    for (ir::ValueId id : region.inputs()) inputs.emplace_back(region.type(id).element, region.type(id).static_shape());
    double fastest = 0;
    for (int run = 0; run <= kTimingRuns; ++run) {
      std::vector<GroupTime> times;
      HEDDLE_RETURN_IF_ERROR(program->Run(inputs, pool_.get(), &times).status());
      const double time = times.empty() ? 0 : times.back().end_us;
      if (run == 1 || (run > 1 && time < fastest)) fastest = time;  // the first warms up
    }
    times_[key] = fastest;
    return fastest;
  }

  // Ops, attributes that change code, and types: everything that decides the time, names and weights aside.
  static std::string KeyOf(const ir::Graph& region) {
    std::string key;
    for (ir::NodeId id : region.NodeIds()) {
      const ir::Node& node = region.node(id);
      key += node.op + "(";
      for (ir::ValueId input : node.inputs) {
        key += input == ir::kNoValue ? "-," : ir::TypeText({region.type(input).element, region.type(input).shape}) + ",";
      }
      key += ")->";
      for (ir::ValueId output : node.outputs) key += ir::TypeText({region.type(output).element, region.type(output).shape}) + ",";
      for (const auto& [name, value] : node.attributes) {
        if (const auto* ints = std::get_if<std::vector<int64_t>>(&value); ints && ints->size() <= 16) {
          key += fmt::format("{}={};", name, fmt::join(*ints, ","));
        }
        if (const auto* number = std::get_if<int64_t>(&value)) key += fmt::format("{}={};", name, *number);
      }
      key += fmt::format("g{}\n", node.fusion_group);
    }
    return key;
  }

  Config config_;
  std::shared_ptr<ThreadPool> pool_;
  mutable std::map<std::string, double> times_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Device>> MakeCpuDevice(const nlohmann::json& section) {
  HEDDLE_ASSIGN_OR_RETURN(Config config, ParseConfig(section));
  return std::unique_ptr<ir::Device>(std::make_unique<CpuDevice>(std::move(config)));
}

}  // namespace heddle::cpu
