// Relu: max(x, 0), element by element.

#include "ir/ops/all_ops.h"

namespace heddle::ir {
namespace {

class Relu : public Op {
 public:
  std::string_view name() const override { return "Relu"; }
  OpKind kind(const NodeContext& c) const override {
    return IsFloat(c.input_type(0).element) ? OpKind::kFloat : OpKind::kInteger;
  }
  std::string_view doc() const override { return "X of any shape, a numeric type. Y = max(X, 0). ONNX Relu."; }

  absl::Status Verify(const NodeContext& c) const override {
    if (c.num_inputs() != 1 || !c.has_input(0)) return NodeError("E-OP-001", c.node(), "takes one input");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(c.input_type(0).element, c.input_shape(0))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext&, std::span<const Tensor* const> in) const override {
    Tensor y = *in[0];
    for (int64_t i = 0; i < y.elements(); ++i) {
      if (y.at_double(i) < 0) y.set_double(i, 0);
    }
    return std::vector<Tensor>{std::move(y)};
  }
};

}  // namespace

void AddRelu(OpList& ops) { ops.push_back(std::make_unique<Relu>()); }

}  // namespace heddle::ir
