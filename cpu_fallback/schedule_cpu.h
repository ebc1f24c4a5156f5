// How compute definitions become fast loops of a CPU.
//
// Three shapes: contractions (convolution, matrix product, depthwise, pooling) keep a tile of sums in registers and read operands that
// were laid out for it; reductions along memory add in lanes; everything else is one vector loop over the longest stretch of
// axes that is contiguous in every access.
#ifndef HEDDLE_CPU_FALLBACK_SCHEDULE_CPU_H_
#define HEDDLE_CPU_FALLBACK_SCHEDULE_CPU_H_

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpu_fallback/contraction.h"
#include "cpu_fallback/cpu_target.h"
#include "ir/loops/stmt.h"
#include "ir/loops/tensor_expr.h"

namespace heddle::cpu {

// A constant operand in the layout that the loops want: `pack` computes it from constant parameters, once.
struct PackStep {
  ir::loops::Function pack;  // params: the constants it reads, then the packed buffer (kOutput)
  std::vector<int> sources;  // index into the group's params for each of the constants
};

struct ScheduledGroup {
  // Params: those of the group that are still read or written, in order, then one kConstant for each pack step.
  ir::loops::Function function;
  std::vector<int> param_sources;  // for each param of `function`: index into the group's params, or -1 - (pack step)
  std::vector<PackStep> packs;
};

//   E-LOOPS-001 as LowerToFunction.
absl::StatusOr<ScheduledGroup> ScheduleForCpu(const std::string& name, const std::vector<ir::loops::TensorExpr>& stages,
                                              const std::vector<ir::loops::Param>& params, const CpuTarget& target);

// ---- Parts, for the files that implement this.

// The state of scheduling one group.
struct GroupBuilder {
  const CpuTarget& target;
  const std::vector<ir::loops::Param>& params;
  std::string prefix;                         // of the current stage's names
  std::vector<ir::loops::Stmt> statements;    // in order
  std::vector<ir::loops::Buffer> temporaries;
  std::vector<PackStep> packs;
  std::vector<ir::loops::Buffer> packed;      // of each pack step

  // True where the expression reads constant parameters and tables only (and something at all).
  bool IsConstant(const ir::loops::Expr& expr) const;
  // Makes `fill`, which writes `buffer`, a pack step where `constant`, else a statement of this group.
  void Materialise(const ir::loops::Buffer& buffer, const ir::loops::Stmt& fill, bool constant);
};

// for var in [0, extent) in vectors of `lanes`, and a narrower vector for the rest.
ir::loops::Stmt VectorLoop(const std::string& name, int64_t extent, int64_t lanes,
                           const std::function<ir::loops::Stmt(const ir::loops::Expr&)>& body);

void ScheduleContraction(const Contraction& contraction, GroupBuilder& builder);
ir::loops::Stmt SchedulePlain(const ir::loops::TensorExpr& stage, const GroupBuilder& builder);
ir::loops::Stmt ScheduleReduction(const ir::loops::TensorExpr& stage, const GroupBuilder& builder);

// Lanes of a vector of values of this type, at least 1.
int64_t LanesOf(ir::ElementType type, const CpuTarget& target);

// Below this many operations a loop is not worth handing to threads.
inline constexpr int64_t kParallelWork = 64 << 10;

}  // namespace heddle::cpu

#endif  // HEDDLE_CPU_FALLBACK_SCHEDULE_CPU_H_
