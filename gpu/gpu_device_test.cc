// Every op's random cases through the GPU device, against the reference interpreter; the device's configuration, costs and refusals.

#include "gpu/gpu_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include <unistd.h>

#include "gpu/gpu_plan.h"
#include "ir/interpreter.h"
#include "ir/op.h"

namespace heddle::gpu {
namespace {

using ir::Graph;
using ir::Tensor;
using nlohmann::json;

const json kModelled = {{"name", "gpu"}, {"kind", "gpu"}, {"timing", "modelled"}, {"float_gmacs_per_s", 20.0},
                        {"int8_gmacs_per_s", 40.0}, {"other_gops_per_s", 20.0}, {"memory_gb_per_s", 10.0},
                        {"node_overhead_us", 5.0}, {"launch_overhead_us", 15.0}};

std::string CodeOf(const absl::Status& status) { return ir::ErrorCode(status); }

class GpuDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = MakeGpuDevice(kModelled);
    if (!device.ok() && CodeOf(device.status()) == "E-GPU-010") GTEST_SKIP() << "no OpenCL device on this machine";
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(*device);
  }
  std::unique_ptr<ir::Device> device_;
};

uint64_t Seed() {
  const char* seed = std::getenv("HEDDLE_SEED");
  return seed == nullptr ? 20260612 : std::strtoull(seed, nullptr, 10);
}

// The first element that differs by more than the op allows, as text; empty where all agree.
std::string FirstDifference(const ir::Op& op, const ir::NodeContext& context, const Tensor& expected, const Tensor& actual) {
  if (expected == actual) return "";
  if (expected.type() != actual.type() || expected.shape() != actual.shape()) return "another type or shape";
  const bool is_bounded = op.kind(context) == ir::OpKind::kFloat && ir::IsFloat(expected.type());
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double e = expected.at_double(i), a = actual.at_double(i);
    const bool same = e == a || (std::isnan(e) && std::isnan(a));
    if (same || (is_bounded && std::abs(e - a) <= op.ErrorBound(context, e))) continue;
    return fmt::format("element {}: expected {}, found {}", i, e, a);
  }
  return "";
}

// Adds the graph of a random case to `whole`; values and nodes get the prefix.
void Append(const Graph& part, const std::string& prefix, Graph& whole) {
  std::map<ir::ValueId, ir::ValueId> moved = {{ir::kNoValue, ir::kNoValue}};
  for (ir::ValueId id : part.ValueIds()) {
    const ir::Value& value = part.value(id);
    if (value.constant) moved[id] = whole.AddConstant(prefix + value.name, value.constant);
  }
  for (ir::ValueId id : part.inputs()) moved[id] = whole.AddInput(prefix + part.value(id).name, part.type(id));
  for (ir::NodeId id : part.NodeIds()) {
    const ir::Node& node = part.node(id);
    std::vector<ir::ValueId> inputs;
    std::vector<std::string> outputs;
    for (ir::ValueId input : node.inputs) inputs.push_back(moved.at(input));
    for (ir::ValueId output : node.outputs) outputs.push_back(prefix + part.value(output).name);
    const ir::NodeId copy = whole.AddNode(node.op, prefix + node.name, inputs, outputs, node.attributes);
    for (size_t o = 0; o < outputs.size(); ++o) moved[node.outputs[o]] = whole.node(copy).outputs[o];
  }
  for (ir::ValueId id : part.outputs()) whole.MarkOutput(moved.at(id));
}

// All cases are nodes of one region: one program, and memory shared as in a real network.
TEST_F(GpuDeviceTest, EveryOpAgreesWithTheReference) {
  Graph whole("samples");
  std::vector<Tensor> inputs;
  std::set<std::string> refusals;
  for (const ir::Op* op : ir::AllOps()) {
    ir::Random random(Seed() + std::hash<std::string_view>()(op->name()));
    std::optional<ir::RandomCase> sample = op->Sample(random);
    if (!sample) continue;
    const std::string what = fmt::format("{} with HEDDLE_SEED={}", op->name(), Seed());
    ASSERT_TRUE(ir::InferGraphTypes(sample->graph).ok()) << what;
    const ir::Support support = device_->Supports(sample->graph, sample->graph.node(sample->graph.NodeIds().at(0)));
    if (!support.supported) {
      EXPECT_FALSE(support.code.empty() || support.text.empty()) << what;
      refusals.insert(fmt::format("{}: {} {}", op->name(), support.code, support.text));
      continue;
    }
    Append(sample->graph, std::string(op->name()) + "_", whole);
    inputs.insert(inputs.end(), sample->inputs.begin(), sample->inputs.end());
  }
  for (const std::string& refusal : refusals) std::printf("not on the GPU: %s\n", refusal.c_str());
  ASSERT_TRUE(ir::InferGraphTypes(whole).ok());
  const auto graph = std::make_shared<const Graph>(whole);
  const auto expected = Interpret(*graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  auto region = device_->Compile(graph, {.name = "samples"});
  ASSERT_TRUE(region.ok()) << region.status().message();
  const auto actual = (*region)->Run(inputs);
  ASSERT_TRUE(actual.ok()) << actual.status().message();
  ASSERT_EQ(actual->outputs.size(), expected->size());
  for (size_t o = 0; o < expected->size(); ++o) {
    const ir::Node& node = graph->node(graph->value(graph->outputs()[o]).producer);
    const ir::Op& op = *ir::FindOp(node.op);
    EXPECT_EQ(FirstDifference(op, ir::NodeContext(*graph, node), (*expected)[o], actual->outputs[o]), "")
        << node.op << " with HEDDLE_SEED=" << Seed();
  }
}

// x -> relu -> a -> relu -> b -> … : many values, of which two live at a time.
Graph Chain(int length) {
  Graph graph("chain");
  ir::ValueId value = graph.AddInput("x", ir::ValueType(ir::ElementType::kFloat32, ir::Shape{4, 100}));
  for (int i = 0; i < length; ++i) {
    const ir::NodeId node = graph.AddNode("Relu", "relu" + std::to_string(i), {value}, {"v" + std::to_string(i)});
    value = graph.node(node).outputs[0];
  }
  graph.MarkOutput(value);
  EXPECT_TRUE(ir::InferGraphTypes(graph).ok());
  return graph;
}

TEST(GpuPlanTest, MemoryAndKernelsAreShared) {
  const Graph graph = Chain(8);
  const auto plan = PlanRegion(graph, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->steps.size(), 8u);
  EXPECT_EQ(plan->kernels.size(), 1u);
  EXPECT_EQ(plan->memory_bytes.size(), 2u);
  for (const PlanStep& step : plan->steps) {  // a kernel never writes what it reads
    EXPECT_NE(plan->tensors[static_cast<size_t>(step.arguments[0])].memory, plan->tensors[static_cast<size_t>(step.arguments[1])].memory);
  }
}

TEST_F(GpuDeviceTest, RunsAgainAndReportsModelledTimes) {
  const auto graph = std::make_shared<const Graph>(Chain(3));
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("heddle_gpu_{}", getpid());
  json section = kModelled;
  section["emit_ptx"] = true;
  section["api"] = "opencl";
  auto device = MakeGpuDevice(section).value();
  auto region = device->Compile(graph, {.name = "region_000", .directory = folder});
  ASSERT_TRUE(region.ok()) << region.status().message();
  EXPECT_TRUE(std::filesystem::exists(folder / "region_000.cl"));
  EXPECT_TRUE(std::filesystem::exists(folder / "region_000.ptx"));
  std::filesystem::remove_all(folder);
  for (double value : {-1.0, 2.5}) {
    Tensor x(ir::ElementType::kFloat32, {4, 100});
    for (int64_t i = 0; i < x.elements(); ++i) x.set_double(i, value + static_cast<double>(i));
    const auto result = (*region)->Run({x});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_TRUE(result->outputs[0] == Interpret(*graph, {x}).value()[0]);
    EXPECT_EQ(result->provenance, ir::Provenance::kModelled);
    EXPECT_EQ(result->events.size(), 3u);
    EXPECT_DOUBLE_EQ(result->time_us, device_->EstimateCost(*graph, graph->NodeIds())->time_us);
  }
  EXPECT_EQ(CodeOf((*region)->Run({}).status()), "E-GPU-031");
}

TEST_F(GpuDeviceTest, MeasuredTimesComeFromRuns) {
  auto device = MakeGpuDevice({{"name", "gpu"}, {"timing", "measured"}, {"launch_overhead_us", 3.0}});
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ((*device)->launch_overhead_us(), 3.0);
  const auto graph = std::make_shared<const Graph>(Chain(2));
  const auto cost = (*device)->EstimateCost(*graph, graph->NodeIds());
  ASSERT_TRUE(cost.ok()) << cost.status().message();
  EXPECT_EQ(cost->provenance, ir::Provenance::kMeasured);
  EXPECT_GT(cost->time_us, 0);
  auto region = (*device)->Compile(graph, {.name = "r"});
  ASSERT_TRUE(region.ok()) << region.status().message();
  const auto result = (*region)->Run({Tensor(ir::ElementType::kFloat32, {4, 100})});
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->events.size(), 4u);  // upload, two kernels, download
  EXPECT_EQ(result->events[0].resource, "gpu.transfer");
  EXPECT_EQ(result->events[1].resource, "gpu");
  EXPECT_LE(result->events[1].end_us, result->events[2].start_us);
}

TEST(GpuConfigTest, BadSectionsAreNamed) {
  json section = kModelled;
  section["warp_size"] = 32;
  const absl::Status unknown = MakeGpuDevice(section).status();
  EXPECT_EQ(CodeOf(unknown), "E-TARGET-003");
  EXPECT_NE(std::string(unknown.message()).find("warp_size"), std::string::npos);
  section = kModelled;
  section["memory_gb_per_s"] = -1;
  EXPECT_EQ(CodeOf(MakeGpuDevice(section).status()), "E-TARGET-004");
  section = kModelled;
  section.erase("int8_gmacs_per_s");
  EXPECT_EQ(CodeOf(MakeGpuDevice(section).status()), "E-TARGET-004");
  section = kModelled;
  section["opencl_device_type"] = "fpga";
  EXPECT_EQ(CodeOf(MakeGpuDevice(section).status()), "E-TARGET-004");
}

}  // namespace
}  // namespace heddle::gpu
