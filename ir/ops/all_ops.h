// One factory a file of ir/ops/; all_ops.cc lists them in the order of docs/ops.md.
#ifndef HEDDLE_IR_OPS_ALL_OPS_H_
#define HEDDLE_IR_OPS_ALL_OPS_H_

#include <memory>
#include <vector>

#include "ir/op.h"

namespace heddle::ir {

using OpList = std::vector<std::unique_ptr<Op>>;

// Float and movement ops.
void AddConv(OpList& ops);
void AddMatMul(OpList& ops);
void AddPool(OpList& ops);
void AddUnary(OpList& ops);
void AddBinary(OpList& ops);
void AddVariadic(OpList& ops);
void AddReshape(OpList& ops);
void AddRearrange(OpList& ops);
void AddJoin(OpList& ops);
void AddSlice(OpList& ops);
void AddSoftmax(OpList& ops);
void AddReduce(OpList& ops);
void AddNormalise(OpList& ops);
void AddGenerate(OpList& ops);
void AddResize(OpList& ops);
void AddConvTranspose(OpList& ops);

// Integer ops.
void AddQuantizeLinear(OpList& ops);
void AddDynamicQuantize(OpList& ops);
void AddQLinear(OpList& ops);
void AddQConv(OpList& ops);
void AddQMatMul(OpList& ops);
void AddQElementwise(OpList& ops);
void AddQPool(OpList& ops);
void AddQLut(OpList& ops);
void AddQSoftmax(OpList& ops);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_OPS_ALL_OPS_H_
