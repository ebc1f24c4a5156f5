// The original's float semantics against the legalised graph's integers, one layer at a time with equal inputs.

#include "ir/passes/quantised_compare.h"

#include <algorithm>
#include <map>

#include "ir/interpreter.h"
#include "ir/op.h"

namespace heddle::ir {
namespace {

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

// The original's tensor for a value of the legalised graph, in the value's type; null where it has none.
std::optional<Tensor> Counterpart(const std::map<std::string, Tensor>& originals, const Value& value) {
  std::string name = value.name;
  auto it = originals.find(name);
  if (it == originals.end() && name.ends_with(".i8")) it = originals.find(name.substr(0, name.size() - 3));
  if (it == originals.end() || it->second.shape() != value.type.static_shape()) return std::nullopt;
  Tensor tensor = it->second;
  if (tensor.type() == value.type.element) return tensor;
  Tensor flipped(value.type.element, tensor.shape());
  for (int64_t i = 0; i < flipped.bytes(); ++i) flipped.data()[i] = tensor.data()[i] ^ std::byte{0x80};
  return flipped;
}

LayerDifference Count(const Node& node, const Value& value, const Tensor& expected, const Tensor& actual) {
  LayerDifference layer{node.name, node.op, value.name, expected.elements(), 0, 0};
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const int64_t step = std::abs(expected.at_int(i) - actual.at_int(i));
    layer.mismatches += step != 0;
    layer.largest_step = std::max(layer.largest_step, step);
  }
  return layer;
}

void Merge(const LayerDifference& layer, QuantisedComparison& result) {
  result.elements += layer.elements;
  result.mismatches += layer.mismatches;
  result.largest_step = std::max(result.largest_step, layer.largest_step);
  auto it = std::find_if(result.layers.begin(), result.layers.end(), [&](const LayerDifference& l) { return l.value == layer.value; });
  if (it == result.layers.end()) {
    result.layers.push_back(layer);
    return;
  }
  it->elements += layer.elements;
  it->mismatches += layer.mismatches;
  it->largest_step = std::max(it->largest_step, layer.largest_step);
}

}  // namespace

absl::Status CompareQuantisedLayers(const std::map<std::string, Tensor>& originals, const Graph& legalised,
                                    const std::vector<Tensor>& inputs, QuantisedComparison& result) {
  if (legalised.inputs().size() != inputs.size()) return absl::InternalError("legalising changed the number of graph inputs");

  std::map<ValueId, Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) tensors[legalised.inputs()[i]] = inputs[i];
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, legalised.TopologicalOrder());
  for (NodeId id : order) {
    const Node& node = legalised.node(id);
    const Op* op = FindOp(node.op);
    if (!op) return NodeError("E-IR-010", node, "unknown op");
    std::vector<const Tensor*> arguments;
    for (ValueId input : node.inputs) {
      const Tensor* constant = legalised.ConstantOrNull(input);
      arguments.push_back(input == kNoValue ? nullptr : constant ? constant : &tensors.at(input));
    }
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, op->Evaluate(NodeContext(legalised, node), arguments));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& value = legalised.value(node.outputs[i]);
      const auto expected = IsByte(value.type.element) ? Counterpart(originals, value) : std::nullopt;
      if (expected) Merge(Count(node, value, *expected, outputs[i]), result);
      tensors[node.outputs[i]] = expected ? *expected : std::move(outputs[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status CompareQuantisedLayers(const Graph& original, const Graph& legalised, const std::vector<Tensor>& inputs,
                                    QuantisedComparison& result) {
  std::map<std::string, Tensor> originals;
  InterpretOptions options;
  options.on_value = [&](ValueId id, const Tensor& tensor) {
    if (IsByte(tensor.type())) originals[original.value(id).name] = tensor;
  };
  HEDDLE_RETURN_IF_ERROR(Interpret(original, inputs, options).status());
  return CompareQuantisedLayers(originals, legalised, inputs, result);
}

}  // namespace heddle::ir
