// The textual IR: what `heddle import` shows and what the numbered files of a run directory hold.
//
//   graph "kws" {
//     input %x : i8[1x16x8x8] q(0.05:-3)
//     const %w : i8[16x16x3x3] = ref:5e884898da280471
//     const %shape : i64[2] = [1, -1]
//     %y : i8[1x16x8x8] q(0.05:-3) = QConv(%x, %w, _) {group = 1, strides = [1, 1]} @"block1/conv" group=3 from ["c", "r"]
//     output %y
//   }
//
// One node a line, producers before users. A name that is not made of letters, digits and _ . / $ - is quoted, with the
// escapes of C for quote, backslash, n, t, r and xNN. `_` is an absent optional input; `?n` is a dimension named n;
// `from` is left out where the node stands for the source node of its own name. A float attribute always has a point, an
// exponent, inf or nan. Constants are [values] up to `inline_elements`, else hex:… (little-endian bytes) or ref:…
// (ir/constant_store.h). `//` before a token starts a comment. print → parse → print is the identity.
#ifndef HEDDLE_IR_TEXT_H_
#define HEDDLE_IR_TEXT_H_

#include <string>
#include <string_view>

#include "ir/constant_store.h"
#include "ir/graph.h"

namespace heddle::ir {

enum class ConstantForm {
  kHex,        // the text alone is the whole graph
  kReference,  // readable; parsing needs the store
};

struct PrintOptions {
  ConstantForm form = ConstantForm::kHex;
  ConstantStore* store = nullptr;  // receives what ref: names; may be null where the text is only shown
  int64_t inline_elements = 16;    // constants of up to so many elements are printed as values
};

std::string PrintGraph(const Graph& graph, const PrintOptions& options = {});

struct ParseOptions {
  const ConstantStore* store = nullptr;  // where ref: is looked up
};

// Errors name line and column: E-TEXT-001 syntax, 002 a name defined twice or unknown, 003 a bad type or value,
// 004 nested too deeply, 005 ref: without a store or unknown to it. Ops and types are not verified: see ir::Verify.
absl::StatusOr<Graph> ParseGraph(std::string_view text, const ParseOptions& options = {});

// True where both graphs have the same names, types, constants, nodes, attributes and order of nodes; ids may differ.
bool StructurallyEqual(const Graph& a, const Graph& b);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_TEXT_H_
