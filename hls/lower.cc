// From graph to layers: the walk over the nodes, the layout of inputs, and all operators that only move elements, which
// become views (hls/layout.h) instead of work.

#include <fmt/format.h>

#include <algorithm>

#include "hls/lowering.h"
#include "hls/sum_range.h"
#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int64_t kLargestTensorBytes = int64_t{1} << 31;

std::vector<int64_t> ConstantInts(const ir::Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.at_int(i));
  return values;
}

}  // namespace

int Network::RootOf(int storage, Box& origin) const {
  origin = {};
  while (storages[storage].parent >= 0) {
    for (int axis = 0; axis < 4; ++axis) origin[axis] += storages[storage].parent_offset[axis];
    storage = storages[storage].parent;
  }
  return storage;
}

int Network::RootOf(int storage) const {
  Box origin;
  return RootOf(storage, origin);
}

absl::Status Lowering::Unsupported(std::string_view code, const ir::Node& node, const std::string& text) const {
  return ir::UserError(code, fmt::format("node '{}' ({}): {}", node.name, node.op, text), "it runs on another device");
}

View Lowering::NewStorage(const std::string& name, const Box& extents, const std::vector<int>& order) {
  Storage storage;
  storage.name = name;
  storage.extents = extents;
  network_.storages.push_back(std::move(storage));
  View view;
  view.storage = static_cast<int>(network_.storages.size()) - 1;
  view.atoms = AtomsInOrder(extents, order);
  return view;
}

bool Lowering::IsWindowed(const ir::Node& node) {
  return node.op == "QConv" || node.op == "QAveragePool" || node.op == "MaxPool" || node.op == "Pad";
}

// A value made by a windowed layer, or by element-wise nodes from one.
bool Lowering::MadeChannelsFirst(ir::ValueId value, int depth) const {
  const ir::NodeId producer = graph_.ProducerOf(value);
  if (producer == ir::kNoNode || graph_.IsConstant(value)) return false;
  const ir::Node& node = graph_.node(producer);
  if (IsWindowed(node)) return true;
  if (node.op == "QMatMul" || node.op == "Transpose" || depth == 0) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId input) {
    return input != ir::kNoValue && graph_.type(input).shape.size() == graph_.type(value).shape.size() && MadeChannelsFirst(input, depth - 1);
  });
}

// The first reader with an opinion decides; element-wise and moving nodes have that of their other operands and readers.
bool Lowering::PrefersChannelsFirst(ir::ValueId value, int depth) const {
  const size_t rank = graph_.type(value).shape.size();
  if (rank < 3) return false;
  for (const ir::Use& use : graph_.value(value).uses) {
    const ir::Node& node = graph_.node(use.node);
    if (IsWindowed(node)) return true;
    if (node.op == "QMatMul" || node.op == "Transpose" || depth == 0) continue;
    if (!node.outputs.empty() && MadeChannelsFirst(node.outputs[0], depth)) return true;
    const bool keeps_rank = !node.outputs.empty() && graph_.type(node.outputs[0]).shape.size() == rank;
    if (keeps_rank && PrefersChannelsFirst(node.outputs[0], depth - 1)) return true;
  }
  return false;
}

View Lowering::NaturalStorage(const std::string& name, const ir::Shape& shape, bool channels_first) {
  if (channels_first) {
    const int64_t height = shape.size() == 4 ? shape[2] : 1;
    return NewStorage(name, {shape[0], height, shape.back(), shape[1]}, {kAxisN, kAxisC, kAxisH, kAxisW});
  }
  const int64_t last = shape.empty() ? 1 : shape.back();
  return NewStorage(name, {1, ir::ElementCount(shape) / std::max<int64_t>(1, last), 1, last}, {kAxisN, kAxisH, kAxisW, kAxisC});
}

void Lowering::AddInput(ir::ValueId value) {
  const ir::Shape shape = ShapeOf(value);
  const std::string name = graph_.value(value).name;
  const View view = NaturalStorage(name, shape, PrefersChannelsFirst(value, 4));
  network_.storages[view.storage].is_input = true;
  network_.inputs.push_back({value, name, shape, view});
  views_[value] = view;
}

absl::Status Lowering::CheckTypes(const ir::Node& node) const {
  const auto check = [&](ir::ValueId value, const char* role) -> absl::Status {
    const ir::ValueType& type = graph_.type(value);
    if (!type.is_static()) {
      return Unsupported("E-ACC-003", node, fmt::format("{} has shape {}; expected constant dimensions", role, ir::TypeText(type)));
    }
    if (type.element != ir::ElementType::kInt8) {
      return Unsupported("E-ACC-002", node, fmt::format("{} is {}; expected i8", role, ir::TypeText(type)));
    }
    const int64_t elements = type.elements();
    if (elements < 1 || elements >= kLargestTensorBytes || type.shape.size() > 8) {
      return Unsupported("E-ACC-003", node, fmt::format("{} is {}; expected 1 to 2^31 elements", role, ir::TypeText(type)));
    }
    return absl::OkStatus();
  };
  HEDDLE_RETURN_IF_ERROR(check(node.inputs.at(0), "its input"));
  for (ir::ValueId output : node.outputs) HEDDLE_RETURN_IF_ERROR(check(output, "its output"));
  return absl::OkStatus();
}

absl::StatusOr<Network> Lowering::Run() {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::NodeId> order, graph_.TopologicalOrder());
  for (ir::NodeId id : order) HEDDLE_RETURN_IF_ERROR(CheckTypes(graph_.node(id)));
  for (ir::ValueId value : graph_.inputs()) {
    const bool other_type = graph_.type(value).element != ir::ElementType::kInt8 || !graph_.type(value).is_static();
    if (other_type) return ir::UserError("E-ACC-002", "region input '" + graph_.value(value).name + "' is not a fixed i8 tensor");
    AddInput(value);
  }
  for (ir::NodeId id : order) HEDDLE_RETURN_IF_ERROR(LowerNode(graph_.node(id)));
  for (ir::ValueId value : graph_.outputs()) {
    if (!views_.contains(value)) return ir::UserError("E-ACC-002", "region output '" + graph_.value(value).name + "' is a constant");
    network_.outputs.push_back({value, graph_.value(value).name, ShapeOf(value), ViewOf(value)});
  }
  return std::move(network_);
}

absl::Status Lowering::LowerNode(const ir::Node& node) {
  using Handler = absl::Status (Lowering::*)(const ir::Node&);
  static const std::map<std::string, Handler>* const handlers = new std::map<std::string, Handler>{
      {"QConv", &Lowering::LowerConv},       {"QMatMul", &Lowering::LowerMatMul},  {"QAveragePool", &Lowering::LowerAveragePool},
      {"MaxPool", &Lowering::LowerMaxPool},  {"QAdd", &Lowering::LowerAdd},        {"QMul", &Lowering::LowerMul},
      {"QLut", &Lowering::LowerLut},         {"Pad", &Lowering::LowerPad},         {"Reshape", &Lowering::LowerReshape},
      {"Flatten", &Lowering::LowerReshape},  {"Squeeze", &Lowering::LowerReshape}, {"Unsqueeze", &Lowering::LowerReshape},
      {"Identity", &Lowering::LowerReshape}, {"Slice", &Lowering::LowerSlice},     {"Split", &Lowering::LowerSplit},
      {"Concat", &Lowering::LowerConcat},    {"Transpose", &Lowering::LowerTranspose}};
  const auto handler = handlers->find(node.op);
  if (handler == handlers->end()) return Unsupported("E-ACC-001", node, "the engine has no such operation");
  const bool two_operands = node.op == "QAdd" || node.op == "QMul" || node.op == "Concat";
  if (!two_operands && !views_.contains(node.inputs[0])) {
    return Unsupported("E-ACC-005", node, "its input is a constant; expected an activation");
  }
  last_node_ = node.id;
  if (rearranged_.contains(node.id)) HEDDLE_RETURN_IF_ERROR(RearrangeOperands(node));
  return (this->*handler->second)(node);
}

absl::Status Lowering::LowerReshape(const ir::Node& node) {
  views_[node.outputs[0]] = ViewOf(node.inputs[0]);
  if (producers_.contains(node.inputs[0]) && graph_.value(node.inputs[0]).uses.size() == 1 && !graph_.IsOutput(node.inputs[0])) {
    producers_[node.outputs[0]] = producers_[node.inputs[0]];
  }
  return absl::OkStatus();
}

absl::Status Lowering::LowerTranspose(const ir::Node& node) {
  const ir::Shape shape = ShapeOf(node.inputs[0]);
  std::vector<int64_t> perm = node.Ints("perm");
  for (int64_t d = static_cast<int64_t>(shape.size()); perm.size() < shape.size() && d-- > 0;) perm.push_back(d);
  View view = ViewOf(node.inputs[0]);
  const auto dims = GroupAtoms(view.atoms, shape);
  if (!dims) return Unsupported("E-ACC-010", node, "its dimensions cross those of the layout in memory");
  view.atoms.clear();
  for (int64_t d : perm) {
    const auto& atoms = (*dims)[static_cast<size_t>(d)];
    view.atoms.insert(view.atoms.end(), atoms.begin(), atoms.end());
  }
  views_[node.outputs[0]] = view;
  return absl::OkStatus();
}

absl::StatusOr<View> Lowering::SliceView(const ir::Node& node, const View& view, const ir::Shape& shape, int dim, int64_t start,
                                         int64_t count, int64_t step) const {
  auto dims = GroupAtoms(view.atoms, shape);
  if (!dims) return Unsupported("E-ACC-010", node, "its dimensions cross those of the layout in memory");
  std::vector<Atom>& atoms = (*dims)[static_cast<size_t>(dim)];
  atoms = MergeAtoms(atoms);
  if (atoms.size() > 1) return Unsupported("E-ACC-010", node, "the cut dimension is made of several in memory");
  View part = view;
  if (!atoms.empty()) {
    part.offset[atoms[0].axis] += start * atoms[0].multiple;
    atoms[0] = {atoms[0].axis, atoms[0].multiple * step, count};
    if (count == 1) atoms.clear();
  }
  part.atoms.clear();
  for (const auto& list : *dims) part.atoms.insert(part.atoms.end(), list.begin(), list.end());
  return part;
}

absl::Status Lowering::LowerSlice(const ir::Node& node) {
  ir::Shape shape = ShapeOf(node.inputs[0]);
  const ir::Shape out_shape = ShapeOf(node.outputs[0]);
  const auto ints = [&](size_t input) -> std::vector<int64_t> {
    const ir::Tensor* tensor = input < node.inputs.size() ? graph_.ConstantOrNull(node.inputs[input]) : nullptr;
    return tensor ? ConstantInts(*tensor) : std::vector<int64_t>{};
  };
  const std::vector<int64_t> starts = ints(1), axes = ints(3), steps = ints(4);
  if (starts.empty()) return Unsupported("E-ACC-005", node, "its starts are not constant");
  View view = ViewOf(node.inputs[0]);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : (axes[i] + rank) % rank;
    const int64_t step = steps.empty() ? 1 : steps[i];
    if (step < 1) return Unsupported("E-ACC-010", node, fmt::format("step {}; expected a positive one", step));
    const int64_t extent = shape[static_cast<size_t>(axis)], count = out_shape[static_cast<size_t>(axis)];
    const int64_t start = std::clamp<int64_t>(starts[i] < 0 ? starts[i] + extent : starts[i], 0, extent);
    HEDDLE_ASSIGN_OR_RETURN(view, SliceView(node, view, shape, static_cast<int>(axis), start, count, step));
    shape[static_cast<size_t>(axis)] = count;
  }
  views_[node.outputs[0]] = view;
  return absl::OkStatus();
}

absl::Status Lowering::LowerSplit(const ir::Node& node) {
  const ir::Shape shape = ShapeOf(node.inputs[0]);
  const int64_t rank = static_cast<int64_t>(shape.size());
  const int axis = static_cast<int>((node.Int("axis", 0) + rank) % rank);
  int64_t start = 0;
  for (ir::ValueId output : node.outputs) {
    const int64_t count = ShapeOf(output)[static_cast<size_t>(axis)];
    HEDDLE_ASSIGN_OR_RETURN(views_[output], SliceView(node, ViewOf(node.inputs[0]), shape, axis, start, count, 1));
    start += count;
  }
  return absl::OkStatus();
}

// The parts are written straight into the whole, whose arrangement is that of the first part.
absl::Status Lowering::LowerConcat(const ir::Node& node) {
  const ir::ValueId first = node.inputs[0];
  for (ir::ValueId input : node.inputs) {
    if (!views_.contains(input)) return Unsupported("E-ACC-005", node, "one of its inputs is a constant; expected activations");
  }
  const ir::Shape first_shape = ShapeOf(first), out_shape = ShapeOf(node.outputs[0]);
  const int64_t rank = static_cast<int64_t>(out_shape.size());
  const size_t dim = static_cast<size_t>((node.Int("axis") + rank) % rank);
  Box extents;
  std::vector<Atom> atoms;
  if (!DenseCopyOf(ViewOf(first), extents, atoms)) return Unsupported("E-ACC-010", node, "its input is cut unevenly from memory");
  auto dims = GroupAtoms(atoms, first_shape);
  if (!dims || (*dims)[dim].size() > 1) return Unsupported("E-ACC-010", node, "the joined dimension is made of several in memory");
  // A dimension of extent 1 has no atom yet: it may take an axis that is not in use.
  int axis = (*dims)[dim].empty() ? -1 : (*dims)[dim][0].axis;
  for (int candidate : {kAxisH, kAxisW, kAxisN, kAxisC}) {
    if (axis < 0 && extents[candidate] == 1) axis = candidate;
  }
  if (axis < 0 || (!(*dims)[dim].empty() && extents[axis] != first_shape[dim])) {
    return Unsupported("E-ACC-010", node, "the joined dimension shares a memory axis with another");
  }
  extents[axis] = out_shape[dim];
  (*dims)[dim] = {{axis, 1, out_shape[dim]}};
  View whole = NewStorage(graph_.value(node.outputs[0]).name, extents, {});
  for (const auto& list : *dims) whole.atoms.insert(whole.atoms.end(), list.begin(), list.end());
  int64_t position = 0;
  for (ir::ValueId input : node.inputs) {
    HEDDLE_RETURN_IF_ERROR(PlaceInConcat(node, input, whole, axis, position));
    position += ShapeOf(input)[dim];
  }
  views_[node.outputs[0]] = whole;
  return absl::OkStatus();
}

absl::Status Lowering::PlaceInConcat(const ir::Node& node, ir::ValueId input, const View& whole, int axis, int64_t position) {
  const View view = ViewOf(input);
  const ir::Shape shape = ShapeOf(input);
  const int64_t rank = static_cast<int64_t>(shape.size());
  const int dim = static_cast<int>((node.Int("axis") + rank) % rank);
  HEDDLE_ASSIGN_OR_RETURN(View part, SliceView(node, whole, ShapeOf(node.outputs[0]), dim, position, shape[static_cast<size_t>(dim)], 1));
  Storage& storage = network_.storages[view.storage];
  const bool aligned = !storage.align_pixels || axis != kAxisC || position % params_.output_lanes == 0;
  View origin = part;
  origin.offset = {};
  if (producers_.contains(input) && storage.parent < 0 && !storage.is_input && storage.constant.empty() && aligned &&
      view.offset == Box{} && MergeAtoms(view.atoms) == MergeAtoms(origin.atoms) && network_.layers[producers_[input]].out.storage == view.storage) {
    storage.parent = whole.storage;
    storage.parent_offset[axis] = position;
    Storage& root = network_.storages[whole.storage];
    root.align_pixels |= storage.align_pixels;
    root.odd_rows |= storage.odd_rows;
    return absl::OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(Layer copy, MakeElementwise(node, view, shape, ir::kNoValue));
  const auto align = AlignViews({copy.out.storage, {}, origin.atoms}, shape, view, shape);
  Box extents;
  std::vector<Atom> atoms;
  if (!align || !DenseCopyOf(view, extents, atoms) || MergeAtoms(atoms) != MergeAtoms(origin.atoms)) {
    return Unsupported("E-ACC-010", node, "its inputs are arranged differently in memory");
  }
  network_.storages[copy.out.storage].parent = whole.storage;
  network_.storages[copy.out.storage].parent_offset[axis] = position;
  copy.name = node.name + "." + graph_.value(input).name;
  return FinishLayer(node, ir::kNoValue, std::move(copy));
}

// A node that cannot follow its operands in memory gets copies of them, in another attempt from the start.
absl::StatusOr<Network> LowerRegion(const ir::Graph& region, const AcceleratorParams& params) {
  std::set<ir::NodeId> rearranged;
  while (true) {
    Lowering lowering(region, params, rearranged);
    absl::StatusOr<Network> network = lowering.Run();
    if (network.ok()) SetWideDrains(*network);
    const std::string code = network.ok() ? "" : ir::ErrorCode(network.status());
    const bool arrangement = code == "E-ACC-010" || code == "E-ACC-011";
    if (!arrangement || lowering.last_node() == ir::kNoNode || !rearranged.insert(lowering.last_node()).second) return network;
  }
}

}  // namespace heddle::hls
