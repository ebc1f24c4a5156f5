// A mixed-integer programme built row by row and solved by COIN-OR CBC on one thread.
#ifndef HEDDLE_IR_PARTITION_CBC_MODEL_H_
#define HEDDLE_IR_PARTITION_CBC_MODEL_H_

#include <utility>
#include <vector>

namespace heddle::ir::partition {

class CbcModel {
 public:
  using Term = std::pair<int, double>;  // column, coefficient

  // Returns the column's index. Columns are in [0, upper].
  int AddBinary(double objective);
  int AddContinuous(double objective, double upper);
  int columns() const { return static_cast<int>(objective_.size()); }
  // Terms of one column are added up.
  void AddRow(std::vector<Term> terms, double lower, double upper);
  void Fix(int column, double value);

  struct Solution {
    bool infeasible = false;     // proven
    bool optimal = false;        // proven
    std::vector<double> values;  // by column; empty where no solution was found
    double bound = 0;            // no solution has a smaller objective
  };
  // `start` gives values of the binary columns of a known solution (may be empty).
  Solution Minimise(const std::vector<Term>& start, double time_limit_seconds) const;

 private:
  struct Row {
    std::vector<Term> terms;
    double lower;
    double upper;
  };
  std::vector<double> objective_;
  std::vector<double> lower_;
  std::vector<double> upper_;
  std::vector<bool> integer_;
  std::vector<Row> rows_;
};

}  // namespace heddle::ir::partition

#endif  // HEDDLE_IR_PARTITION_CBC_MODEL_H_
