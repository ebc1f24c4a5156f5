// The explicit list of ops: order is visible and nothing is dropped by the linker.

#include "ir/ops/all_ops.h"

#include <map>

namespace heddle::ir {
namespace {

struct Registry {
  OpList ops;
  std::map<std::string_view, const Op*> by_name;

  Registry() {
    AddConv(ops);
    AddMatMul(ops);
    AddPool(ops);
    AddUnary(ops);
    AddBinary(ops);
    AddVariadic(ops);
    AddReshape(ops);
    AddRearrange(ops);
    AddJoin(ops);
    AddSlice(ops);
    AddSoftmax(ops);
    AddReduce(ops);
    AddNormalise(ops);
    AddGenerate(ops);
    AddResize(ops);
    AddConvTranspose(ops);
    AddQuantizeLinear(ops);
    AddDynamicQuantize(ops);
    AddQLinear(ops);
    AddQConv(ops);
    AddQMatMul(ops);
    AddQElementwise(ops);
    AddQPool(ops);
    AddQLut(ops);
    AddQSoftmax(ops);
    for (const auto& op : ops) by_name[op->name()] = op.get();
  }
};

const Registry& Instance() {
  static const Registry& registry = *new Registry;
  return registry;
}

}  // namespace

const Op* FindOp(std::string_view name) {
  auto it = Instance().by_name.find(name);
  return it == Instance().by_name.end() ? nullptr : it->second;
}

std::vector<const Op*> AllOps() {
  std::vector<const Op*> ops;
  for (const auto& op : Instance().ops) ops.push_back(op.get());
  return ops;
}

}  // namespace heddle::ir
