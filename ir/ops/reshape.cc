// Ops that keep the elements and their order: Reshape, Flatten, Squeeze, Unsqueeze, Identity.
//
// Their loop definition maps an output index to the input index of the same flat position. Dimensions are first matched in groups of
// equal products, so that what does not change (the batch, the channels) stays a plain index and only real merges and splits
// cost divisions.

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"
#include "ir/ops/window.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

// Appends to `index` the position `flat` within dimensions [first, last) of shape.
void Decompose(const Shape& shape, size_t first, size_t last, Expr flat, Indices& index) {
  const size_t start = index.size();
  for (size_t d = last; d-- > first;) {
    Expr own = Expr(0);
    if (shape[d] != 1) {
      bool outermost = true;
      for (size_t e = first; e < d; ++e) outermost = outermost && shape[e] == 1;
      own = outermost ? flat : loops::FloorMod(flat, shape[d]);
      if (!outermost) flat = loops::FloorDiv(flat, shape[d]);
    }
    index.insert(index.begin() + static_cast<int64_t>(start), own);
  }
}

Expr Flatten(const Shape& shape, size_t first, size_t last, const Indices& index) {
  Expr flat = Expr(0);
  bool any = false;
  int64_t stride = 1;
  for (size_t d = last; d-- > first;) {
    if (shape[d] != 1) {
      const Expr term = Times(index[d], stride);
      flat = any ? term + flat : term;
      any = true;
    }
    stride *= shape[d];
  }
  return flat;
}

// The index into `in` of the element at index `at` of `out`; equal element counts, none 0.
Indices MapIndex(const Shape& out, const Shape& in, const Indices& at) {
  Indices result;
  size_t o = 0, i = 0;
  while (o < out.size() || i < in.size()) {
    const size_t o_first = o, i_first = i;
    int64_t o_product = o < out.size() ? out[o++] : 1;
    int64_t i_product = i < in.size() ? in[i++] : 1;
    while (o_product != i_product) {
      if (o_product < i_product) {
        o_product *= out[o++];
      } else {
        i_product *= in[i++];
      }
    }
    Decompose(in, i_first, i, Flatten(out, o_first, o, at), result);
  }
  return result;
}

class ReshapeBase : public Op {
 public:
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    return std::vector<Tensor>{in[0]->Reshaped(c.output_shape())};
  }

  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    const Shape out = l.output().shape(), in = l.input(0).shape();
    const bool empty = ElementCount(out) == 0;  // no element is read: any index does
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      return l.input(0).At(empty ? Indices(in.size(), Expr(0)) : MapIndex(out, in, i));
    }));
    return absl::OkStatus();
  }

  OpWork Work(const NodeContext& c) const override {
    OpWork work = Op::Work(c);
    work.other_ops = 0;
    return work;
  }

 protected:
  static std::vector<ValueType> Typed(const NodeContext& c, const Shape& shape) {
    return {ValueType(c.input_type(0).element, shape)};
  }
  // The axes of Squeeze and Unsqueeze: input 1, or the attribute of older opsets.
  static bool HasAxes(const NodeContext& c) { return c.has_input(1) || c.node().Has("axes"); }
  static absl::StatusOr<std::vector<int64_t>> Axes(const NodeContext& c) {
    if (c.has_input(1)) return ConstantInts(c, 1, "axes");
    return c.node().Ints("axes");
  }
};

class Identity : public ReshapeBase {
 public:
  std::string_view name() const override { return "Identity"; }
  std::string_view doc() const override { return "Y = X, any type and shape. ONNX Identity 16 (tensors)."; }
  absl::Status Verify(const NodeContext& c) const override { return VerifySignature(c, 1, 1); }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    return Typed(c, c.input_shape(0));
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), b.RandomShape(0, 4)))});
  }
};

class Reshape : public ReshapeBase {
 public:
  std::string_view name() const override { return "Reshape"; }
  std::string_view doc() const override {
    return "data of any type; shape: constant i64 list, where 0 keeps the extent at that place (not with attribute allowzero) and one "
           "-1 takes what is left. The same elements in the same order. ONNX Reshape 14.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    return VerifySignature(c, 2, 2, {{"allowzero", AttributeKind::kInt}});
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ConstantInts(c, 1, "shape"));
    const Shape in = c.input_shape(0);
    int unknown = -1;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0 && c.node().Int("allowzero", 0) == 0 && d < in.size()) shape[d] = in[d];
      if (shape[d] == -1 && unknown < 0) {
        unknown = static_cast<int>(d);
        shape[d] = 1;
      } else if (shape[d] < 0 || shape[d] > kLargestIndex) {
        return NodeError("E-OP-004", c.node(), fmt::format("the shape has the extent {}", shape[d]));
      }
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t known, CheckedElementCount(shape));
    const int64_t total = ElementCount(in);
    if (unknown >= 0 && known != 0) shape[static_cast<size_t>(unknown)] = total / known;
    HEDDLE_ASSIGN_OR_RETURN(const int64_t count, CheckedElementCount(shape));
    if (count != total || (unknown >= 0 && known == 0)) {
      return NodeError("E-OP-003", c.node(), fmt::format("{} does not reshape to {}", ShapeText(in), ShapeText(shape)));
    }
    return Typed(c, shape);
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    // Extents of 1 to 3 are merged and split at random.
    const Shape fine = b.RandomShape(1, 6, 3);
    auto merge = [&] {
      Shape shape;
      for (int64_t extent : fine) {
        if (shape.empty() || b.Coin()) shape.push_back(extent); else shape.back() *= extent;
        if (b.Int(0, 5) == 0) shape.push_back(1);
      }
      return shape;
    };
    const Shape in = merge();
    Shape out = merge();
    const size_t place = static_cast<size_t>(b.Int(0, static_cast<int64_t>(out.size()) - 1));
    if (b.Coin()) out[place] = place < in.size() && in[place] == out[place] ? 0 : -1;
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), in)), b.IntsConstant(out)});
  }
};

class FlattenOp : public ReshapeBase {
 public:
  std::string_view name() const override { return "Flatten"; }
  std::string_view doc() const override {
    return "X of any type. Attribute axis (1). Y [product of the dimensions before axis, product of the others]. ONNX Flatten 13.";
  }
  absl::Status Verify(const NodeContext& c) const override { return VerifySignature(c, 1, 1, {{"axis", AttributeKind::kInt}}); }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const Shape in = c.input_shape(0);
    const int rank = static_cast<int>(in.size());
    int64_t axis = c.node().Int("axis", 1);
    if (axis < -rank || axis > rank) {
      return NodeError("E-OP-004", c.node(), fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
    }
    if (axis < 0) axis += rank;
    return Typed(c, {ExtentProduct(in, 0, static_cast<int>(axis)), ExtentProduct(in, static_cast<int>(axis), rank)});
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(0, 4);
    const auto rank = static_cast<int64_t>(shape.size());
    Attributes attributes;
    if (rank == 0 || b.Coin()) attributes["axis"] = b.Int(-rank, rank);
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), shape))}, attributes);
  }
};

class Squeeze : public ReshapeBase {
 public:
  std::string_view name() const override { return "Squeeze"; }
  std::string_view doc() const override {
    return "data of any type; axes: optional constant i64 list (or an attribute): the dimensions of extent 1 that go, all of them "
           "where absent. ONNX Squeeze 13.";
  }
  absl::Status Verify(const NodeContext& c) const override { return VerifySignature(c, 1, 2, {{"axes", AttributeKind::kInts}}); }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const Shape in = c.input_shape(0);
    std::vector<bool> drop(in.size(), false);
    if (HasAxes(c)) {
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, Axes(c));
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, ResolveAxes(c, given, static_cast<int>(in.size())));
      for (int axis : axes) {
        if (in[static_cast<size_t>(axis)] != 1) {
          return NodeError("E-OP-003", c.node(), fmt::format("dimension {} of {} is not 1", axis, ShapeText(in)));
        }
        drop[static_cast<size_t>(axis)] = true;
      }
    } else {
      for (size_t d = 0; d < in.size(); ++d) drop[d] = in[d] == 1;
    }
    Shape out;
    for (size_t d = 0; d < in.size(); ++d) {
      if (!drop[d]) out.push_back(in[d]);
    }
    return Typed(c, out);
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    Shape shape = b.RandomShape(1, 5, 3);
    std::vector<int64_t> axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1 && b.Coin()) axes.push_back(static_cast<int64_t>(d) - (b.Coin() ? static_cast<int64_t>(shape.size()) : 0));
    }
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(b.AnyType(), shape))};
    if (!axes.empty()) ids.push_back(b.IntsConstant(axes));
    return b.Finish(name(), ids);
  }
};

class Unsqueeze : public ReshapeBase {
 public:
  std::string_view name() const override { return "Unsqueeze"; }
  std::string_view doc() const override {
    return "data of any type; axes: constant i64 list (or an attribute): places in the result where dimensions of extent 1 are put. "
           "ONNX Unsqueeze 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 2, {{"axes", AttributeKind::kInts}}));
    return HasAxes(c) ? absl::OkStatus() : NodeError("E-OP-001", c.node(), "axes are missing");
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, Axes(c));
    if (given.size() > 64) return NodeError("E-OP-004", c.node(), "more than 64 axes");
    Shape shape = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> axes, ResolveAxes(c, given, static_cast<int>(shape.size() + given.size())));
    for (int axis : axes) shape.insert(shape.begin() + axis, 1);
    return Typed(c, shape);
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(0, 3);
    const int64_t added = b.Int(1, 2), rank = static_cast<int64_t>(shape.size()) + added;
    std::vector<int64_t> axes = {b.Int(0, rank - 1)};
    if (added == 2) axes.push_back((axes[0] + b.Int(1, rank - 1)) % rank - (b.Coin() ? rank : 0));
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), shape)), b.IntsConstant(axes)});
  }
};

}  // namespace

void AddReshape(OpList& ops) {
  ops.push_back(std::make_unique<Identity>());
  ops.push_back(std::make_unique<Reshape>());
  ops.push_back(std::make_unique<FlattenOp>());
  ops.push_back(std::make_unique<Squeeze>());
  ops.push_back(std::make_unique<Unsqueeze>());
}

}  // namespace heddle::ir
