// The rules that bring operators of any opset to the opset-13 forms of ir/ops/. Internal to frontend/.
#ifndef HEDDLE_FRONTEND_ONNX_REWRITE_H_
#define HEDDLE_FRONTEND_ONNX_REWRITE_H_

#include <string_view>
#include <vector>

#include "frontend/node_importer.h"

namespace heddle::frontend {

// Sets `results` of the node, or answers Unsupported(reason), NeedsShape() or a coded error.
using Rule = absl::Status (*)(NodeImporter&);
struct RuleEntry {
  std::string_view op;
  Rule rule;
};

// The explicit lists, one a file.
const std::vector<RuleEntry>& ShapeRules();         // onnx_rewrite_shape.cc: movement and shapes
const std::vector<RuleEntry>& ArithmeticRules();    // onnx_rewrite_arithmetic.cc: element-wise, reductions, softmax, norms
const std::vector<RuleEntry>& WindowRules();        // onnx_rewrite_window.cc: convolutions, pooling, resizing
const std::vector<RuleEntry>& QuantisationRules();  // onnx_rewrite_quantisation.cc
const std::vector<RuleEntry>& CompositeRules();     // onnx_rewrite_composite.cc: functions of ONNX in terms of others
const std::vector<RuleEntry>& MicrosoftRules();     // onnx_rewrite_microsoft.cc: domain com.microsoft

// The rule for an operator of a domain, or null: then the node is taken as it is.
Rule FindRule(std::string_view domain, std::string_view op);
// Whether some form of the operator is supported, judged by its name alone.
bool SupportedByName(std::string_view domain, std::string_view op);

// Brings the node in: by its rule, or as it is.
absl::Status ImportNode(NodeImporter& n);

// Shared by several rules. Checks that the scale, where constant, is finite and positive (E-IMPORT-041).
absl::Status CheckScale(const NodeImporter& n, size_t input);
// Explicit pads for auto_pad, in `attributes`; `x` is the input, `kernel` its window's extents.
absl::Status ResolveAutoPad(NodeImporter& n, ir::ValueId x, const std::vector<int64_t>& kernel);
// Extents of the kernel: the attribute, or the weights' trailing dimensions.
absl::StatusOr<std::vector<int64_t>> KernelOf(NodeImporter& n, ir::ValueId weights);
// Softmax and its kin over `axis`; before opset 13 over all dimensions from `axis` on.
absl::StatusOr<ir::ValueId> EmitSoftmax(NodeImporter& n, const std::string& op, ir::ValueId x, int64_t axis, bool flatten);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_ONNX_REWRITE_H_
