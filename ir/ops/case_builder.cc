// Random cases for tests: tensors, shapes and one-node graphs from a seeded generator. The generator's raw bits are used
// instead of the standard distributions, whose results differ between libraries: a seed means the same everywhere.

#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"

namespace heddle::ir {

int64_t CaseBuilder::Int(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
}

double CaseBuilder::Real(double low, double high) {
  return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
}

ElementType CaseBuilder::AnyType() { return static_cast<ElementType>(Int(0, 10)); }
ElementType CaseBuilder::NumberType() { return static_cast<ElementType>(Int(0, 9)); }

Shape CaseBuilder::RandomShape(int least_rank, int most_rank, int64_t largest_extent) {
  Shape shape(static_cast<size_t>(Int(least_rank, most_rank)));
  for (int64_t& extent : shape) extent = Int(1, largest_extent);
  return shape;
}

Shape CaseBuilder::BroadcastableTo(const Shape& shape) {
  Shape result(shape.begin() + Int(0, Coin() ? 0 : static_cast<int64_t>(shape.size())), shape.end());
  for (int64_t& extent : result) extent = Int(0, 3) == 0 ? 1 : extent;
  return result;
}

Tensor CaseBuilder::RandomTensor(ElementType type, const Shape& shape, double low, double high) {
  Tensor tensor(type, shape);
  const bool is_unsigned = type == ElementType::kUint8 || type == ElementType::kUint16 || type == ElementType::kUint32 ||
                           type == ElementType::kUint64;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (type == ElementType::kBool) {
      tensor.set_int(i, Int(0, 1));
    } else if (IsFloat(type)) {
      tensor.set_double(i, Real(low, high));
    } else {
      const auto least = static_cast<int64_t>(std::ceil(is_unsigned ? std::max(low, 0.0) : low));
      const auto most = static_cast<int64_t>(std::floor(high));
      tensor.set_int(i, Int(least, std::max(least, most)));
    }
  }
  return tensor;
}

ValueId CaseBuilder::Input(Tensor tensor) {
  const ValueId id = graph_.AddInput(fmt::format("x{}", inputs_.size()), ValueType(tensor.type(), tensor.shape()));
  inputs_.push_back(std::move(tensor));
  return id;
}

ValueId CaseBuilder::Constant(Tensor tensor) {
  return graph_.AddConstant(fmt::format("c{}", graph_.num_value_slots()), std::move(tensor));
}

ValueId CaseBuilder::IntsConstant(const std::vector<int64_t>& values) {
  return Constant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

RandomCase CaseBuilder::Finish(std::string_view op, std::vector<ValueId> inputs, Attributes attributes, int outputs) {
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) names.push_back(fmt::format("y{}", i));
  const NodeId node = graph_.AddNode(std::string(op), "node", std::move(inputs), names, std::move(attributes));
  for (ValueId output : graph_.node(node).outputs) graph_.MarkOutput(output);
  return {std::move(graph_), std::move(inputs_)};
}

}  // namespace heddle::ir
