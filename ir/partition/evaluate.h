// The pieces of a plan's exact cost, as every solver adds them up.
#ifndef HEDDLE_IR_PARTITION_EVALUATE_H_
#define HEDDLE_IR_PARTITION_EVALUATE_H_

#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// The transfers of one tensor under an assignment, by destination.
std::vector<Transfer> TransfersOf(const Problem& problem, int tensor, const Assignment& device_of);
// The sum of their times.
double TransferUs(const Problem& problem, int tensor, const Assignment& device_of);

// Whether every device's sizes sum to at most its capacity.
bool WithinCapacity(const Problem& problem, const Assignment& device_of);

// True where the order of execution matters to the cost: a launch overhead or a limit of regions.
bool LaunchesMatter(const Problem& problem);

// Indices of the tensors that a node produces or reads, ascending.
std::vector<std::vector<int>> TensorsOfNodes(const Problem& problem);

// As Evaluate in plan.h; `max_states` is that of BestLaunchOrder.
Evaluation Evaluate(const Problem& problem, const Adjacency& adjacency, const Assignment& device_of,
                    int max_states = 4000);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_EVALUATE_H_
