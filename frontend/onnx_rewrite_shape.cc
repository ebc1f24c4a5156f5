// Movement and shapes. Most changed over the opsets by turning an attribute into an input: here it always is the input, as in
// opset 13. Shapes are known at import, so Shape and Size are constants.

#include <algorithm>

#include "frontend/onnx_codes.h"
#include "frontend/onnx_rewrite.h"

namespace heddle::frontend {
namespace {

using ir::kNoValue;
using ir::Shape;
using ir::Tensor;
using ir::ValueId;

absl::Status Constant(NodeImporter& n) {
  if (n.attributes.size() != 1) return n.Malformed("takes exactly one attribute");
  const auto& [key, attribute] = *n.attributes.begin();
  Tensor tensor;
  if (const auto* t = std::get_if<std::shared_ptr<const Tensor>>(&attribute); t && key == "value") {
    n.results[0] = n.graph.AddConstant(n.source.outputs[0] + ".value", *t);
    return absl::OkStatus();
  } else if (const auto* i = std::get_if<int64_t>(&attribute); i && key == "value_int") {
    tensor = Tensor::Of<int64_t>({}, {*i});
  } else if (const auto* f = std::get_if<double>(&attribute); f && key == "value_float") {
    tensor = Tensor::Of<float>({}, {static_cast<float>(*f)});
  } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute); ints && key == "value_ints") {
    tensor = Tensor::Of<int64_t>({static_cast<int64_t>(ints->size())}, *ints);
  } else if (const auto* floats = std::get_if<std::vector<double>>(&attribute); floats && key == "value_floats") {
    tensor = Tensor::Of<float>({static_cast<int64_t>(floats->size())}, std::vector<float>(floats->begin(), floats->end()));
  } else {
    return Unsupported(fmt::format("a constant given as '{}'", key));
  }
  n.results[0] = n.AddConstant("value", std::move(tensor));
  return absl::OkStatus();
}

absl::Status Identity(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  n.results[0] = n.inputs[0];
  return absl::OkStatus();
}

// At inference the data passes unchanged and the mask, where anything uses it, is all ones.
absl::Status Dropout(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.Has(2)) {
    const Tensor* training = n.Constant(2);
    if (!training || training->elements() != 1 || training->at_int(0) != 0) return Unsupported("training mode");
  }
  n.results[0] = n.inputs[0];
  if (n.num_outputs() < 2) return absl::OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.inputs[0]));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, ir::CheckedElementCount(shape, int64_t{1} << 24));
  Tensor mask(n.opset() < 10 ? n.graph.type(n.inputs[0]).element : ir::ElementType::kBool, shape);
  for (int64_t i = 0; i < count; ++i) mask.set_int(i, 1);
  n.results[1] = n.AddConstant("mask", std::move(mask));
  return absl::OkStatus();
}

absl::Status ShapeOp(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.Input(0)));
  const auto rank = static_cast<int64_t>(shape.size());
  HEDDLE_ASSIGN_OR_RETURN(int64_t start, n.TakeInt("start", 0));
  HEDDLE_ASSIGN_OR_RETURN(int64_t end, n.TakeInt("end", rank));
  start = std::clamp<int64_t>(start < 0 ? std::max(start, -rank) + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? std::max(end, -rank) + rank : end, 0, rank);
  n.results[0] = n.AddInts("shape", start < end ? Shape(shape.begin() + start, shape.begin() + end) : Shape());
  return absl::OkStatus();
}

absl::Status Size(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.Input(0)));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, ir::CheckedElementCount(shape));
  n.results[0] = n.AddConstant("size", Tensor::Of<int64_t>({}, {count}));
  return absl::OkStatus();
}

// The attribute `key` as input `index`, where the opset has it as an attribute.
absl::Status AttributeToInput(NodeImporter& n, const std::string& key, size_t index) {
  if (!n.attributes.contains(key)) return absl::OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const auto values, n.TakeInts(key));
  n.SetInput(index, n.AddInts(key, values));
  return absl::OkStatus();
}

absl::Status Reshape(NodeImporter& n) {
  if (n.opset() < 5) HEDDLE_RETURN_IF_ERROR(AttributeToInput(n, "shape", 1));
  return n.EmitSame("Reshape");
}

absl::Status SqueezeUnsqueeze(NodeImporter& n) {
  if (n.opset() < 13) HEDDLE_RETURN_IF_ERROR(AttributeToInput(n, "axes", 1));
  return n.EmitSame(n.source.op);
}

absl::Status Slice(NodeImporter& n) {
  if (n.opset() < 10) {
    HEDDLE_RETURN_IF_ERROR(n.Require(1));
    HEDDLE_RETURN_IF_ERROR(AttributeToInput(n, "starts", 1));
    HEDDLE_RETURN_IF_ERROR(AttributeToInput(n, "ends", 2));
    HEDDLE_RETURN_IF_ERROR(AttributeToInput(n, "axes", 3));
  }
  return n.EmitSame("Slice");
}

// pads: begins of all axes, then ends. From opset 18 they may be of some `axes` only.
absl::Status SpreadPads(NodeImporter& n) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.Input(0)));
  HEDDLE_ASSIGN_OR_RETURN(const auto axes, n.ConstantInts(3, "axes"));
  HEDDLE_ASSIGN_OR_RETURN(const auto pads, n.ConstantInts(1, "pads"));
  if (pads.size() != 2 * axes.size()) return n.Malformed(fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> all(2 * shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -rank || axes[i] >= rank) return n.Malformed(fmt::format("axis {} of a tensor of rank {}", axes[i], rank));
    const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    all[axis] = pads[i];
    all[axis + shape.size()] = pads[i + axes.size()];
  }
  n.inputs.resize(3, kNoValue);
  n.inputs[1] = n.AddInts("pads", all);
  return absl::OkStatus();
}

absl::Status Pad(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.opset() < 11) {
    HEDDLE_RETURN_IF_ERROR(AttributeToInput(n, n.opset() < 2 ? "paddings" : "pads", 1));
    HEDDLE_ASSIGN_OR_RETURN(const double value, n.TakeFloat("value", 0));
    if (value != 0) {
      HEDDLE_ASSIGN_OR_RETURN(const ValueId constant, n.AddScalar("value", n.inputs[0], value));
      n.SetInput(2, constant);
    }
  }
  if (n.Has(3)) HEDDLE_RETURN_IF_ERROR(SpreadPads(n));
  return n.EmitSame("Pad");
}

// Always with explicit sizes: before opset 18 equal parts are meant by their number, from 18 on by num_outputs.
absl::Status Split(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.opset() < 13) HEDDLE_RETURN_IF_ERROR(AttributeToInput(n, "split", 1));
  const auto parts = static_cast<int64_t>(n.source.all_outputs);
  HEDDLE_ASSIGN_OR_RETURN(const int64_t wanted, n.TakeInt("num_outputs", parts));
  if (wanted != parts) return n.Malformed(fmt::format("num_outputs is {} on a node with {} outputs", wanted, parts));
  if (!n.Has(1)) {
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.inputs[0]));
    const auto rank = static_cast<int64_t>(shape.size());
    HEDDLE_ASSIGN_OR_RETURN(int64_t axis, n.TakeInt("axis", 0));
    if (axis < -rank || axis >= rank) return n.Malformed(fmt::format("axis {} of a tensor of rank {}", axis, rank));
    n.attributes["axis"] = axis;
    const int64_t extent = shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    const int64_t each = (extent + parts - 1) / parts;
    std::vector<int64_t> sizes(n.source.all_outputs, each);
    sizes.back() = extent - each * (parts - 1);
    if (sizes.back() < 0) return n.Malformed(fmt::format("{} elements cannot be split into {} parts", extent, parts));
    n.SetInput(1, n.AddInts("split", sizes));
  }
  HEDDLE_ASSIGN_OR_RETURN(auto values, n.EmitMany("Split", n.inputs, n.attributes, n.source.all_outputs));
  for (size_t i = 0; i < n.results.size(); ++i) n.results[i] = values[i];
  return absl::OkStatus();
}

absl::Status Concat(NodeImporter& n) {
  if (n.opset() < 4 && !n.attributes.contains("axis")) n.attributes["axis"] = int64_t{1};
  return n.EmitSame("Concat");
}

// Opset 1: one axis and how often it repeats; from opset 6 on the repeats of all axes.
absl::Status Tile(NodeImporter& n) {
  if (n.opset() >= 6) return n.EmitSame("Tile");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, n.ShapeOf(n.Input(0)));
  HEDDLE_ASSIGN_OR_RETURN(const auto tiles, n.ConstantInts(1, "tiles"));
  HEDDLE_ASSIGN_OR_RETURN(const auto axis, n.ConstantInts(2, "axis"));
  if (tiles.size() != 1 || axis.size() != 1 || axis[0] < 0 || axis[0] >= static_cast<int64_t>(shape.size())) {
    return n.Malformed("tiles and axis are one number each");
  }
  std::vector<int64_t> repeats(shape.size(), 1);
  repeats[static_cast<size_t>(axis[0])] = tiles[0];
  return n.Finish(n.Emit("Tile", {n.Input(0), n.AddInts("repeats", repeats)}));
}

absl::Status TopK(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(1));
  if (n.opset() < 10) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t k, n.TakeInt("k", -1));
    n.SetInput(1, n.AddInts("k", {k}));
  }
  return n.EmitSame("TopK");
}

absl::Status Scatter(NodeImporter& n) { return n.EmitSame("ScatterElements"); }

// `to` is a number of TensorProto.DataType; before opset 6 its name.
absl::Status Cast(NodeImporter& n) {
  n.Drop({"saturate", "round_mode"});  // of the 8-bit floats, which are refused
  auto it = n.attributes.find("to");
  if (it == n.attributes.end()) return n.Malformed("attribute 'to' is absent");
  int64_t to = 0;
  if (const auto* name = std::get_if<std::string>(&it->second); name && n.opset() < 6) {
    to = DataTypeCode(*name);
  } else if (const auto* code = std::get_if<int64_t>(&it->second)) {
    to = *code;
  } else {
    return n.Malformed("attribute 'to' is not a type");
  }
  if (!ElementOfCode(to)) return Unsupported("a cast to " + DataTypeText(to));
  n.attributes["to"] = to;
  return n.EmitSame("Cast");
}

absl::Status CastLike(NodeImporter& n) {
  HEDDLE_RETURN_IF_ERROR(n.Require(2));
  if (!n.Known(n.inputs[1])) return NeedsShape();
  return n.Finish(n.Emit("Cast", {n.inputs[0]}, {{"to", CodeOfElement(n.graph.type(n.inputs[1]).element)}}));
}

}  // namespace

const std::vector<RuleEntry>& ShapeRules() {
  static const std::vector<RuleEntry>& rules = *new std::vector<RuleEntry>{
      {"Constant", Constant}, {"Identity", Identity}, {"Dropout", Dropout},          {"Shape", ShapeOp},
      {"Size", Size},         {"Reshape", Reshape},   {"Squeeze", SqueezeUnsqueeze}, {"Unsqueeze", SqueezeUnsqueeze},
      {"Slice", Slice},       {"Pad", Pad},           {"Split", Split},              {"Concat", Concat},
      {"Tile", Tile},         {"TopK", TopK},         {"Scatter", Scatter},          {"Cast", Cast},
      {"CastLike", CastLike}};
  return rules;
}

}  // namespace heddle::frontend
