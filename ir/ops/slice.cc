// Ops that select or repeat elements by position: Slice, Pad, Expand, Tile, Gather.
//
// All but Gather are separable: a source position for each output position of each dimension, known before the run. The reference
// copies by such tables; the loop definitions say the same in index arithmetic.

#include <algorithm>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"
#include "ir/ops/window.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

// Copies with dimension d of output position o taken from source position sources[d][o] (kFillEntry: fill).
Tensor CopyBySources(const Tensor& in, const Shape& shape, std::vector<std::vector<int64_t>> sources, const std::byte* fill = nullptr) {
  const std::vector<int64_t> strides = RowMajorStrides(in.shape());
  for (size_t d = 0; d < sources.size(); ++d) {
    for (int64_t& entry : sources[d]) entry = entry == kFillEntry ? entry : entry * strides[d];
  }
  return CopyByTables(in, shape, sources, fill);
}

// A result without elements needs no tables, whose extents may be huge beside the one that is 0.
bool IsEmpty(const NodeContext& c) { return c.output_type().elements() == 0; }
std::vector<Tensor> EmptyResult(const NodeContext& c) { return {Tensor(c.output_type().element, c.output_shape())}; }

class Slice : public Op {
 public:
  std::string_view name() const override { return "Slice"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "data of any type; starts, ends, optional axes and steps: constant integer lists. Negative positions count from the end, "
           "positions outside are clamped, negative steps walk backwards. ONNX Slice 13 (NumPy slices).";
  }
  absl::Status Verify(const NodeContext& c) const override { return VerifySignature(c, 3, 5); }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Ranges r, RangesOf(c));
    return std::vector<ValueType>{ValueType(c.input_type(0).element, r.count)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Ranges r, RangesOf(c));
    if (IsEmpty(c)) return EmptyResult(c);
    std::vector<std::vector<int64_t>> sources(r.count.size());
    for (size_t d = 0; d < sources.size(); ++d) {
      for (int64_t o = 0; o < r.count[d]; ++o) sources[d].push_back(r.start[d] + o * r.step[d]);
    }
    return std::vector<Tensor>{CopyBySources(*in[0], r.count, std::move(sources))};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Ranges r, RangesOf(c));
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      Indices at;
      for (size_t d = 0; d < i.size(); ++d) at.push_back(Plus(Times(i[d], r.step[d]), r.start[d]));
      return l.input(0).At(at);
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(1, 4, 7);
    const auto rank = static_cast<int64_t>(shape.size());
    std::vector<int64_t> starts, ends, axes, steps;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t extent = shape[static_cast<size_t>(d)];
      // A range that is not empty, written with negative or clamped positions by chance.
      int64_t low = b.Int(0, extent - 1), high = b.Int(low + 1, extent), step = b.Int(1, 3);
      if (b.Coin()) {
        starts.push_back(b.Coin() && low > 0 ? low - extent : low);
        ends.push_back(high == extent && b.Coin() ? INT64_MAX : high);
      } else {
        step = -step;
        starts.push_back(high == extent && b.Coin() ? extent + 3 : high - 1);
        ends.push_back(low == 0 ? -extent - 1 : low - 1);
      }
      axes.push_back(b.Coin() ? d : d - rank);
      steps.push_back(step);
    }
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(b.AnyType(), shape, 0, 100)), b.IntsConstant(starts), b.IntsConstant(ends)};
    ids.push_back(b.Coin() ? b.IntsConstant(axes) : kNoValue);
    ids.push_back(b.IntsConstant(steps));
    return b.Finish(name(), ids);
  }

 private:
  struct Ranges {
    std::vector<int64_t> start, step;
    Shape count;
  };

  static absl::StatusOr<Ranges> RangesOf(const NodeContext& c) {
    const Shape shape = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, ConstantInts(c, 1, "starts"));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, ConstantInts(c, 2, "ends"));
    std::vector<int64_t> axes, steps(starts.size(), 1);
    for (size_t k = 0; k < starts.size(); ++k) axes.push_back(static_cast<int64_t>(k));
    if (c.has_input(3)) {
      HEDDLE_ASSIGN_OR_RETURN(axes, ConstantInts(c, 3, "axes"));
    }
    if (c.has_input(4)) {
      HEDDLE_ASSIGN_OR_RETURN(steps, ConstantInts(c, 4, "steps"));
    }
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
      return NodeError("E-OP-003", c.node(), "starts, ends, axes and steps differ in length");
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> sorted, ResolveAxes(c, axes, static_cast<int>(shape.size())));  // no axis twice
    Ranges r{std::vector<int64_t>(shape.size(), 0), std::vector<int64_t>(shape.size(), 1), shape};
    for (size_t k = 0; k < starts.size(); ++k) {
      HEDDLE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, axes[k], static_cast<int>(shape.size())));
      const auto d = static_cast<size_t>(axis);
      const int64_t extent = shape[d], step = std::clamp(steps[k], -kLargestIndex, kLargestIndex);
      if (step == 0) return NodeError("E-OP-004", c.node(), "a step is 0");
      const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;  // where positions are clamped to
      auto position = [&](int64_t p) { return std::clamp(p < 0 ? std::max(p, -kLargestIndex) + extent : p, low, high); };
      const int64_t start = position(starts[k]), end = position(ends[k]);
      const int64_t span = step > 0 ? end - start : start - end;
      r.start[d] = start;
      r.step[d] = step;
      r.count[d] = span <= 0 ? 0 : (span + std::abs(step) - 1) / std::abs(step);
    }
    return r;
  }
};

class Pad : public Op {
 public:
  std::string_view name() const override { return "Pad"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "data of any type; pads: constant i64 list (begins, then ends; negative: cropped), optional constant_value (one element), "
           "optional constant axes. Attribute mode: \"constant\" (default), \"reflect\", \"edge\" or \"wrap\". ONNX Pad 19.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 4, {{"mode", AttributeKind::kString}}));
    HEDDLE_RETURN_IF_ERROR(ExpectString(c, "mode", {"constant", "reflect", "edge", "wrap"}));
    if (!c.has_input(2)) return absl::OkStatus();
    HEDDLE_RETURN_IF_ERROR(ExpectType(c, 2, {c.input_type(0).element}));
    if (ElementCount(c.input_shape(2)) == 1) return absl::OkStatus();
    return NodeError("E-OP-003", c.node(), "constant_value must have one element");
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(c));
    return std::vector<ValueType>{ValueType(c.input_type(0).element, g.shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(c));
    const std::string mode = Mode(c);
    if (IsEmpty(c)) return EmptyResult(c);
    std::vector<std::vector<int64_t>> sources(g.shape.size());
    for (size_t d = 0; d < sources.size(); ++d) {
      for (int64_t o = 0; o < g.shape[d]; ++o) sources[d].push_back(Source(mode, o - g.begin[d], in[0]->shape()[d]));
    }
    const std::byte* fill = in.size() > 2 && in[2] ? in[2]->data() : nullptr;
    return std::vector<Tensor>{CopyBySources(*in[0], g.shape, std::move(sources), fill)};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(c));
    const std::string mode = Mode(c);
    const loops::Buffer x = l.input(0);
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      Indices at;
      Expr guard;
      for (size_t d = 0; d < i.size(); ++d) {
        const int64_t extent = x.shape()[d];
        Expr position = Plus(i[d], -g.begin[d]);
        const bool inside = g.begin[d] <= 0 && g.shape[d] - g.begin[d] <= extent;
        if (!inside && mode == "constant") {
          const Expr own = loops::InRange(position, 0, extent);
          guard = guard ? loops::And(guard, own) : own;
        } else if (!inside) {
          position = LowerSource(mode, position, extent);
        }
        at.push_back(position);
      }
      if (!guard) return x.At(at);
      const loops::Buffer fill = l.has_input(2) ? l.input(2) : loops::Buffer();
      const Expr value = fill ? fill.At(Indices(static_cast<size_t>(fill.rank()), Expr(0))) : loops::Constant(x.type(), 0);
      return loops::Select(guard, x.At(at), value);
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(1, 4);
    const ElementType type = b.AnyType();
    const std::string mode = b.Pick<const char*>({"constant", "constant", "reflect", "edge", "wrap"});
    std::vector<int64_t> begins, ends, axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t largest = mode == "reflect" ? shape[d] - 1 : 3;
      begins.push_back(b.Int(0, 5) == 0 ? -b.Int(0, shape[d] - 1) : b.Int(0, largest));
      ends.push_back(b.Int(0, largest));
      axes.push_back(static_cast<int64_t>(d));
    }
    const bool with_axes = b.Coin();
    if (with_axes) {  // another order, the last axis left out where there are two
      for (auto* list : {&begins, &ends, &axes}) {
        std::reverse(list->begin(), list->end());
        if (list->size() > 1) list->erase(list->begin());
      }
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, shape, 0, 100)), b.IntsConstant(begins)};
    ids.push_back(b.Coin() ? kNoValue : b.Either(b.RandomTensor(type, {})));
    if (with_axes) ids.push_back(b.IntsConstant(axes));
    return b.Finish(name(), ids, {{"mode", mode}});
  }

 private:
  struct Geometry {
    std::vector<int64_t> begin;  // elements put in front, negative: taken away
    Shape shape;                 // of the result
  };

  static std::string Mode(const NodeContext& c) { return c.node().String("mode", "constant"); }

  static absl::StatusOr<Geometry> GeometryOf(const NodeContext& c) {
    const Shape shape = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, ConstantInts(c, 1, "pads"));
    std::vector<int64_t> axes;
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
    if (c.has_input(3)) {
      HEDDLE_ASSIGN_OR_RETURN(axes, ConstantInts(c, 3, "axes"));
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<int> sorted, ResolveAxes(c, axes, static_cast<int>(shape.size())));
    }
    if (pads.size() != 2 * axes.size()) {
      return NodeError("E-OP-003", c.node(), fmt::format("pads has {} entries, expected {}", pads.size(), 2 * axes.size()));
    }
    Geometry g{std::vector<int64_t>(shape.size(), 0), shape};
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto d = static_cast<size_t>(axes[k] < 0 ? axes[k] + static_cast<int64_t>(shape.size()) : axes[k]);
      const int64_t begin = pads[k], end = pads[k + axes.size()];
      if (std::max(begin, end) > kLargestIndex || std::min(begin, end) < -kLargestIndex || shape[d] + begin + end < 0) {
        return NodeError("E-OP-004", c.node(), fmt::format("pads of {} and {} on an extent of {}", begin, end, shape[d]));
      }
      g.begin[d] = begin;
      g.shape[d] = shape[d] + begin + end;
      const bool outside = begin > 0 || g.shape[d] - begin > shape[d];
      if (outside && shape[d] == 0 && Mode(c) != "constant") {
        return NodeError("E-OP-003", c.node(), "an empty dimension has no element to pad with");
      }
    }
    return g;
  }

  static int64_t Source(const std::string& mode, int64_t position, int64_t extent) {
    if (position >= 0 && position < extent) return position;
    if (mode == "constant") return kFillEntry;
    if (mode == "edge") return std::clamp(position, int64_t{0}, extent - 1);
    if (mode == "wrap") return (position % extent + extent) % extent;
    if (extent == 1) return 0;
    const int64_t period = 2 * (extent - 1), phase = (position % period + period) % period;
    return std::min(phase, period - phase);
  }

  static Expr LowerSource(const std::string& mode, const Expr& position, int64_t extent) {
    if (mode == "edge") return loops::Clamp(position, Expr(0), Expr(extent - 1));
    if (mode == "wrap") return loops::FloorMod(position, extent);
    if (extent == 1) return Expr(0);
    const int64_t period = 2 * (extent - 1);
    const Expr phase = loops::FloorMod(position, period);
    return loops::Min(phase, period - phase);
  }
};

class Expand : public Op {
 public:
  std::string_view name() const override { return "Expand"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "input of any type; shape: constant i64 list. The input broadcast with that shape (both ways). ONNX Expand 13.";
  }
  absl::Status Verify(const NodeContext& c) const override { return VerifySignature(c, 2, 2); }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, ConstantInts(c, 1, "shape"));
    for (int64_t extent : wanted) {
      if (extent < 0) return NodeError("E-OP-004", c.node(), fmt::format("the shape has the extent {}", extent));
    }
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(c, c.input_shape(0), wanted));
    return std::vector<ValueType>{ValueType(c.input_type(0).element, shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    return std::vector<Tensor>{BroadcastTo(*in[0], c.output_shape())};
  }
  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    l.Add(loops::Compute(l.output(), [&](const Indices& i) { return BroadcastRead(l.input(0), i); }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(0, 4);
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), b.BroadcastableTo(shape), 0, 100)),
                             b.IntsConstant(b.BroadcastableTo(shape))});
  }
};

class Tile : public Op {
 public:
  std::string_view name() const override { return "Tile"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "input of any type; repeats: constant i64 list, one for each dimension. The input repeated. ONNX Tile 13.";
  }
  absl::Status Verify(const NodeContext& c) const override { return VerifySignature(c, 2, 2); }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    Shape shape = c.input_shape(0);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, ConstantInts(c, 1, "repeats"));
    if (repeats.size() != shape.size()) {
      return NodeError("E-OP-003", c.node(), fmt::format("repeats has {} entries for {} dimensions", repeats.size(), shape.size()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (repeats[d] < 0 || repeats[d] > kLargestIndex || __builtin_mul_overflow(shape[d], repeats[d], &shape[d])) {
        return NodeError("E-OP-004", c.node(), fmt::format("{} repeats", repeats[d]));
      }
    }
    return std::vector<ValueType>{ValueType(c.input_type(0).element, shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    if (IsEmpty(c)) return EmptyResult(c);
    std::vector<std::vector<int64_t>> sources(c.output_shape().size());
    for (size_t d = 0; d < sources.size(); ++d) {
      for (int64_t o = 0; o < c.output_shape()[d]; ++o) sources[d].push_back(o % in[0]->shape()[d]);
    }
    return std::vector<Tensor>{CopyBySources(*in[0], c.output_shape(), std::move(sources))};
  }
  absl::Status Lower(const NodeContext&, loops::OpLowering& l) const override {
    const Shape in = l.input(0).shape(), out = l.output().shape();
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      Indices at;
      for (size_t d = 0; d < i.size(); ++d) at.push_back(in[d] == out[d] || in[d] == 0 ? i[d] : loops::FloorMod(i[d], in[d]));
      return l.input(0).At(at);
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(0, 4, 4);
    std::vector<int64_t> repeats;
    for (size_t d = 0; d < shape.size(); ++d) repeats.push_back(b.Int(1, 3));
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), shape, 0, 100)), b.IntsConstant(repeats)});
  }
};

class Gather : public Op {
 public:
  std::string_view name() const override { return "Gather"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "data of any type, indices i32 or i64 of any shape; attribute axis (0). data's dimension axis is replaced by those of "
           "indices; negative indices count from the end. Indices outside are an error (E-OP-007) of the reference; compiled code "
           "clamps them. ONNX Gather 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 2, 2, {{"axis", AttributeKind::kInt}}));
    HEDDLE_RETURN_IF_ERROR(ExpectType(c, 1, {ElementType::kInt32, ElementType::kInt64}));
    return ExpectRank(c, 0, 1);
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const Shape data = c.input_shape(0), indices = c.input_shape(1);
    HEDDLE_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, c.node().Int("axis", 0), static_cast<int>(data.size())));
    if (data[static_cast<size_t>(axis)] == 0 && ElementCount(indices) > 0) {
      return NodeError("E-OP-003", c.node(), "nothing to gather from an empty dimension");
    }
    Shape shape(data.begin(), data.begin() + axis);
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), data.begin() + axis + 1, data.end());
    return std::vector<ValueType>{ValueType(c.input_type(0).element, shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Shape data = in[0]->shape();
    const int axis = Axis(c);
    const int64_t extent = data[static_cast<size_t>(axis)];
    std::vector<int64_t> picked;
    for (int64_t i = 0; i < in[1]->elements(); ++i) {
      const int64_t index = in[1]->at_int(i);
      if (index < -extent || index >= extent) {
        return NodeError("E-OP-007", c.node(), fmt::format("index {} is outside the extent {}", index, extent));
      }
      picked.push_back(index < 0 ? index + extent : index);
    }
    // [before, extent, after] -> [before, picked, after]
    const Shape flat = {ExtentProduct(data, 0, axis), extent, ExtentProduct(data, axis + 1, in[0]->rank())};
    std::vector<std::vector<int64_t>> sources(3);
    for (int64_t i = 0; i < flat[0]; ++i) sources[0].push_back(i);
    sources[1] = picked;
    for (int64_t i = 0; i < flat[2]; ++i) sources[2].push_back(i);
    const Tensor y = CopyBySources(in[0]->Reshaped(flat), {flat[0], in[1]->elements(), flat[2]}, std::move(sources));
    return std::vector<Tensor>{y.Reshaped(c.output_shape())};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const int axis = Axis(c), index_rank = l.input(1).rank();
    const int64_t extent = l.input(0).shape()[static_cast<size_t>(axis)];
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      Indices at(i.begin(), i.begin() + axis);
      const Expr raw = loops::Cast(ElementType::kInt64, l.input(1).At(Indices(i.begin() + axis, i.begin() + axis + index_rank)));
      const Expr index = loops::Select(raw < 0, raw + extent, raw);
      at.push_back(loops::Clamp(index, Expr(0), Expr(std::max<int64_t>(extent - 1, 0))));
      at.insert(at.end(), i.begin() + axis + index_rank, i.end());
      return l.input(0).At(at);
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(1, 4);
    const auto rank = static_cast<int64_t>(shape.size()), axis = b.Int(0, rank - 1);
    const auto extent = static_cast<double>(shape[static_cast<size_t>(axis)]);
    const ElementType index_type = b.Pick({ElementType::kInt32, ElementType::kInt64});
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), shape, 0, 100)),
                             b.Either(b.RandomTensor(index_type, b.RandomShape(0, 2), -extent, extent - 1))},
                    {{"axis", b.Coin() ? axis : axis - rank}});
  }

 private:
  static int Axis(const NodeContext& c) {
    const auto rank = static_cast<int64_t>(c.input_shape(0).size()), axis = c.node().Int("axis", 0);
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
};

}  // namespace

void AddSlice(OpList& ops) {
  ops.push_back(std::make_unique<Slice>());
  ops.push_back(std::make_unique<Pad>());
  ops.push_back(std::make_unique<Expand>());
  ops.push_back(std::make_unique<Tile>());
  ops.push_back(std::make_unique<Gather>());
}

}  // namespace heddle::ir
