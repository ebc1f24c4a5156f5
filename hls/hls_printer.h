// Loop IR as HLS C++17: plain functions over pointers with #pragma HLS directives.
//
// Exact where the loop IR is exact: integer arithmetic that interval analysis cannot prove to stay in its type goes through
// unsigned types, so that it wraps without undefined behaviour; the branch of a Select that is not taken is not evaluated.
#ifndef HEDDLE_HLS_HLS_PRINTER_H_
#define HEDDLE_HLS_HLS_PRINTER_H_

#include <string>
#include <string_view>

#include "hls/params.h"
#include "ir/loops/stmt.h"

namespace heddle::hls {

// "int8_t", "float", …
std::string_view CppType(ir::ElementType type);

// The helper functions and includes that printed functions use.
std::string HlsPrelude();

// One static function (and the tables it reads in front of it). Innermost loops of independent or summed iterations are
// pipelined and unrolled by R, loops over output channels (dimension 1 of a stage's output) by C; local arrays are partitioned to match.
std::string PrintHlsFunction(const ir::loops::Function& function, const AcceleratorParams& params);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_HLS_PRINTER_H_
