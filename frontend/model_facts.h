// What a report says of a model: report.json's model{path, sha256, macs, parameters}.
#ifndef HEDDLE_FRONTEND_MODEL_FACTS_H_
#define HEDDLE_FRONTEND_MODEL_FACTS_H_

#include <filesystem>
#include <string>

#include "ir/graph.h"

namespace heddle::frontend {

struct ModelFacts {
  int64_t macs = 0;        // multiply-accumulates of one inference
  int64_t parameters = 0;  // elements of weights and biases; shapes, indices, scales and zero points are none
  int64_t nodes = 0;
};

// Of a graph whose types are known (as imported).
ModelFacts FactsOf(const ir::Graph& graph);

// SHA-256 of a file, in hexadecimal. E-IMPORT-001 where it cannot be read.
absl::StatusOr<std::string> FileSha256(const std::filesystem::path& path);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_MODEL_FACTS_H_
