// Identifiers for the printers: every variable and buffer of a function gets one name of its own.
#ifndef HEDDLE_IR_LOOPS_NAMES_H_
#define HEDDLE_IR_LOOPS_NAMES_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace heddle::ir::loops {

// Letters, digits and underscores, not starting with a digit: "conv1/Relu:0" -> "conv1_Relu_0". Never empty.
std::string ToIdentifier(std::string_view name);

class UniqueNames {
 public:
  // Names that must not be given out (a language's keywords).
  explicit UniqueNames(std::unordered_set<std::string> reserved = {}) : used_(std::move(reserved)) {}
  // The name of a node (ExprNode of a variable, BufferNode): the same at every call, near to `wanted`.
  const std::string& Of(const void* node, std::string_view wanted);

 private:
  std::unordered_map<const void*, std::string> names_;
  std::unordered_set<std::string> used_;
};

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_NAMES_H_
