// Shared parts of the integer ops. Verifiers come before any typed attribute access, so that a malformed file is an error
// and not a failed check.

#include "ir/ops/quant_common.h"

#include <algorithm>
#include <limits>
#include <set>

#include "ir/check.h"

namespace heddle::ir {
namespace {

// An attribute that some ops have as one int and others as a list.
std::vector<int64_t> IntOrList(const Node& node, const std::string& key) {
  auto it = node.attributes.find(key);
  if (it != node.attributes.end() && std::holds_alternative<int64_t>(it->second)) return {std::get<int64_t>(it->second)};
  return node.Ints(key);
}

}  // namespace

bool IsOwnOp(const std::string& op) {
  static const std::set<std::string, std::less<>> kOps = {"QConv", "QMatMul", "QAdd", "QMul", "QAveragePool", "QLut", "QSoftmax", "SignFlip"};
  return kOps.contains(op);
}

std::string_view RoundingName(Rounding rounding) {
  return rounding == Rounding::kHalfEven ? "half_even" : "doubling_high_mul";
}

absl::Status CheckIntRange(const Node& node, const std::string& key, int64_t low, int64_t high, bool required) {
  HEDDLE_RETURN_IF_ERROR(CheckAttribute<int64_t>(node, key, required));
  if (!node.Has(key)) return absl::OkStatus();
  const int64_t value = node.Int(key);
  if (value >= low && value <= high) return absl::OkStatus();
  return NodeError("E-OP-204", node, fmt::format("{} is {}, expected {} to {}", key, value, low, high));
}

absl::Status CheckInputCount(const NodeContext& c, int least, int most) {
  bool present = c.num_inputs() >= least && c.num_inputs() <= most;
  for (int i = 0; present && i < least; ++i) present = c.has_input(i);
  if (present) return absl::OkStatus();
  return NodeError("E-OP-201", c.node(), fmt::format("takes {} to {} inputs, {} were given", least, most, c.num_inputs()));
}

absl::Status CheckInputType(const NodeContext& c, int input, ElementType type) {
  if (!c.has_input(input) || c.input_type(input).element == type) return absl::OkStatus();
  return NodeError("E-OP-201", c.node(), fmt::format("input {} must be {}, found {}", input, ElementTypeName(type),
                                                     TypeText(c.input_type(input))));
}

absl::Status VerifyClamp(const Node& node) {
  HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "y_zero_point", -128, 127));
  HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "clamp_low", -128, 127));
  HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, "clamp_high", -128, 127));
  if (node.Int("clamp_low", -128) > node.Int("clamp_high", 127)) {
    return NodeError("E-OP-204", node, "clamp_low lies above clamp_high");
  }
  return absl::OkStatus();
}

absl::Status VerifyRequantiser(const NodeContext& c, int64_t channels) {
  const Node& node = c.node();
  for (const char* key : {"multiplier", "shift"}) {
    if (channels == 0) {
      HEDDLE_RETURN_IF_ERROR(CheckIntRange(node, key, 0, std::numeric_limits<int32_t>::max(), true));
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::vector<int64_t>>(node, key, true));
    const auto length = static_cast<int64_t>(node.Ints(key).size());
    if (length != 1 && length != channels) {
      return NodeError("E-OP-204", node, fmt::format("{} has {} entries, expected 1 or {}", key, length, channels));
    }
  }
  const std::vector<int64_t> multipliers = IntOrList(node, "multiplier"), shifts = IntOrList(node, "shift");
  if (multipliers.size() != shifts.size()) {
    return NodeError("E-OP-204", node, "multiplier and shift have different lengths");
  }
  for (size_t i = 0; i < shifts.size(); ++i) {
    if (multipliers[i] < 0 || multipliers[i] >= (int64_t{1} << 31) || shifts[i] < 0 || shifts[i] > 62) {
      return NodeError("E-OP-204", node, fmt::format("scale {} is {} * 2^-{}: outside ir/requantise.h's range", i,
                                                     multipliers[i], shifts[i]));
    }
  }
  HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::string>(node, "rounding", true));
  const std::string rounding = node.String("rounding");
  if (rounding != "half_even" && rounding != "doubling_high_mul") {
    return NodeError("E-OP-204", node, "rounding is '" + rounding + "', expected half_even or doubling_high_mul");
  }
  return VerifyClamp(node);
}

std::vector<FixedPointScale> ScalesOf(const Node& node) {
  const std::vector<int64_t> multipliers = IntOrList(node, "multiplier"), shifts = IntOrList(node, "shift");
  std::vector<FixedPointScale> scales;
  for (size_t i = 0; i < multipliers.size(); ++i) {
    scales.push_back({static_cast<int32_t>(multipliers[i]), static_cast<int32_t>(shifts[i])});
  }
  return scales;
}

void SetScales(const std::vector<FixedPointScale>& scales, Attributes& attributes) {
  std::vector<int64_t> multipliers, shifts;
  for (const FixedPointScale& scale : scales) {
    multipliers.push_back(scale.multiplier);
    shifts.push_back(scale.shift);
  }
  attributes["multiplier"] = std::move(multipliers);
  attributes["shift"] = std::move(shifts);
}

Requantiser RequantiserOf(const Node& node) {
  Requantiser r;
  r.scales = ScalesOf(node);
  r.rounding = node.String("rounding") == "doubling_high_mul" ? Rounding::kDoublingHighMul : Rounding::kHalfEven;
  r.y_zero_point = static_cast<int32_t>(node.Int("y_zero_point", 0));
  r.clamp_low = static_cast<int32_t>(node.Int("clamp_low", -128));
  r.clamp_high = static_cast<int32_t>(node.Int("clamp_high", 127));
  return r;
}

void SetRequantiser(const Requantiser& r, Attributes& attributes, bool as_list) {
  if (as_list) {
    SetScales(r.scales, attributes);
  } else {
    attributes["multiplier"] = int64_t{r.scales[0].multiplier};
    attributes["shift"] = int64_t{r.scales[0].shift};
  }
  attributes["rounding"] = std::string(RoundingName(r.rounding));
  attributes["y_zero_point"] = int64_t{r.y_zero_point};
  attributes["clamp_low"] = int64_t{r.clamp_low};
  attributes["clamp_high"] = int64_t{r.clamp_high};
}

absl::StatusOr<Window> CheckedWindowOf(const NodeContext& c, const Shape& input_spatial, const Shape& kernel) {
  const auto rank = static_cast<int>(input_spatial.size());
  for (const char* key : {"strides", "dilations", "pads", "kernel_shape"}) {
    HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::vector<int64_t>>(c.node(), key, false));
  }
  HEDDLE_RETURN_IF_ERROR(CheckAttribute<std::string>(c.node(), "auto_pad", false));
  HEDDLE_RETURN_IF_ERROR(VerifyWindowAttributes(c, rank));
  if (static_cast<int>(kernel.size()) != rank) {
    return NodeError("E-OP-202", c.node(), fmt::format("{} spatial dimensions but a kernel of rank {}", rank, kernel.size()));
  }
  return WindowOf(c, input_spatial, kernel);
}

std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t from_end = result.size() - i;
    const int64_t da = from_end <= a.size() ? a[a.size() - from_end] : 1;
    const int64_t db = from_end <= b.size() ? b[b.size() - from_end] : 1;
    if (da != db && da != 1 && db != 1) return std::nullopt;
    result[i] = da == 1 ? db : da;
  }
  return result;
}

Shape BroadcastStrides(const Shape& shape, const Shape& target) {
  Shape strides(target.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t from_end = i + 1;
    const int64_t extent = shape[shape.size() - from_end];
    if (extent != 1) strides[target.size() - from_end] = stride;
    stride *= extent;
  }
  return strides;
}

int64_t RandomInt(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

Tensor RandomTensor(Random& random, ElementType type, const Shape& shape, int64_t low, int64_t high) {
  Tensor tensor(type, shape);
  // One tensor in four holds only its extremes, so that accumulators and clamps reach theirs.
  const bool extreme = RandomInt(random, 0, 3) == 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set_int(i, extreme ? (RandomInt(random, 0, 1) ? high : low) : RandomInt(random, low, high));
  }
  return tensor;
}

FixedPointScale RandomScale(Random& random, int64_t magnitude) {
  // Powers of two make exact ties, where rounding modes differ.
  if (RandomInt(random, 0, 3) == 0) {
    int shift = 1;
    while ((magnitude >> shift) > 256 && shift < 40) ++shift;
    return {1 << 30, 30 + shift};
  }
  const double spread = std::uniform_real_distribution<double>(0.2, 4.0)(random);
  return FixedPointScaleOf(spread * 128.0 / static_cast<double>(std::max<int64_t>(magnitude, 1)));
}

Requantiser RandomRequantiser(Random& random, int64_t channels, int64_t magnitude) {
  Requantiser r;
  const int64_t count = RandomInt(random, 0, 1) ? channels : 1;
  for (int64_t i = 0; i < count; ++i) r.scales.push_back(RandomScale(random, magnitude));
  r.rounding = RandomInt(random, 0, 1) ? Rounding::kHalfEven : Rounding::kDoublingHighMul;
  r.y_zero_point = static_cast<int32_t>(RandomInt(random, -128, 127));
  if (RandomInt(random, 0, 1)) {
    r.clamp_low = static_cast<int32_t>(RandomInt(random, -128, 0));
    r.clamp_high = static_cast<int32_t>(RandomInt(random, r.clamp_low, 127));
  }
  return r;
}

RandomCase FinishCase(Graph graph, NodeId node, std::vector<Tensor> inputs) {
  const absl::Status status = InferNodeTypes(graph, node);
  HEDDLE_CHECK(status.ok(), "a sampler made an invalid node: " + std::string(status.message()));
  for (ValueId output : graph.node(node).outputs) graph.MarkOutput(output);
  return {std::move(graph), std::move(inputs)};
}

}  // namespace heddle::ir
