// Where an op puts its definition in tensor expressions: the op sees its inputs and outputs as buffers and adds stages
// (ir/loops/tensor_expr.h) that compute the outputs from the inputs. Devices make one for each node of a region, with the
// outputs of one node as the inputs of the next, and fuse the stages of the region.
#ifndef HEDDLE_IR_LOOPS_OP_LOWERING_H_
#define HEDDLE_IR_LOOPS_OP_LOWERING_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/loops/tensor_expr.h"

namespace heddle::ir::loops {

class OpLowering {
 public:
  // One buffer for each node input (an empty handle where an optional input is absent) and for each node output, of the
  // element type and shape of the value. `prefix` starts the names of temporaries ("conv1_").
  OpLowering(std::vector<Buffer> inputs, std::vector<Buffer> outputs, std::string prefix = "")
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), prefix_(std::move(prefix)) {}

  bool has_input(int i) const {
    return i < static_cast<int>(inputs_.size()) && static_cast<bool>(inputs_[static_cast<size_t>(i)]);
  }
  const Buffer& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Buffer& output(int i = 0) const { return outputs_[static_cast<size_t>(i)]; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }

  // A buffer for a stage between inputs and outputs.
  Buffer Temporary(std::string_view name, ElementType type, Shape shape) {
    return Buffer(prefix_ + std::string(name), type, std::move(shape));
  }
  // A constant table; its contents become part of the code.
  Buffer Table(std::string_view name, Tensor contents) {
    return Buffer::Table(prefix_ + std::string(name), std::move(contents));
  }
  void Add(TensorExpr stage) { stages_.push_back(std::move(stage)); }

  const std::vector<TensorExpr>& stages() const { return stages_; }
  std::vector<TensorExpr> TakeStages() { return std::move(stages_); }

 private:
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  std::string prefix_;
  std::vector<TensorExpr> stages_;
};

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_OP_LOWERING_H_
