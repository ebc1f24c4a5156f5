// Calibration files come from outside: every array is checked against the model's input, and for numbers that are none,
// before anything runs on it.

#include "driver/calibration_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "driver/inputs.h"
#include "ir/npz.h"

namespace heddle::driver {
namespace {

absl::Status Unreadable(const std::string& path, std::string_view what) {
  return ir::UserError("E-QUANT-101", fmt::format("calibration data '{}' {}", path, what),
                       "give an .npz, an .npy or a folder of them");
}

// The samples in `found` for an input of `wanted`'s shape, or 0 where it does not fit.
int64_t SamplesIn(const ir::Shape& found, const ir::Shape& wanted) {
  if (found == wanted) return 1;
  if (wanted.empty()) return 0;
  const ir::Shape rest(wanted.begin() + 1, wanted.end());
  if (found == rest && wanted[0] == 1) return 1;
  const bool same_rest = found.size() == wanted.size() && std::equal(rest.begin(), rest.end(), found.begin() + 1);
  return same_rest && wanted[0] > 0 ? found[0] / wanted[0] : 0;
}

absl::Status CheckFinite(const ir::Tensor& tensor, const std::string& input, const std::string& source) {
  if (!ir::IsFloat(tensor.type())) return absl::OkStatus();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (std::isfinite(tensor.at_double(i))) continue;
    return ir::UserError("E-QUANT-105",
                         fmt::format("input '{}' from {}: element {} is {}, expected finite numbers", input, source, i,
                                     tensor.at_double(i)),
                         "leave such samples out");
  }
  return absl::OkStatus();
}

ir::Tensor Sample(const ir::Tensor& tensor, const ir::Shape& wanted, int64_t index) {
  ir::Tensor sample(tensor.type(), wanted);
  std::memcpy(sample.data(), tensor.data() + index * sample.bytes(), static_cast<size_t>(sample.bytes()));
  return sample;
}

}  // namespace

absl::StatusOr<CalibrationData> CalibrationData::Open(const ir::Graph& graph, const std::vector<std::string>& specs,
                                                      int64_t most_samples) {
  CalibrationData data(graph);
  data.most_samples_ = most_samples;
  data.specs_ = specs;
  for (const std::string& spec : specs) HEDDLE_RETURN_IF_ERROR(data.AddSpec(spec));
  for (const Source& source : data.sources_) HEDDLE_RETURN_IF_ERROR(data.CheckComplete(source));
  data.random_ = data.sources_.empty();
  return data;
}

absl::Status CalibrationData::AddSpec(const std::string& spec) {
  if (spec.starts_with("random:")) {
    const auto result = std::from_chars(spec.data() + 7, spec.data() + spec.size(), seed_);
    if (result.ec == std::errc() && result.ptr == spec.data() + spec.size()) return absl::OkStatus();
    return ir::UserError("E-QUANT-102", fmt::format("'{}': the seed is not a number", spec),
                         "use --calibrate random:42");
  }
  const size_t equals = spec.find('=');
  if (equals == std::string::npos || std::filesystem::exists(spec)) return AddPath(spec);
  const std::string name = spec.substr(0, equals), file = spec.substr(equals + 1);
  const auto id = graph_.FindValue(name);
  if (!id || std::find(graph_.inputs().begin(), graph_.inputs().end(), *id) == graph_.inputs().end()) {
    std::vector<std::string> names;
    for (ir::ValueId input : graph_.inputs()) names.push_back(graph_.value(input).name);
    return ir::UserError("E-QUANT-102", fmt::format("'{}': the model has no input '{}'", spec, name),
                         fmt::format("its inputs are {}", fmt::join(names, ", ")));
  }
  // All NAME=FILE specs make one source.
  auto named = std::find_if(sources_.begin(), sources_.end(),
                            [](const Source& source) { return source.name == "NAME=FILE.npy"; });
  if (named == sources_.end()) named = sources_.insert(sources_.end(), Source{"", {}, "NAME=FILE.npy"});
  named->npy[name] = file;
  return absl::OkStatus();
}

absl::Status CalibrationData::AddPath(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return AddFolder(path);
  if (!std::filesystem::exists(path, error)) return Unreadable(path, "does not exist");
  if (path.ends_with(".npz")) {
    sources_.push_back({path, {}, path});
    return absl::OkStatus();
  }
  if (!path.ends_with(".npy")) return Unreadable(path, "is neither .npz nor .npy nor a folder");
  if (graph_.inputs().size() != 1) {
    return ir::UserError("E-QUANT-103",
                         fmt::format("'{}' holds one array; the model has {} inputs", path, graph_.inputs().size()),
                         "use NAME=FILE.npy for each input, or .npz files with a key for each");
  }
  sources_.push_back({"", {{graph_.value(graph_.inputs()[0]).name, path}}, path});
  return absl::OkStatus();
}

absl::Status CalibrationData::AddFolder(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (entry.is_regular_file() && (path.ends_with(".npz") || path.ends_with(".npy"))) files.push_back(path);
  }
  if (error) return Unreadable(folder, "cannot be read");
  if (files.empty()) return Unreadable(folder, "holds no .npz and no .npy file");
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) HEDDLE_RETURN_IF_ERROR(AddPath(file));
  return absl::OkStatus();
}

absl::Status CalibrationData::CheckComplete(const Source& source) const {
  for (ir::ValueId id : graph_.inputs()) {
    const std::string& name = graph_.value(id).name;
    if (!source.npz.empty() || source.npy.contains(name)) continue;
    return ir::UserError("E-QUANT-103",
                         fmt::format("no calibration data for input '{}' ({})", name, ir::TypeText(graph_.type(id))),
                         fmt::format("add --calibrate {}=FILE.npy", name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, ir::Tensor>> CalibrationData::Read(const Source& source) const {
  std::map<std::string, ir::Tensor> tensors;
  for (const auto& [name, file] : source.npy) {
    HEDDLE_ASSIGN_OR_RETURN(tensors[name], ir::ReadNpyFile(file));
  }
  if (source.npz.empty()) return tensors;
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ir::NamedTensor> entries, ir::ReadNpzFile(source.npz));
  std::vector<std::string> keys;
  for (ir::NamedTensor& entry : entries) {
    keys.push_back(entry.name);
    tensors[entry.name] = std::move(entry.tensor);
  }
  if (entries.size() == 1 && graph_.inputs().size() == 1) {
    const std::string& name = graph_.value(graph_.inputs()[0]).name;
    if (keys[0] != name) tensors[name] = std::move(tensors[keys[0]]);
  }
  for (ir::ValueId id : graph_.inputs()) {
    const std::string& name = graph_.value(id).name;
    if (tensors.contains(name)) continue;
    return ir::UserError("E-QUANT-103",
                         fmt::format("'{}' has no key '{}' ({}), found {}", source.npz, name,
                                     ir::TypeText(graph_.type(id)), fmt::join(keys, ", ")),
                         "name the arrays like the model's inputs");
  }
  return tensors;
}

absl::Status CalibrationData::VisitSource(
    const Source& source, int64_t& left,
    const std::function<absl::Status(const std::vector<ir::Tensor>&)>& visit) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto tensors, Read(source));
  int64_t samples = 0;
  for (ir::ValueId id : graph_.inputs()) {
    const ir::Value& value = graph_.value(id);
    const ir::Tensor& tensor = tensors.at(value.name);
    const int64_t own = SamplesIn(tensor.shape(), value.type.static_shape());
    if (own == 0 || tensor.type() != value.type.element) {
      return ir::UserError(
          "E-QUANT-104",
          fmt::format("input '{}' from {}: expected {} or many along its leading dimension, found {}[{}]", value.name,
                      source.name, ir::TypeText(value.type), ir::ElementTypeName(tensor.type()),
                      ir::ShapeText(tensor.shape())),
          "convert the array to the model's type and shape");
    }
    if (samples != 0 && own != samples) {
      return ir::UserError("E-QUANT-106",
                           fmt::format("{}: input '{}' has {} samples, the inputs before have {}", source.name,
                                       value.name, own, samples),
                           "give every input the same number");
    }
    samples = own;
    HEDDLE_RETURN_IF_ERROR(CheckFinite(tensor, value.name, source.name));
  }
  for (int64_t s = 0; s < samples && left > 0; ++s, --left) {
    std::vector<ir::Tensor> inputs;
    for (ir::ValueId id : graph_.inputs())
      inputs.push_back(Sample(tensors.at(graph_.value(id).name), graph_.type(id).static_shape(), s));
    HEDDLE_RETURN_IF_ERROR(visit(inputs));
    ++samples_;
  }
  return absl::OkStatus();
}

absl::Status CalibrationData::VisitRandom(
    int64_t left, const std::function<absl::Status(const std::vector<ir::Tensor>&)>& visit) const {
  for (int64_t s = 0; s < left; ++s) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ir::Tensor> inputs,
                            LoadInputs(graph_, {fmt::format("random:{}", seed_ + static_cast<uint64_t>(s))}));
    HEDDLE_RETURN_IF_ERROR(visit(inputs));
    ++samples_;
  }
  return absl::OkStatus();
}

absl::Status CalibrationData::ForEach(const std::function<absl::Status(const std::vector<ir::Tensor>&)>& visit) const {
  samples_ = 0;
  if (random_) return VisitRandom(most_samples_ > 0 ? most_samples_ : kRandomSamples, visit);
  int64_t left = most_samples_ > 0 ? most_samples_ : INT64_MAX;
  for (const Source& source : sources_) {
    if (left <= 0) break;
    HEDDLE_RETURN_IF_ERROR(VisitSource(source, left, visit));
  }
  return absl::OkStatus();
}

std::string CalibrationData::Description() const {
  if (random_) return fmt::format("{} random samples (random:{})", samples_, seed_);
  return fmt::format("{} samples of {}", samples_, fmt::join(specs_, ", "));
}

}  // namespace heddle::driver
