// Builds quantise/dequantise graphs for tests, as exporters write them.
#ifndef HEDDLE_IR_PASSES_QUANT_TEST_GRAPHS_H_
#define HEDDLE_IR_PASSES_QUANT_TEST_GRAPHS_H_

#include <cmath>
#include <string>
#include <vector>

#include "ir/check.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/ops/quant_common.h"

namespace heddle::ir {

class QdqBuilder {
 public:
  explicit QdqBuilder(uint64_t seed) : random_(seed), graph_("test") {}

  Graph& graph() { return graph_; }
  Random& random() { return random_; }

  ValueId Input(const Shape& shape) {
    return graph_.AddInput("input" + std::to_string(graph_.inputs().size()), ValueType(ElementType::kFloat32, shape));
  }
  ValueId Scalar(float value) { return graph_.AddConstant("scalar", Tensor::Of<float>({}, {value})); }
  ValueId Floats(const Shape& shape, float low, float high) {
    Tensor t(ElementType::kFloat32, shape);
    for (float& v : t.as<float>()) v = std::uniform_real_distribution<float>(low, high)(random_);
    return graph_.AddConstant("floats", std::move(t));
  }
  ValueId Ints(const std::vector<int64_t>& values) {
    return graph_.AddConstant("ints", Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
  }

  ValueId Op(const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes = {}) {
    const std::string name = op + std::to_string(counter_++);
    const NodeId node = graph_.AddNode(op, name, inputs, {name + "_out"}, std::move(attributes));
    const absl::Status status = InferNodeTypes(graph_, node);
    HEDDLE_CHECK(status.ok(), std::string(status.message()));
    return graph_.node(node).outputs[0];
  }

  ValueId ZeroPoint(ElementType type, int64_t zero) {
    Tensor z(type, {});
    z.set_int(0, zero);
    return graph_.AddConstant("zero", std::move(z));
  }
  ValueId Quantise(ValueId x, float scale, int64_t zero, ElementType type = ElementType::kInt8) {
    return Op("QuantizeLinear", {x, Scalar(scale), ZeroPoint(type, zero)});
  }
  ValueId Dequantise(ValueId x, float scale, int64_t zero) {
    return Op("DequantizeLinear", {x, Scalar(scale), ZeroPoint(graph_.type(x).element, zero)});
  }
  // Quantised and dequantised with one pair of parameters.
  ValueId Fake(ValueId x, float scale, int64_t zero, ElementType type = ElementType::kInt8) {
    return Dequantise(Quantise(x, scale, zero, type), scale, zero);
  }
  // Random weights, dequantised: per axis where axis >= 0.
  ValueId Weights(const Shape& shape, int axis, float scale, ElementType type = ElementType::kInt8) {
    const bool is_signed = type == ElementType::kInt8;
    const ValueId w = graph_.AddConstant("weights", RandomTensor(random_, type, shape, is_signed ? -127 : 1, is_signed ? 127 : 255));
    if (axis < 0) return Dequantise(w, scale, is_signed ? 0 : 128);
    const int64_t channels = shape[static_cast<size_t>(axis)];
    Tensor zeros(type, {channels});
    for (int64_t i = 0; i < channels; ++i) zeros.set_int(i, is_signed ? 0 : 128);
    Tensor scales(ElementType::kFloat32, {channels});
    for (float& s : scales.as<float>()) s = scale * std::uniform_real_distribution<float>(0.3f, 1.7f)(random_);
    last_scales_ = scales;
    return Op("DequantizeLinear", {w, graph_.AddConstant("scales", std::move(scales)), graph_.AddConstant("zeros", std::move(zeros))},
              {{"axis", int64_t{axis}}});
  }
  // i32 bias dequantised by x_scale times the scales of the last per-axis weights.
  ValueId Bias(float x_scale) {
    Tensor scales = last_scales_;
    for (float& s : scales.as<float>()) s *= x_scale;
    const Shape shape = scales.shape();
    const ValueId b = graph_.AddConstant("bias", RandomTensor(random_, ElementType::kInt32, shape, -3000, 3000));
    return Op("DequantizeLinear", {b, graph_.AddConstant("bias_scales", std::move(scales))}, {{"axis", int64_t{0}}});
  }
  void Output(ValueId value) { graph_.MarkOutput(value); }

  std::vector<Tensor> RandomInputs(float low = -4, float high = 4) {
    std::vector<Tensor> inputs;
    for (ValueId id : graph_.inputs()) {
      Tensor t(graph_.type(id).element, graph_.type(id).static_shape());
      for (int64_t i = 0; i < t.elements(); ++i) {
        if (IsFloat(t.type())) {
          t.set_double(i, std::uniform_real_distribution<float>(low, high)(random_));
        } else {
          const auto [least, most] = IntegerRange(t.type());
          t.set_int(i, RandomInt(random_, least, most));
        }
      }
      inputs.push_back(std::move(t));
    }
    return inputs;
  }

 private:
  Random random_;
  Graph graph_;
  Tensor last_scales_;
  int counter_ = 0;
};

}  // namespace heddle::ir

#endif  // HEDDLE_IR_PASSES_QUANT_TEST_GRAPHS_H_
