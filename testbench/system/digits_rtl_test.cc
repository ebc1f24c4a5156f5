// Every held-out digit through the accelerator's RTL: the same answers as the reference interpreter, at least 97 % right.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/execute.h"
#include "driver/verify.h"
#include "ir/interpreter.h"
#include "ir/npz.h"
#include "ir/passes/pass.h"
#include "ir/region.h"
#include "sim/accelerator_device.h"

namespace heddle::testbench {
namespace {

constexpr char kModel[] = "testbench/models/digits/digits_int8_qdq.onnx";
constexpr char kHeldout[] = "testbench/models/digits/heldout.npz";

int64_t TopIndex(const ir::Tensor& tensor) {
  int64_t top = 0;
  for (int64_t i = 1; i < tensor.elements(); ++i) {
    if (tensor.at_double(i) > tensor.at_double(top)) top = i;
  }
  return top;
}

ir::Tensor Sample(const ir::Tensor& all, int64_t index, const ir::Shape& shape) {
  ir::Tensor tensor(all.type(), shape);
  std::memcpy(tensor.data(), all.data() + index * tensor.bytes(), static_cast<size_t>(tensor.bytes()));
  return tensor;
}

// The graph cut into what runs before the accelerator's region, the region, and what runs after it.
struct Parts {
  std::vector<ir::NodeId> before, region, after;
};

Parts Split(const ir::Graph& graph, const ir::Device& accelerator) {
  Parts parts;
  const std::vector<ir::NodeId> order = graph.TopologicalOrder().value();
  for (ir::NodeId id : order) {
    const bool taken = accelerator.Supports(graph, graph.node(id)).supported;
    (taken ? parts.region : parts.region.empty() ? parts.before : parts.after).push_back(id);
  }
  return parts;
}

TEST(DigitsRtl, EveryHeldOutDigitAgreesAndMostAreRight) {
  ir::Graph graph = driver::LoadModel(kModel, {}, false).value();
  ASSERT_TRUE(ir::RunDefaultPipeline(graph).ok());
  const driver::Target target = driver::LoadTarget("zynq7020").value();
  driver::DeviceSet set = driver::MakeDevices(target, {}, 1).value();
  auto* accelerator = dynamic_cast<sim::AcceleratorDevice*>(set.devices[1].get());
  ASSERT_NE(accelerator, nullptr);
  const Parts parts = Split(graph, *accelerator);
  ASSERT_TRUE(ir::IsConvex(graph, parts.region));
  auto region = std::make_shared<const ir::Graph>(ir::ExtractRegion(graph, parts.region));
  auto code = accelerator->Compile(region, {"digits", {}, {}});
  ASSERT_TRUE(code.ok()) << code.status().message();

  std::map<std::string, ir::Tensor> heldout;
  const std::vector<ir::NamedTensor> arrays = ir::ReadNpzFile(kHeldout).value();
  for (const ir::NamedTensor& array : arrays) heldout[array.name] = array.tensor;
  const ir::Tensor& pictures = heldout.at("input");
  const ir::Tensor& labels = heldout.at("labels");
  const int64_t count = labels.elements();
  ASSERT_GE(count, 300);
  std::vector<std::vector<ir::Tensor>> region_inputs;
  std::vector<driver::Reference> references;
  const ir::Shape shape = graph.type(graph.inputs()[0]).static_shape();
  for (int64_t i = 0; i < count; ++i) {
    references.push_back(driver::ComputeReference(graph, {Sample(pictures, i, shape)}).value());
    std::vector<ir::Tensor> inputs;
    for (ir::ValueId id : region->inputs()) inputs.push_back(references.back().values.at(region->value(id).name));
    region_inputs.push_back(std::move(inputs));
  }
  auto results = dynamic_cast<sim::AcceleratorRegion&>(**code).RunBatch(region_inputs);
  ASSERT_TRUE(results.ok()) << results.status().message();

  int64_t right = 0;
  for (int64_t i = 0; i < count; ++i) {
    const driver::Reference& reference = references[static_cast<size_t>(i)];
    const ir::RunResult& result = (*results)[static_cast<size_t>(i)];
    for (size_t o = 0; o < region->outputs().size(); ++o) {
      ASSERT_EQ(result.outputs[o], reference.values.at(region->value(region->outputs()[o]).name)) << "picture " << i;
    }
    // One picture takes as long as another: the schedule does not depend on data.
    EXPECT_EQ(result.counters.at("cycles"), (*results)[0].counters.at("cycles")) << "picture " << i;
    right += TopIndex(reference.outputs[0]) == labels.at_int(i);
  }
  fmt::print("{} of {} right, {} cycles a picture\n", right, count, (*results)[0].counters.at("cycles"));
  EXPECT_GE(static_cast<double>(right), 0.97 * static_cast<double>(count));
}

}  // namespace
}  // namespace heddle::testbench
