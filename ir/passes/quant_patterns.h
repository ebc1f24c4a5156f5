// Parts of legalise_quantisation: what the float side of a quantised pattern looks like, and how a match is emitted.
#ifndef HEDDLE_IR_PASSES_QUANT_PATTERNS_H_
#define HEDDLE_IR_PASSES_QUANT_PATTERNS_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/ops/quant_common.h"

namespace heddle::ir {

// An i8 tensor that a DequantizeLinear reads: real = scale * (integer - zero).
struct QuantisedInput {
  ValueId integer = kNoValue;
  float scale = 0;
  int64_t zero = 0;
  NodeId dequantiser = kNoNode;
};
// `value` is DequantizeLinear of an i8 tensor, per tensor, with constant parameters and a positive scale.
std::optional<QuantisedInput> MatchDequantised(const Graph& graph, ValueId value);

// A constant that is dequantised: i8 weights or i32 bias, per tensor or per axis.
struct QuantisedConstant {
  ValueId integer = kNoValue;
  const Tensor* tensor = nullptr;
  std::vector<float> scale;
  std::vector<int64_t> zero;
  int axis = -1;  // -1: per tensor
  NodeId dequantiser = kNoNode;
};
std::optional<QuantisedConstant> MatchDequantisedConstant(const Graph& graph, ValueId value, ElementType type);

// A QuantizeLinear to i8, per tensor, with constant parameters and a positive scale.
struct OutputQuantiser {
  NodeId node = kNoNode;
  ValueId input = kNoValue;
  ValueId output = kNoValue;
  float scale = 0;
  int64_t zero = 0;
};
std::optional<OutputQuantiser> MatchQuantiser(const Graph& graph, NodeId node);

// Relu, Clip and their like between `quantiser` and what it quantises: exactly a clamp of the quantised value, because
// quantising is monotone. Only values with a single reader are passed.
struct ClampedValue {
  ValueId value = kNoValue;
  int64_t low = -128;
  int64_t high = 127;
  std::vector<NodeId> clamps;
};
ClampedValue PeelClamps(const Graph& graph, const OutputQuantiser& quantiser);

// What a match makes: an integer op in place of the quantiser.
struct Replacement {
  std::string op;
  std::string name;               // of the float node that does the work
  std::vector<ValueId> inputs;
  Attributes attributes;
  std::vector<NodeId> absorbed;   // nodes of the pattern, for source names
};
// Adds the op; its output takes the quantiser's place, name and parameters; the pattern's nodes go where nothing else reads
// them. False, and nothing changed, where the op's verifier refuses.
bool Emit(Graph& graph, const OutputQuantiser& quantiser, Replacement replacement);

// The requantiser of a sum in units of input_scale for each channel, or nullopt where a scale leaves ir/requantise.h's range.
std::optional<Requantiser> RequantiserFor(const std::vector<double>& sum_scale, const OutputQuantiser& quantiser,
                                          const ClampedValue& clamped);

// Bias in the accumulator's units: i32 [channels]. `value` is a float constant or a dequantised i32 constant with one
// element or `channels` elements, multiplied by `factor`; the integers are taken as they are where their scale is the
// accumulator's. nullopt where it is neither or does not fit 32 bits.
std::optional<ValueId> BiasFor(Graph& graph, ValueId value, const std::vector<double>& sum_scale, int64_t channels, double factor,
                               const std::string& name);

// ---- Matchers, one a kind of layer. Each returns true where it replaced the quantiser.
bool MatchConvolution(Graph& graph, const OutputQuantiser& quantiser);
bool MatchMatrixProduct(Graph& graph, const OutputQuantiser& quantiser);  // Gemm, MatMul, MatMul + Add
bool MatchBinary(Graph& graph, const OutputQuantiser& quantiser);         // Add, Sub, Mul
bool MatchAverage(Graph& graph, const OutputQuantiser& quantiser);        // AveragePool, GlobalAveragePool, ReduceMean
bool MatchSoftmax(Graph& graph, const OutputQuantiser& quantiser);
bool MatchLookup(Graph& graph, const OutputQuantiser& quantiser);  // any element-wise function of one tensor

// ---- Normalisation before matching.
// QLinearConv, QLinearMatMul and their like become dequantise, float op, quantise.
absl::Status ExpandQLinearOps(Graph& graph);
// 8-bit unsigned tensors become signed, the same real values; SignFlip stays where the model's own interface is unsigned.
absl::Status MakeSigned(Graph& graph);
// Moves dequantisers behind and quantisers before nodes that only move elements, so that these run on integers.
absl::Status MoveQuantisersThroughMovement(Graph& graph);
// After matching: a lookup that only clamps joins the integer op before it; lookups that change nothing go.
absl::Status MergeClampLookups(Graph& graph);

// Indices of the data inputs of a node that moves elements without changing them, or nullopt: f(move(x)) = move(f(x)) for
// every increasing f. A constant fill value (Pad) is handled by MovementFill.
std::optional<std::vector<int>> MovementInputs(const Graph& graph, const Node& node);
// Index of the input that holds the value new elements get, or -1.
int MovementFillInput(const Node& node);
// Every output element depends on the elements at its own position only.
bool IsElementwise(const Node& node);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_PASSES_QUANT_PATTERNS_H_
