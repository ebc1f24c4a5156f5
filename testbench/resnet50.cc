// Bottleneck blocks of He et al., "Deep Residual Learning for Image Recognition" (stride in the 3x3 convolution).

#include "testbench/resnet50.h"

#include <cmath>

#include "ir/check.h"
#include "ir/op.h"
#include "ir/ops/quant_common.h"

namespace heddle::testbench {
namespace {

using ir::ValueId;

class Builder {
 public:
  ir::Graph Make() {
    ValueId x = graph_.AddInput("x", ir::ValueType(ir::ElementType::kInt8, ir::Shape{1, 3, 224, 224}));
    x = Conv("conv1", x, 3, 64, 7, 2, true);
    x = Node("MaxPool", "pool1", {x}, {{"kernel_shape", List(3, 3)}, {"strides", List(2, 2)}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    int64_t channels = 64;
    const int blocks[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t width = int64_t{64} << stage;
      for (int block = 0; block < blocks[stage]; ++block) {
        x = Bottleneck("s" + std::to_string(stage + 2) + "b" + std::to_string(block + 1), x, channels, width, block == 0 && stage > 0 ? 2 : 1);
        channels = 4 * width;
      }
    }
    ir::Attributes mean = {{"kernel_shape", List(7, 7)}, {"strides", List(1, 1)}, {"pads", std::vector<int64_t>(4, 0)}, {"x_zero_point", int64_t{-128}},
                           {"counts", std::vector<int64_t>{49}}, {"count_include_pad", int64_t{0}}};
    Requantise(1.0 / 49, -128, mean);
    x = Node("QAveragePool", "mean", {x}, mean);
    x = Node("Flatten", "flat", {x}, {{"axis", int64_t{1}}});
    ir::Attributes fc = {{"a_zero_point", int64_t{-128}}};
    Requantise(Scale(2048), 0, fc);
    x = Node("QMatMul", "fc", {x, Weights({2048, 1000}), Bias(1000)}, fc);
    graph_.MarkOutput(x);
    return std::move(graph_);
  }

 private:
  static std::vector<int64_t> List(int64_t a, int64_t b) { return {a, b}; }
  // Sums of so many products of spread operands become results that are spread as well.
  static double Scale(int64_t products) { return 1.0 / (40.0 * std::sqrt(static_cast<double>(products))); }

  static void Requantise(double scale, int32_t zero, ir::Attributes& attributes) {
    ir::Requantiser r;
    r.scales = {ir::FixedPointScaleOf(scale)};
    r.y_zero_point = zero;
    ir::SetRequantiser(r, attributes);
  }
  ValueId Weights(const ir::Shape& shape) {
    return graph_.AddConstant("w", ir::RandomTensor(random_, ir::ElementType::kInt8, shape, -127, 127));
  }
  ValueId Bias(int64_t channels) {
    return graph_.AddConstant("bias", ir::RandomTensor(random_, ir::ElementType::kInt32, {channels}, -1000, 1000));
  }
  ValueId Node(const std::string& op, const std::string& name, std::vector<ValueId> inputs, ir::Attributes attributes) {
    const ir::NodeId node = graph_.AddNode(op, name, std::move(inputs), {name + "_out"}, std::move(attributes));
    const absl::Status status = ir::InferNodeTypes(graph_, node);
    HEDDLE_CHECK(status.ok(), "ResNet-50: " + std::string(status.message()));
    return graph_.node(node).outputs[0];
  }
  // With ReLU the zero point is the least value; without, it is 0.
  ValueId Conv(const std::string& name, ValueId x, int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride, bool relu) {
    const int64_t pad = kernel / 2;
    ir::Attributes attributes = {{"strides", List(stride, stride)}, {"pads", std::vector<int64_t>(4, pad)}, {"dilations", List(1, 1)}, {"group", int64_t{1}},
                                 {"x_zero_point", inputs == 3 ? int64_t{0} : int64_t{-128}}};
    Requantise(Scale(inputs * kernel * kernel), relu ? -128 : 0, attributes);
    return Node("QConv", name, {x, Weights({outputs, inputs, kernel, kernel}), Bias(outputs)}, attributes);
  }
  ValueId Bottleneck(const std::string& name, ValueId x, int64_t channels, int64_t width, int64_t stride) {
    const bool projects = channels != 4 * width;
    ValueId y = Conv(name + "_reduce", x, channels, width, 1, 1, true);
    y = Conv(name + "_3x3", y, width, width, 3, stride, true);
    y = Conv(name + "_expand", y, width, 4 * width, 1, 1, false);
    const ValueId shortcut = projects ? Conv(name + "_project", x, channels, 4 * width, 1, stride, false) : x;
    const int64_t half = int64_t{1} << 18, zero = projects ? 0 : -128;
    return Node("QAdd", name + "_add", {y, shortcut}, {{"a_zero_point", int64_t{0}}, {"b_zero_point", zero}, {"a_multiplier", half}, {"b_multiplier", half},
                                                       {"shift", int64_t{19}}, {"y_zero_point", int64_t{-128}}, {"clamp_low", int64_t{-128}}, {"clamp_high", int64_t{127}}});
  }

  ir::Random random_{2015};
  ir::Graph graph_{"resnet50"};
};

}  // namespace

ir::Graph MakeResnet50() { return Builder().Make(); }

}  // namespace heddle::testbench
