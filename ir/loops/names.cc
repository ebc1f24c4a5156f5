// Unique identifiers: the wanted name, with a number behind it where it is taken.

#include "ir/loops/names.h"

#include <cctype>

namespace heddle::ir::loops {

std::string ToIdentifier(std::string_view name) {
  std::string identifier;
  for (char c : name) identifier += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (identifier.empty() || std::isdigit(static_cast<unsigned char>(identifier[0]))) identifier.insert(0, "v");
  return identifier;
}

const std::string& UniqueNames::Of(const void* node, std::string_view wanted) {
  auto [it, is_new] = names_.try_emplace(node);
  if (!is_new) return it->second;
  const std::string base = ToIdentifier(wanted);
  std::string name = base;
  for (int n = 1; !used_.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  it->second = std::move(name);
  return it->second;
}

}  // namespace heddle::ir::loops
