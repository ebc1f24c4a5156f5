// Resize by the nearest element or by linear interpolation along each dimension.
//
// Source positions and weights depend on shapes and attributes only, so both the reference and the loop definition read them from
// tables made once for each dimension (float32 arithmetic as in ONNX's reference would differ in the last place between
// compilers; the tables are computed in double).

#include <algorithm>
#include <cmath>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

// Where the elements of one output dimension come from: between source low and high, with `weight` of the latter.
struct Axis {
  std::vector<int64_t> low, high;
  std::vector<double> weight;
  bool identity = true;  // same extent, every element from its own place
};

struct Sampling {
  Shape shape;
  std::vector<Axis> axes;
};

class Resize : public Op {
 public:
  std::string_view name() const override { return "Resize"; }
  OpKind kind(const NodeContext& c) const override { return IsLinear(c) ? OpKind::kFloat : OpKind::kMovement; }
  std::string_view doc() const override {
    return "X of any type (linear: f32, f64); inputs roi (not used), scales or sizes: constants, one entry a dimension. Attributes mode: "
           "\"nearest\" (default) or \"linear\"; coordinate_transformation_mode: \"half_pixel\" (default), \"half_pixel_symmetric\", "
           "\"pytorch_half_pixel\", \"align_corners\" or \"asymmetric\"; nearest_mode: \"round_prefer_floor\" (default), "
           "\"round_prefer_ceil\", \"floor\" or \"ceil\". At most three dimensions are interpolated. ONNX Resize 18 without cubic, "
           "antialias and crop.";
  }

  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 4, {{"mode", AttributeKind::kString}, {"nearest_mode", AttributeKind::kString},
                                                     {"coordinate_transformation_mode", AttributeKind::kString},
                                                     {"cubic_coeff_a", AttributeKind::kFloat}, {"exclude_outside", AttributeKind::kInt},
                                                     {"extrapolation_value", AttributeKind::kFloat}}));
    HEDDLE_RETURN_IF_ERROR(ExpectString(c, "mode", {"nearest", "linear"}));
    HEDDLE_RETURN_IF_ERROR(ExpectString(c, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    HEDDLE_RETURN_IF_ERROR(ExpectString(c, "coordinate_transformation_mode", {"half_pixel", "half_pixel_symmetric",
                                                                              "pytorch_half_pixel", "align_corners", "asymmetric"}));
    HEDDLE_RETURN_IF_ERROR(ExpectInt(c, "exclude_outside", 0, 0));
    if (!c.has_input(2) && !c.has_input(3)) return NodeError("E-OP-001", c.node(), "scales or sizes must be present");
    HEDDLE_RETURN_IF_ERROR(ExpectType(c, 2, {ElementType::kFloat32}));
    return IsLinear(c) ? ExpectFloat(c, 0) : absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Target target, TargetOf(c));
    return std::vector<ValueType>{ValueType(c.input_type(0).element, target.shape)};
  }

  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    if (c.output_type().elements() == 0) return std::vector<Tensor>{Tensor(in[0]->type(), c.output_shape())};
    HEDDLE_ASSIGN_OR_RETURN(const Sampling s, SamplingOf(c));
    const std::vector<int64_t> strides = RowMajorStrides(in[0]->shape());
    // Copies with every dimension at its low or, where bit d of `corner` is set, its high source; `corner` counts interpolated dimensions.
    const std::vector<size_t> interpolated = Interpolated(c, s);
    auto corner_copy = [&](uint32_t corner) {
      std::vector<std::vector<int64_t>> tables;
      for (size_t d = 0; d < s.axes.size(); ++d) {
        const auto at = std::find(interpolated.begin(), interpolated.end(), d) - interpolated.begin();
        tables.push_back(corner >> at & 1 ? s.axes[d].high : s.axes[d].low);
        for (int64_t& entry : tables.back()) entry *= strides[d];
      }
      return CopyByTables(*in[0], s.shape, tables);
    };
    if (interpolated.empty()) return std::vector<Tensor>{corner_copy(0)};
    std::vector<double> sums(static_cast<size_t>(ElementCount(s.shape)), 0.0);
    for (uint32_t corner = 0; corner < 1u << interpolated.size(); ++corner) {
      const Tensor copy = corner_copy(corner);
      std::vector<int64_t> index(s.shape.size(), 0);
      for (size_t i = 0; i < sums.size(); ++i, NextIndex(s.shape, index)) {
        double weight = 1;
        for (size_t k = 0; k < interpolated.size(); ++k) {
          const double high = s.axes[interpolated[k]].weight[static_cast<size_t>(index[interpolated[k]])];
          weight *= corner >> k & 1 ? high : 1 - high;
        }
        if (weight != 0) sums[i] += weight * copy.at_double(static_cast<int64_t>(i));
      }
    }
    Tensor y(in[0]->type(), s.shape);
    for (size_t i = 0; i < sums.size(); ++i) y.set_double(static_cast<int64_t>(i), sums[i]);
    return std::vector<Tensor>{std::move(y)};
  }

  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    HEDDLE_ASSIGN_OR_RETURN(const Sampling s, SamplingOf(c));
    const loops::Buffer x = l.input(0);
    const std::vector<size_t> interpolated = Interpolated(c, s);
    std::vector<loops::Buffer> low(s.axes.size()), high(s.axes.size()), weight(s.axes.size());
    for (size_t d = 0; d < s.axes.size(); ++d) {
      if (s.axes[d].identity || s.shape[d] == 0) continue;
      low[d] = l.Table(fmt::format("low{}", d), Tensor::Of<int64_t>({s.shape[d]}, s.axes[d].low));
      high[d] = l.Table(fmt::format("high{}", d), Tensor::Of<int64_t>({s.shape[d]}, s.axes[d].high));
      Tensor weights(IsFloat(x.type()) ? x.type() : ElementType::kFloat32, {s.shape[d]});
      for (int64_t i = 0; i < s.shape[d]; ++i) weights.set_double(i, s.axes[d].weight[static_cast<size_t>(i)]);
      weight[d] = l.Table(fmt::format("weight{}", d), std::move(weights));
    }
    // Interpolates dimension after dimension, the first of `interpolated` outermost.
    std::function<Expr(const Indices&, Indices, size_t)> sample = [&](const Indices& i, Indices at, size_t k) -> Expr {
      if (k == interpolated.size()) return x.At(at);
      const size_t d = interpolated[k];
      Indices upper = at;
      at[d] = low[d](i[d]);
      upper[d] = high[d](i[d]);
      const Expr below = sample(i, at, k + 1), above = sample(i, upper, k + 1);
      return below + (above - below) * weight[d](i[d]);
    };
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      Indices at = i;
      for (size_t d = 0; d < i.size(); ++d) {
        if (low[d]) at[d] = low[d](i[d]);
      }
      return sample(i, at, 0);
    }));
    return absl::OkStatus();
  }

  // The difference form below + (above - below)·w cancels at the scale of the inputs.
  double SummationBound(const NodeContext& c, std::span<const Tensor* const> in) const override {
    if (!IsLinear(c)) return 0;
    double largest = 0;
    for (int64_t i = 0; i < in[0]->elements(); ++i) largest = std::max(largest, std::abs(in[0]->at_double(i)));
    return 16 * UnitRoundoff(in[0]->type()) * largest;
  }

  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const bool linear = b.Coin();
    const ElementType type = linear ? b.Pick({ElementType::kFloat32, ElementType::kFloat64}) : b.AnyType();
    const Shape shape = b.RandomShape(1, 4);
    std::vector<int64_t> sizes = shape;
    std::vector<float> scales(shape.size(), 1);
    for (size_t d = shape.size() - static_cast<size_t>(b.Int(1, std::min<int64_t>(2, static_cast<int64_t>(shape.size()))));
         d < shape.size(); ++d) {
      sizes[d] = b.Int(1, 9);
      scales[d] = static_cast<float>(b.Pick({0.5, 1.0, 1.5, 2.0, 2.7})) + (shape[d] == 1 ? 1 : 0);
    }
    Attributes attributes = {{"mode", std::string(linear ? "linear" : "nearest")}};
    attributes["coordinate_transformation_mode"] =
        std::string(b.Pick<const char*>({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}));
    attributes["nearest_mode"] = std::string(b.Pick<const char*>({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    std::vector<ValueId> ids = {b.Input(b.RandomTensor(type, shape, 0, 100)), kNoValue};
    if (b.Coin()) {
      ids.push_back(b.Constant(Tensor::Of<float>({static_cast<int64_t>(scales.size())}, scales)));
    } else {
      ids.push_back(kNoValue);
      ids.push_back(b.IntsConstant(sizes));
    }
    return b.Finish(name(), ids, attributes);
  }

 private:
  static bool IsLinear(const NodeContext& c) { return c.node().String("mode", "nearest") == "linear"; }

  static std::vector<size_t> Interpolated(const NodeContext& c, const Sampling& s) {
    std::vector<size_t> dimensions;
    for (size_t d = 0; IsLinear(c) && d < s.axes.size(); ++d) {
      if (!s.axes[d].identity && s.shape[d] != 0) dimensions.push_back(d);
    }
    return dimensions;
  }

  // The position in the source, in elements, of element o of the result.
  static double SourcePosition(const std::string& mode, double o, double scale, int64_t in, int64_t out) {
    if (mode == "asymmetric") return o / scale;
    if (mode == "align_corners") return out == 1 ? 0 : o * static_cast<double>(in - 1) / static_cast<double>(out - 1);
    if (mode == "pytorch_half_pixel" && out == 1) return 0;
    if (mode == "half_pixel_symmetric") {
      const double adjustment = static_cast<double>(out) / (scale * static_cast<double>(in));
      return static_cast<double>(in) / 2 * (1 - adjustment) + (o + 0.5) / scale - 0.5;
    }
    return (o + 0.5) / scale - 0.5;
  }

  static double Nearest(const std::string& mode, double position) {
    if (mode == "floor") return std::floor(position);
    if (mode == "ceil") return std::ceil(position);
    return mode == "round_prefer_ceil" ? std::floor(position + 0.5) : std::ceil(position - 0.5);
  }

  static Axis AxisOf(const NodeContext& c, int64_t in, int64_t out, double scale) {
    const std::string mode = c.node().String("coordinate_transformation_mode", "half_pixel");
    const std::string nearest = c.node().String("nearest_mode", "round_prefer_floor");
    Axis axis;
    axis.identity = in == out;
    for (int64_t o = 0; o < out; ++o) {
      const double position = SourcePosition(mode, static_cast<double>(o), scale, in, out);
      const double below = IsLinear(c) ? std::floor(position) : Nearest(nearest, position);
      auto inside = [&](double p) { return static_cast<int64_t>(std::clamp(p, 0.0, static_cast<double>(in - 1))); };
      axis.low.push_back(inside(below));
      axis.high.push_back(inside(below + 1));
      axis.weight.push_back(IsLinear(c) ? position - below : 0);
      axis.identity = axis.identity && axis.low.back() == o && axis.weight.back() == 0;
    }
    return axis;
  }

  struct Target {
    Shape shape;
    std::vector<double> scales;  // as given, or following from the sizes
  };

  static absl::StatusOr<Target> TargetOf(const NodeContext& c) {
    const Shape in = c.input_shape(0);
    Target target;
    if (c.has_input(3)) {
      HEDDLE_ASSIGN_OR_RETURN(target.shape, ConstantInts(c, 3, "sizes"));
    } else {
      const Tensor* given = c.constant(2);
      if (!given) return NodeError("E-OP-005", c.node(), "input 2 (scales) must be a constant", "export the model with fixed shapes");
      for (int64_t d = 0; d < given->elements(); ++d) {
        const double scale = given->at_double(d);
        const double extent = d < std::ssize(in) ? std::floor(static_cast<double>(in[static_cast<size_t>(d)]) * scale) : 0;
        if (!(scale > 0) || !(extent <= static_cast<double>(kLargestIndex))) {
          return NodeError("E-OP-004", c.node(), fmt::format("scale {}", scale));
        }
        target.scales.push_back(scale);
        target.shape.push_back(static_cast<int64_t>(extent));
      }
    }
    if (target.shape.size() != in.size()) {
      return NodeError("E-OP-003", c.node(), fmt::format("{} scales or sizes for {} dimensions", target.shape.size(), in.size()));
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t count, CheckedElementCount(target.shape));
    if (count > 0 && ElementCount(in) == 0) return NodeError("E-OP-003", c.node(), "nothing to resize");
    for (size_t d = 0; c.has_input(3) && d < in.size(); ++d) {
      target.scales.push_back(static_cast<double>(target.shape[d]) / static_cast<double>(std::max<int64_t>(in[d], 1)));
    }
    // The other dimensions are copied, so that the number of corners stays small.
    int changed = 0;
    for (size_t d = 0; d < in.size(); ++d) changed += target.shape[d] != in[d] || target.scales[d] != 1;
    if (IsLinear(c) && changed > 3) return NodeError("E-OP-003", c.node(), "more than three dimensions to interpolate");
    return target;
  }

  static absl::StatusOr<Sampling> SamplingOf(const NodeContext& c) {
    HEDDLE_ASSIGN_OR_RETURN(const Target target, TargetOf(c));
    Sampling s{target.shape, {}};
    if (ElementCount(target.shape) == 0) s.shape = Shape(target.shape.size(), 0);  // nothing is read; extents may be huge
    for (size_t d = 0; d < target.shape.size(); ++d) {
      s.axes.push_back(AxisOf(c, c.input_shape(0)[d], s.shape[d], target.scales[d]));
    }
    return s;
  }
};

}  // namespace

void AddResize(OpList& ops) { ops.push_back(std::make_unique<Resize>()); }

}  // namespace heddle::ir
