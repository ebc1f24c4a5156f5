// What printer and parser of the textual IR agree on about names.
#ifndef HEDDLE_IR_TEXT_NAMES_H_
#define HEDDLE_IR_TEXT_NAMES_H_

#include <string_view>

namespace heddle::ir {

constexpr bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/' ||
         c == '$' || c == '-';
}

constexpr bool IsBareName(std::string_view name) {
  if (name.empty()) return false;
  for (char c : name) {
    if (!IsNameCharacter(c)) return false;
  }
  return true;
}

// Ops and attribute keys are bare where they are identifiers.
constexpr bool IsIdentifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name) {
    if (c == '.' || c == '/' || c == '$' || c == '-' || !IsNameCharacter(c)) return false;
  }
  return name != "_";
}

// Dimension symbols stand between the x's of a shape: a bare one has no x, and no character of another meaning there.
constexpr bool IsBareSymbol(std::string_view name) { return IsIdentifier(name) && name.find('x') == std::string_view::npos; }

}  // namespace heddle::ir

#endif  // HEDDLE_IR_TEXT_NAMES_H_
