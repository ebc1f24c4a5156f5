// ResNet-50 as int8 layers with seeded weights: no file of it, quantised, is at hand, and its shapes are what matters.
#ifndef HEDDLE_TESTBENCH_RESNET50_H_
#define HEDDLE_TESTBENCH_RESNET50_H_

#include "ir/graph.h"

namespace heddle::testbench {

// One input i8 [1, 3, 224, 224], one output i8 [1, 1000]: QConv, MaxPool, QAdd, QAveragePool, QMatMul; 4.09 GMAC, 25.5 M weights.
// Scales keep activations spread over their range.
ir::Graph MakeResnet50();

}  // namespace heddle::testbench

#endif  // HEDDLE_TESTBENCH_RESNET50_H_
