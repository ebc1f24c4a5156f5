// Checks, broadcasting and strided copies that the ops share.

#include "ir/ops/common.h"

#include <algorithm>

namespace heddle::ir {
namespace {

std::string_view KindName(AttributeKind kind) {
  constexpr std::string_view kNames[] = {"an int", "a float", "a string", "ints", "floats", "strings", "a tensor", "a graph"};
  return kNames[static_cast<size_t>(kind)];
}

AttributeKind KindOf(const Attribute& attribute) {
  // The order of the variant's alternatives is the order of the enum.
  static_assert(std::variant_size_v<Attribute> == 8);
  constexpr AttributeKind kKinds[] = {AttributeKind::kInt,  AttributeKind::kFloat,   AttributeKind::kString, AttributeKind::kInts,
                                      AttributeKind::kFloats, AttributeKind::kStrings, AttributeKind::kTensor, AttributeKind::kGraph};
  return kKinds[attribute.index()];
}

}  // namespace

absl::Status VerifySignature(const NodeContext& c, int least, int most, std::initializer_list<AttributeSpec> attributes,
                             int outputs) {
  const Node& node = c.node();
  if (c.num_inputs() < least || (most >= 0 && c.num_inputs() > most)) {
    const std::string expected = most < 0 ? fmt::format("at least {}", least)
                                 : least == most ? std::to_string(least)
                                                 : fmt::format("{} to {}", least, most);
    return NodeError("E-OP-001", node, fmt::format("takes {} inputs, has {}", expected, c.num_inputs()));
  }
  for (int i = 0; i < (most < 0 ? c.num_inputs() : least); ++i) {
    if (!c.has_input(i)) return NodeError("E-OP-001", node, fmt::format("input {} must be present", i));
  }
  if (node.outputs.empty() || (outputs >= 0 && static_cast<int>(node.outputs.size()) > outputs)) {
    return NodeError("E-OP-001", node, fmt::format("gives at most {} outputs, has {}", outputs, node.outputs.size()));
  }
  for (const auto& [name, value] : node.attributes) {
    auto spec = std::find_if(attributes.begin(), attributes.end(), [&](const AttributeSpec& s) { return s.name == name; });
    if (spec == attributes.end()) return NodeError("E-OP-006", node, fmt::format("unknown attribute '{}'", name));
    if (KindOf(value) != spec->kind) {
      return NodeError("E-OP-006", node, fmt::format("attribute '{}' must be {}, is {}", name, KindName(spec->kind),
                                                     KindName(KindOf(value))));
    }
    if (spec->kind == AttributeKind::kTensor && !std::get<std::shared_ptr<const Tensor>>(value)) {
      return NodeError("E-OP-006", node, fmt::format("attribute '{}' holds no tensor", name));
    }
  }
  for (const AttributeSpec& spec : attributes) {
    if (spec.required && !node.Has(std::string(spec.name))) {
      return NodeError("E-OP-006", node, fmt::format("attribute '{}' is missing", spec.name));
    }
  }
  return absl::OkStatus();
}

absl::Status ExpectFloat(const NodeContext& c, int input) {
  return ExpectType(c, input, {ElementType::kFloat32, ElementType::kFloat64});
}

absl::Status ExpectNumber(const NodeContext& c, int input) {
  if (!c.has_input(input) || c.input_type(input).element != ElementType::kBool) return absl::OkStatus();
  return NodeError("E-OP-002", c.node(), fmt::format("input {} is bool, expected numbers", input));
}

absl::Status ExpectType(const NodeContext& c, int input, std::initializer_list<ElementType> types) {
  if (!c.has_input(input)) return absl::OkStatus();
  std::string expected;
  for (ElementType type : types) {
    if (c.input_type(input).element == type) return absl::OkStatus();
    expected += (expected.empty() ? "" : " or ") + std::string(ElementTypeName(type));
  }
  return NodeError("E-OP-002", c.node(), fmt::format("input {} is {}, expected {}", input,
                                                     ElementTypeName(c.input_type(input).element), expected));
}

absl::Status ExpectSameTypes(const NodeContext& c, int first_input) {
  for (int i = first_input + 1; i < c.num_inputs(); ++i) {
    if (c.has_input(i)) HEDDLE_RETURN_IF_ERROR(ExpectType(c, i, {c.input_type(first_input).element}));
  }
  return absl::OkStatus();
}

absl::Status ExpectRank(const NodeContext& c, int input, int least, int most) {
  if (!c.has_input(input)) return absl::OkStatus();
  const int rank = static_cast<int>(c.input_shape(input).size());
  if (rank >= least && rank <= most) return absl::OkStatus();
  const std::string expected = least == most ? std::to_string(least)
                               : most >= 64  ? fmt::format("at least {}", least)
                                             : fmt::format("{} to {}", least, most);
  return NodeError("E-OP-003", c.node(), fmt::format("input {} has shape {}, expected rank {}", input,
                                                     ShapeText(c.input_shape(input)), expected));
}

// Not every verifier states its whole signature before it looks at values.
template <typename T>
absl::Status ExpectHolds(const NodeContext& c, const std::string& attribute, AttributeKind kind) {
  const Attribute& value = c.node().attributes.at(attribute);
  if (std::holds_alternative<T>(value)) return absl::OkStatus();
  return NodeError("E-OP-006", c.node(), fmt::format("attribute '{}' must be {}, is {}", attribute, KindName(kind), KindName(KindOf(value))));
}

absl::Status ExpectInts(const NodeContext& c, const std::string& attribute, int64_t count, int64_t low, int64_t high) {
  if (!c.node().Has(attribute)) return absl::OkStatus();
  HEDDLE_RETURN_IF_ERROR(ExpectHolds<std::vector<int64_t>>(c, attribute, AttributeKind::kInts));
  const std::vector<int64_t> values = c.node().Ints(attribute);
  if (count >= 0 && static_cast<int64_t>(values.size()) != count) {
    return NodeError("E-OP-004", c.node(),
                     fmt::format("attribute '{}' must have {} entries, has {}", attribute, count, values.size()));
  }
  for (int64_t value : values) {
    if (value < low || value > high) {
      return NodeError("E-OP-004", c.node(),
                       fmt::format("attribute '{}' has the entry {}, expected {} to {}", attribute, value, low, high));
    }
  }
  return absl::OkStatus();
}

absl::Status ExpectInt(const NodeContext& c, const std::string& attribute, int64_t low, int64_t high) {
  if (!c.node().Has(attribute)) return absl::OkStatus();
  HEDDLE_RETURN_IF_ERROR(ExpectHolds<int64_t>(c, attribute, AttributeKind::kInt));
  const int64_t value = c.node().Int(attribute);
  if (value >= low && value <= high) return absl::OkStatus();
  return NodeError("E-OP-004", c.node(), fmt::format("attribute '{}' is {}, expected {} to {}", attribute, value, low, high));
}

absl::Status ExpectString(const NodeContext& c, const std::string& attribute,
                          std::initializer_list<std::string_view> values) {
  if (!c.node().Has(attribute)) return absl::OkStatus();
  HEDDLE_RETURN_IF_ERROR(ExpectHolds<std::string>(c, attribute, AttributeKind::kString));
  const std::string value = c.node().String(attribute);
  std::string expected;
  for (std::string_view v : values) {
    if (v == value) return absl::OkStatus();
    expected += (expected.empty() ? "" : ", ") + std::string(v);
  }
  return NodeError("E-OP-004", c.node(), fmt::format("attribute '{}' is '{}', expected one of {}", attribute, value, expected));
}

absl::StatusOr<int> ResolveAxis(const NodeContext& c, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return NodeError("E-OP-004", c.node(), fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<std::vector<int>> ResolveAxes(const NodeContext& c, const std::vector<int64_t>& axes, int rank) {
  std::vector<int> result;
  for (int64_t axis : axes) {
    HEDDLE_ASSIGN_OR_RETURN(const int resolved, ResolveAxis(c, axis, rank));
    result.push_back(resolved);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return NodeError("E-OP-004", c.node(), "an axis is named twice");
  }
  return result;
}

absl::StatusOr<std::vector<int64_t>> ConstantInts(const NodeContext& c, int input, std::string_view role) {
  const Tensor* tensor = c.constant(input);
  if (!tensor) {
    return NodeError("E-OP-005", c.node(), fmt::format("input {} ({}) must be a constant", input, role),
                     "fold the model's constants or export it with fixed shapes");
  }
  if (!IsInteger(tensor->type()) || tensor->rank() > 1) {
    return NodeError("E-OP-002", c.node(), fmt::format("input {} ({}) must be a list of integers", input, role));
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor->elements(); ++i) values.push_back(tensor->at_int(i));
  return values;
}

absl::StatusOr<Shape> BroadcastShapes(const NodeContext& c, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return NodeError("E-OP-003", c.node(), fmt::format("shapes {} and {} do not broadcast", ShapeText(a), ShapeText(b)));
    }
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

absl::StatusOr<Shape> BroadcastInputs(const NodeContext& c, int first_input) {
  Shape shape;
  for (int i = first_input; i < c.num_inputs(); ++i) {
    if (!c.has_input(i)) continue;
    HEDDLE_ASSIGN_OR_RETURN(shape, BroadcastShapes(c, shape, c.input_shape(i)));
  }
  return shape;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Tensor BroadcastTo(const Tensor& t, const Shape& shape) {
  if (t.shape() == shape) return t;
  if (ElementCount(shape) == 0) return Tensor(t.type(), shape);  // other extents may be huge
  const std::vector<int64_t> strides = RowMajorStrides(t.shape());
  const size_t missing = shape.size() - t.shape().size();
  std::vector<std::vector<int64_t>> tables(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    tables[d].assign(static_cast<size_t>(shape[d]), 0);
    if (d < missing || t.shape()[d - missing] == 1) continue;
    for (int64_t i = 0; i < shape[d]; ++i) tables[d][static_cast<size_t>(i)] = i * strides[d - missing];
  }
  return CopyByTables(t, shape, tables);
}

loops::Expr BroadcastRead(const loops::Buffer& buffer, const loops::Indices& index) {
  const size_t rank = static_cast<size_t>(buffer.rank());
  loops::Indices own;
  for (size_t d = 0; d < rank; ++d) {
    own.push_back(buffer.shape()[d] == 1 ? loops::Expr(0) : index[index.size() - rank + d]);
  }
  return buffer.At(own);
}

bool NextIndex(const Shape& shape, std::vector<int64_t>& index) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

namespace {

template <typename T>
void CopyRows(const Tensor& in, const Shape& shape, const std::vector<std::vector<int64_t>>& tables, const T* fill,
              Tensor& out) {
  const Shape outer(shape.begin(), shape.end() - 1);
  const std::vector<int64_t>& row = tables.back();
  const T* source = RawData<T>(in);
  T* target = RawData<T>(out);
  const T filler = fill ? *fill : T{};
  std::vector<int64_t> index(outer.size(), 0);
  do {
    int64_t base = 0;
    bool filled = false;
    for (size_t d = 0; d < outer.size(); ++d) {
      const int64_t entry = tables[d][static_cast<size_t>(index[d])];
      filled = filled || entry == kFillEntry;
      base += filled ? 0 : entry;
    }
    if (filled) {
      std::fill_n(target, row.size(), filler);
    } else {
      for (size_t i = 0; i < row.size(); ++i) target[i] = row[i] == kFillEntry ? filler : source[base + row[i]];
    }
    target += row.size();
  } while (NextIndex(outer, index));
}

}  // namespace

Tensor CopyByTables(const Tensor& in, const Shape& shape, const std::vector<std::vector<int64_t>>& tables,
                    const std::byte* fill) {
  Tensor out(in.type(), shape);
  if (out.elements() == 0) return out;
  if (shape.empty()) return CopyByTables(in, {1}, {{0}}, fill).Reshaped({});
  DispatchSize(in.type(), [&]<typename T>(Tag<T>) {
    CopyRows<T>(in, shape, tables, reinterpret_cast<const T*>(fill), out);
  });
  return out;
}

int64_t ExtentProduct(const Shape& shape, int first, int last) {
  int64_t product = 1;
  for (int d = first; d < last; ++d) product *= shape[static_cast<size_t>(d)];
  return product;
}

}  // namespace heddle::ir
