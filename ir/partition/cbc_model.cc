// Hands a programme to CBC through its C interface, the one part of it that is stable between releases. A CBC model
// cannot be solved twice, so the rows are kept here and loaded anew each time.
#include "ir/partition/cbc_model.h"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>

namespace heddle::ir::partition {

int CbcModel::AddBinary(double objective) {
  const int column = AddContinuous(objective, 1);
  integer_[column] = true;
  return column;
}

int CbcModel::AddContinuous(double objective, double upper) {
  objective_.push_back(objective);
  lower_.push_back(0);
  upper_.push_back(upper);
  integer_.push_back(false);
  return static_cast<int>(objective_.size()) - 1;
}

void CbcModel::AddRow(std::vector<Term> terms, double lower, double upper) {
  std::map<int, double> sums;
  for (const auto& [column, coefficient] : terms) sums[column] += coefficient;
  Row row{{}, lower, upper};
  for (const auto& [column, coefficient] : sums) {
    if (coefficient != 0) row.terms.emplace_back(column, coefficient);
  }
  rows_.push_back(std::move(row));
}

void CbcModel::Fix(int column, double value) { lower_[column] = upper_[column] = value; }

CbcModel::Solution CbcModel::Minimise(const std::vector<Term>& start, double time_limit_seconds) const {
  const int columns = static_cast<int>(objective_.size());
  std::vector<std::vector<std::pair<int, double>>> by_column(columns);
  std::vector<double> row_lower, row_upper;
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (const auto& [column, coefficient] : rows_[row].terms) by_column[column].emplace_back(row, coefficient);
    row_lower.push_back(rows_[row].lower);
    row_upper.push_back(rows_[row].upper);
  }
  std::vector<CoinBigIndex> starts = {0};
  std::vector<int> indices;
  std::vector<double> values;
  for (const auto& entries : by_column) {
    for (const auto& [row, coefficient] : entries) {
      indices.push_back(row);
      values.push_back(coefficient);
    }
    starts.push_back(static_cast<CoinBigIndex>(indices.size()));
  }

  const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
  Cbc_loadProblem(model.get(), columns, static_cast<int>(rows_.size()), starts.data(), indices.data(), values.data(),
                  lower_.data(), upper_.data(), objective_.data(), row_lower.data(), row_upper.data());
  for (int column = 0; column < columns; ++column) {
    if (integer_[column]) Cbc_setInteger(model.get(), column);
  }
  Cbc_setObjSense(model.get(), 1);
  Cbc_setLogLevel(model.get(), 0);
  for (const auto& [name, value] : std::vector<std::pair<const char*, std::string>>{
           {"log", "0"},
           {"slog", "0"},
           {"threads", "0"},
           {"ratioGap", "0"},
           {"allowableGap", "0"},
           {"timeMode", "elapsed"},
           {"seconds", std::to_string(std::max(0.1, time_limit_seconds))}}) {
    Cbc_setParameter(model.get(), name, value.c_str());
  }
  if (!start.empty()) {
    std::vector<int> start_columns;
    std::vector<double> start_values;
    for (const auto& [column, value] : start) {
      start_columns.push_back(column);
      start_values.push_back(value);
    }
    Cbc_setMIPStartI(model.get(), static_cast<int>(start.size()), start_columns.data(), start_values.data());
  }
  Cbc_solve(model.get());

  Solution solution;
  solution.infeasible = Cbc_isProvenInfeasible(model.get());
  solution.optimal = Cbc_isProvenOptimal(model.get());
  solution.bound = solution.optimal ? Cbc_getObjValue(model.get()) : Cbc_getBestPossibleObjValue(model.get());
  const double* best = solution.infeasible ? nullptr : Cbc_bestSolution(model.get());
  // A programme without integers is solved before CBC's search begins and has no "best solution" of it.
  const bool any_integer = std::find(integer_.begin(), integer_.end(), true) != integer_.end();
  if (best == nullptr && !solution.infeasible && !any_integer) best = Cbc_getColSolution(model.get());
  if (best != nullptr) solution.values.assign(best, best + columns);
  return solution;
}

}  // namespace heddle::ir::partition
