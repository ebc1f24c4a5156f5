// Concat and Split: pieces along one axis.

#include <algorithm>
#include <cstring>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

class Concat : public Op {
 public:
  std::string_view name() const override { return "Concat"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "One or more tensors of one type, equal but for the extent along attribute axis. Joined along that axis. ONNX Concat 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, -1, {{"axis", AttributeKind::kInt, true}}));
    HEDDLE_RETURN_IF_ERROR(ExpectSameTypes(c));
    return ExpectRank(c, 0, 1);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    Shape shape = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, c.node().Int("axis"), static_cast<int>(shape.size())));
    const auto a = static_cast<size_t>(axis);
    for (int i = 1; i < c.num_inputs(); ++i) {
      Shape other = c.input_shape(i);
      const int64_t extent = other.size() == shape.size() ? other[a] : -1;
      if (extent >= 0) other[a] = shape[a];
      if (other != shape) {
        return NodeError("E-OP-003", c.node(), fmt::format("input {} has shape {}, which does not join {} along axis {}", i,
                                                           ShapeText(c.input_shape(i)), ShapeText(c.input_shape(0)), axis));
      }
      shape[a] += extent;
    }
    return std::vector<ValueType>{ValueType(c.input_type(0).element, shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    Tensor y(c.output_type().element, c.output_shape());
    const int axis = Axis(c);
    const int64_t outer = y.elements() == 0 ? 0 : ExtentProduct(y.shape(), 0, axis);
    std::byte* target = y.data();
    for (int64_t o = 0; o < outer; ++o) {
      for (const Tensor* piece : in) {
        const int64_t bytes = piece->bytes() / outer;
        if (bytes) std::memcpy(target, piece->data() + o * bytes, static_cast<size_t>(bytes));
        target += bytes;
      }
    }
    return std::vector<Tensor>{std::move(y)};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const auto axis = static_cast<size_t>(Axis(c));
    // The pieces in use, each with its start; empty ones have no element to read.
    std::vector<std::pair<int, int64_t>> pieces;
    int64_t start = 0;
    for (int k = 0; k < l.num_inputs(); ++k) {
      const int64_t extent = l.input(k).shape()[axis];
      if (extent > 0) pieces.emplace_back(k, start);
      start += extent;
    }
    if (pieces.empty()) pieces.emplace_back(0, 0);
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      Expr value;
      for (size_t p = pieces.size(); p-- > 0;) {
        Indices at = i;
        if (pieces[p].second != 0) at[axis] = i[axis] - pieces[p].second;
        const Expr own = l.input(pieces[p].first).At(at);
        value = value ? loops::Select(i[axis] < pieces[p + 1].second, own, value) : own;
      }
      return value;
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const ElementType type = b.AnyType();
    Shape shape = b.RandomShape(1, 4);
    const auto rank = static_cast<int64_t>(shape.size()), axis = b.Int(0, rank - 1);
    std::vector<ValueId> ids;
    for (int64_t k = b.Int(1, 4); k > 0; --k) {
      shape[static_cast<size_t>(axis)] = b.Int(1, 4);
      ids.push_back(ids.empty() ? b.Input(b.RandomTensor(type, shape)) : b.Either(b.RandomTensor(type, shape)));
    }
    return b.Finish(name(), ids, {{"axis", b.Coin() ? axis : axis - rank}});
  }

 private:
  static int Axis(const NodeContext& c) {
    const auto rank = static_cast<int64_t>(c.input_shape(0).size()), axis = c.node().Int("axis");
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
};

class Split : public Op {
 public:
  std::string_view name() const override { return "Split"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "input of any type; split: optional constant i64 list (or an attribute) of extents along attribute axis (0). One output an "
           "entry; without split equal parts, the last one smaller where it does not divide. ONNX Split 13, 18.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 2, {{"axis", AttributeKind::kInt}, {"split", AttributeKind::kInts},
                                                     {"num_outputs", AttributeKind::kInt}}, -1));
    return ExpectRank(c, 0, 1);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const Shape x = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, c.node().Int("axis", 0), static_cast<int>(x.size())));
    const auto count = static_cast<int64_t>(c.node().outputs.size());
    const int64_t total = x[static_cast<size_t>(axis)];
    std::vector<int64_t> extents = c.node().Ints("split");
    if (c.has_input(1)) {
      HEDDLE_ASSIGN_OR_RETURN(extents, ConstantInts(c, 1, "split"));
    } else if (extents.empty()) {
      const int64_t part = (total + count - 1) / count;
      for (int64_t k = 0; k < count; ++k) extents.push_back(std::clamp(total - k * part, int64_t{0}, part));
    }
    std::vector<ValueType> types;
    int64_t sum = 0;
    for (int64_t extent : extents) {
      if (extent < 0 || extent > total) return NodeError("E-OP-004", c.node(), fmt::format("a part of {} elements", extent));
      sum += extent;
      Shape shape = x;
      shape[static_cast<size_t>(axis)] = extent;
      types.emplace_back(c.input_type(0).element, shape);
    }
    if (sum != total || static_cast<int64_t>(extents.size()) != count) {
      return NodeError("E-OP-003", c.node(), fmt::format("{} outputs of {} elements in all from an extent of {}", count, sum, total));
    }
    return types;
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const int axis = Axis(c);
    const int64_t outer = in[0]->elements() == 0 ? 0 : ExtentProduct(in[0]->shape(), 0, axis);
    std::vector<Tensor> parts;
    for (size_t k = 0; k < c.node().outputs.size(); ++k) parts.emplace_back(in[0]->type(), c.output_shape(static_cast<int>(k)));
    const std::byte* source = in[0]->data();
    for (int64_t o = 0; o < outer; ++o) {
      for (Tensor& part : parts) {
        const int64_t bytes = part.bytes() / outer;
        if (bytes) std::memcpy(part.data() + o * bytes, source, static_cast<size_t>(bytes));
        source += bytes;
      }
    }
    return parts;
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const auto axis = static_cast<size_t>(Axis(c));
    int64_t start = 0;
    for (int k = 0; k < l.num_outputs(); ++k) {
      l.Add(loops::Compute(l.output(k), [&](const Indices& i) {
        Indices at = i;
        if (start != 0) at[axis] = i[axis] + start;
        return l.input(0).At(at);
      }));
      start += l.output(k).shape()[axis];
    }
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    Shape shape = b.RandomShape(1, 4);
    const auto rank = static_cast<int64_t>(shape.size()), axis = b.Int(0, rank - 1), count = b.Int(1, 3);
    std::vector<int64_t> extents;
    for (int64_t k = 0; k < count; ++k) extents.push_back(b.Int(1, 4));
    const bool equal = b.Coin();
    if (equal) std::fill(extents.begin(), extents.end(), extents[0]);
    shape[static_cast<size_t>(axis)] = 0;
    for (int64_t extent : extents) shape[static_cast<size_t>(axis)] += extent;
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(b.AnyType(), shape))};
    if (!equal) ids.push_back(b.IntsConstant(extents));
    return b.Finish(name(), ids, {{"axis", b.Coin() ? axis : axis - rank}}, static_cast<int>(count));
  }

 private:
  static int Axis(const NodeContext& c) {
    const auto rank = static_cast<int64_t>(c.input_shape(0).size()), axis = c.node().Int("axis", 0);
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
};

}  // namespace

void AddJoin(OpList& ops) {
  ops.push_back(std::make_unique<Concat>());
  ops.push_back(std::make_unique<Split>());
}

}  // namespace heddle::ir
