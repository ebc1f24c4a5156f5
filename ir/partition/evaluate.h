// The pieces of a plan's exact cost, as every solver adds them up.
#ifndef HEDDLE_IR_PARTITION_EVALUATE_H_
#define HEDDLE_IR_PARTITION_EVALUATE_H_

#include "ir/partition/launch_order.h"
#include "ir/partition/plan.h"
#include "ir/partition/problem.h"

namespace heddle::ir::partition {

// The transfers of one tensor under an assignment, by destination.
std::vector<Transfer> TransfersOf(const Problem& problem, int tensor, const Assignment& device_of);
// The sum of their times.
double TransferUs(const Problem& problem, int tensor, const Assignment& device_of);

// Whether every device's sizes sum to at most its capacity, and the areas of the devices in use to at most max_area.
bool WithinCapacity(const Problem& problem, const Assignment& device_of);

// True where the order of execution matters to a sum of times: a launch overhead or a limit of regions.
bool LaunchesMatter(const Problem& problem);

// Indices of the tensors that a node produces or reads, ascending; of those it reads.
std::vector<std::vector<int>> TensorsOfNodes(const Problem& problem);
std::vector<std::vector<int>> ReadsOfNodes(const Problem& problem);

// What the plan costs that runs these regions in this order, which must be topological.
Evaluation EvaluateSequence(const Problem& problem, const Assignment& device_of, const std::vector<Run>& sequence);

// The same for the sequence of BestLaunchOrder (`max_states` is its own): the best for kSerial, kEnergy and kThroughput,
// a good one for kLatency.
Evaluation Evaluate(const Problem& problem, const Adjacency& adjacency, const Assignment& device_of,
                    int max_states = 4000);

// For comparing plans: the cost, and of plans that cost the same the one that keeps devices and links busy for less.
double Score(const Problem& problem, double cost, double busy_us);
double Score(const Problem& problem, const Evaluation& evaluation);

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_EVALUATE_H_
