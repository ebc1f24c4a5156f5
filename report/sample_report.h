// A made-up report for tests: a small residual network placed on three devices by the real partitioner.
#ifndef HEDDLE_REPORT_SAMPLE_REPORT_H_
#define HEDDLE_REPORT_SAMPLE_REPORT_H_

#include "report/report.h"

namespace heddle::report {

Report SampleReport();

}  // namespace heddle::report

#endif  // HEDDLE_REPORT_SAMPLE_REPORT_H_
