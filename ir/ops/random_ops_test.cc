// Every op that has a sampler, on seeded random cases: the reference kernel gives what shape inference promised, and the loop
// definition, run as written and with its stages fused, gives what the reference kernel gives (exactly for integers and movement,
// within the op's bound for floats).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ir/check.h"
#include "ir/loops/interpreter.h"
#include "ir/loops/op_lowering.h"
#include "ir/loops/printer.h"
#include "ir/op.h"

namespace heddle::ir {
namespace {

constexpr int kCasesPerOp = 40;

struct Evaluated {
  RandomCase sample;
  std::vector<Tensor> outputs;
};

const Node& OnlyNode(const Graph& graph) { return graph.node(graph.NodeIds().front()); }

std::vector<const Tensor*> NodeInputs(const RandomCase& sample) {
  std::vector<const Tensor*> inputs;
  for (ValueId id : OnlyNode(sample.graph).inputs) {
    const Tensor* tensor = sample.graph.ConstantOrNull(id);
    for (size_t i = 0; i < sample.graph.inputs().size(); ++i) {
      if (sample.graph.inputs()[i] == id) tensor = &sample.inputs[i];
    }
    inputs.push_back(tensor);
  }
  return inputs;
}

// One random case, verified, typed and evaluated; null outputs after a failure.
Evaluated Evaluate(const Op& op, uint64_t seed) {
  Random random(seed);
  Evaluated e{*op.Sample(random), {}};
  const NodeId id = e.sample.graph.NodeIds().front();
  const absl::Status typed = InferNodeTypes(e.sample.graph, id);
  EXPECT_TRUE(typed.ok()) << typed.message();
  if (!typed.ok()) return e;
  auto outputs = op.Evaluate(NodeContext(e.sample.graph, OnlyNode(e.sample.graph)), NodeInputs(e.sample));
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  if (outputs.ok()) e.outputs = *std::move(outputs);
  return e;
}

// The loop definition's outputs, or none where the op has no definition for this case (E-OP-090).
absl::StatusOr<std::vector<Tensor>> RunLoops(const Op& op, const Evaluated& e, bool fuse) {
  const Node& node = OnlyNode(e.sample.graph);
  const NodeContext context(e.sample.graph, node);
  const std::vector<const Tensor*> inputs = NodeInputs(e.sample);
  std::vector<loops::Buffer> in, out;
  std::vector<loops::Param> params;
  std::vector<Tensor> tensors(inputs.size() + node.outputs.size());
  std::vector<Tensor*> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) {
      in.emplace_back();
      continue;
    }
    in.emplace_back(fmt::format("in{}", i), inputs[i]->type(), inputs[i]->shape());
    params.push_back({in.back(), loops::ParamRole::kInput});
    tensors[i] = *inputs[i];
    arguments.push_back(&tensors[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueType& type = e.sample.graph.type(node.outputs[i]);
    out.emplace_back(fmt::format("out{}", i), type.element, type.static_shape());
    params.push_back({out.back(), loops::ParamRole::kOutput});
    tensors[inputs.size() + i] = Tensor(type.element, type.static_shape());
    arguments.push_back(&tensors[inputs.size() + i]);
  }
  loops::OpLowering lowering(in, out, "t_");
  HEDDLE_RETURN_IF_ERROR(op.Lower(context, lowering));
  std::vector<loops::TensorExpr> stages = lowering.TakeStages();
  if (fuse) stages = loops::FuseStages(std::move(stages), out);
  HEDDLE_ASSIGN_OR_RETURN(const loops::Function function, loops::LowerToFunction("op", stages, params));
  const absl::Status run = loops::Interpret(function, arguments, {.reverse_independent_loops = true});
  if (!run.ok()) return absl::InternalError(std::string(run.message()) + "\n" + loops::ToText(function));
  return std::vector<Tensor>(tensors.begin() + static_cast<int64_t>(inputs.size()), tensors.end());
}

void Compare(const Op& op, const Evaluated& e, const std::vector<Tensor>& actual) {
  const NodeContext context(e.sample.graph, OnlyNode(e.sample.graph));
  const double summation = op.SummationBound(context, NodeInputs(e.sample));
  for (size_t o = 0; o < e.outputs.size(); ++o) {
    const Tensor& expected = e.outputs[o];
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const double want = expected.at_double(i), got = actual[o].at_double(i);
      if (op.kind(context) != OpKind::kFloat) {
        if (std::isnan(want) && std::isnan(got)) continue;
        ASSERT_EQ(expected.at_int(i), actual[o].at_int(i)) << "output " << o << ", element " << i;
        ASSERT_EQ(want, got) << "output " << o << ", element " << i;
      } else if (!(want == got) && !(std::isnan(want) && std::isnan(got))) {
        ASSERT_LE(std::abs(want - got), op.ErrorBound(context, want) + summation)
            << "output " << o << ", element " << i << ": expected " << want << ", got " << got;
      }
    }
  }
}

class RandomOps : public testing::TestWithParam<const Op*> {};

TEST_P(RandomOps, ReferenceAndLoopsAgree) {
  const Op& op = *GetParam();
  int lowered = 0;
  for (uint64_t k = 0; k < kCasesPerOp; ++k) {
    const uint64_t seed = 1000 + k;
    SCOPED_TRACE(fmt::format("op {}, seed {}", op.name(), seed));
    const Evaluated e = Evaluate(op, seed);
    ASSERT_FALSE(e.outputs.empty());
    const Node& node = OnlyNode(e.sample.graph);
    ASSERT_GE(e.outputs.size(), node.outputs.size());
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      ASSERT_EQ(e.outputs[o].type(), e.sample.graph.type(node.outputs[o]).element);
      ASSERT_EQ(e.outputs[o].shape(), e.sample.graph.type(node.outputs[o]).static_shape());
    }
    const OpWork work = op.Work(NodeContext(e.sample.graph, node));
    EXPECT_GE(work.macs, 0);
    EXPECT_EQ(work.output_bytes > 0, e.outputs[0].bytes() > 0);
    for (bool fuse : {false, true}) {
      auto actual = RunLoops(op, e, fuse);
      if (ErrorCode(actual.status()) == "E-OP-090") continue;
      ASSERT_TRUE(actual.ok()) << actual.status().message();
      ++lowered;
      Compare(op, e, *actual);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(lowered, 0) << op.name() << " has no definition in loops for any case";
}

std::vector<const Op*> SampledOps() {
  std::vector<const Op*> ops;
  for (const Op* op : AllOps()) {
    Random random(1);
    if (op->Sample(random)) ops.push_back(op);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, RandomOps, testing::ValuesIn(SampledOps()),
                         [](const auto& info) { return std::string(info.param->name()); });

}  // namespace
}  // namespace heddle::ir
