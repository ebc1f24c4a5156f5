// The tables of docs/accelerator.md, printed from the C++ descriptions of parameters, instructions and registers.
#ifndef HEDDLE_HLS_ACCELERATOR_DOCS_H_
#define HEDDLE_HLS_ACCELERATOR_DOCS_H_

#include <string>

namespace heddle::hls {

// `page` with everything between "<!-- begin NAME -->" and "<!-- end NAME -->" replaced by the current table, for NAME
// parameters, header, transfer, compute, registers.
std::string WithCurrentTables(const std::string& page);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_ACCELERATOR_DOCS_H_
