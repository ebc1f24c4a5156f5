// Inputs come from the first source that names them; what none names is drawn from a seed, the same on every machine.

#include "driver/inputs.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <random>

#include "ir/npz.h"

namespace heddle::driver {
namespace {

// Uniform without std::uniform_*_distribution, whose results differ between standard libraries.
double UniformReal(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

ir::Tensor RandomTensor(const ir::ValueType& type, std::mt19937_64& random) {
  ir::Tensor tensor(type.element, type.static_shape());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    switch (type.element) {
      case ir::ElementType::kFloat32:
      case ir::ElementType::kFloat64: tensor.set_double(i, UniformReal(random)); break;
      case ir::ElementType::kInt64:
      case ir::ElementType::kUint64:
      case ir::ElementType::kBool: tensor.set_int(i, static_cast<int64_t>(random() & 1)); break;
      default: tensor.set_int(i, static_cast<int64_t>(random())); break;
    }
  }
  return tensor;
}

// [N, …] where [1, …] is wanted: a file of many samples gives its first.
ir::Tensor FirstSample(const ir::Tensor& tensor, const ir::Shape& wanted) {
  ir::Tensor first(tensor.type(), wanted);
  std::memcpy(first.data(), tensor.data(), static_cast<size_t>(first.bytes()));
  return first;
}

bool IsManySamples(const ir::Shape& found, const ir::Shape& wanted) {
  return !wanted.empty() && wanted[0] == 1 && found.size() == wanted.size() && found[0] > 1 &&
         std::equal(found.begin() + 1, found.end(), wanted.begin() + 1);
}

absl::StatusOr<ir::Tensor> Fit(const ir::Value& value, const ir::Tensor& tensor, const std::string& source) {
  const ir::Shape wanted = value.type.static_shape();
  if (tensor.type() == value.type.element && tensor.shape() == wanted) return tensor;
  if (tensor.type() == value.type.element && IsManySamples(tensor.shape(), wanted)) return FirstSample(tensor, wanted);
  return ir::UserError("E-INPUT-003", fmt::format("input '{}' from {}: expected {}, found {}[{}]", value.name, source, ir::TypeText(value.type),
                                                  ir::ElementTypeName(tensor.type()), ir::ShapeText(tensor.shape())),
                       "convert the array to the model's type and shape");
}

struct Sources {
  std::map<std::string, std::pair<ir::Tensor, std::string>> tensors;  // by input name, with the file
  uint64_t seed = 0;
  bool random = true;  // inputs that no file names may be drawn
};

absl::Status ReadSpec(const std::string& spec, Sources& sources) {
  if (spec.starts_with("random:")) {
    const char* begin = spec.data() + 7;
    const char* end = spec.data() + spec.size();
    const auto result = std::from_chars(begin, end, sources.seed);
    if (result.ec != std::errc() || result.ptr != end) {
      return ir::UserError("E-INPUT-001", fmt::format("'{}': the seed is not a number", spec), "use --input random:42");
    }
    sources.random = true;
    return absl::OkStatus();
  }
  const size_t equals = spec.find('=');
  if (equals != std::string::npos) {
    HEDDLE_ASSIGN_OR_RETURN(ir::Tensor tensor, ir::ReadNpyFile(spec.substr(equals + 1)));
    sources.tensors[spec.substr(0, equals)] = {std::move(tensor), spec.substr(equals + 1)};
    return absl::OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(auto tensors, ir::ReadNpzFile(spec));
  for (auto& [name, tensor] : tensors) sources.tensors[name] = {std::move(tensor), spec};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ir::Tensor>> LoadInputs(const ir::Graph& graph, const std::vector<std::string>& specs) {
  Sources sources;
  sources.random = specs.empty();
  for (const std::string& spec : specs) HEDDLE_RETURN_IF_ERROR(ReadSpec(spec, sources));
  std::mt19937_64 random(sources.seed);
  std::vector<ir::Tensor> inputs;
  for (ir::ValueId id : graph.inputs()) {
    const ir::Value& value = graph.value(id);
    auto it = sources.tensors.find(value.name);
    if (it != sources.tensors.end()) {
      HEDDLE_ASSIGN_OR_RETURN(ir::Tensor tensor, Fit(value, it->second.first, it->second.second));
      inputs.push_back(std::move(tensor));
    } else if (sources.random) {
      inputs.push_back(RandomTensor(value.type, random));
    } else {
      return ir::UserError("E-INPUT-002", fmt::format("no --input gives '{}' ({})", value.name, ir::TypeText(value.type)),
                           "add NAME=FILE.npy, a key to the .npz, or random:SEED");
    }
  }
  return inputs;
}

absl::StatusOr<std::pair<std::string, ir::Shape>> ParseShapeOption(const std::string& text) {
  const size_t equals = text.rfind('=');
  ir::Shape shape;
  bool good = equals != std::string::npos && equals > 0 && equals + 1 < text.size();
  for (size_t begin = equals + 1; good && begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t extent = 0;
    const auto result = std::from_chars(text.data() + begin, text.data() + end, extent);
    good = result.ec == std::errc() && result.ptr == text.data() + end && extent >= 0;
    shape.push_back(extent);
    begin = end + 1;
  }
  if (good) return std::pair(text.substr(0, equals), shape);
  return ir::UserError("E-USAGE-003", fmt::format("--shape '{}' is not understood", text), "write --shape NAME=1,3,224,224");
}

}  // namespace heddle::driver
