// Prints the tables of docs/accelerator.md.

#include "hls/accelerator_docs.h"

#include <fmt/format.h>

#include <functional>
#include <map>

#include "hls/isa.h"
#include "hls/params.h"
#include "hls/registers.h"
#include "ir/check.h"

namespace heddle::hls {
namespace {

std::string ParameterTable() {
  std::string text = "| parameter | range | default | |\n|---|---|---|---|\n";
  for (const ParamRange& range : ParamRanges()) {
    const std::string rule = range.power_of_two         ? ", a power of two"
                             : range.multiple_of != 1 ? fmt::format(", a multiple of {}", range.multiple_of)
                                                      : "";
    text += fmt::format("| `{}` | {} to {}{} | {} | {} |\n", range.name, range.low, range.high, rule,
                        ParamValue(AcceleratorParams{}, range.name), range.doc);
  }
  return text;
}

std::string FieldTable(const std::vector<FieldPlace>& places) {
  std::string text = "| word | bits | field | |\n|---|---|---|---|\n";
  for (const FieldPlace& place : places) {
    const int low = place.offset % 32;
    const std::string bits = place.bits == 1 ? fmt::format("{}", low) : fmt::format("{}..{}", low + place.bits - 1, low);
    text += fmt::format("| {} | {} | `{}`{} | {} |\n", place.offset / 32, bits, std::string(place.name),
                        place.is_signed ? " (signed)" : "", std::string(place.doc));
  }
  return text;
}

std::string RegisterTable() {
  std::string text = "| offset | register | access | |\n|---|---|---|---|\n";
  for (const RegisterSpec& spec : RegisterMap()) {
    const char* access = spec.access == Access::kReadOnly ? "read" : spec.access == Access::kReadWrite ? "read, write" : "counter";
    text += fmt::format("| 0x{:02X} | `{}` | {} | {} |\n", spec.offset, std::string(spec.name), access, std::string(spec.doc));
  }
  return text;
}

}  // namespace

std::string WithCurrentTables(const std::string& page) {
  const std::map<std::string, std::string> tables = {{"parameters", ParameterTable()},
                                                     {"header", FieldTable(HeaderPlaces())},
                                                     {"transfer", FieldTable(FieldsOf(Opcode::kLoad))},
                                                     {"compute", FieldTable(FieldsOf(Opcode::kCompute))},
                                                     {"registers", RegisterTable()}};
  std::string result = page;
  for (const auto& [name, table] : tables) {
    const std::string begin = "<!-- begin " + name + " -->\n", end = "<!-- end " + name + " -->";
    const size_t from = result.find(begin), to = result.find(end);
    HEDDLE_CHECK(from != std::string::npos && to != std::string::npos && from < to, "no place for the table " + name);
    result.replace(from + begin.size(), to - from - begin.size(), table);
  }
  return result;
}

}  // namespace heddle::hls
