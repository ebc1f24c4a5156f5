// Nodes as a hostile model might hold them: valid random cases with inputs dropped, types changed, attributes and constants replaced
// by extreme values. Each must be refused with a code or evaluate and lower; run under sanitizers, nothing else may happen.

#include <gtest/gtest.h>

#include "ir/loops/op_lowering.h"
#include "ir/op.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

constexpr int kCasesPerOp = 60;
constexpr int64_t kLargestEvaluated = 1 << 16;  // elements: larger results are checked by their type only

int64_t Extreme(Random& random) {
  constexpr int64_t kValues[] = {0, 1, -1, 2, -2, 3, 7, 64, 1 << 24, int64_t{1} << 31, INT32_MIN, INT64_MAX, INT64_MIN, int64_t{1} << 40};
  return kValues[random() % std::size(kValues)];
}

Attribute Mutated(const Attribute& attribute, Random& random) {
  Attribute result = attribute;
  if (auto* i = std::get_if<int64_t>(&result)) {
    *i = Extreme(random);
  } else if (auto* f = std::get_if<double>(&result)) {
    const double values[] = {0, -1, 1e300, -1e300, 1e-300, HUGE_VAL, NAN};
    *f = values[random() % std::size(values)];
  } else if (auto* list = std::get_if<std::vector<int64_t>>(&result)) {
    if (list->empty() || random() % 3 == 0) {
      list->push_back(Extreme(random));
    } else if (random() % 4 == 0) {
      list->pop_back();
    } else {
      (*list)[random() % list->size()] = Extreme(random);
    }
  } else if (auto* text = std::get_if<std::string>(&result)) {
    *text = "nonsense";
  }
  if (random() % 8 == 0) result = std::string("another kind");
  return result;
}

// The sample's graph with one to three things changed.
Graph Mutate(const Graph& sample, Random& random) {
  const Node& node = sample.node(sample.NodeIds().front());
  Graph graph("hostile");
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) {
    if (id == kNoValue || random() % 10 == 0) {
      inputs.push_back(kNoValue);
      continue;
    }
    const Value& value = sample.value(id);
    ValueType type = value.type;
    if (random() % 8 == 0) type.element = static_cast<ElementType>(random() % 11);
    if (random() % 4 == 0 && !type.shape.empty()) type.shape[random() % type.shape.size()] = static_cast<int64_t>(random() % 4);
    if (random() % 10 == 0) type.shape.push_back(1);
    if (!value.constant) {
      inputs.push_back(graph.AddInput("x", type));
      continue;
    }
    Tensor tensor = *value.constant;
    if (random() % 3 == 0) tensor = Tensor(type.element, type.static_shape());
    if (IsInteger(tensor.type()) && tensor.elements() > 0 && random() % 2 == 0) {
      tensor.set_int(static_cast<int64_t>(random() % static_cast<uint64_t>(tensor.elements())), Extreme(random));
    }
    inputs.push_back(graph.AddConstant("c", tensor));
  }
  if (random() % 12 == 0 && !inputs.empty()) inputs.pop_back();
  if (random() % 12 == 0) inputs.push_back(graph.AddInput("extra", ValueType(ElementType::kInt64, Shape{2})));
  Attributes attributes = node.attributes;
  for (auto& [name, attribute] : attributes) {
    if (random() % 3 == 0) attribute = Mutated(attribute, random);
  }
  std::vector<std::string> outputs(random() % 10 == 0 ? 3 : node.outputs.size(), "y");
  graph.AddNode(node.op, "node", inputs, outputs, attributes);
  return graph;
}

// Evaluates on arbitrary inputs and lowers, where the result is small enough.
void Exercise(const Op& op, const Graph& graph, Random& random) {
  const Node& node = graph.node(graph.NodeIds().front());
  const NodeContext context(graph, node);
  CaseBuilder builder(random);
  int64_t elements = 0;
  for (ValueId id : node.outputs) elements += graph.type(id).elements();
  if (elements > kLargestEvaluated) return;
  std::vector<Tensor> tensors(node.inputs.size());
  std::vector<const Tensor*> inputs;
  std::vector<loops::Buffer> in, out;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) {
      inputs.push_back(nullptr);
      in.emplace_back();
      continue;
    }
    const ValueType& type = graph.type(node.inputs[i]);
    tensors[i] = builder.RandomTensor(type.element, type.static_shape());
    inputs.push_back(graph.IsConstant(node.inputs[i]) ? graph.ConstantOrNull(node.inputs[i]) : &tensors[i]);
    in.emplace_back("in", type.element, type.static_shape());
  }
  for (ValueId id : node.outputs) out.emplace_back("out", graph.type(id).element, graph.type(id).static_shape());
  const auto outputs = op.Evaluate(context, inputs);
  if (outputs.ok()) {
    for (size_t i = 0; i < node.outputs.size(); ++i) EXPECT_EQ((*outputs)[i].shape(), graph.type(node.outputs[i]).static_shape());
  } else {
    EXPECT_NE(ErrorCode(outputs.status()), "");
  }
  op.Work(context);
  loops::OpLowering lowering(in, out);
  const absl::Status lowered = op.Lower(context, lowering);
  EXPECT_TRUE(lowered.ok() || !ErrorCode(lowered).empty());
}

class HostileOps : public testing::TestWithParam<const Op*> {};

TEST_P(HostileOps, RefusedOrEvaluated) {
  const Op& op = *GetParam();
  int refused = 0;
  for (uint64_t k = 0; k < kCasesPerOp; ++k) {
    Random random(5000 + k);
    SCOPED_TRACE(fmt::format("op {}, seed {}", op.name(), 5000 + k));
    Graph graph = Mutate(op.Sample(random)->graph, random);
    const absl::Status typed = InferNodeTypes(graph, graph.NodeIds().front());
    if (!typed.ok()) {
      EXPECT_NE(ErrorCode(typed), "") << typed.message();
      ++refused;
      continue;
    }
    Exercise(op, graph, random);
  }
  EXPECT_GT(refused, 0);
}

std::vector<const Op*> SampledOps() {
  std::vector<const Op*> ops;
  for (const Op* op : AllOps()) {
    Random random(1);
    if (op->Sample(random)) ops.push_back(op);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, HostileOps, testing::ValuesIn(SampledOps()),
                         [](const auto& info) { return std::string(info.param->name()); });

}  // namespace
}  // namespace heddle::ir
