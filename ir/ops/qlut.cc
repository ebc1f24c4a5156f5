// QLut and SignFlip: functions of one 8-bit element. A table of 256 entries stands for any unary function between two
// quantised tensors, so that activations cost one lookup on every device.

#include "ir/ops/all_ops.h"
#include "ir/ops/quant_lowering.h"

namespace heddle::ir {
namespace {

class QLut : public Op {
 public:
  std::string_view name() const override { return "QLut"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x i8 of any shape. Attribute table: i8 tensor [256], indexed by x + 128. y i8 = table[x + 128].";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 1, 1));
    HEDDLE_RETURN_IF_ERROR(CheckInputType(c, 0, ElementType::kInt8));
    HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::shared_ptr<const Tensor>>(c.node(), "table", true));
    const auto table = c.node().TensorAttribute("table");
    if (!table || table->type() != ElementType::kInt8 || table->shape() != Shape{256}) {
      return NodeError("E-OP-204", c.node(), "table must be i8[256]");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return std::vector<ValueType>{ValueType(ElementType::kInt8, c.input_shape(0))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const auto table = c.node().TensorAttribute("table");
    const auto entries = table->as<int8_t>();
    Tensor y = *in[0];
    for (int8_t& element : y.as<int8_t>()) element = entries[static_cast<size_t>(element + 128)];
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const loops::Buffer table = l.Table("table", *c.node().TensorAttribute("table"));
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      return table(loops::Cast(ElementType::kInt64, l.input(0).At(i)) + 128);
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    Graph graph("sample");
    const Shape shape = {RandomInt(random, 1, 3), RandomInt(random, 1, 50)};
    const ValueId x = graph.AddInput("x", ValueType(ElementType::kInt8, shape));
    auto table = std::make_shared<const Tensor>(RandomTensor(random, ElementType::kInt8, {256}, -128, 127));
    const NodeId node = graph.AddNode("QLut", "qlut", {x}, {"y"}, {{"table", table}});
    return FinishCase(std::move(graph), node, {RandomTensor(random, ElementType::kInt8, shape, -128, 127)});
  }
};

class SignFlip : public Op {
 public:
  std::string_view name() const override { return "SignFlip"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kInteger; }
  std::string_view doc() const override {
    return "x u8 or i8 of any shape. y is the other of the two types, y = x XOR 0x80: an unsigned tensor with zero point z "
           "becomes a signed one with zero point z - 128, the same real values, and back.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(CheckInputCount(c, 1, 1));
    const ElementType type = c.input_type(0).element;
    if (type == ElementType::kInt8 || type == ElementType::kUint8) return absl::OkStatus();
    return NodeError("E-OP-201", c.node(), "the input must be i8 or u8, found " + TypeText(c.input_type(0)));
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const bool to_signed = c.input_type(0).element == ElementType::kUint8;
    return std::vector<ValueType>{ValueType(to_signed ? ElementType::kInt8 : ElementType::kUint8, c.input_shape(0))};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    Tensor y(c.output_type().element, in[0]->shape());
    for (int64_t i = 0; i < y.bytes(); ++i) y.data()[i] = in[0]->data()[i] ^ std::byte{0x80};
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    const ElementType type = l.output().type();
    l.Add(loops::Compute(l.output(), [&](const loops::Indices& i) {
      return loops::Xor(loops::Cast(type, l.input(0).At(i)), loops::IntConstant(type, 0x80));
    }));
    return absl::OkStatus();
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    Graph graph("sample");
    const Shape shape = {RandomInt(random, 1, 3), RandomInt(random, 1, 50)};
    const bool is_signed = RandomInt(random, 0, 1) != 0;
    const ElementType type = is_signed ? ElementType::kInt8 : ElementType::kUint8;
    const ValueId x = graph.AddInput("x", ValueType(type, shape));
    const NodeId node = graph.AddNode("SignFlip", "flip", {x}, {"y"});
    return FinishCase(std::move(graph), node,
                      {RandomTensor(random, type, shape, is_signed ? -128 : 0, is_signed ? 127 : 255)});
  }
};

}  // namespace

void AddQLut(OpList& ops) {
  ops.push_back(std::make_unique<QLut>());
  ops.push_back(std::make_unique<SignFlip>());
}

}  // namespace heddle::ir
