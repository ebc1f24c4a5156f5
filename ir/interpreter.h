// The reference interpreter: runs a graph node by node with each op's reference kernel. Slow, plain, and the truth that
// every device is compared with.
#ifndef HEDDLE_IR_INTERPRETER_H_
#define HEDDLE_IR_INTERPRETER_H_

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

struct InterpretOptions {
  // Called with every value as it is computed (graph inputs included); may be empty.
  std::function<void(ValueId, const Tensor&)> on_value;
};

// `inputs`: one per graph input, of its type and static shape (E-RUN-001 where not). Returns one per graph output.
absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                              const InterpretOptions& options = {});

}  // namespace heddle::ir

#endif  // HEDDLE_IR_INTERPRETER_H_
